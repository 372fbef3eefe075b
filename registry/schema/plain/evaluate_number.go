package plain

import "github.com/callgate/callgate/internal/decimal"

// slowSteps is the cost of computing with a number that is not fixed.
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
