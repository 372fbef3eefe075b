package condition

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// maxDigits is how many significant decimal digits every double keeps.
const maxDigits = 15

// smallestNormal is the least double that keeps maxDigits digits.
const smallestNormal = 0x1p-1022

// numberValue turns a JSON number into the CEL value of the same value: an int
// where it is a whole number of 64 bits, however written, else a double. ok is
// false where neither holds the value exactly enough to be compared: more than
// maxDigits significant digits, or outside a double's range.
func numberValue(n json.Number) (value ref.Val, ok bool) {
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return types.Int(i), true
	}
	digits, exponent, negative, ok := decimal(string(n))
	if !ok {
		return nil, false
	}
	if digits == "" {
		return types.Int(0), true
	}
	if exponent >= 0 && len(digits)+exponent <= 19 {
		whole := digits + strings.Repeat("0", exponent)
		if negative {
			whole = "-" + whole
		}
		if i, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return types.Int(i), true
		}
	}
	if len(digits) > maxDigits {
		return nil, false
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil || math.IsInf(f, 0) || math.Abs(f) < smallestNormal {
		return nil, false
	}
	return types.Double(f), true
}

// decimal takes a JSON number apart: its significant digits without zeros at
// either end, and the power of ten that they are multiplied by. No digits
// stand for zero.
func decimal(n string) (digits string, exponent int, negative, ok bool) {
	mantissa, power, scientific := n, "", false
	if i := strings.IndexAny(n, "eE"); i >= 0 {
		mantissa, power, scientific = n[:i], n[i+1:], true
	}
	if scientific {
		e, err := strconv.Atoi(power)
		if err != nil || e > 1<<20 || e < -1<<20 {
			return "", 0, false, false
		}
		exponent = e
	}
	mantissa, negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits = whole + fraction
	if whole == "" || strings.Trim(digits, "0123456789") != "" {
		return "", 0, false, false
	}
	exponent -= len(fraction)
	trimmed := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(trimmed)
	return strings.TrimLeft(trimmed, "0"), exponent, negative, true
}
