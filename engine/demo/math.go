package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	maxExpression = 4096 // bytes
	maxNesting    = 64
	maxBits       = 512 // of numerator and denominator each
	maxDecimals   = 40  // written in full up to here
	significant   = 20  // digits of a value that is rounded
)

// evaluate is the tool math.evaluate. It reads
//
//	sum     = product { ( "+" | "-" ) product }
//	product = factor { ( "*" | "/" ) factor }
//	factor  = "-" factor | number | "(" sum ")"
//	number  = digits [ "." digits ]
//
// with spaces and tabs between. The value is exact; without a short decimal form it is
// rounded, and the exact fraction is added.
func evaluate(_ context.Context, _ tool.Call, given arguments) (any, *refusal.Error) {
	expression, refused := given.text("expression")
	if refused != nil {
		return nil, refused
	}
	if len(expression) > maxExpression {
		return nil, refuse.Failed(fmt.Sprintf("The expression is longer than %d bytes; shorten it.", maxExpression))
	}
	r := &arithmetic{in: expression}
	value := r.sum()
	r.space()
	if r.refused == nil && r.at < len(r.in) {
		r.fail("an operator or the end")
	}
	if r.refused != nil {
		return nil, r.refused
	}
	type result struct {
		Value    json.RawMessage `json:"value"`
		Fraction string          `json:"fraction,omitempty"`
	}
	if n, exact := value.FloatPrec(); exact && n <= maxDecimals {
		return result{Value: json.RawMessage(value.FloatString(n))}, nil
	}
	rounded := new(big.Float).SetPrec(maxBits).SetRat(value)
	return result{json.RawMessage(rounded.Text('g', significant)), value.RatString()}, nil
}

// arithmetic reads one expression. After a refusal it reads no further.
type arithmetic struct {
	in      string
	at      int
	depth   int
	refused *refusal.Error
}

// fail states the position, counted from 1, and never quotes the expression.
func (r *arithmetic) fail(expected string) *big.Rat {
	return r.refuse(fmt.Sprintf("The expression cannot be read at byte %d, where %s is expected; correct it and call again.", r.at+1,
		expected))
}

func (r *arithmetic) refuse(message string) *big.Rat {
	if r.refused == nil {
		r.refused = refuse.Failed(message)
	}
	return new(big.Rat)
}

func (r *arithmetic) space() {
	for r.at < len(r.in) && (r.in[r.at] == ' ' || r.in[r.at] == '\t') {
		r.at++
	}
}

// next takes the next byte if it is one of the given.
func (r *arithmetic) next(of string) byte {
	r.space()
	if r.refused == nil && r.at < len(r.in) {
		for i := range len(of) {
			if r.in[r.at] == of[i] {
				r.at++
				return of[i]
			}
		}
	}
	return 0
}

func (r *arithmetic) sum() *big.Rat {
	value := r.product()
	for {
		switch r.next("+-") {
		case '+':
			value = r.bounded(value.Add(value, r.product()))
		case '-':
			value = r.bounded(value.Sub(value, r.product()))
		default:
			return value
		}
	}
}

func (r *arithmetic) product() *big.Rat {
	value := r.factor()
	for {
		switch r.next("*/") {
		case '*':
			value = r.bounded(value.Mul(value, r.factor()))
		case '/':
			divisor := r.factor()
			if r.refused != nil {
				return value
			}
			if divisor.Sign() == 0 {
				return r.refuse("The expression divides by zero; correct it and call again.")
			}
			value = r.bounded(value.Quo(value, divisor))
		default:
			return value
		}
	}
}

func (r *arithmetic) factor() *big.Rat {
	if r.depth++; r.depth > maxNesting {
		return r.refuse(fmt.Sprintf("The expression is nested deeper than %d; write it flatter.", maxNesting))
	}
	defer func() { r.depth-- }()
	switch r.next("-(") {
	case '-':
		value := r.factor()
		return value.Neg(value)
	case '(':
		value := r.sum()
		if r.next(")") == 0 {
			return r.fail("an operator or \")\"")
		}
		return value
	}
	return r.number()
}

func (r *arithmetic) number() *big.Rat {
	start := r.at
	digits := func() bool {
		from := r.at
		for r.at < len(r.in) && r.in[r.at] >= '0' && r.in[r.at] <= '9' {
			r.at++
		}
		return r.at > from
	}
	if !digits() {
		return r.fail("a number, \"-\" or \"(\"")
	}
	if r.at < len(r.in) && r.in[r.at] == '.' {
		r.at++
		if !digits() {
			return r.fail("a digit")
		}
	}
	value, ok := new(big.Rat).SetString(r.in[start:r.at])
	if !ok {
		return r.fail("a number")
	}
	return r.bounded(value)
}

func (r *arithmetic) bounded(value *big.Rat) *big.Rat {
	if value.Num().BitLen() > maxBits || value.Denom().BitLen() > maxBits {
		return r.refuse("A number in the expression is too large to be exact; use smaller ones.")
	}
	return value
}
