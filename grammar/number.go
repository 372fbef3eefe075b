package grammar

import (
	"fmt"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
)

// Numbers are written with so many digits at most, so that no literal is over 256 bytes. A
// number with bounds has no exponent here.
const (
	maxLiteral        = decimal.MaxBytes
	maxIntegerDigits  = 40
	maxMultipleDigits = 15 // of the whole part, where a remainder is kept
	maxFractionDigits = 20
	maxModulus        = 1000
)

// numberRules are the constraints on a number.
type numberRules struct {
	bounds    []bound
	multiples []decimal.Decimal
	integer   bool
}

// bound is a limit of a number. Which is one of <, <=, = , >= and >.
type bound struct {
	which string
	limit decimal.Decimal
	whole string // the limit's digits before the point, none for 0
	part  string // those after it
}

func newBound(which string, limit decimal.Decimal) bound {
	b := bound{which: which, limit: limit}
	switch point := len(limit.Digits) + limit.Exponent; {
	case point <= 0:
		b.part = strings.Repeat("0", -point) + limit.Digits
	case limit.Exponent >= 0:
		b.whole = limit.Digits + strings.Repeat("0", limit.Exponent)
	default:
		b.whole, b.part = limit.Digits[:point], limit.Digits[point:]
	}
	return b
}

// holds reports whether a number is within the bound, by how it compares with the limit.
func (b bound) holds(compared int) bool {
	switch b.which {
	case "<":
		return compared < 0
	case "<=":
		return compared <= 0
	case "=":
		return compared == 0
	case ">=":
		return compared >= 0
	}
	return compared > 0
}

// modulus is a multipleOf: the number times 10^places is a whole multiple of m.
type modulus struct{ m, places int }

func newModulus(d decimal.Decimal) (modulus, bool) {
	if d.Negative || d.Digits == "" || len(d.Digits)+max(d.Exponent, 0) > 4 {
		return modulus{}, false
	}
	out := modulus{places: max(-d.Exponent, 0)}
	for _, digit := range d.Digits + strings.Repeat("0", max(d.Exponent, 0)) {
		out.m = out.m*10 + int(digit-'0')
	}
	return out, out.m <= maxModulus && out.places <= maxFractionDigits
}

// number matches the numbers that keep the rules.
func (c *compiler) number(hint string, r numberRules) (expr, error) {
	if len(r.bounds) == 0 && len(r.multiples) == 0 {
		return c.plainNumber(r.integer), nil
	}
	var moduli []modulus
	if r.integer {
		moduli = append(moduli, modulus{m: 1})
	}
	for _, d := range r.multiples {
		m, ok := newModulus(d)
		if !ok {
			return nil, fmt.Errorf("multipleOf %s cannot be written as a grammar", d)
		}
		moduli = append(moduli, m)
	}
	if len(r.bounds) > maxTracked || len(moduli) > maxTracked {
		return nil, fmt.Errorf("a number has more than %d bounds", maxTracked)
	}
	n := numberSearch{bounds: r.bounds, moduli: moduli, digits: maxIntegerDigits}
	if len(r.multiples) > 0 {
		n.digits = maxMultipleDigits
	}
	a, err := explore(numberState{}, n.accepts, n.steps)
	if err != nil {
		return nil, fmt.Errorf("a number with these bounds %w", err)
	}
	return c.expression(hint, a, func(set class) expr {
		if len(set) == 1 && set[0].from == set[0].to {
			return literal(string(set[0].from))
		}
		return set
	}, literal(""))
}

// plainNumber matches every number, or every integer: with a fraction of zeros, too, and
// with an exponent that is not negative where there is no fraction.
func (c *compiler) plainNumber(integer bool) expr {
	name := "number"
	if integer {
		name = "integer"
	}
	return c.shared(name, func() expr {
		digit := class{{'0', '9'}}
		minus := optional(literal("-"))
		whole := seq(minus, oneOf(literal("0"), seq(class{{'1', '9'}}, times(digit, 0, maxIntegerDigits-1))))
		long := seq(minus, class{{'1', '9'}}, times(digit, 0, maxLiteral-2))
		exponent := seq(times(literal("0"), 0, 3), oneOf(times(digit, 1, 2), seq(class{{'1', '3'}}, digit, digit), literal("400")))
		mark := class{{'E', 'E'}, {'e', 'e'}}
		if c.compact {
			mark = class{{'e', 'e'}}
		}
		if integer {
			further := oneOf(seq(literal("."), times(literal("0"), 1, maxFractionDigits)), seq(mark, optional(literal("+")), exponent))
			return oneOf(seq(whole, optional(further)), long)
		}
		further := seq(optional(seq(literal("."), times(digit, 1, maxFractionDigits))), optional(seq(mark, optional(class{{'+', '+'}, {'-', '-'}}), exponent)))
		return oneOf(seq(whole, further), long, seq(minus, literal("0."), times(digit, 1, maxLiteral-3)), seq(literal("0."), times(digit, maxLiteral-2, maxLiteral-2)))
	})
}

