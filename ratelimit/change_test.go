package ratelimit_test

import (
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
)

// A change of figures neither fills a bucket nor empties it.
func TestFiguresChange(t *testing.T) {
	cases := map[string]struct {
		before, after ratelimit.Budget
		spend         int
		want          int           // admitted at once after the change
		wait          time.Duration // and then, after this long
		then          int
	}{
		"rate up, spent":       {budget("1/h", 5), budget("10/s", 5), 5, 0, 300 * time.Millisecond, 3},
		"rate down, spent":     {budget("10/s", 5), budget("1/h", 5), 5, 0, time.Hour, 1},
		"burst up, spent":      {budget("1/s", 5), budget("1/s", 50), 5, 0, 10 * time.Second, 10},
		"burst up, full":       {budget("1/s", 5), budget("1/s", 50), 1, 4, 100 * time.Second, 50},
		"burst down, full":     {budget("1/s", 50), budget("1/s", 5), 1, 5, 100 * time.Second, 5},
		"burst down, half":     {budget("1/s", 50), budget("1/s", 30), 30, 20, 100 * time.Second, 30},
		"burst and rate, half": {budget("1/s", 50), budget("10/s", 10), 45, 5, 500 * time.Millisecond, 5},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			each(t, func(t *testing.T, l ratelimit.Limiter, clk *clock) {
				if n := drain(l, onlyTool(c.before), alpha, c.spend); n != c.spend {
					t.Fatalf("%d admitted before, want %d", n, c.spend)
				}
				if n := drain(l, onlyTool(c.after), alpha, 200); n != c.want {
					t.Fatalf("%d admitted after the change, want %d", n, c.want)
				}
				clk.move(c.wait)
				if n := drain(l, onlyTool(c.after), alpha, 200); n != c.then {
					t.Fatalf("%d admitted %v later, want %d", n, c.wait, c.then)
				}
			})
		})
	}
}

// A budget that is taken out and put back has not been filled meanwhile, and an agent that
// is named keeps the bucket it had by default.
func TestBudgetsComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, l ratelimit.Limiter, _ *clock) {
		b := budget("1/h", 3)
		if n := drain(l, onlyDefault(b), alpha, 2); n != 2 {
			t.Fatal(n)
		}
		if n := drain(l, &ratelimit.Limits{}, alpha, 9); n != 9 {
			t.Fatal(n)
		}
		if n := drain(l, onlyAgent(b), alpha, 9); n != 1 {
			t.Fatalf("%d admitted, want the 1 that was left", n)
		}
	})
}
