package gateway

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/policy"
)

// Step is what a thread is assumed to have done before a call that is only checked.
type Step struct {
	// Tool is the tool of a call that was let through, with its Arguments; empty: the thread has Labels, and nothing
	// was called.
	Tool      string
	Arguments map[string]any
	Labels    []string
	// Ended says that the call has ended with a result, or was handed over, before the answer that is checked.
	Ended bool
	At    time.Time
	// Name stands for the id of the call.
	Name string
}

// Assumed is what the thread and the caller of a call that is only checked are assumed to have done. It is not changed.
type Assumed struct {
	past   history.Past
	made   []history.Adds  // by calls and their results
	secret *history.Secret // of who has kept it; nil: of who is asked
}

// Size is about how many bytes it takes in memory.
func (a *Assumed) Size() (n int64) {
	for _, s := range []*history.State{a.past.Thread, a.past.Caller} {
		if s != nil {
			n += s.Size()
		}
	}
	return n
}

// assumed is the past that the conditions of the call saw, for a candidate; nil: there is none, or the call uses no threads.
func (c *Call) assumed() *Assumed {
	if c.inPast == nil || c.config.Beside == nil {
		return nil
	}
	kept := c.past.kept
	if decided := c.past.decided; !decided.Now.IsZero() {
		kept = decided
	}
	kept, before := c.before(kept)
	for _, adds := range before {
		adds.Labels = nil // which are only seen behind their answer
		if kept.Thread != nil {
			kept.Thread = kept.Thread.Apply(adds, false)
		}
		if kept.Caller != nil {
			kept.Caller = kept.Caller.Apply(adds, true)
		}
	}
	return &Assumed{past: kept, secret: c.kernel.deps.Secret()}
}

// MadeBy names the steps that have made a value of the past that a condition saw, as package history writes it.
func (a *Assumed) MadeBy(saw string) (steps []string) {
	term := saw[:strings.LastIndexByte(saw, '=')+1]
	if term == "thread.labels=" {
		for _, label := range a.past.Thread.Labels() {
			steps = append(steps, label.Name+" by "+label.Call)
		}
		return steps
	}
	for i := range a.made {
		made := &a.made[i]
		if !slices.Contains(steps, made.Call) &&
			slices.ContainsFunc(made.Texts(), func(text string) bool { return strings.HasPrefix(text, term) }) {
			steps = append(steps, made.Call)
		}
	}
	return steps
}

// Assume returns what steps leave behind, by what the conditions of the configuration ask: steps in the order of their
// times, up to now.
func (k *Kernel) Assume(steps []Step, now time.Time) (*Assumed, error) {
	s := k.config.Load()
	began := now
	if len(steps) > 0 {
		began = steps[0].At
	}
	a := &Assumed{past: history.Past{Thread: history.Begin(began), Caller: history.Begin(began), Now: now}}
	if s.asked == nil {
		return a, nil
	}
	a.past.Keeping = s.asked.fresh
	for i := range steps {
		of := &steps[i]
		if of.Tool == "" {
			a.past.Thread = a.past.Thread.Apply(history.Adds{At: of.At, Call: of.Name, Labels: of.Labels}, false)
			continue
		}
		adds, result, _, err := k.Adds(of)
		if err != nil {
			return nil, err
		}
		a.past.Thread, a.past.Caller = a.past.Thread.Apply(adds, false), a.past.Caller.Apply(adds, true)
		a.made = append(a.made, adds)
		if of.Ended {
			a.past.Thread = a.past.Thread.Apply(result, false)
			a.made = append(a.made, result)
		}
	}
	return a, nil
}

// Adds are what the call of a step adds to its thread and its caller, and what its result adds then, by what the conditions of
// the configuration ask. known is false where that depends on arguments that nobody has, which are nil.
func (k *Kernel) Adds(of *Step) (call, result history.Adds, known bool, err error) {
	s, secret := k.config.Load(), k.deps.Secret()
	if s.asked == nil {
		return call, result, true, nil
	}
	if call, err = s.asked.terms.Adds(of.Tool, of.Arguments, secret, of.At); err == nil {
		result, err = s.asked.terms.ResultAdds(of.Tool, of.Arguments, secret, of.At)
	}
	call.Call, result.Call = of.Name, of.Name
	known = of.Arguments != nil || !s.asked.terms.NeedArguments(of.Tool)
	if s.asked.labels != nil {
		tool, _ := s.Tools.Lookup(of.Tool)
		call.Labels = s.asked.labels.of(tool, func() map[string]any {
			known = known && of.Arguments != nil
			return of.Arguments
		})
	}
	return call, result, known, err
}

// AssumePast returns a past that somebody else has put together, by Adds. Of states that are whole all is known.
func (k *Kernel) AssumePast(past history.Past) *Assumed {
	if asked := k.config.Load().asked; asked != nil {
		past.Keeping = asked.fresh
	}
	return &Assumed{past: past}
}

// ReadsPast reports whether the conditions of the configuration ask what was done before.
func (k *Kernel) ReadsPast() bool { return k.config.Load().asked != nil }

// CheckAfter is Check in a thread that has done something before. known is false where conditions have asked what is not known
// of it.
func (k *Kernel) CheckAfter(ctx context.Context, request Request, assumed *Assumed) (report Report, known bool) {
	d := k.openBy(k.config.Load(), request, ModeCall, nil)
	d.judgement.past = &past{kept: assumed.past, secret: assumed.secret}
	report = d.check(ctx, judge)
	report.Thread = ""
	p := d.calls[0].inPast
	return report, p == nil || !p.lacks
}

// ViewAfter is the past as the conditions of a call may ask it, for a request to the policy; nil: they ask nothing.
func (k *Kernel) ViewAfter(r policy.Request, assumed *Assumed) (*history.View, error) {
	asked := k.config.Load().asked
	if asked == nil {
		return nil, nil
	}
	own, err := asked.terms.Adds(r.Tool, r.Arguments, k.deps.Secret(), assumed.past.Now)
	if err != nil {
		return nil, err
	}
	return history.NewView(asked.terms, k.deps.Secret(), assumed.past, nil, own), nil
}
