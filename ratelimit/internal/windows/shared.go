package windows

import (
	"time"

	"github.com/callgate/callgate/ratelimit/budget"
)

// Find returns the windows of charges at a time. With add, the table has them from then on, as far as
// there is room.
func (t *Table) Find(charges []budget.Charge, at time.Time, add bool) []*Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Window, len(charges))
	for i := range charges {
		w, known := t.find(&charges[i], at)
		if add && !known && len(t.rows) < t.most {
			t.rows[w.key()] = w
		}
		all[i] = w
	}
	return all
}

// Known returns the windows that have not ended and of which the store said something, or which owe
// it something; or only these. It forgets windows that are over.
func (t *Table) Known(owing bool) []*Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	t.sweep(now, 0)
	var all []*Window
	for _, w := range t.rows {
		if now.Before(w.End) && (w.Owed != budget.Amount{} || w.Epoch != "" && !owing) {
			all = append(all, w)
		}
	}
	return all
}

// Send appends what is known of windows to sent. What they owe goes with a request, until Received:
// no other request sends it too.
func (t *Table) Send(all []*Window, sent []Window) []Window {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, w := range all {
		sent = append(sent, *w)
		w.Sending, w.Owed = plus(w.Sending, w.Owed), budget.Amount{}
	}
	return sent
}

// Received ends a request with what Send returned: the store says these states at a time or, without
// states, nothing. Then it is certain that the request did nothing, or else what would be given back
// is left out: it is not given back twice.
func (t *Table) Received(all []*Window, sent []Window, states []State, at time.Time, certain bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, w := range all {
		owed := sent[i].Owed
		w.Sending = minus(w.Sending, owed)
		if states != nil {
			if s := states[i]; s.Epoch != "" && (s.Epoch != w.Epoch || s.Number > w.Number) { // replies may come out of their order
				w.State = s
			}
			if states[i].Epoch != "" && !at.Before(w.Start) && at.Before(w.End) {
				continue
			}
		}
		if !certain {
			owed = owed.Less(budget.Amount{})
		}
		w.Owed = plus(w.Owed, owed)
	}
}

// Lost notes that the store is away, since now or before.
func (t *Table) Lost() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost.IsZero() {
		t.lost = t.now()
	}
}

// Found notes that the store has what is known.
func (t *Table) Found() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = time.Time{}
}
