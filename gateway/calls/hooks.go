package calls

import (
	"context"

	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// hookBeside runs the hooks over what a tool shows to people beside its result. What does not pass
// is dropped, with the result.
func (c *execution) hookBeside(ctx context.Context, output *tool.Result) error {
	if len(c.metadata.Display) == 0 && len(output.Challenges) == 0 && output.InputRequired == nil {
		return nil
	}
	err := safe.Do(func() error { return c.HookBeside(ctx, c.metadata.Display, output.Challenges, output.InputRequired) })
	if err != nil {
		c.metadata.Display, output.Challenges, output.InputRequired = nil, nil, nil
	}
	return err
}

// hookFailure is the refusal of a call that has failed, after its hooks were run over what the tool
// says of that, and over its questions and challenges.
func (c *execution) hookFailure(ctx context.Context, output *tool.Result, refused *refusal.Error) *refusal.Error {
	var hooked *refusal.Error
	err := safe.Do(func() error {
		hooked = c.HookFailure(ctx, refused)
		return nil
	})
	if err == nil {
		err = c.hookBeside(ctx, output)
	}
	switch {
	case err != nil:
		hooked = refusal.From(refusal.Wrap, err)
	case hooked == refused || hooked.Code != refusal.HookDenied:
		return hooked
	}
	c.metadata.Display, output.Challenges, output.InputRequired = nil, nil, nil
	return hooked
}

// hookEvent is an event that the tool of a call sends after the call has ended, as hooks leave it. One
// that they deny says only that: it may be the one that ends the subscription.
func (e *Executor) hookEvent(ctx context.Context, call *stored.Call, event events.Event) events.Event {
	err := safe.Do(func() (err error) {
		event.Text, err = e.restore(call).HookText(ctx, event.Text)
		return err
	})
	if err != nil {
		event.Text = "A hook of this gateway does not let the text of this event pass."
	}
	return event
}
