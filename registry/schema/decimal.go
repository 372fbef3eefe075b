package schema

import (
	"encoding/json"
	"math/big"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// The limits on a number literal are those of the output language, so that no
// comparison ever builds a number of astronomical size.
const (
	maxNumberBytes = 256
	maxExponent    = 400
)

// decimal is an exact number: ± digits × 10^exp, with neither leading nor
// trailing zeros in digits. Zero has no digits.
type decimal struct {
	neg    bool
	digits string
	exp    int
}

// parseDecimal reads a JSON number literal within the limits.
func parseDecimal(lit string) (decimal, bool) {
	var d decimal
	if len(lit) == 0 || len(lit) > maxNumberBytes {
		return d, false
	}
	s := lit
	if s[0] == '-' {
		d.neg = true
		s = s[1:]
	}
	whole := ascii.LeadingDigits(s)
	if whole == 0 || whole > 1 && s[0] == '0' {
		return d, false
	}
	digits := s[:whole]
	s = s[whole:]
	if strings.HasPrefix(s, ".") {
		n := ascii.LeadingDigits(s[1:])
		if n == 0 {
			return d, false
		}
		digits += s[1 : 1+n]
		d.exp = -n
		s = s[1+n:]
	}
	if s != "" {
		e, ok := parseExponent(s)
		if !ok {
			return d, false
		}
		d.exp += e
	}
	digits = strings.TrimLeft(digits, "0")
	trimmed := strings.TrimRight(digits, "0")
	d.exp += len(digits) - len(trimmed)
	d.digits = trimmed
	if trimmed == "" {
		return decimal{}, true
	}
	return d, true
}

func parseExponent(s string) (int, bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	neg := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if !ascii.AllDigits(s) {
		return 0, false
	}
	e := 0
	for i := range len(s) {
		e = e*10 + int(s[i]-'0')
		if e > maxExponent {
			return 0, false
		}
	}
	if neg {
		e = -e
	}
	return e, true
}

func (d decimal) sign() int {
	switch {
	case d.digits == "":
		return 0
	case d.neg:
		return -1
	}
	return 1
}

func (d decimal) integer() bool { return d.exp >= 0 }

func (d decimal) compare(o decimal) int {
	if s, t := d.sign(), o.sign(); s != t || s == 0 {
		return s - t
	}
	// The place of the first digit decides; then the digits do, which compare
	// as text because none ends in a zero.
	c := (len(d.digits) + d.exp) - (len(o.digits) + o.exp)
	if c == 0 {
		c = strings.Compare(d.digits, o.digits)
	}
	if d.neg {
		return -c
	}
	return c
}

// multipleOf reports whether d is a whole multiple of m, which is not zero.
func (d decimal) multipleOf(m decimal) bool {
	if d.digits == "" {
		return true
	}
	low := min(d.exp, m.exp)
	a, b := d.scaled(low), m.scaled(low)
	return b.Sign() != 0 && a.Rem(a, b).Sign() == 0
}

func (d decimal) scaled(low int) *big.Int {
	n, ok := new(big.Int).SetString(d.digits, 10)
	if !ok {
		return new(big.Int)
	}
	return n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.exp-low)), nil))
}

// appendCanonical writes the one spelling that equal numbers share.
func (d decimal) appendCanonical(b []byte) []byte {
	if d.digits == "" {
		return append(b, '0')
	}
	if d.neg {
		b = append(b, '-')
	}
	b = append(b, d.digits...)
	b = append(b, 'e')
	return big.NewInt(int64(d.exp)).Append(b, 10)
}

func numberOf(v any) (decimal, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return decimal{}, false
	}
	return parseDecimal(string(n))
}
