// Package decimal holds JSON numbers exactly: it reads, compares and writes them without
// rounding. A literal is read and compared in time linear in its length, and no number of
// astronomical size is ever built: the limits of Parse bound the exponent.
//
//	number   = [ "-" ] whole [ "." digits ] [ ( "e" | "E" ) [ "+" | "-" ] digits ]
//	whole    = "0" | a digit from 1 to 9, then digits
package decimal

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/ascii"
)

// The limits of Parse are those of package parser for completions.
const (
	MaxBytes    = 256 // of a literal
	MaxExponent = 400 // as it is written, of either sign
)

// Decimal is the number ±Digits × 10^Exponent. Digits has no zero at either end; zero has no
// digits, exponent 0 and no sign, so that equal numbers are equal structs.
type Decimal struct {
	Negative bool
	Digits   string
	Exponent int
}

// Parse reads a JSON number literal of at most MaxBytes, with an exponent of at most
// MaxExponent. ok is false for any other text.
func Parse(literal string) (d Decimal, ok bool) {
	if len(literal) > MaxBytes {
		return Decimal{}, false
	}
	return ParseUpTo(literal, MaxExponent)
}

// ParseUpTo is Parse with another bound of the exponent, and none of the length.
func ParseUpTo(literal string, maxExponent int) (d Decimal, ok bool) {
	rest, negative := strings.CutPrefix(literal, "-")
	whole := ascii.LeadingDigits(rest)
	if whole == 0 || whole > 1 && rest[0] == '0' {
		return Decimal{}, false
	}
	d.Negative, d.Digits, rest = negative, rest[:whole], rest[whole:]
	if fraction, has := strings.CutPrefix(rest, "."); has {
		n := ascii.LeadingDigits(fraction)
		if n == 0 {
			return Decimal{}, false
		}
		d.Digits += fraction[:n]
		d.Exponent, rest = -n, fraction[n:]
	}
	if rest != "" {
		exponent, ok := parseExponent(rest, maxExponent)
		if !ok {
			return Decimal{}, false
		}
		d.Exponent += exponent
	}
	digits := strings.TrimLeft(d.Digits, "0")
	if d.Digits = strings.TrimRight(digits, "0"); d.Digits == "" {
		return Decimal{}, true
	}
	d.Exponent += len(digits) - len(d.Digits)
	return d, true
}

func parseExponent(s string, limit int) (int, bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := false
	if s != "" && (s[0] == '+' || s[0] == '-') {
		negative, s = s[0] == '-', s[1:]
	}
	if !ascii.AllDigits(s) {
		return 0, false
	}
	exponent := 0
	for i := range len(s) {
		if exponent = exponent*10 + int(s[i]-'0'); exponent > limit {
			return 0, false
		}
	}
	if negative {
		exponent = -exponent
	}
	return exponent, true
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int {
	switch {
	case d.Digits == "":
		return 0
	case d.Negative:
		return -1
	}
	return 1
}

// IsInteger reports whether d is a whole number, however it was written.
func (d Decimal) IsInteger() bool { return d.Exponent >= 0 }

// Compare returns a negative number if d is less than o, 0 if they are equal, and a positive
// number if d is greater.
func (d Decimal) Compare(o Decimal) int {
	if s, t := d.Sign(), o.Sign(); s != t || s == 0 {
		return s - t
	}
	// The place of the first digit decides; then the digits do, which compare
	// as text because none ends in a zero.
	c := (len(d.Digits) + d.Exponent) - (len(o.Digits) + o.Exponent)
	if c == 0 {
		c = strings.Compare(d.Digits, o.Digits)
	}
	if d.Negative {
		return -c
	}
	return c
}

// IsMultipleOf reports whether d is a whole multiple of m; nothing is one of zero but zero.
// The time depends on the difference of the exponents, which Parse bounds.
func (d Decimal) IsMultipleOf(m Decimal) bool {
	if d.Digits == "" {
		return true
	}
	low := min(d.Exponent, m.Exponent)
	a, b := d.scaled(low), m.scaled(low)
	return b.Sign() != 0 && a.Rem(a, b).Sign() == 0
}

// scaled returns the digits of d as a multiple of 10^low.
func (d Decimal) scaled(low int) *big.Int {
	n, ok := new(big.Int).SetString(d.Digits, 10)
	if !ok {
		return new(big.Int)
	}
	return n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Exponent-low)), nil))
}

// maxZeros is how many zeros String writes instead of an exponent.
const maxZeros = 20

// String returns the number as people write it: with an exponent only instead of many zeros.
func (d Decimal) String() string {
	if d.Digits == "" {
		return "0"
	}
	s := d.Digits
	switch {
	case d.Exponent >= 0 && d.Exponent <= maxZeros:
		s += strings.Repeat("0", d.Exponent)
	case d.Exponent < 0 && -d.Exponent < len(s):
		s = s[:len(s)+d.Exponent] + "." + s[len(s)+d.Exponent:]
	case d.Exponent < 0 && -d.Exponent <= len(s)+maxZeros:
		s = "0." + strings.Repeat("0", -d.Exponent-len(s)) + s
	default:
		s += "e" + strconv.Itoa(d.Exponent)
	}
	if d.Negative {
		return "-" + s
	}
	return s
}
