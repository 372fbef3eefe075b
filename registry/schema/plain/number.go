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

// slowSteps is what package schema counts at most for a number that is not fixed.
const slowSteps = 100

func (r *run) number(n *node) bool {
	from := r.i
	f, fits, ok := r.numeral()
	if !ok || r.i-from > decimal.MaxBytes {
		return false
	}
	if fits {
		if n.kinds&kindNumber == 0 && f.places > 0 {
			return false
		}
		if n.numbers == nil && n.enums == nil {
			return true
		}
		if n.numbers == nil || n.numbers.fixed {
			valid, decided := n.acceptsFixed(f)
			if decided {
				return valid
			}
		}
	}
	d, ok := decimal.Parse(string(r.b[from:r.i]))
	if !ok || !r.spend(slowSteps) || n.kinds&kindNumber == 0 && !d.IsInteger() {
		return false
	}
	for _, e := range n.enums {
		if !r.spend(slowSteps*len(e.numbers)) || !e.hasExact(d) {
			return false
		}
	}
	return n.numbers == nil || n.numbers.acceptsExact(d)
}

// acceptsFixed evaluates a number; ok is false where that takes more than 64 bits.
func (n *node) acceptsFixed(f fixed) (valid, ok bool) {
	for _, e := range n.enums {
		if !e.hasFixed(f) {
			return false, true
		}
	}
	w := n.numbers
	if w == nil {
		return true, true
	}
	if w.minimum != nil && f.compare(w.minimum.fixed) < 0 || w.maximum != nil && f.compare(w.maximum.fixed) > 0 ||
		w.above != nil && f.compare(w.above.fixed) <= 0 || w.below != nil && f.compare(w.below.fixed) >= 0 {
		return false, true
	}
	if w.multiple == nil {
		return true, true
	}
	return f.multipleOf(w.multiple.fixed)
}

func (w *numberRules) acceptsExact(d decimal.Decimal) bool {
	return (w.minimum == nil || d.Compare(w.minimum.exact) >= 0) && (w.maximum == nil || d.Compare(w.maximum.exact) <= 0) &&
		(w.above == nil || d.Compare(w.above.exact) > 0) && (w.below == nil || d.Compare(w.below.exact) < 0) &&
		(w.multiple == nil || d.IsMultipleOf(w.multiple.exact))
}

func (s *scalars) hasFixed(f fixed) bool {
	for i := range s.numbers {
		if s.numbers[i].fits && s.numbers[i].fixed == f {
			return true
		}
	}
	return false
}

func (s *scalars) hasExact(d decimal.Decimal) bool {
	for i := range s.numbers {
		if s.numbers[i].exact == d {
			return true
		}
	}
	return false
}

// numeral passes over a number. It is f where it fits.
func (r *run) numeral() (f fixed, fits, ok bool) {
	negative := r.peek() == '-'
	if negative {
		r.i++
	}
	start := r.i
	size, digits := r.digits(0)
	if digits == 0 || digits > 1 && r.b[start] == '0' {
		return f, false, false
	}
	places := 0
	if r.peek() == '.' {
		r.i++
		if size, places = r.digits(size); places == 0 {
			return f, false, false
		}
	}
	if r.peek()|0x20 == 'e' {
		r.i++
		if c := r.peek(); c == '+' || c == '-' {
			r.i++
		}
		if _, exponent := r.digits(0); exponent == 0 {
			return f, false, false
		}
		return f, false, true
	}
	if digits+places > maxDigits {
		return f, false, true
	}
	return newFixed(negative, size, places), true, true
}

// digits passes over digits and appends them to a number, which overflows if they are too many.
func (r *run) digits(size uint64) (appended uint64, count int) {
	from := r.i
	for r.i < len(r.b) && r.b[r.i]-'0' <= 9 {
		size = size*10 + uint64(r.b[r.i]-'0')
		r.i++
	}
	return size, r.i - from
}
