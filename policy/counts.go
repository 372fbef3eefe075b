package policy

import "sync/atomic"

// Count is how often a row took part in counted decisions of its policy.
type Count struct {
	// Matched counts the calls that the row matched, with its condition met where it has one. The
	// conditions of rows behind one that denies are not evaluated.
	Matched uint64
	// Decided counts the calls that it decided: that it denied, or permitted alone, or that asked
	// by it.
	Decided uint64
}

// counter counts for one row.
type counter struct{ matched, decided atomic.Uint64 }

// decisionCount counts the decisions of a class that are the same whatever the arguments are, so that a
// call counts once, and not for each row.
type decisionCount struct {
	n                atomic.Uint64
	matched, decided []*rule
}

// flush adds what was counted to the rows.
func (t *decisionCount) flush() {
	n := t.n.Swap(0)
	if n == 0 {
		return
	}
	for _, r := range t.matched {
		r.count.matched.Add(n)
	}
	for _, r := range t.decided {
		r.count.decided.Add(n)
	}
}

// countDecision returns the count of a decision on rows that match when conditions are ignored.
func countDecision(d *Decision, rules []*rule) *decisionCount {
	t := &decisionCount{}
	for _, r := range rules {
		if r.condition != nil {
			continue
		}
		t.matched = append(t.matched, r)
		if d.Row == &r.Row || len(d.Asks) > 0 && r.Effect == Ask {
			t.decided = append(t.decided, r)
		}
	}
	return t
}

// Counts returns how often each row took part in decisions of PermitCounted, in the order of
// Rows. Of calls that are decided meanwhile some may be missing.
func (p *Policy) Counts() []Count {
	if p == nil {
		return nil
	}
	p.mu.RLock()
	for _, v := range p.settled.verdicts {
		if v.decisionCount != nil {
			v.decisionCount.flush()
		}
	}
	p.mu.RUnlock()
	counts := make([]Count, len(p.rules))
	for i, r := range p.rules {
		counts[i] = Count{r.count.matched.Load(), r.count.decided.Load()}
	}
	return counts
}
