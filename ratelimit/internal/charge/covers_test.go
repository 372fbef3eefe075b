package charge

import "testing"

func TestCovers(t *testing.T) {
	budget := func(rate string, burst int) Budget {
		r, err := ParseRate(rate)
		if err != nil {
			t.Fatal(err)
		}
		return Budget{Rate: r, Burst: burst}
	}
	for _, c := range []struct {
		b, other Budget
		want     bool
	}{
		{budget("1/s", 5), budget("60/m", 5), true},
		{budget("60/m", 5), budget("1/s", 5), true},
		{budget("3600/h", 6), budget("1/s", 5), true},
		{budget("1/s", 4), budget("1/s", 5), false},
		{budget("59/m", 5), budget("1/s", 5), false},
		{budget("1/h", 5), budget("1/m", 5), false},
	} {
		if got := c.b.Covers(c.other); got != c.want {
			t.Errorf("%v covers %v: %v", c.b, c.other, got)
		}
	}
}
