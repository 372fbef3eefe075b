package hooks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Request runs the hooks at what a request brings back of earlier turns, and at what the model says
// beside the text that is judged: both are shown unjudged.
type Request struct {
	Config
	Refused *refusal.Error // of a request that was not admitted: it has no hooks, and brings nothing
}

// AtBrought reports whether hooks are to see what the request brings back of earlier turns, at one of
// some points.
func (r Request) AtBrought(points ...hook.Point) bool {
	return r.Refused == nil && slices.ContainsFunc(points, r.Set.At)
}

// AtTexts reports whether hooks are to see what the model says.
func (r Request) AtTexts() bool {
	return r.Refused == nil && r.Set.Applies(hook.Text, r.Question.Agent, "")
}

// ModelText begins a text that the model says beside the one that is judged, and that comes in pieces; it
// is nil where no hook is to see it.
func (r Request) ModelText() *hook.Texts {
	if r.Refused != nil {
		return nil
	}
	return r.Text()
}

// Brought runs the hooks of a point over what a request brings back of an earlier turn for its
// model, a strict JSON value, and returns what they leave of it: the arguments or the result of a tool,
// or what a model said, which is of no tool. Its error is a *refusal.Error.
func (r Request) Brought(ctx context.Context, at hook.Point, tool string, value []byte) ([]byte, error) {
	if r.Refused != nil {
		return nil, r.Refused
	}
	if !r.Set.Applies(at, r.Question.Agent, tool) {
		return value, nil
	}
	config := r.Config
	config.Question.Tool = tool
	o := config.Run(ctx, at, value)
	if o.Denied != nil {
		return nil, refuseBrought(o.Denied, at, tool)
	}
	return o.Value, nil
}

// TextsBrought runs the hooks at texts over what a model said in an earlier turn that a request
// brings back: texts that are one. It returns what they leave of each; none becomes empty, which
// providers refuse. Its error is a *refusal.Error.
func (r Request) TextsBrought(ctx context.Context, texts []string) ([]string, error) {
	if r.Refused != nil {
		return nil, r.Refused
	}
	joined := r.ModelText()
	if joined == nil {
		return texts, nil
	}
	pieces := joined.Write([]byte(strings.Join(texts, "")))
	pieces = append(pieces, joined.Close(ctx)...)
	if d := joined.Denied(); d != nil {
		return nil, refuseBrought(d, hook.Text, "")
	}
	if len(joined.Redacted()) == 0 {
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

// EndModelText ends a text of ModelText, and returns the rest of it. Its error is a *refusal.Error.
func EndModelText(ctx context.Context, texts *hook.Texts) ([]byte, error) {
	rest := window.Join(texts.Close(context.WithoutCancel(ctx)))
	if d := texts.Denied(); d != nil {
		return nil, RefuseText(d)
	}
	return rest, nil
}

// ModelValue runs the hooks at texts over a JSON value that the model says beside the text that is judged,
// such as what it thought, and returns what they leave of it. Its error is a *refusal.Error.
func (r Request) ModelValue(ctx context.Context, value []byte) ([]byte, error) {
	if !r.AtTexts() {
		return value, nil
	}
	o := r.Run(ctx, hook.Text, value)
	if o.Denied != nil {
		return nil, RefuseText(o.Denied)
	}
	return o.Value, nil
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
	return refuseByHook(refusal.Request, d,
		fmt.Sprintf("The hook %s of this gateway does not let %s in this request pass to the model: %s.", d.Hook, what, d.Reason))
}
