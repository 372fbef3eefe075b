package history

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// million is how sums are kept: in millionths.
const million = 1_000_000

// maxSum is the largest sum that is kept, in millionths.
const maxSum = 9_000_000_000 * million

// millionths is an argument in millionths; inexact: it is no number of at least zero, is finer, or larger than a sum may be.
func millionths(v any) int64 {
	n, ok := v.(json.Number)
	if !ok {
		return inexact
	}
	return readMillionths(n.String())
}

func readMillionths(literal string) int64 {
	d, ok := decimal.Parse(literal)
	zeros := d.Exponent + 6
	switch {
	case !ok || d.Negative || zeros < 0:
		return inexact
	case d.Digits == "":
		return 0
	case len(d.Digits)+zeros > 16: // maxSum has as many digits
		return inexact
	}
	n, err := strconv.ParseInt(d.Digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil || n > maxSum {
		return inexact
	}
	return n
}

// Decimal writes millionths as a number: 10.5.
func Decimal(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	whole, rest := n/million, n%million
	if rest == 0 {
		return sign + strconv.FormatInt(whole, 10)
	}
	digits := strconv.FormatInt(million+rest, 10)[1:]
	return sign + strconv.FormatInt(whole, 10) + "." + strings.TrimRight(digits, "0")
}
