package hooks

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Results runs the hooks at what the tool of one call says. Nothing of a tool reaches anybody before they
// were run over it: its result, the message of its failure, questions, challenges and what it shows to
// people beside those, its progress, logs and events. A nil Results has no hooks, and lets all pass.
type Results struct {
	Config

	// Tool is the name of the tool as messages write it, and Reads says that a call of it changes
	// nothing.
	Tool  string
	Reads bool

	did    []string // something to what the tool said
	labels []string
}

// Labels are those that the thread gets with what the tool said, each once.
func (r *Results) Labels() []string {
	if r == nil {
		return nil
	}
	return r.labels
}

// Keep takes labels that the thread gets with what the tool said. It is a Label of Config.
func (r *Results) Keep(labels []string) bool {
	r.labels = hook.AddLabels(r.labels, labels...)
	return true
}

// Early are the same hooks for what is passed on before a record says which labels it has, or without one: such labels are
// not kept.
func (r *Results) Early() *Results {
	if r == nil {
		return nil
	}
	own := *r
	own.Label = nil
	return &own
}

// Names are the hooks that denied, redacted or labelled what the tool said, each once.
func (r *Results) Names() []string {
	if r == nil {
		return nil
	}
	return r.did
}

// Result runs the hooks over the result of the call, which must be valid, and returns what they
// leave of it. Its error is a *refusal.Error of the stage wrap.
func (r *Results) Result(ctx context.Context, output tool.Result) (tool.Result, error) {
	if r == nil {
		return output, nil
	}
	value := output.Body
	if !output.JSON {
		value = rawjson.AppendQuote(nil, output.Body)
	}
	left, err := r.value(ctx, value)
	if err != nil {
		return tool.Result{}, err
	}
	if !output.JSON {
		if left, err = rawjson.Unquote(left); err != nil {
			return tool.Result{}, refuse.AfterDispatch(refusal.Wrap, err)
		}
	}
	output.Body = left
	return output, nil
}

// Failure runs the hooks over the refusal of a call that was dispatched: a failed tool says why
// in its own words.
func (r *Results) Failure(ctx context.Context, refused *refusal.Error) *refusal.Error {
	if refused.Code != refusal.ToolFailed || r == nil {
		return refused
	}
	message, err := r.Text(ctx, refused.Message)
	if err != nil {
		return refusal.From(refusal.Wrap, err)
	}
	if message == refused.Message {
		return refused
	}
	hooked := *refused
	hooked.Message = message
	return &hooked
}

// Text runs the hooks over a text that the tool of the call says.
func (r *Results) Text(ctx context.Context, text string) (string, error) {
	if r == nil {
		return text, nil
	}
	left, err := r.value(ctx, rawjson.AppendQuote(nil, text))
	if err != nil {
		return "", err
	}
	unquoted, err := rawjson.Unquote(left)
	if err != nil {
		return "", refuse.AfterDispatch(refusal.Wrap, err)
	}
	return string(unquoted), nil
}

// Beside runs the hooks over what a tool says beside its result, to people: values that are bound
// by their bytes, so that nothing in them can be redacted, and what would be is denied.
func (r *Results) Beside(ctx context.Context, values ...any) error {
	if r == nil {
		return nil
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return refuse.AfterDispatch(refusal.Wrap, err)
	}
	left, err := r.value(ctx, encoded)
	if err == nil && string(left) != string(encoded) {
		err = refusal.At(refusal.Wrap, refusal.HookDenied, fmt.Sprintf(
			"%s asked for something that a hook of this gateway does not let pass. Use another tool, or say what you cannot do.", r.Tool))
	}
	return err
}

// value runs the hooks at results over a JSON value, and notes which did something.
func (r *Results) value(ctx context.Context, value []byte) ([]byte, error) {
	o := r.Run(context.WithoutCancel(ctx), hook.Result, value)
	r.note(o.Redacted...)
	r.note(o.Labelled...)
	if o.Denied == nil {
		return o.Value, nil
	}
	r.note(o.Denied.Hook)
	return nil, refuseByHook(refusal.Wrap, o.Denied,
		fmt.Sprintf("%s answered, and the hook %s of this gateway does not let the answer pass: %s. %s",
			r.Tool, o.Denied.Hook, o.Denied.Reason, r.without()))
}

// without is what a model can do without the result of its call.
func (r *Results) without() string {
	if r.Reads {
		return "Continue without it."
	}
	return "It ran, so do not ask for the same again."
}

// note notes names for the record of the outcome, each once.
func (r *Results) note(names ...string) {
	for _, name := range names {
		r.did = appendOnce(r.did, name)
	}
}

func appendOnce(names []string, name string) []string {
	for _, other := range names {
		if other == name {
			return names
		}
	}
	return append(names, name)
}

// Filter is what progress and logs of the tool pass before their caller gets them: it returns
// what is left of a JSON value, or that nothing may be passed on. It is nil where there are no hooks.
func (r *Results) Filter() func(value []byte) ([]byte, bool) {
	if r == nil {
		return nil
	}
	early := r.Early()
	return func(value []byte) ([]byte, bool) {
		// The call still runs: what is noted is its own.
		o := early.Run(context.Background(), hook.Result, value)
		return o.Value, o.Denied == nil
	}
}
