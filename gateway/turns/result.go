package turns

import (
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

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
