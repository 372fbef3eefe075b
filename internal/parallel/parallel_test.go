package parallel_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/callgate/callgate/internal/parallel"
)

func TestFor(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1_000} {
		done := make([]int, n)
		parallel.For(n, func(i int) { done[i]++ })
		if slices.ContainsFunc(done, func(times int) bool { return times != 1 }) {
			t.Errorf("of %d indices, found %v; expected each once", n, done)
		}
	}
}

// TestForPanics panics in the middle: the caller can recover, and no goroutine is left that works on.
func TestForPanics(t *testing.T) {
	var running atomic.Int64
	defer func() {
		if p := recover(); p != "the tenth" {
			t.Errorf("recovered %v; expected the panic of the tenth", p)
		}
		if left := running.Load(); left != 0 {
			t.Errorf("found %d calls that had not ended", left)
		}
	}()
	parallel.For(1_000, func(i int) {
		running.Add(1)
		defer running.Add(-1)
		if i == 10 {
			panic("the tenth")
		}
	})
	t.Error("it returned; expected a panic")
}
