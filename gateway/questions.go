package gateway

import (
	"context"
	"errors"
	"fmt"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// runTool asks the engine, and says to the caller meanwhile how far the tool is, and
// what it logs. Where the tool asks what the call brings the answers to, without having
// been asked before, it is asked once more with them, within the same call.
func (c *execution) runTool(ctx context.Context) (tool.Result, error) {
	d := c.input.Dialogue
	if c.notifier = d.Notifier(); c.notifier != nil {
		defer c.notifier.Stop()
	}
	output, err := c.runEngine(ctx)
	if output.InputRequired == nil || d == nil || d.RequestState != "" || len(d.Answers) == 0 || len(output.InputRequired.Questions) == 0 {
		return output, err
	}
	if c.answers = c.answersInAdvance(output.InputRequired); c.answers == nil {
		return output, err
	}
	tried := max(output.Attempts, 1)
	output, err = c.runEngine(ctx)
	output.Attempts = tried + max(output.Attempts, 1)
	return output, err
}

// checkQuestions judges what a tool asks before anybody sees it. It asks instead of acting:
// what it asks beside anything else than a failure is dropped, and where it is no
// question that may be put to this caller, the call has failed.
func (c *call) checkQuestions(output tool.Result, err error) (tool.Result, error) {
	asked := output.InputRequired
	if output.InputRequired = nil; asked == nil {
		return output, err
	}
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Code != refusal.ToolFailed {
		return output, err
	}
	read, unusable := elicit.ReadQuestions(asked, c.allowedQuestions())
	if unusable != nil {
		return output, refusal.New(refusal.ToolFailed, fmt.Sprintf(
			"%s asked for something that cannot be passed on, so it got no answer. Use another tool, or say what you cannot do.", c.writtenName())).WithCause(unusable)
	}
	output.InputRequired = read
	return output, err
}

// addInputRequest adds to an outcome what its caller is asked, by which call.
func (o *Outcome) addInputRequest(asked *tool.InputRequired, by string, d *elicit.Dialogue) {
	if d.CanAnswer(asked) {
		o.InputRequest, o.RequestState = &tool.InputRequired{Questions: asked.Questions}, by
	}
}
