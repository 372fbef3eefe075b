package calls

import (
	"context"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/refusal"
)

// recordDispute records a message of a tool that is not the one answer to its call, and
// returns its refusal. Only the digest of the message is kept.
func (e *Executor) recordDispute(ctx context.Context, call *stored.Call, p CallbackMessage, refused *refusal.Error) error {
	ctx = context.WithoutCancel(ctx)
	if !e.disputes.Add(call.ID) {
		return refused
	}
	r := e.executions.Restore(call).Outcome()
	r.Event, r.Verdict, r.Stage, r.Code = audit.Decision, audit.Refused, refused.Stage, refused.Code
	r.InputSHA256, r.ArgumentsSHA256, r.Arguments, r.Completion = p.Digest, "", nil, ""
	if err := e.journal.Write(ctx, r); err != nil {
		e.disputes.Remove(call.ID)
		return err
	}
	return refused
}