// maxTracked is how many bounds, and how many multiples, are kept at once.
const maxTracked = 4

// The parts of a number literal.
const (
	beforeNumber = iota
	afterSign
	afterZero
	inWhole
	afterPoint
	inFraction
)

// numberState is how far a number was read: the part, the digits of both sides of the point,
// how its magnitude compares so far with each limit, and the remainders.
type numberState struct {
	part           int
	negative       bool
	nonzero        bool
	whole, decimal int
	compared       [maxTracked]int
	remainder      [maxTracked]int
}

type numberSearch struct {
	bounds []bound
	moduli []modulus
	digits int // of the whole part, at most
}

func (n *numberSearch) steps(s numberState) []stepTo[numberState] {
	var out []stepTo[numberState]
	digits := func(from, to, part int) {
		for d := from; d <= to; d++ {
			if next, ok := n.digit(s, d, part); ok {
				r := rune('0' + d)
				out = append(out, stepTo[numberState]{class{{r, r}}, next})
			}
		}
	}
	to := func(r rune, part int) {
		next := s
		next.part = part
		out = append(out, stepTo[numberState]{class{{r, r}}, next})
	}
	switch s.part {
	case beforeNumber, afterSign:
		if s.part == beforeNumber {
			s.negative = true
			to('-', afterSign)
			s.negative = false
		}
		digits(0, 0, afterZero)
		digits(1, 9, inWhole)
	case afterZero:
		to('.', afterPoint)
	case inWhole:
		digits(0, 9, inWhole)
		to('.', afterPoint)
	case afterPoint, inFraction:
		digits(0, 9, inFraction)
	}
	if s.part == afterZero || s.part == inWhole {
		// Both sides of the point compare on their own: the whole part is known here.
		last := &out[len(out)-1].to
		for i, b := range n.bounds {
			last.compared[i] = compareWhole(s, i, b)
		}
		last.whole = 0
	}
	return out
}

// digit reads a digit.
func (n *numberSearch) digit(s numberState, d, part int) (numberState, bool) {
	s.part = part
	s.nonzero = s.nonzero || d > 0
	if part == inFraction {
		if s.decimal++; s.decimal > maxFractionDigits {
			return s, false
		}
	} else if part == inWhole {
		if s.whole++; s.whole > n.digits {
			return s, false
		}
	}
	for i, b := range n.bounds {
		against, at := b.whole, s.whole-1
		if part == inFraction {
			against, at = b.part, s.decimal-1
		}
		if s.compared[i] == 0 && part != afterZero {
			limit := 0
			if at < len(against) {
				limit = int(against[at] - '0')
			} else if part == inWhole {
				continue // longer: its length decides
			}
			s.compared[i] = sign(d - limit)
		}
	}
	for i, m := range n.moduli {
		if part == inFraction && s.decimal > m.places {
			if d > 0 || s.remainder[i] != 0 {
				return s, false
			}
			continue
		}
		s.remainder[i] = (s.remainder[i]*10 + d) % m.m
	}
	return s, true
}

// compareWhole compares the whole part that was read with that of a limit.
func compareWhole(s numberState, i int, b bound) int {
	if s.whole != len(b.whole) {
		return sign(s.whole - len(b.whole))
	}
	return s.compared[i]
}

func (n *numberSearch) accepts(s numberState) bool {
	if s.part != afterZero && s.part != inWhole && s.part != inFraction {
		return false
	}
	for i, m := range n.moduli {
		rest := s.remainder[i]
		for range m.places - min(s.decimal, m.places) {
			rest = rest * 10 % m.m
		}
		if rest != 0 {
			return false
		}
	}
	for i, b := range n.bounds {
		magnitude := s.compared[i]
		if s.part != inFraction {
			magnitude = compareWhole(s, i, b)
		}
		if magnitude == 0 && strings.Trim(b.part[min(s.decimal, len(b.part)):], "0") != "" {
			magnitude = -1
		}
		if !b.holds(compareSigned(s, b.limit, magnitude)) {
			return false
		}
	}
	return true
}

// compareSigned compares the number with a limit, by how their magnitudes compare.
func compareSigned(s numberState, limit decimal.Decimal, magnitude int) int {
	mine := 1
	if s.negative {
		mine = -1
	}
	if !s.nonzero {
		mine = 0
	}
	switch other := limit.Sign(); {
	case mine != other:
		return sign(mine - other)
	case mine < 0:
		return -magnitude
	}
	return magnitude
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}
