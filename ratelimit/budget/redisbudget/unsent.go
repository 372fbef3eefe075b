package redisbudget

import "github.com/callgate/callgate/ratelimit/budget"

// takeUnsent returns what is known of counters. The unsent amounts go with the request, until it ends: no other
// request sends them too.
func (l *Limiter) takeUnsent(windows []window) []seen {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]seen, len(windows))
	for i, w := range windows {
		all[i].window = w
		if s := l.seen[w.key]; s != nil {
			all[i] = *s
			s.inFlight, s.unsent = plus(s.inFlight, s.unsent), budget.Amount{}
		}
	}
	return all
}

// endRequest ends the request that unsent amounts went with.
func (l *Limiter) endRequest(sent []seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, was := range sent {
		if s := l.seen[was.key]; s != nil {
			s.inFlight = minus(s.inFlight, was.unsent)
		}
	}
}

// restoreUnsent takes unsent amounts back that a request could not deliver. It is certain that they were not
// delivered, or else what would be given back is left out: it is not given back twice.
func (l *Limiter) restoreUnsent(sent []seen, certain bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, was := range sent {
		if was.unsent == (budget.Amount{}) {
			continue
		}
		if !certain {
			was.unsent = was.unsent.Less(budget.Amount{})
		}
		if s := l.seen[was.key]; s != nil {
			s.unsent = plus(s.unsent, was.unsent)
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
