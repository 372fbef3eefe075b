package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/hook"
	"github.com/callgate/callgate/hook/window"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Hooks at results. Nothing of a tool reaches anybody before they were run over it: its result, the
// message of its failure, questions, challenges and what it shows to people beside those, its
// progress, logs and events. What comes back in a request to a model, results, calls and texts of earlier
// turns, passes them before the model is asked.

// hasResultHooks reports whether a hook is to see what the tool of the call says.
func (c *Call) hasResultHooks() bool {
	return c.config.Hooks != nil && c.config.Hooks.Applies(hook.Result, c.subject.Agent, c.parsed.Name)
}

// HookResult runs the hooks over the result of the call, which must be valid, and returns what they
// leave of it. Its error is a *refusal.Error of the stage wrap.
func (c *Call) HookResult(ctx context.Context, output tool.Result) (tool.Result, error) {
	if !c.hasResultHooks() {
		return output, nil
	}
	value := output.Body
	if !output.JSON {
		value = strictjson.AppendQuote(nil, output.Body)
	}
	left, err := c.hookValue(ctx, value)
	if err != nil {
		return tool.Result{}, err
	}
	if !output.JSON {
		if left, err = strictjson.Unquote(left); err != nil {
			return tool.Result{}, refuse.AfterDispatch(refusal.Wrap, err)
		}
	}
	output.Body = left
	return output, nil
}

// HookFailure runs the hooks over the refusal of a call that was dispatched: a failed tool says why
// in its own words.
func (c *Call) HookFailure(ctx context.Context, refused *refusal.Error) *refusal.Error {
	if refused.Code != refusal.ToolFailed || !c.hasResultHooks() {
		return refused
	}
	message, err := c.HookText(ctx, refused.Message)
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

// HookText runs the hooks over a text that the tool of the call says.
func (c *Call) HookText(ctx context.Context, text string) (string, error) {
	if !c.hasResultHooks() {
		return text, nil
	}
	left, err := c.hookValue(ctx, strictjson.AppendQuote(nil, text))
	if err != nil {
		return "", err
	}
	said, err := strictjson.Unquote(left)
	if err != nil {
		return "", refuse.AfterDispatch(refusal.Wrap, err)
	}
	return string(said), nil
}

// HookBeside runs the hooks over what a tool says beside its result, to people: values that are bound
// by their bytes, so that nothing in them can be redacted, and what would be is denied.
func (c *Call) HookBeside(ctx context.Context, values ...any) error {
	if !c.hasResultHooks() {
		return nil
	}
	encoded, err := json.Marshal(values)
	if err != nil {
		return refuse.AfterDispatch(refusal.Wrap, err)
	}
	left, err := c.hookValue(ctx, encoded)
	if err == nil && string(left) != string(encoded) {
		err = refusal.At(refusal.Wrap, refusal.HookDenied, fmt.Sprintf("%s asked for something that a hook of this gateway does not let pass. Use another tool, or say what you cannot do.", c.WrittenName()))
	}
	return err
}

// hookValue runs the hooks at results over a JSON value, and notes which did something.
func (c *Call) hookValue(ctx context.Context, value []byte) ([]byte, error) {
	o := c.runHooks(context.WithoutCancel(ctx), c.hookQuestion(hook.Result), value)
	c.noteResultHooks(o.Redacted...)
	if o.Denied == nil {
		return o.Value, nil
	}
	c.noteResultHooks(o.Denied.Hook)
	return nil, refuseByHook(refusal.Wrap, o.Denied, fmt.Sprintf("%s answered, and the hook %s of this gateway does not let the answer pass: %s. %s",
		c.WrittenName(), o.Denied.Hook, o.Denied.Reason, c.withoutResult()))
}

// withoutResult is what a model can do without the result of its call.
func (c *Call) withoutResult() string {
	if c.tool != nil && c.tool.Effect() == "read" {
		return "Continue without it."
	}
	return "It ran, so do not ask for the same again."
}

// noteResultHooks notes names for the record of the outcome, each once.
func (c *Call) noteResultHooks(names ...string) {
	for _, name := range names {
		c.resultHooks = appendOnce(c.resultHooks, name)
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

// MessageFilter is what progress and logs of the tool pass before their caller gets them: it returns
// what is left of a JSON value, or that nothing may be passed on. It is nil where there are no hooks.
func (c *Call) MessageFilter() func(value []byte) ([]byte, bool) {
	if !c.hasResultHooks() {
		return nil
	}
	return func(value []byte) ([]byte, bool) {
		// The call still runs: what is noted is its own.
		o := c.runHooks(context.Background(), c.hookQuestion(hook.Result), value)
		return o.Value, o.Denied == nil
	}
}

// HooksBrought reports whether hooks are to see what the request brings back of earlier turns, at one of
// some points.
func (a *Admission) HooksBrought(points ...hook.Point) bool {
	return a.kernel != nil && slices.ContainsFunc(points, a.config().Hooks.At)
}

// HookBrought runs the hooks of a point over what a request brings back of an earlier turn for its
// model, a strict JSON value, and returns what they leave of it: the arguments or the result of a tool,
// or what a model said, which is of no tool. Its error is a *refusal.Error.
func (a *Admission) HookBrought(ctx context.Context, at hook.Point, tool string, value []byte) ([]byte, error) {
	if a.kernel == nil {
		return nil, refuse.NotAdmitted()
	}
	if !a.config().Hooks.Applies(at, a.request.Agent, tool) {
		return value, nil
	}
	j, q := a.asked(at, tool)
	o := j.runHooks(ctx, q, value)
	if o.Denied != nil {
		return nil, refuseBrought(o.Denied, at, tool)
	}
	return o.Value, nil
}

// HookTextsBrought runs the hooks at texts over what a model said in an earlier turn that a request
// brings back: texts that are one. It returns what they leave of each; none becomes empty, which
// providers refuse. Its error is a *refusal.Error.
func (a *Admission) HookTextsBrought(ctx context.Context, texts []string) ([]string, error) {
	if a.kernel == nil {
		return nil, refuse.NotAdmitted()
	}
	said := a.Said()
	if said == nil {
		return texts, nil
	}
	pieces := said.Write([]byte(strings.Join(texts, "")))
	pieces = append(pieces, said.Close(ctx)...)
	if d := said.Denied(); d != nil {
		return nil, refuseBrought(d, hook.Text, "")
	}
	if len(said.Redacted()) == 0 {
		return texts, nil
	}
	lengths := make([]int, len(texts))
	for i := range texts {
		lengths[i] = len(texts[i])
	}
	left := make([]string, len(texts))
	for i, text := range window.Divide(pieces, lengths) {
		if left[i] = string(text); len(text) == 0 && lengths[i] > 0 {
			left[i] = "[redacted]"
		}
	}
	return left, nil
}

// refuseBrought refuses a request for what it brings back of an earlier turn.
func refuseBrought(d *hook.Denial, at hook.Point, tool string) *refusal.Error {
	what := "a text of an earlier turn"
	switch at {
	case hook.Call:
		what = "arguments of an earlier call of the tool " + parser.Quote(tool)
	case hook.Result:
		what = "a result of the tool " + parser.Quote(tool)
	}
	return refuseByHook(refusal.Request, d, fmt.Sprintf("The hook %s of this gateway does not let %s in this request pass to the model: %s.", d.Hook, what, d.Reason))
}
