package decimal_test

import (
	"cmp"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/decimal"
)

func TestParse(t *testing.T) {
	for _, bad := range []string{"", "-", "01", "-01", "1.", ".5", "1e", "1e+", "+1", "1e401", "1e-401", "1e99999999999999999999", " 1", "1 ", "0x1", "NaN", "1_0", "１", "1.0.0", "1e5e5", strings.Repeat("1", 257)} {
		if d, ok := decimal.Parse(bad); ok {
			t.Errorf("%q is the number %s", bad, d)
		}
	}
	for literal, want := range map[string]decimal.Decimal{
		"0": {}, "-0": {}, "-0.0e5": {}, "0e400": {}, "1e400": {Digits: "1", Exponent: 400}, "1e-400": {Digits: "1", Exponent: -400},
		"-120.50": {Negative: true, Digits: "1205", Exponent: -1}, "1200E+1": {Digits: "12", Exponent: 3}, "0.0012": {Digits: "12", Exponent: -4},
		strings.Repeat("9", 256): {Digits: strings.Repeat("9", 256)},
	} {
		if got, ok := decimal.Parse(literal); !ok || got != want {
			t.Errorf("%s: %+v, %v", literal, got, ok)
		}
	}
	long := "1" + strings.Repeat("0", 1000) + "e1000"
	if got, ok := decimal.ParseUpTo(long, 1000); !ok || got != (decimal.Decimal{Digits: "1", Exponent: 2000}) {
		t.Errorf("a long literal: %+v, %v", got, ok)
	}
	if _, ok := decimal.ParseUpTo("1e-1001", 1000); ok {
		t.Error("an exponent beyond the bound is taken")
	}
}

func TestString(t *testing.T) {
	for literal, want := range map[string]string{
		"-0": "0", "1e20": "100000000000000000000", "1e21": "1e21", "-1.50": "-1.5", "5e-1": "0.5", "1e-21": "0.000000000000000000001", "1e-22": "1e-22", "-12e-1": "-1.2",
	} {
		if d, ok := decimal.Parse(literal); !ok || d.String() != want {
			t.Errorf("%s: %s; expected %s", literal, d, want)
		}
	}
}

// FuzzDecimal compares with the exact fractions of math/big.
func FuzzDecimal(f *testing.F) {
	for _, seed := range [][2]string{{"0", "-0"}, {"1", "1.0"}, {"10e-1", "1"}, {"-3", "0.5"}, {"1e400", "1e-400"}, {"9.99", "10"}, {"0.30", "0.1"}, {"-1200", "1e2"}, {"7", "0"}, {"01", "1."}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		a, okA := decimal.Parse(x)
		b, okB := decimal.Parse(y)
		if okA && !json.Valid([]byte(x)) {
			t.Fatalf("%q is a number", x)
		}
		if !okA || !okB {
			return
		}
		p, okP := new(big.Rat).SetString(x)
		q, okQ := new(big.Rat).SetString(y)
		if !okP || !okQ {
			t.Fatalf("math/big does not read %q or %q", x, y)
		}
		if got := cmp.Compare(a.Compare(b), 0); got != p.Cmp(q) || got != -cmp.Compare(b.Compare(a), 0) {
			t.Errorf("%s and %s compare as %d", x, y, got)
		}
		if a.IsInteger() != p.IsInt() || a.Sign() != p.Sign() {
			t.Errorf("%s: integer %v, sign %d", x, a.IsInteger(), a.Sign())
		}
		if r, ok := new(big.Rat).SetString(a.String()); !ok || r.Cmp(p) != 0 {
			t.Errorf("%s is written as %s", x, a)
		}
		if equal := p.Cmp(q) == 0; (a == b) != equal {
			t.Errorf("%s and %s: equal structs, %v", x, y, !equal)
		}
		if q.Sign() != 0 {
			if got, want := a.IsMultipleOf(b), new(big.Rat).Quo(p, q).IsInt(); got != want {
				t.Errorf("%s is a multiple of %s: %v", x, y, got)
			}
		} else if a.IsMultipleOf(b) != (p.Sign() == 0) {
			t.Errorf("%s is a multiple of zero: %v", x, a.IsMultipleOf(b))
		}
	})
}

func BenchmarkParseAndCompare(b *testing.B) {
	limit, _ := decimal.Parse("1000000")
	b.ReportAllocs()
	for b.Loop() {
		if d, ok := decimal.Parse("12345.678"); !ok || d.Compare(limit) >= 0 {
			b.Fatal(d)
		}
	}
}
