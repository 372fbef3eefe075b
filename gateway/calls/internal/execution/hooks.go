package execution

import (
	"context"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// hookBeside runs the hooks over what a tool shows to people beside its result. Parts that do not
// pass are dropped, with the result.
func (c *Call) hookBeside(ctx context.Context, output *tool.Result) error {
	if len(c.Metadata.Display) == 0 && len(output.Challenges) == 0 && output.InputRequired == nil {
		return nil
	}
	err := safe.Do(func() error {
		return c.Hooks().Beside(ctx, c.Metadata.Display, output.Challenges, output.InputRequired)
	})
	if err != nil {
		c.Metadata.Display, output.Challenges, output.InputRequired = nil, nil, nil
	}
	return err
}

// hookFailure is the refusal of a call that has failed, after its hooks were run over what the tool
// says of that, and over its questions and challenges.
func (c *Call) hookFailure(ctx context.Context, output *tool.Result, refused *refusal.Error) *refusal.Error {
	var hooked *refusal.Error
	err := safe.Do(func() error {
		hooked = c.Hooks().Failure(ctx, refused)
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
	c.Metadata.Display, output.Challenges, output.InputRequired = nil, nil, nil
	return hooked
}
