package plain

import (
	"cmp"
	"math/bits"

	"github.com/callgate/callgate/internal/decimal"
)

// maxDigits is the number of digits up to which numbers are compared as fixed.
const maxDigits = 18

var powers = func() [maxDigits + 1]uint64 {
	var p [maxDigits + 1]uint64
	p[0] = 1
	for i := range maxDigits {
		p[i+1] = p[i] * 10
	}
	return p
}()

// fixed is the number ±size / 10^places, of at most maxDigits digits and places. The size
// has no factor of ten that a place takes back, and zero has no sign, so that equal numbers are
// equal structs.
type fixed struct {
	negative bool
	size     uint64
	places   int
}

func newFixed(negative bool, size uint64, places int) fixed {
	for places > 0 && size%10 == 0 {
		size /= 10
		places--
	}
	return fixed{negative && size > 0, size, places}
}

func (a fixed) compare(b fixed) int {
	if a.negative != b.negative {
		if a.negative {
			return -1
		}
		return 1
	}
	aHigh, aLow := bits.Mul64(a.size, powers[max(b.places-a.places, 0)])
	bHigh, bLow := bits.Mul64(b.size, powers[max(a.places-b.places, 0)])
	c := cmp.Or(cmp.Compare(aHigh, bHigh), cmp.Compare(aLow, bLow))
	if a.negative {
		return -c
	}
	return c
}

// multipleOf reports whether a is a whole multiple of b, which is not zero; ok is false
// where that takes more than 64 bits.
func (a fixed) multipleOf(b fixed) (multiple, ok bool) {
	aHigh, aLow := bits.Mul64(a.size, powers[max(b.places-a.places, 0)])
	bHigh, bLow := bits.Mul64(b.size, powers[max(a.places-b.places, 0)])
	if aHigh|bHigh != 0 || bLow == 0 {
		return false, false
	}
	return aLow%bLow == 0, true
}

// number is a number of the schema.
type number struct {
	exact decimal.Decimal
	fixed fixed
	fits  bool // fixed holds it
}

func newNumber(d decimal.Decimal) number {
	n := number{exact: d}
	if len(d.Digits) > maxDigits || d.Exponent < -maxDigits || len(d.Digits)+d.Exponent > maxDigits {
		return n
	}
	size := uint64(0)
	for i := range len(d.Digits) {
		size = size*10 + uint64(d.Digits[i]-'0')
	}
	n.fixed, n.fits = newFixed(d.Negative, size*powers[max(d.Exponent, 0)], max(-d.Exponent, 0)), true
	return n
}
