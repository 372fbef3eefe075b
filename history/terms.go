package history

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The bounds of Terms.
const (
	MaxTerms    = 256
	MaxWindowed = 64 // of them, with a window
)

// counted is a term with what is asked of it often.
type counted struct {
	Term
	id   ID
	text string
}

// Terms are the terms of a configuration. They are safe for concurrent use; nil has none.
type Terms struct {
	// Labels says that conditions read labels, so that those of threads are kept as well.
	Labels bool

	all     []counted
	byID    map[ID]*counted
	matches func(pattern, tool string) bool
	byTool  sync.Map // what counts a tool: []*counted
	tools   atomic.Int64
}

// maxTools bounds the tools of which Terms remember what counts them.
const maxTools = 1 << 16

// NewTerms returns the terms, each of which must be another one. matches reports whether the tool of a term, a name or a
// pattern, is that of a call; it is called from several goroutines.
func NewTerms(terms []Term, matches func(pattern, tool string) bool) (*Terms, error) {
	t := &Terms{all: make([]counted, len(terms)), byID: make(map[ID]*counted, len(terms)), matches: matches}
	windowed := 0
	for i, term := range terms {
		if err := term.validate(); err != nil {
			return nil, fmt.Errorf("a term of the tool %q: %w", term.Tool, err)
		}
		c := counted{term, term.ID(), term.String()}
		if other := t.byID[c.id]; other != nil {
			return nil, fmt.Errorf("%s is there twice, or has the digest of %s", c.text, other.text)
		}
		if term.Window > 0 {
			windowed++
		}
		t.all[i] = c
		t.byID[c.id] = &t.all[i]
	}
	switch {
	case len(terms) > MaxTerms:
		return nil, fmt.Errorf("found %d different terms that ask for the past, and there may be %d", len(terms), MaxTerms)
	case windowed > MaxWindowed:
		return nil, fmt.Errorf("found %d different terms with a window, and there may be %d", windowed, MaxWindowed)
	}
	return t, nil
}

// texts are what is kept for the terms.
func (t *Terms) texts() (all []string) {
	if t == nil {
		return nil
	}
	for i := range t.all {
		all = append(all, t.all[i].text)
	}
	if t.Labels {
		all = append(all, labelsText)
	}
	return all
}

// term returns a term; nil: it is none of these.
func (t *Terms) term(id ID) *counted {
	if t == nil {
		return nil
	}
	return t.byID[id]
}

// Counts reports whether a term counts the calls or the results of a tool.
func (t *Terms) Counts(tool string) bool { return len(t.of(tool)) > 0 }

// NeedArguments reports whether a term that counts the calls or the results of a tool reads their arguments.
func (t *Terms) NeedArguments(tool string) bool {
	return slices.ContainsFunc(t.of(tool), func(c *counted) bool { return c.Member != "" || len(c.Keys) > 0 })
}

// OfCallers reports whether any counts what callers do, over all their threads.
func (t *Terms) OfCallers() bool {
	return slices.ContainsFunc(t.all, func(c counted) bool { return c.Caller })
}

// of returns the terms that count a tool.
func (t *Terms) of(tool string) []*counted {
	if t == nil || len(t.all) == 0 {
		return nil
	}
	if known, ok := t.byTool.Load(tool); ok {
		return known.([]*counted)
	}
	var found []*counted
	for i := range t.all {
		if t.matches(t.all[i].Tool, tool) {
			found = append(found, &t.all[i])
		}
	}
	if t.tools.Add(1) <= maxTools {
		t.byTool.Store(tool, found)
	}
	return found
}

// Adds are what a call adds to its thread and its caller when it is let through: its counts and its sums. The error says
// that a term has keys and there is no secret.
func (t *Terms) Adds(tool string, args map[string]any, secret *Secret, now time.Time) (Adds, error) {
	return t.adds(tool, args, secret, now, Kind.isCount)
}

// HandOverAdds are both: a call that is handed over counts as one with a result for the answers behind its own.
func (t *Terms) HandOverAdds(tool string, args map[string]any, secret *Secret, now time.Time) (Adds, error) {
	return t.adds(tool, args, secret, now, func(Kind) bool { return true })
}

// ResultAdds are what the result of a call adds to its thread: of a call that has ended with one.
func (t *Terms) ResultAdds(tool string, args map[string]any, secret *Secret, now time.Time) (Adds, error) {
	return t.adds(tool, args, secret, now, Kind.isResult)
}

func (k Kind) isResult() bool { return k == Results }
func (k Kind) isCount() bool  { return k != Results }

func (t *Terms) adds(tool string, args map[string]any, secret *Secret, now time.Time, of func(Kind) bool) (Adds, error) {
	adds := Adds{At: now}
	for _, c := range t.of(tool) {
		if !of(c.Kind) {
			continue
		}
		a := amount{counted: c, n: 1}
		if len(c.Keys) > 0 {
			if secret == nil {
				return Adds{}, errNoSecret
			}
			var values [MaxKeys]any
			for i, key := range c.Keys {
				values[i] = args[key]
			}
			var ok bool
			if a.key, ok = secret.digest(values[:len(c.Keys)]); !ok {
				continue // nobody can ask for it: View.Value refuses such values
			}
		}
		if c.Kind == Sum {
			a.n = millionths(args[c.Member])
		}
		adds.amounts = append(adds.amounts, a)
	}
	return adds, nil
}
