package main

import (
	"math"
	"testing"
)

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{7}, spread{7, 7, 7, 7, 7}},
		{[]float64{2, 1}, spread{1, 1.25, 1.5, 1.75, 2}},
		{[]float64{5, 1, 4, 2, 3}, spread{1, 2, 3, 4, 5}},
		{[]float64{40, 10, 30, 20}, spread{10, 17.5, 25, 32.5, 40}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// A machine that slows down by the round changes no ratio of pairs, though it
// changes the ratio of medians.
func TestPairsOutlastDrift(t *testing.T) {
	reference := []float64{100, 200, 400, 800}
	values := []float64{110, 220, 440, 880}
	got := spreadOf(pairs(values, reference))
	for _, v := range []float64{got.min, got.median, got.max} {
		if math.Abs(v-1.1) > 1e-9 {
			t.Errorf("%v, want 1.1 throughout", got)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name string
		cost []float64
		want verdict
	}{
		{"all alike", []float64{1, 1, 1, 1}, same},
		{"noise on both sides", []float64{0.7, 0.9, 1.0, 1.2, 1.4}, same},
		{"dearer by a little, always", []float64{1.02, 1.03, 1.04, 1.05, 1.06}, slower},
		{"at the bound", []float64{1.1, 1.1, 1.1}, slower},
		{"over the bound, always", []float64{1.08, 1.12, 1.15, 1.16, 1.2}, fails},
		{"over the bound, within noise", []float64{0.8, 0.95, 1.15, 1.4, 1.9}, unsure},
		{"one slow round", []float64{1, 1, 1, 1, 9}, same},
		{"one quick round", []float64{0.2, 1.2, 1.2, 1.2, 1.2}, fails},
		{"cheaper", []float64{0.8, 0.85, 0.9, 0.92, 0.95}, better},
	} {
		if got := judge(spreadOf(c.cost), 1.10); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// Throughput is judged by its inverse: half the requests cost twice as much.
func TestInverse(t *testing.T) {
	throughput := spreadOf([]float64{0.4, 0.5, 0.5, 0.5, 0.8})
	if got, want := throughput.inverse(), (spread{1.25, 2, 2, 2, 2.5}); got != want {
		t.Fatalf("%v, want %v", got, want)
	}
	if got := judge(throughput.inverse(), 1.10); got != fails {
		t.Errorf("%q, want %q", got, fails)
	}
}
