package gateway

import (
	"context"

	"github.com/callgate/callgate/store/approval"
)

// Reopen opens the request of a refused decision once more, so that it is judged anew from
// the start: by the configuration of now, and by the credential that the request brought.
// It may be answered only if the credential still belongs to the same caller. A call that
// was charged pays no second token, only its slot. Completions that came in pieces keep the
// reading that they had. The new calls have ids of their own.
func (d *Decision) Reopen(ctx context.Context) Opened {
	if len(d.calls) == 0 || d.Refusal() == nil {
		return Opened{&Decision{Reports: d.Reports, Digest: d.Digest, mode: d.mode}}
	}
	before := d.calls[0].judgement
	admission := before.admission
	if admission == nil {
		admission = &Admission{kernel: before.kernel, principal: principalName(before.principal), statesAgent: before.request.Agent != ""}
	}
	request := before.request
	for _, c := range d.calls {
		request.Inputs = append(request.Inputs, c.input)
	}
	again := before.kernel.open(request, d.mode, admission)
	again.judgement.paid = true
	for i, c := range again.calls {
		if was := d.calls[i]; was.parsed.stream != nil {
			read := was.parsed.Result
			if was.hooks.unredacted != nil {
				read.Arguments = was.hooks.unredacted
			}
			c.parsed.stream, c.parsed.reread, c.digests.input = was.parsed.stream, &read, was.digests.input
			if c.hooks.texts, c.hooks.seen, c.hooks.pieces = was.hooks.texts, was.hooks.seen, was.hooks.pieces; c.hooks.seen {
				c.hooks.names, c.hooks.withheld = was.hooks.names, was.hooks.withheld
			}
		}
	}
	return again.identify(ctx)
}

// Become makes this decision, which is refused, the other one: its holder sees the new
// judgement. It is not safe for concurrent use.
func (d *Decision) Become(other *Decision) {
	if d == other || d.Refusal() == nil {
		return
	}
	d.Release()
	d.Reports, d.Digest, d.calls = other.Reports, other.Digest, other.calls
}

// TakeUp is the admission of an admitted caller to make a call that people were asked to
// approve, as it was judged then: for its agent, in its place, its thread, and for its user.
// Everything is judged anew. The call was charged, and takes its slot alone. Its dispatch uses
// the approval up, whether it passes by that or by a grant, or is no longer asked for: so it is
// taken up once.
func (a *Admission) TakeUp(by *approval.Approval) *Admission {
	own := *a
	own.takesUp, own.repeat = by.ID, by.Repeat
	own.request.Subject = Subject{Agent: by.Agent, Workspace: by.Workspace, Project: by.Project}
	own.request.Thread, own.request.User, own.request.ledger = by.Thread, by.User, by.Ledger
	own.statesAgent, own.paid = true, true
	return &own
}
