package history

import (
	"errors"
	"slices"
	"strings"
	"time"
)

// ErrUnknown says that a term cannot be answered: the condition that asks it fails.
var ErrUnknown = errors.New("what this thread has done before is not known")

// Past is what is kept of a thread and of its caller, as of one moment.
type Past struct {
	// Thread is nil where the call names no thread: then nothing is known of it. One that has added nothing yet is Begin.
	Thread, Caller *State
	Keeping        *Keeping
	Now            time.Time
	// Old says that others may have changed it: whoever refuses by it asks for the latest first.
	Old bool
}

// knows reports whether all that a term counts is in a state.
func (p *Past) knows(s *State, c *counted) bool {
	since, kept := p.Keeping.Since(c.id)
	if s == nil || !kept {
		return false
	}
	began, partial := s.Began, s.Partial
	if s.misses() { // turns of before the loss
		if p.Keeping.Loss.IsZero() {
			return false
		}
		if partial = true; began.Before(p.Keeping.Loss) {
			began = p.Keeping.Loss
		}
	}
	if partial && began.After(since) {
		since = began
	}
	if s.Stub {
		began = p.Now
	}
	if !partial && !began.Before(since) {
		return true
	}
	return c.Window > 0 && p.Now.Sub(since) >= c.Window+c.Window/steps
}

// View is the past as the conditions of one call may ask it, with the call itself. It is for one goroutine. A nil View
// knows nothing.
type View struct {
	past   Past
	terms  *Terms
	secret *Secret
	before []Adds
	own    Adds
	saw    []string
	lacks  bool
	room   [2]string // of the first answers
}

// NewView returns the view of one call: of what is kept, of what the calls of the same answer before it add, and of what
// the call itself adds. The secret may be nil where no term has keys.
func NewView(terms *Terms, secret *Secret, past Past, before []Adds, own Adds) *View {
	v := &View{past: past, terms: terms, secret: secret, before: before, own: own}
	v.saw = v.room[:0]
	return v
}

const (
	labelsText = "thread.labels"
	sawLabels  = labelsText + "="
)

var labelsID = idOf(labelsText)

// Labels are the names of the labels of the thread from before the answer that the call is part of, sorted.
func (v *View) Labels() ([]string, error) {
	if v == nil {
		return nil, ErrUnknown
	}
	s := v.past.Thread
	since, kept := v.past.Keeping.Since(labelsID)
	if s == nil || !kept || s.Partial || s.misses() || s.Began.Before(since) {
		v.lacks = true
		v.note(sawLabels + inexactText)
		return nil, ErrUnknown
	}
	names := make([]string, len(s.labels))
	for i := range s.labels {
		names[i] = s.labels[i].Name
	}
	v.note(sawLabels + strings.Join(names, ","))
	return names, nil
}

// Value answers a term, for these values of its Keys, in their order: values as arguments have them (texts, json.Number,
// booleans; ErrUnknown for anything else, and for texts above 4 KiB). Of a Sum it is in millionths.
func (v *View) Value(term ID, keys ...any) (int64, error) {
	if v == nil {
		return 0, ErrUnknown
	}
	c := v.terms.term(term)
	if c == nil || len(keys) != len(c.Keys) {
		return 0, ErrUnknown
	}
	var key uint64
	if len(keys) > 0 {
		ok := v.secret != nil
		if ok {
			key, ok = v.secret.digest(keys)
		}
		if !ok {
			return 0, ErrUnknown
		}
	}
	n := v.value(c, key)
	v.note(valueText(c, key, n))
	if n == inexact {
		return 0, ErrUnknown
	}
	return n, nil
}

func (v *View) value(c *counted, key uint64) int64 {
	s := v.past.Thread
	if c.Caller {
		s = v.past.Caller
	}
	if !v.past.knows(s, c) {
		v.lacks = true
		return inexact
	}
	n, ok := s.value(c, key, v.past.Now)
	if !ok {
		return inexact
	}
	if c.Kind == Results {
		return n
	}
	for i := range v.before {
		n = v.before[i].plus(n, c.id, key)
	}
	return v.own.plus(n, c.id, key)
}

// Values are what a state has of terms at a time, as View.Saw writes it, each with the digest of the values of its keys.
func (s *State) Values(terms *Terms, now time.Time) (texts []string) {
	if terms == nil {
		return nil
	}
	for i := range terms.all {
		c := &terms.all[i]
		from, to := s.of(c.id)
		for at := from; at < to; at++ {
			key := s.cells[at].key
			if at > from && s.cells[at-1].key == key || key == 0 && len(c.Keys) > 0 {
				continue
			}
			n, ok := s.value(c, key, now)
			if !ok {
				n = inexact
			}
			texts = append(texts, valueText(c, key, n))
		}
	}
	return texts
}

// plus is a value with what is added to it.
func (a *Adds) plus(n int64, term ID, key uint64) int64 {
	for i := range a.amounts {
		if add := &a.amounts[i]; add.id == term && add.key == key {
			n = sum(n, add.n, 1)
		}
	}
	return n
}

func (v *View) note(text string) {
	if i, found := slices.BinarySearch(v.saw, text); !found {
		v.saw = slices.Insert(v.saw, i, text)
	}
}

// Lacks reports whether it was asked what is not kept. What was added, and is more than can be told, is not that.
func (v *View) Lacks() bool { return v == nil || v.lacks }

// Saw are the answers that the view has given, each once, in the order of their texts: thread.calls('pay')=3,
// thread.labels=customer,untrusted; what was not known is a question mark.
func (v *View) Saw() []string {
	if v == nil {
		return nil
	}
	return v.saw
}
