package gateway

import (
	"context"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/gateway/hooks"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Hooks at texts: what a model says that is no call. A judged text passes them in the pipeline, and
// what a stream releases passes them first. Texts that are shown unjudged, such as reasoning, go
// through the Hooks of an Admission.

// hasTextHooks reports whether a hook is to see the text.
func hasTextHooks(c *Call) bool {
	return c.config.Hooks != nil && c.config.Hooks.Applies(hook.Text, c.subject.Agent, "")
}

// beginText begins the hooks over the text of the call, if there are such.
func (c *Call) beginText() {
	if c.hooks.texts == nil && hasTextHooks(c) {
		c.hooks.texts = c.hooksBy().Text()
	}
}

// checkText is the step of the stage approval for texts: the hooks of the operator let the text pass,
// or deny it, or redact it.
func checkText(ctx context.Context, c *Call) error {
	if c.hooks.seen {
		return nil
	}
	c.beginText()
	left := c.hooks.texts.Write(c.parsed.Text)
	left = append(left, c.hooks.texts.Close(ctx)...)
	if c.hooks.names = c.hooks.texts.Redacted(); len(c.hooks.names) > 0 {
		c.hooks.withheld = true // the completion has what was redacted
	}
	if d := c.hooks.texts.Denied(); d != nil {
		c.hooks.names, c.hooks.withheld = append(c.hooks.names, d.Hook), true
		c.parsed.Kind, c.parsed.Text = parser.Refused, nil
		return hooks.RefuseText(d)
	}
	c.hooks.seen = true
	if len(c.hooks.names) > 0 {
		c.hooks.pieces = left
	}
	if c.hooks.pieces != nil || c.parsed.stream != nil { // of a stream they held some
		c.parsed.Text = window.Join(left)
	}
	if c.hooks.pieces != nil && isStructured(c) && !c.isStillOutput() {
		c.parsed.Kind, c.parsed.Text = parser.Refused, nil
		return refusal.New(refusal.HookDenied, "A hook of this gateway removes a part of this answer, and what is left is not the JSON that is asked for. Answer without what must not be in it.")
	}
	return nil
}

// isStillOutput reports whether the JSON of an answer is by its schema as hooks have left it.
func (c *Call) isStillOutput() bool {
	left := parser.ParseStructured(c.parsed.Text, false, false, c.output())
	return left.JSON != nil && violations.OfOutput(c.input.Output, left.JSON, left.JSONOffset) == nil
}

// release is what the hooks let out of a text that a stream releases.
func (s *Stream) release(text []byte) []byte {
	if c := s.decision.calls[0]; c.hooks.texts != nil {
		return window.Join(c.hooks.texts.Write(text))
	}
	return text
}

// denied reports whether a hook has denied the text.
func (s *Stream) denied() bool {
	texts := s.decision.calls[0].hooks.texts
	return texts != nil && texts.Denied() != nil
}
