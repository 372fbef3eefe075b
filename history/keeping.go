package history

import (
	"encoding/json"
	"maps"
	"time"
)

// Keeping says since when the gateways that keep the same threads have kept each term, without a gap. Nobody changes one;
// nil keeps nothing.
type Keeping struct {
	// Gateways has, for each gateway, its terms and since when.
	Gateways map[string]map[string]time.Time
	// Lost is up to when states may have been lost for good: one that is not there may have been then. The zero time: none was.
	Lost time.Time
	// Ended has, for each gateway that has ended, when that was noticed.
	Ended map[string]time.Time `json:",omitempty"`
	// Loss is when the store has lost its state last. Owed are the gateways whose logs may say more of the time before, each with
	// the attempt to put that back which it has begun; Back are those that have.
	Loss time.Time         `json:",omitzero"`
	Owed map[string]string `json:",omitempty"`
	Back map[string]bool   `json:",omitempty"`
	// Instance is that of the store which has lost it.
	Instance string `json:",omitempty"`
	// Key is that of the Secret by which states and records name the values of keys.
	Key string `json:",omitempty"`
	// Epoch is that of the store that has it, where several gateways share one.
	Epoch string `json:",omitempty"`

	since map[ID]time.Time // of those that all have
	last  time.Time        // of since
}

// With returns what is kept from now on, when a gateway keeps these terms and no others.
func (k *Keeping) With(gateway string, terms *Terms, now time.Time) *Keeping {
	next := k.clone()
	was, is := next.Gateways[gateway], map[string]time.Time{}
	_, ended := next.Ended[gateway]
	for _, text := range terms.texts() {
		since, kept := was[text]
		if !kept && ended { // it has let nothing through meanwhile
			since, kept = k.Since(idOf(text))
		}
		if !kept {
			since = now.Truncate(time.Microsecond).UTC()
		}
		is[text] = since
	}
	next.Gateways[gateway] = is
	delete(next.Ended, gateway)
	next.sum()
	return next
}

// Without returns what is kept without a gateway that has ended: what it did not keep is kept since then.
func (k *Keeping) Without(gateway string, ended time.Time) *Keeping {
	next := k.clone()
	gone, there := next.Gateways[gateway]
	if !there {
		return k
	}
	delete(next.Gateways, gateway)
	next.Ended[gateway] = ended.Truncate(time.Microsecond).UTC()
	for _, terms := range next.Gateways {
		for text, since := range terms {
			if _, kept := gone[text]; !kept && since.Before(ended) {
				terms[text] = ended.Truncate(time.Microsecond).UTC()
			}
		}
	}
	next.sum()
	return next
}

// Losing returns what is kept where states may have been lost up to a time.
func (k *Keeping) Losing(lost time.Time) *Keeping {
	next := k.clone()
	next.Lost = lost.Truncate(time.Microsecond).UTC()
	next.sum()
	return next
}

// In returns what is kept in an epoch of the store.
func (k *Keeping) In(epoch string) *Keeping {
	next := k.clone()
	next.Epoch = epoch
	next.sum()
	return next
}

func (k *Keeping) clone() *Keeping {
	next := &Keeping{Gateways: map[string]map[string]time.Time{}, Ended: map[string]time.Time{}, Owed: map[string]string{},
		Back: map[string]bool{}}
	if k != nil {
		next.Lost, next.Epoch, next.Key, next.Loss, next.Instance = k.Lost, k.Epoch, k.Key, k.Loss, k.Instance
		maps.Copy(next.Ended, k.Ended)
		maps.Copy(next.Owed, k.Owed)
		maps.Copy(next.Back, k.Back)
		for gateway, terms := range k.Gateways {
			next.Gateways[gateway] = maps.Clone(terms)
		}
	}
	return next
}

