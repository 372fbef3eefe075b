package condition

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/callgate/callgate/internal/decimal"
)

// maxExponent bounds the exponent of a literal, of either sign.
const maxExponent = 1 << 20

// maxDigits is how many significant decimal digits every double keeps.
const maxDigits = 15

// smallestNormal is the least double that keeps maxDigits digits.
const smallestNormal = 0x1p-1022

// numberValue turns a JSON number into the CEL value of the same value: an int
// where it is a whole number of 64 bits, however written, else a double. ok is
// false where neither holds the value exactly enough to be compared: more than
// maxDigits significant digits, or outside a double's range.
func numberValue(n json.Number) (value ref.Val, ok bool) {
	if !strings.ContainsAny(string(n), ".eE") { // or the error would be allocated
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			return types.Int(i), true
		}
	}
	d, ok := decimal.ParseUpTo(string(n), maxExponent)
	if !ok {
		return nil, false
	}
	// Of 19 digits at most, String writes no exponent.
	if d.IsInteger() && len(d.Digits)+d.Exponent <= 19 {
		if i, err := strconv.ParseInt(d.String(), 10, 64); err == nil {
			return types.Int(i), true
		}
	}
	if len(d.Digits) > maxDigits {
		return nil, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) || math.Abs(f) < smallestNormal {
		return nil, false
	}
	return types.Double(f), true
}
