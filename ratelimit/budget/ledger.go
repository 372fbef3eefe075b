package budget

import (
	"context"
	"errors"
	"fmt"
)

// Observer is told of what is spent. It must not block.
type Observer interface {
	// Spent is called for each budget that a request was charged to, when that is settled.
	// asReserved says that the usage is not known.
	Spent(budget string, spent Amount, asReserved bool)
	// Charged is called once for a request that any budget covers, before Spent; currency is that of the prices.
	Charged(amount Amount, currency string)
	// Refused is called for the budget that has no room for a request.
	Refused(budget string)
}

// Ledger reserves and settles the requests of a gateway by the budgets of its current
// configuration. A nil Ledger has no budgets.
type Ledger struct {
	Limiter  Limiter
	Current  func() *Set // which may be nil
	Observer Observer    // nil: nobody is told
}

// Set returns the budgets that count now; nil: none. It costs no memory.
func (l *Ledger) Set() *Set {
	if l == nil {
		return nil
	}
	return l.Current()
}

// Hold has the reservations of a request. It is for one goroutine. The zero value has reserved nothing.
type Hold struct {
	ledger      *Ledger
	reservation Reservation
	charges     []Charge
	price       Price
	amount      Amount // that is reserved, or charged
	currency    string
	open        bool
	asReserved  bool
}

// Reserve reserves the bounds of a request: the bytes of its input, and its tokens of output. The
// error is a *refusal.Error. Where no budget covers the request, nothing is reserved.
func (l *Ledger) Reserve(ctx context.Context, set *Set, of Scope, inputBytes int, output int64) (Hold, error) {
	found := set.lookUp(of)
	if len(found.charges) == 0 {
		return Hold{}, nil
	}
	perToken := max(set.BytesPerToken, 1)
	input := (int64(inputBytes) + perToken - 1) / perToken
	h := Hold{ledger: l, charges: found.charges, price: found.price, currency: set.Currency, open: true}
	for i := range h.charges {
		if b := h.charges[i].Budget; b.Limit.Micros > 0 && !found.priced {
			return Hold{}, Unavailable(fmt.Errorf("the budget %s bounds money, and the prices have none of the model %q", b.Name, of.Model))
		}
	}
	h.amount = Amount{Tokens: Usage{Input: input, Output: output}.Tokens(), Micros: h.price.Bound(input, output)}
	var err error
	if h.reservation, err = l.Limiter.Reserve(ctx, set, h.charges, h.amount); err != nil {
		var spent *SpentError
		if l.Observer != nil && errors.As(err, &spent) {
			l.Observer.Refused(spent.Budget)
		}
		return Hold{}, err
	}
	return h, nil
}

// Settle charges what a request took. Of Settle, Keep and GiveBack only the first call counts.
func (h *Hold) Settle(usage Usage) {
	h.end(Amount{Tokens: usage.Tokens(), Micros: h.price.Cost(usage)}, false)
}

// Keep leaves the request charged as reserved: it is not known what it took.
func (h *Hold) Keep() { h.end(h.amount, true) }

// GiveBack charges nothing: the request has not reached its provider.
func (h *Hold) GiveBack() { h.end(Amount{}, false) }

// Charged has the charges of the request, once it has ended; asReserved says that it is not known
// what it took.
func (h *Hold) Charged() (amount Amount, asReserved bool) { return h.amount, h.asReserved }

func (h *Hold) end(actual Amount, asReserved bool) {
	if !h.open {
		return
	}
	h.open, h.amount, h.asReserved = false, actual, asReserved
	h.reservation.Settle(actual)
	if h.ledger.Observer == nil || actual == (Amount{}) {
		return
	}
	h.ledger.Observer.Charged(actual, h.currency)
	for i := range h.charges {
		h.ledger.Observer.Spent(h.charges[i].Budget.Name, actual, asReserved)
	}
}
