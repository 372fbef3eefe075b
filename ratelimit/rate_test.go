package ratelimit_test

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/callgate/callgate/ratelimit"
)

// rates reads testdata/rates.txt; rows are text, what is read back, burst.
func rates(t testing.TB) [][3]string {
	t.Helper()
	data, err := os.ReadFile("testdata/rates.txt")
	if err != nil {
		t.Fatal(err)
	}
	var rows [][3]string
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, "\n"), " | ")
		if len(cells) != 3 {
			t.Fatalf("%q: found %d cells, expected 3", line, len(cells))
		}
		rows = append(rows, [3]string(cells))
	}
	if len(rows) < 30 {
		t.Fatalf("found %d rows", len(rows))
	}
	return rows
}

func TestParseRate(t *testing.T) {
	for _, row := range rates(t) {
		r, err := ratelimit.ParseRate(row[0])
		if row[1] == "!" {
			if err == nil {
				t.Errorf("%q: read as %s, want it refused", row[0], r)
			} else if !strings.Contains(err.Error(), row[2]) || !strings.Contains(err.Error(), strconv.Quote(row[0])) {
				t.Errorf("%q: the error %q does not say %q and what was found", row[0], err, row[2])
			}
			if r != (ratelimit.Rate{}) {
				t.Errorf("%q: a refused rate is %s, want the zero Rate", row[0], r)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", row[0], err)
		} else if r.String() != row[1] || strconv.Itoa(r.Burst()) != row[2] {
			t.Errorf("%q: read as %s, burst %d; want %s, burst %s", row[0], r, r.Burst(), row[1], row[2])
		}
	}
	if zero := (ratelimit.Rate{}); zero.String() != "" || zero.Burst() != 0 {
		t.Errorf("the zero Rate is %q, burst %d", zero, zero.Burst())
	}
}

func FuzzParseRate(f *testing.F) {
	for _, row := range rates(f) {
		f.Add(row[0])
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ratelimit.ParseRate(s)
		if (err == nil) == (r == ratelimit.Rate{}) {
			t.Fatalf("%q: rate %q with error %v", s, r, err)
		}
		if err != nil {
			return
		}
		if r.String() != s {
			t.Fatalf("%q is read as %s", s, r)
		}
		if b := r.Burst(); b < 1 || b > 1_000_000 {
			t.Fatalf("%q: burst %d", s, b)
		}
		limits := ratelimit.Limits{Caller: &ratelimit.Budget{Rate: r, Burst: r.Burst()}, Replicas: 1}
		if faults := limits.Validate(); faults != nil {
			t.Fatalf("%q: %v", s, faults)
		}
	})
}
