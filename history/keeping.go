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
	// Lost is up to when states may have been lost: one that is not there may have been then. The zero time: none was.
	Lost time.Time
	// Key is that of the Secret by which states and records name the values of keys.
	Key string `json:",omitempty"`
	// Epoch is that of the store that has it, where several gateways share one.
	Epoch string `json:",omitempty"`

	since map[ID]time.Time // of those that all have
}

// With returns what is kept from now on, when a gateway keeps these terms and no others.
func (k *Keeping) With(gateway string, terms *Terms, now time.Time) *Keeping {
	next := k.clone()
	was, is := next.Gateways[gateway], map[string]time.Time{}
	if terms != nil {
		for i := range terms.all {
			text := terms.all[i].text
			since, kept := was[text]
			if !kept {
				since = now.Truncate(time.Microsecond).UTC()
			}
			is[text] = since
		}
	}
	next.Gateways[gateway] = is
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

func (k *Keeping) clone() *Keeping {
	next := &Keeping{Gateways: map[string]map[string]time.Time{}}
	if k != nil {
		next.Lost, next.Epoch, next.Key = k.Lost, k.Epoch, k.Key
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

// Equal reports whether the same terms are kept since the same time, and nothing was lost in between.
func (k *Keeping) Equal(other *Keeping) bool {
	if k == other || k == nil || other == nil {
		return k == other
	}
	return k.Lost.Equal(other.Lost) && maps.EqualFunc(k.since, other.since, time.Time.Equal)
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
