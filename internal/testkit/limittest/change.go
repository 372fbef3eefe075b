package limittest

import (
	"testing"
	"time"

	"github.com/callgate/callgate/ratelimit"
)

// A change of figures neither fills a bucket nor empties it.
func (bs Backends) figuresChange(t *testing.T) {
	cases := map[string]struct {
		before, after ratelimit.Budget
		spend         int
		want          int           // admitted at once after the change
		wait          time.Duration // and then, after this long
		then          int
	}{
		"rate up, spent":       {Budget("1/h", 5), Budget("10/s", 5), 5, 0, 300 * time.Millisecond, 3},
		"rate down, spent":     {Budget("10/s", 5), Budget("1/h", 5), 5, 0, time.Hour, 1},
		"burst up, spent":      {Budget("1/s", 5), Budget("1/s", 50), 5, 0, 10 * time.Second, 10},
		"burst up, full":       {Budget("1/s", 5), Budget("1/s", 50), 1, 4, 100 * time.Second, 50},
		"burst down, full":     {Budget("1/s", 50), Budget("1/s", 5), 1, 5, 100 * time.Second, 5},
		"burst down, half":     {Budget("1/s", 50), Budget("1/s", 30), 30, 20, 100 * time.Second, 30},
		"burst and rate, half": {Budget("1/s", 50), Budget("10/s", 10), 45, 5, 500 * time.Millisecond, 5},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			bs.each(t, func(t *testing.T, l ratelimit.Limiter, clk *Clock) {
				if n := Drain(l, OnlyTool(c.before), Alpha, c.spend); n != c.spend {
					t.Fatalf("%d admitted before, want %d", n, c.spend)
				}
				if n := Drain(l, OnlyTool(c.after), Alpha, 200); n != c.want {
					t.Fatalf("%d admitted after the change, want %d", n, c.want)
				}
				clk.Move(c.wait)
				if n := Drain(l, OnlyTool(c.after), Alpha, 200); n != c.then {
					t.Fatalf("%d admitted %v later, want %d", n, c.wait, c.then)
				}
			})
		})
	}
}

// A budget that is taken out and put back has not been filled meanwhile, and an agent that
// is named keeps the bucket it had by default.
func (bs Backends) budgetsComeAndGo(t *testing.T) {
	bs.each(t, func(t *testing.T, l ratelimit.Limiter, _ *Clock) {
		b := Budget("1/h", 3)
		if n := Drain(l, OnlyDefault(b), Alpha, 2); n != 2 {
			t.Fatal(n)
		}
		if n := Drain(l, &ratelimit.Limits{}, Alpha, 9); n != 9 {
			t.Fatal(n)
		}
		if n := Drain(l, OnlyAgent(b), Alpha, 9); n != 1 {
			t.Fatalf("%d admitted, want the 1 that was left", n)
		}
	})
}
