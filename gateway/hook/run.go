package hook

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/wrapper"
)

// Outcome is the result of the hooks of a point for a value.
type Outcome struct {
	// Value is the value as they leave it: the same bytes where nothing was redacted.
	Value []byte
	// Redacted are the names of the hooks that redacted, in their order, and Labelled of those that added Labels.
	Redacted, Labelled []string
	// Labels are those of a value that passes, each once.
	Labels []string
	Denied *Denial // nil: it passes
}

// Denial is a hook's refusal of a value.
type Denial struct {
	Hook string
	// Reason says to a model why, without anything of the value.
	Reason string
	// Cause is for the operator, and holds nothing of the value; it may be nil.
	Cause error
	// Failed says that the hook could not answer.
	Failed bool
}

// Runner runs the hooks of a set.
type Runner struct {
	Asker    Asker    // nil: no callout can be asked, and each denies
	Observer Observer // may be nil
	Now      func() time.Time
}

// Run runs the hooks of a point, in their order; each sees the value as the one before has left it,
// and the first that denies ends it. The value must be one strict JSON value.
func (r Runner) Run(ctx context.Context, s *Set, q Question, value []byte) Outcome {
	o := Outcome{Value: value}
	if s == nil {
		return o
	}
	for _, h := range s.hooks {
		if !h.applies(q.At, q.Agent, q.Tool) {
			continue
		}
		began := r.Now()
		edited, labels, denied := r.runOne(ctx, h, q, o.Value)
		verdict := Passed
		switch {
		case denied != nil && denied.Failed:
			verdict = Failed
		case denied != nil:
			verdict = Denied
		case string(edited) != string(o.Value):
			verdict = Redacted
			o.Redacted = append(o.Redacted, h.Name)
		case len(labels) > 0:
			verdict = Labelled
		}
		if r.Observer != nil {
			r.Observer.HookEnded(h.Name, string(q.At), verdict, r.Now().Sub(began))
		}
		if denied != nil {
			o.Denied, denied.Hook = denied, h.Name
			o.Labels, o.Labelled = nil, nil // nobody gets it
			return o
		}
		o.Value = edited
		if len(labels) > 0 {
			o.Labelled, o.Labels = append(o.Labelled, h.Name), AddLabels(o.Labels, labels...)
		}
	}
	return o
}

// AddLabels returns labels with others, each once. A list that was returned before does not change.
func AddLabels(labels []string, others ...string) []string {
	for _, label := range others {
		if !slices.Contains(labels, label) {
			labels = append(slices.Clip(labels), label)
		}
	}
	return labels
}

// runOne runs one hook. One that panics denies.
func (r Runner) runOne(ctx context.Context, h *Hook, q Question, value []byte) (edited []byte, labels []string, denied *Denial) {
	defer safe.Catch(func(panicked error) { denied = failed(panicked) })
	if len(value) > h.MaxBytes {
		return nil, nil, tooLong(h)
	}
	if h.Callout == nil {
		edited, err := find(value, h.Patterns, h.OnMatch == Redact, 0)
		var match *matchError
		switch {
		case errors.As(err, &match) && h.OnMatch == Label:
			return value, h.Labels, nil
		case errors.As(err, &match):
			return nil, nil, matched(q.At, match.pattern, match.pointer)
		case err != nil:
			return nil, nil, failed(errors.New("the value cannot be read"))
		}
		return edited, nil, nil
	}
	if r.Asker == nil {
		return nil, nil, failed(errors.New("no callout can be asked here"))
	}
	ctx, cancel := context.WithTimeout(ctx, h.Callout.Timeout)
	defer cancel()
	answer, err := r.Asker.Ask(ctx, h, q, value)
	switch {
	case err != nil:
		return nil, nil, failed(err)
	case answer.Deny:
		return nil, nil, &Denial{Reason: reason(answer.Message)}
	}
	for _, label := range answer.Labels {
		if !slices.Contains(h.Labels, label) {
			return nil, nil, failed(errors.New("it answers a label that is not one of its labels"))
		}
	}
	if len(answer.Redact) == 0 {
		return value, answer.Labels, nil
	}
	if edited, err = replaceAt(value, answer.Redact, "[redacted:"+h.Name+"]"); err != nil {
		return nil, nil, failed(err)
	}
	return edited, answer.Labels, nil
}

func tooLong(h *Hook) *Denial {
	return &Denial{Reason: fmt.Sprintf("it is longer than the %d bytes that this hook reads", h.MaxBytes)}
}

func matched(at Point, pattern, pointer string) *Denial {
	return &Denial{Reason: "it has something that must not pass here, of the kind " + pattern + place(at, pointer)}
}

func failed(cause error) *Denial {
	return &Denial{Reason: "it could not be asked", Cause: cause, Failed: true}
}

// maxReason bounds what a callout says to a model, and maxPlace a place, in bytes before escaping.
const (
	maxReason = 500
	maxPlace  = 200
)

// reason is the message of a callout, bounded, and without anything that hides.
func reason(message string) string {
	if message == "" {
		return "it denies it"
	}
	return strings.ToValidUTF8(wrapper.EscapeText(message[:min(len(message), maxReason)]), "")
}

// place names a place in the arguments of a call; the root, and a long one, are not named. None is in
// what a tool says: the names on the way there may be its own words, and a model would read them as
// those of the gateway.
func place(at Point, pointer string) string {
	if at != Call || pointer == "" || len(pointer) > maxPlace {
		return ""
	}
	return ", at " + wrapper.EscapeText(pointer)
}
