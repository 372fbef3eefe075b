package gateway

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/hook"
	"github.com/callgate/callgate/hook/window"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Hooks at texts: what a model says that is no call. A judged text passes them in the pipeline, and
// what a stream releases passes them first. What is shown unjudged, such as what a model thought, goes
// through an Admission's HookSaid and Said.

// hasTextHooks reports whether a hook is to see the text.
func hasTextHooks(c *Call) bool {
	return c.config.Hooks != nil && c.config.Hooks.Applies(hook.Text, c.subject.Agent, "")
}

// beginText begins the hooks over the text of the call, if there are such.
func (c *Call) beginText() {
	if c.texts == nil && hasTextHooks(c) {
		c.texts = c.runner().Text(c.config.Hooks, c.hookQuestion(hook.Text))
	}
}

// checkText is the step of the stage approval for texts: the hooks of the operator let the text pass,
// or deny it, or redact it.
func checkText(ctx context.Context, c *Call) error {
	if c.hooked {
		return nil
	}
	c.beginText()
	left := c.texts.Write(c.parsed.Text)
	left = append(left, c.texts.Close(ctx)...)
	if c.callHooks = c.texts.Redacted(); len(c.callHooks) > 0 {
		c.withheld = true // the completion has what was redacted
	}
	if d := c.texts.Denied(); d != nil {
		c.callHooks, c.withheld = append(c.callHooks, d.Hook), true
		c.parsed.Kind, c.parsed.Text = parser.Refused, nil
		return refuseSaid(d)
	}
	c.hooked = true
	if len(c.callHooks) > 0 {
		c.parsed.Text, c.pieces = window.Join(left), left
	}
	return nil
}

// release is what the hooks let out of a text that a stream releases.
func (s *Stream) release(text []byte) []byte {
	if c := s.decision.calls[0]; c.texts != nil {
		return window.Join(c.texts.Write(text))
	}
	return text
}

// denied reports whether a hook has denied the text.
func (s *Stream) denied() bool {
	texts := s.decision.calls[0].texts
	return texts != nil && texts.Denied() != nil
}

// refuseSaid refuses what a model says.
func refuseSaid(d *hook.Denial) *refusal.Error {
	message := fmt.Sprintf("The hook %s of this gateway does not let this text pass: %s. Answer without what must not be in it.", d.Hook, d.Reason)
	if d.Failed {
		message = fmt.Sprintf("The hook %s of this gateway could not be asked about this text, so it was not passed on. Retry later; changing the text will not help.", d.Hook)
	}
	return refuseByHook(refusal.Approval, d, message)
}

// HooksText reports whether hooks are to see what the model says.
func (a *Admission) HooksText() bool {
	return a.kernel != nil && a.config().Hooks.Applies(hook.Text, a.request.Agent, "")
}

// Said begins a text that the model says beside the one that is judged, and that comes in pieces; it
// is nil where no hook is to see it.
func (a *Admission) Said() *hook.Texts {
	if a.kernel == nil {
		return nil
	}
	j, q := a.asked(hook.Text, "")
	return j.runner().Text(j.config.Hooks, q)
}

// EndSaid ends a text of Said, and returns the rest of it. Its error is a *refusal.Error.
func EndSaid(ctx context.Context, texts *hook.Texts) ([]byte, error) {
	rest := window.Join(texts.Close(context.WithoutCancel(ctx)))
	if d := texts.Denied(); d != nil {
		return nil, refuseSaid(d)
	}
	return rest, nil
}

// HookSaid runs the hooks at texts over a JSON value that the model says beside the text that is judged,
// such as what it thought, and returns what they leave of it. Its error is a *refusal.Error.
func (a *Admission) HookSaid(ctx context.Context, value []byte) ([]byte, error) {
	if !a.HooksText() {
		return value, nil
	}
	j, q := a.asked(hook.Text, "")
	o := j.runHooks(ctx, q, value)
	if o.Denied != nil {
		return nil, refuseSaid(o.Denied)
	}
	return o.Value, nil
}

// asked is what hooks are asked by for the admission, beside a call.
func (a *Admission) asked(at hook.Point, tool string) (*judgement, hook.Question) {
	j := &judgement{kernel: a.kernel, config: a.config(), mode: ModeEnforce, subject: a.request.Subject, request: a.request}
	q := j.hookQuestion(at, tool)
	q.Principal = a.principal
	return j, q
}
