package redisbudget

import "github.com/callgate/callgate/budget"

// takeDebts returns what is known of counters. The debts go with the request, until it lands: no other
// request sends them too.
func (l *Limiter) takeDebts(windows []window) []seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]seen, len(windows))
	for i, w := range windows {
		all[i].window = w
		if s := l.seen[w.key]; s != nil {
			all[i] = *s
			s.flying, s.debt = plus(s.flying, s.debt), budget.Amount{}
		}
	}
	return all
}

// land ends the request that debts went with.
func (l *Limiter) land(sent []seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, was := range sent {
		if s := l.seen[was.key]; s != nil {
			s.flying = minus(s.flying, was.debt)
		}
	}
}

// restoreDebts takes debts back that a request could not deliver. It is certain that they were not
// delivered, or else what would be given back is left out: it is not given back twice.
func (l *Limiter) restoreDebts(sent []seen, certain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, was := range sent {
		if was.debt == (budget.Amount{}) {
			continue
		}
		if !certain {
			was.debt = was.debt.Less(budget.Amount{})
		}
		if s := l.seen[was.key]; s != nil {
			s.debt = plus(s.debt, was.debt)
		}
	}
}

// plus adds amounts that may be negative.
func plus(a, b budget.Amount) budget.Amount {
	return budget.Amount{Tokens: a.Tokens + b.Tokens, Micros: a.Micros + b.Micros}
}

func minus(a, b budget.Amount) budget.Amount {
	return budget.Amount{Tokens: a.Tokens - b.Tokens, Micros: a.Micros - b.Micros}
}