// sum finds since when all gateways keep each term.
func (k *Keeping) sum() {
	k.since = map[ID]time.Time{}
	for _, terms := range k.Gateways {
		for text, since := range terms {
			id := idOf(text)
			if at, ok := k.since[id]; !ok || since.After(at) {
				k.since[id] = since
			}
		}
	}
	for _, terms := range k.Gateways {
		ids := make(map[ID]bool, len(terms))
		for text := range terms {
			ids[idOf(text)] = true
		}
		maps.DeleteFunc(k.since, func(id ID, _ time.Time) bool { return !ids[id] })
	}
	k.last = time.Time{}
	for _, since := range k.since {
		if since.After(k.last) {
			k.last = since
		}
	}
}

// Attempt is an attempt of a gateway to put back what a shared store has lost.
type Attempt struct {
	Gateway, Name string
	// Instance is the instance of the store, and Agreed says that the gateways go by its state by now: then the loss was before.
	Instance string
	Agreed   bool
}

// Lose returns what is kept when a gateway begins to put back what its log says into a store that has lost its state. k is what the store
// has, and known what the gateway has had of it; either may be nil, and where both are, nothing was kept. Every gateway that one of them
// names owes what its log says, unless it had ended when the store still had all: until an attempt of its own that has begun since is Done.
func (k *Keeping) Lose(known *Keeping, a Attempt, now time.Time) *Keeping {
	now = now.Truncate(time.Microsecond).UTC()
	switch {
	case k == nil && known == nil:
		return nil
	case k != nil && a.Agreed:
		next := k.clone()
		if known.names()[a.Gateway] && !k.names()[a.Gateway] { // those that have begun without it have counted anew
			next.Lost = now
		}
		if _, owed := next.Owed[a.Gateway]; owed {
			next.Owed[a.Gateway] = a.Name
		}
		next.sum()
		return next
	}
	next, own := k.clone(), known.clone()
	if own.Lost.After(next.Lost) {
		next.Lost = own.Lost
	}
	if next.Key == "" {
		next.Key = own.Key
	} else if own.Key != "" && own.Key != next.Key { // its log names values otherwise
		next.Lost = now
	}
	if k == nil || k.Epoch != "" || k.Instance != a.Instance { // it is the first one after the loss
		next.Loss, next.Epoch, next.Instance = now, "", a.Instance
		next.Owed, next.Back = map[string]string{}, map[string]bool{}
	}
	for _, of := range [...]*Keeping{k, known} {
		for gateway := range of.names() {
			if _, owed := next.Owed[gateway]; !owed && !next.Back[gateway] && !k.outlived(gateway, of) {
				next.Owed[gateway] = ""
			}
		}
	}
	delete(next.Back, a.Gateway)
	next.Owed[a.Gateway] = a.Name
	next.join(own, a.Gateway)
	next.sum()
	return next
}

// outlived reports whether a gateway had ended before the state was made that the store has yet: so all that it has written is there. It
// has not where others, who may know more, say that it has come back, or that its log is owed.
func (k *Keeping) outlived(gateway string, others *Keeping) bool {
	if k == nil {
		return false
	}
	ended, there := k.Ended[gateway]
	for _, of := range [...]*Keeping{k, others} {
		_, owed := of.Owed[gateway]
		there = there && !owed && !of.Keeps(gateway) && !of.Ended[gateway].After(ended)
	}
	return there
}

// names are the gateways that may have written to the store.
func (k *Keeping) names() map[string]bool {
	all := map[string]bool{}
	if k == nil {
		return all
	}
	for gateway := range k.Gateways {
		all[gateway] = true
	}
	for gateway := range k.Ended {
		all[gateway] = true
	}
	for gateway := range k.Owed {
		all[gateway] = true
	}
	for gateway := range k.Back {
		all[gateway] = true
	}
	return all
}

