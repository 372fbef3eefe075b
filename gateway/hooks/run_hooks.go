// Package hooks runs the hooks of an operator within a judgement: at what the tool of a call says
// (Results), and at what a request brings back of earlier turns and a model says beside the text that
// is judged (Request). It has their refusals, and those of the hooks at arguments and texts, which
// are checks of the kernel. Package hook has the hooks themselves.
package hooks

import (
	"context"
	"errors"
	"fmt"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/refusal"
)

// Config is the hooks of a configuration, and how they are run. Of Question, At is set when they
// are.
type Config struct {
	Set      *hook.Set
	Runner   hook.Runner
	Question hook.Question
	// Label takes the labels of a value that passes, before anybody gets it, and reports whether they are kept; nil: they
	// are not. A value whose labels are not kept is denied, unless Unread says that no condition reads any.
	Label  func(labels []string) bool
	Unread bool
}

// Run runs the hooks of a point over a JSON value.
func (a Config) Run(ctx context.Context, at hook.Point, value []byte) hook.Outcome {
	o := a.Runner.Run(ctx, a.Set, a.at(at), value)
	if len(o.Labels) > 0 && !a.Unread && (a.Label == nil || !a.Label(o.Labels)) {
		o.Denied = &hook.Denial{Hook: o.Labelled[0], Reason: "it adds a label to the thread, which cannot be kept here"}
	}
	return o
}

// Text begins the hooks at texts over a text that comes in pieces; nil where there are none.
func (a Config) Text() *hook.Texts { return a.Runner.Text(a.Set, a.at(hook.Text)) }

func (a Config) at(at hook.Point) hook.Question {
	q := a.Question
	q.At = at
	return q
}

// RefuseArguments refuses a call whose arguments a hook denies.
func RefuseArguments(d *hook.Denial) error {
	message := fmt.Sprintf("The hook %s of this gateway does not let these arguments pass: %s. Send the call again without what must not be in it, or say what you cannot do.", d.Hook, d.Reason)
	if d.Failed {
		message = fmt.Sprintf("The hook %s of this gateway could not be asked about this call, so nothing was executed. Retry later; changing the call will not help.", d.Hook)
	}
	return refuseByHook(refusal.Approval, d, message)
}

// RefuseText refuses what a model says.
func RefuseText(d *hook.Denial) *refusal.Error {
	message := fmt.Sprintf("The hook %s of this gateway does not let this text pass: %s. Answer without what must not be in it.", d.Hook,
		d.Reason)
	if d.Failed {
		message = fmt.Sprintf("The hook %s of this gateway could not be asked about this text, so it was not passed on. Retry later; changing the text will not help.", d.Hook)
	}
	return refuseByHook(refusal.Approval, d, message)
}

// refuseByHook is a refusal for a hook that has denied.
func refuseByHook(stage refusal.Stage, d *hook.Denial, message string) *refusal.Error {
	refused := refusal.At(stage, refusal.HookDenied, message)
	if d.Cause != nil {
		return refused.WithCause(fmt.Errorf("hook %s: %w", d.Hook, d.Cause))
	}
	return refused.WithCause(errors.New("hook " + d.Hook))
}
