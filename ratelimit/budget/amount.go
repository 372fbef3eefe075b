package budget

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// Most is the largest number of tokens, and of millionths of money, that is counted. It is exact
// also as a floating point number, which is how scripts in Redis calculate.
const Most = 1_000_000_000_000_000

// microDigits is how many digits a millionth has behind the point.
const microDigits = 6

// Amount is a number of tokens, and of money in millionths of the currency's unit.
type Amount struct{ Tokens, Micros int64 }

// Add adds two amounts, up to Most.
func (a Amount) Add(b Amount) Amount {
	return Amount{min(Most, a.Tokens+min(b.Tokens, Most)), min(Most, a.Micros+min(b.Micros, Most))}
}

// Less subtracts, down to 0.
func (a Amount) Less(b Amount) Amount {
	return Amount{max(0, a.Tokens-b.Tokens), max(0, a.Micros-b.Micros)}
}

// ParseMoney reads an amount of money such as 12.50: digits, with at most six behind the point.
func ParseMoney(text string) (micros int64, err error) {
	const expected = "expected an amount such as \"12.50\", with at most six digits behind the point"
	d, ok := decimal.Parse(text)
	if !ok || d.Negative || strings.ContainsAny(text, "eE") || d.Exponent < -microDigits {
		return 0, fmt.Errorf("found %q, %s", text, expected)
	}
	zeros := d.Exponent + microDigits
	if len(d.Digits)+zeros > len("1000000000000000") {
		return 0, fmt.Errorf("found %q, %s, and at most %s", text, expected, FormatMoney(Most))
	}
	if d.Digits == "" {
		return 0, nil
	}
	micros, err = strconv.ParseInt(d.Digits+strings.Repeat("0", zeros), 10, 64)
	if err != nil || micros > Most {
		return 0, fmt.Errorf("found %q, %s, and at most %s", text, expected, FormatMoney(Most))
	}
	return micros, nil
}

// FormatMoney writes millionths as an amount, with two digits behind the point or as many as it
// takes.
func FormatMoney(micros int64) string {
	whole, fraction := micros/1_000_000, fmt.Sprintf("%06d", micros%1_000_000)
	fraction = fraction[:2] + strings.TrimRight(fraction[2:], "0")
	return strconv.FormatInt(whole, 10) + "." + fraction
}

// Usage is how many tokens a request took. The four parts have no token in common.
type Usage struct{ Input, CachedInput, CacheWrite, Output int64 }

// Tokens is their sum, up to Most.
func (u Usage) Tokens() int64 {
	sum := int64(0)
	for _, n := range u.parts() {
		sum = min(Most, sum+n)
	}
	return sum
}

// parts are the numbers, each from 0 to Most.
func (u Usage) parts() [4]int64 {
	all := [4]int64{u.Input, u.CachedInput, u.CacheWrite, u.Output}
	for i, n := range all {
		all[i] = min(max(n, 0), Most)
	}
	return all
}

// Price is the price of a million tokens, in millionths of the currency's unit.
type Price struct{ Input, CachedInput, CacheWrite, Output int64 }

// Cost is the price of a usage, in millionths, rounded up once: never less than the exact sum, and
// by less than a millionth more.
func (p Price) Cost(u Usage) int64 {
	prices := [4]int64{p.Input, p.CachedInput, p.CacheWrite, p.Output}
	var high, low uint64 // the sum in millionths of millionths
	for i, n := range u.parts() {
		h, l := bits.Mul64(uint64(n), uint64(min(max(prices[i], 0), Most)))
		var carry uint64
		low, carry = bits.Add64(low, l, 0)
		high += h + carry
	}
	const million = 1_000_000
	if high >= million {
		return Most
	}
	quotient, rest := bits.Div64(high, low, million)
	if quotient >= Most {
		return Most
	}
	if rest > 0 {
		quotient++
	}
	return int64(quotient)
}

// highestInput is the price of an input of which it is not known how it will be billed.
func (p Price) highestInput() int64 { return max(p.Input, p.CachedInput, p.CacheWrite) }

// Bound is the most that a request costs whose tokens have these bounds.
func (p Price) Bound(input, output int64) int64 {
	return Price{Input: p.highestInput(), Output: p.Output}.Cost(Usage{Input: input, Output: output})
}
