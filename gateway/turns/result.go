package turns

import (
	"context"
	"errors"

	"github.com/callgate/callgate/hook"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// WrapBrought wraps the result of a tool that the application ran and that its request brings back,
// as the hooks leave it, for the model. The error is a *refusal.Error.
func (r *Run) WrapBrought(ctx context.Context, name, text string) (string, error) {
	left, err := r.Admission.Hooks().Brought(ctx, hook.Result, name, rawjson.Quote(text))
	if err != nil {
		return "", err
	}
	if text, ok := rawjson.String(left); ok {
		return WrapResult(name, text)
	}
	return "", refusal.From(refusal.Wrap, errors.New("a text that is none any more"))
}

// WrapResult wraps the result of a tool that the application ran, for the model: a tool_result,
// as one line of JSON. A text that is JSON is the output itself. The error is a *refusal.Error.
func WrapResult(name, text string) (string, error) {
	wrap := func() (wrapper.ToolResult, error) { return wrapper.Text(name, text) }
	if raw := []byte(text); rawjson.Valid(raw) {
		wrap = func() (wrapper.ToolResult, error) { return wrapper.Result(name, raw) }
	}
	result, err := wrap()
	if err != nil {
		return "", refusal.From(refusal.Wrap, err)
	}
	return string(result.Line), nil
}
