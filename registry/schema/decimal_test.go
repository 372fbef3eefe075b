package schema

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawLiteral(t *rapid.T) string {
	lit := fmt.Sprint(rapid.IntRange(-1200, 1200).Draw(t, "whole"))
	if rapid.Bool().Draw(t, "fractional") {
		lit += "." + rapid.StringMatching(`[0-9]{1,4}`).Draw(t, "fraction")
	}
	if rapid.Bool().Draw(t, "exponential") {
		lit += rapid.SampledFrom([]string{"e", "E", "e+", "e-"}).Draw(t, "e") + fmt.Sprint(rapid.IntRange(0, 12).Draw(t, "exponent"))
	}
	return lit
}

// TestDecimal compares with exact fractions.
func TestDecimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y := drawLiteral(t), drawLiteral(t)
		a, okA := parseDecimal(x)
		b, okB := parseDecimal(y)
		p, _ := new(big.Rat).SetString(x)
		q, _ := new(big.Rat).SetString(y)
		if !okA || !okB {
			t.Fatalf("%s or %s is refused", x, y)
		}
		if got := a.compare(b); cmp.Compare(got, 0) != p.Cmp(q) {
			t.Fatalf("%s and %s compare as %d", x, y, got)
		}
		if a.integer() != p.IsInt() {
			t.Fatalf("%s is an integer: %v", x, a.integer())
		}
		if shown, ok := new(big.Rat).SetString(a.String()); !ok || shown.Cmp(p) != 0 {
			t.Fatalf("%s is shown as %s", x, a)
		}
		if same := string(a.appendCanonical(nil)) == string(b.appendCanonical(nil)); same != (p.Cmp(q) == 0) {
			t.Fatalf("%s and %s have one form: %v", x, y, same)
		}
		if q.Sign() > 0 {
			if got, want := a.multipleOf(b), new(big.Rat).Quo(p, q).IsInt(); got != want {
				t.Fatalf("%s is a multiple of %s: %v", x, y, got)
			}
		}
	})
	for _, bad := range []string{"", "-", "01", "1.", ".5", "1e", "1e+", "+1", "1e401", "1e-401", "1e99999999999999999999", " 1", "1 ", "0x1", "NaN", "1_0", strings.Repeat("1", 257)} {
		if _, ok := parseDecimal(bad); ok {
			t.Errorf("%q is a number", bad)
		}
	}
	for _, good := range []string{"0", "-0", "-0.0e5", "1e400", "1e-400", "0e400", strings.Repeat("9", 256)} {
		if _, ok := parseDecimal(good); !ok {
			t.Errorf("%q is no number", good)
		}
	}
}