// join adds the terms that others have known. A gateway knows its own; of those of others, the later times hold.
func (k *Keeping) join(other *Keeping, own string) {
	for gateway, terms := range other.Gateways {
		was, there := k.Gateways[gateway]
		if !there || gateway == own {
			k.Gateways[gateway] = terms
			continue
		}
		maps.DeleteFunc(was, func(text string, _ time.Time) bool { _, kept := terms[text]; return !kept })
		for text, since := range was {
			if terms[text].After(since) {
				was[text] = terms[text]
			}
		}
	}
	for gateway, at := range other.Ended {
		if _, lives := k.Gateways[gateway]; !lives && at.After(k.Ended[gateway]) {
			k.Ended[gateway] = at
		}
	}
}

// Done returns what is kept once the attempt of a gateway has put back all that its log says, but for what was up to lost. ok is false
// where the store has lost its state since the attempt began.
func (k *Keeping) Done(a Attempt, lost time.Time) (next *Keeping, ok bool) {
	next = k.clone()
	if attempt, owed := next.Owed[a.Gateway]; !owed || attempt != a.Name {
		return k, a.Agreed && !owed
	}
	delete(next.Owed, a.Gateway)
	next.Back[a.Gateway] = true
	if lost.After(next.Lost) {
		next.Lost = lost.Truncate(time.Microsecond).UTC()
	}
	next.sum()
	return next, true
}

// Owes reports whether a gateway has yet to put back what its log says of a time from which anything is kept.
func (k *Keeping) Owes(now time.Time, keep time.Duration) bool {
	return k != nil && len(k.Owed) > 0 && now.Sub(k.Loss) < keep
}

// LostUntil is up to when states may have been lost for good, also by gateways which have not come back.
func (k *Keeping) LostUntil() (lost time.Time) {
	if k == nil {
		return lost
	}
	if lost = k.Lost; len(k.Owed) > 0 && k.Loss.After(lost) {
		lost = k.Loss
	}
	return lost
}

// Accepting returns what is kept where what was lost is taken for never having been there.
func (k *Keeping) Accepting() *Keeping {
	next := k.Losing(time.Time{})
	clear(next.Owed)
	return next
}

// Forgetting returns what is kept without the names of gateways that have ended before a time.
func (k *Keeping) Forgetting(before time.Time) *Keeping {
	if k == nil {
		return k
	}
	for _, ended := range k.Ended {
		if ended.Before(before) {
			next := k.clone()
			maps.DeleteFunc(next.Ended, func(_ string, ended time.Time) bool { return ended.Before(before) })
			next.sum()
			return next
		}
	}
	return k
}

// Keeps reports whether a gateway is among those that keep terms.
func (k *Keeping) Keeps(gateway string) bool {
	if k == nil {
		return false
	}
	_, there := k.Gateways[gateway]
	return there
}

// Since returns since when a term is kept; ok is false where it is not.
func (k *Keeping) Since(term ID) (at time.Time, ok bool) {
	if k == nil {
		return at, false
	}
	at, ok = k.since[term]
	return at, ok
}

// Begin returns the state of a thread, or a caller, of which nothing was there when k was: all its terms are kept from its beginning on,
// also where a clock that is behind says that they are not kept yet.
func (k *Keeping) Begin(now time.Time) *State {
	if k != nil && k.last.After(now) {
		now = k.last
	}
	return Begin(now)
}

// Equal reports whether the same terms are kept since the same time, and nothing was lost in between.
func (k *Keeping) Equal(other *Keeping) bool {
	if k == other || k == nil || other == nil {
		return k == other
	}
	return k.Lost.Equal(other.Lost) && k.Loss.Equal(other.Loss) && len(k.Owed) == len(other.Owed) &&
		maps.EqualFunc(k.since, other.since, time.Time.Equal)
}

// UnmarshalJSON reads what json.Marshal wrote.
func (k *Keeping) UnmarshalJSON(text []byte) error {
	type plain Keeping
	if err := json.Unmarshal(text, (*plain)(k)); err != nil {
		return err
	}
	k.sum()
	return nil
}
