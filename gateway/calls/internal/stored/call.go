package stored

import (
	"cmp"
	"time"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/wrapper"
)

// Call is a call as the store has it, with its metadata decoded once.
type Call struct {
	store.Call
	Meta Metadata
}

// New decodes a call.
func New(call store.Call) *Call {
	c := &Call{Call: call, Meta: decodeMetadata(call.Metadata)}
	if c.answerLost() {
		c.Answer.Status = errAnswerLost.Status()
	}
	return c
}

// answerLost reports whether the store has lost the answer of an ended call, and was told by the audit log that
// there was one.
func (c *Call) answerLost() bool {
	return c.Step == store.Ended && c.Answer.Status == 0 && len(c.Answer.Result) == 0
}

var errAnswerLost = refusal.New(refusal.OutcomeUnknown,
	"The call has ended, and Redis has lost its answer. Do not send it again without finding out whether it acted.")

// Group is the thread as it was sent to the tool: the group of its thread or of its run, or
// else the call's id.
func (c *Call) Group() string {
	return cmp.Or(c.Task.Group, c.Task.Thread, c.ID)
}

// Expired reports whether the time of a waiting call has ended.
func (c *Call) Expired(now time.Time) bool {
	return c.Step == store.Waiting && !now.Before(c.Until)
}

// Feed names the subscription of a call.
func (c *Call) Feed() events.Call {
	return events.Call{ID: c.ID, Principal: c.Scope.Principal, Thread: c.Group()}
}

// Result is the result of an ended call for the model.
func (c *Call) Result() wrapper.ToolResult {
	result, err := wrapper.Read(c.Answer.Result)
	if err == nil {
		return result
	}
	refused := errAnswerLost
	if len(c.Answer.Result) > 0 {
		refused = refusal.New(refusal.OutcomeUnknown, "What became of the call cannot be read.").WithCause(err)
	}
	result, _ = wrapper.Refusal(&c.Task.Tool, refused) // it holds text
	return result
}
