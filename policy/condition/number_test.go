package condition

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
	"pgregory.net/rapid"
)

// Whatever a number's value and spelling: an int holds it exactly, a double
// keeps its digits, and else it is refused for a reason that big arithmetic
// confirms.
func TestNumbersKeepTheirValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,22})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
		if !json.Valid([]byte(text)) {
			t.Skip("no JSON number")
		}
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			t.Skip("beyond big")
		}
		mantissa := strings.FieldsFunc(strings.Trim(text, "-"), func(r rune) bool { return r == 'e' || r == 'E' })[0]
		digits := len(strings.Trim(strings.ReplaceAll(mantissa, ".", ""), "0"))
		isInt64 := exact.IsInt() && exact.Num().IsInt64()
		value, ok := numberValue(json.Number(text))
		switch v := value.(type) {
		case types.Int:
			if !isInt64 || exact.Num().Int64() != int64(v) {
				t.Fatalf("%s became the int %d", text, v)
			}
		case types.Double:
			if isInt64 || digits > 15 {
				t.Fatalf("%s became the double %v", text, v)
			}
			want, _ := exact.Float64()
			if float64(v) != want {
				t.Fatalf("%s became the double %v, want %v", text, v, want)
			}
		default:
			if ok {
				t.Fatalf("%s: %v", text, value)
			}
			f, _ := exact.Float64()
			tooSmall := f < 0x1p-1022 && f > -0x1p-1022
			tooLarge := f > 1.7976931348623157e308 || f < -1.7976931348623157e308
			if isInt64 || digits <= 15 && !tooSmall && !tooLarge {
				t.Fatalf("%s is refused", text)
			}
		}
	})
	for _, text := range []string{"", "-", "x", "1x", "0x10", "1_000", ".5", "Inf", "NaN", "+1.0", "1e", "1e99999999999", "１"} {
		if v, ok := numberValue(json.Number(text)); ok {
			t.Errorf("%q became %v", text, v)
		}
	}
}
