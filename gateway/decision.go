package gateway

import (
	"context"
	"sync/atomic"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// Decision is the judgement on the inputs of one request. It is recorded
// already. Execute or HandOver releases it, by its mode; a caller of neither must
// Release it.
type Decision struct {
	// Reports has one report for each input. Where one is refused, none of the
	// calls may run.
	Reports []Report
	// Digest is of the configuration that judged.
	Digest string

	mode     Mode
	calls    []*Call
	approved atomic.Bool // its calls were given away

	// Most requests have one input: the parts of its decision are one piece of memory.
	judgement   judgement
	first       Call
	oneCall     [1]*Call
	oneReport   [1]Report
	oneApproved [1]Approved
}

// Refusal is the first refusal, or nil.
func (d *Decision) Refusal() *refusal.Error {
	for i := range d.Reports {
		if d.Reports[i].Refusal != nil {
			return d.Reports[i].Refusal
		}
	}
	return nil
}

// Release gives back the concurrency slots that the decision holds, and takes away what calls that nobody runs have added
// to their thread. It is safe to call twice.
func (d *Decision) Release() {
	refused := d.firstRefused() != nil
	for _, c := range d.calls {
		c.held.lease.Release()
		if c.inPast != nil && !d.approved.Load() && (!c.held.recorded || !refused) { // else its outcome is still to be recorded
			c.undo(nil)
		}
	}
}

// Judge judges the inputs of a request, all or none, and takes from the limits
// what they need. A decision is refused, or holds a slot for each call.
func (k *Kernel) Judge(ctx context.Context, request Request) *Decision {
	return k.Open(ctx, request).Judge(ctx)
}

// Check judges one completion. It takes nothing, writes nothing and executes
// nothing, and its report cannot be executed.
func (k *Kernel) Check(ctx context.Context, request Request) Report {
	return k.check(ctx, k.config.Load(), request)
}

// Foresee is Check for a call whose arguments nobody has, and which are not read: each check that
// reads them is left out, and the policy says what it answers whatever they are. The error is that
// of ctx, or of the policy.
func (k *Kernel) Foresee(ctx context.Context, request Request) (Report, policy.Outlook, error) {
	d := k.openBy(k.config.Load(), request, ModeCall, nil)
	report := d.check(ctx, foresee)
	if refused := report.Refusal; refused != nil && refused.Code == refusal.Internal {
		return report, policy.Depends, refused
	}
	return report, d.calls[0].permission.outlook, ctx.Err()
}

// check is Check by a configuration.
func (k *Kernel) check(ctx context.Context, config *Config, request Request) Report {
	return k.openBy(config, request, ModeCall, nil).check(ctx, judge)
}

// check takes the first call through checks, and makes nothing of it.
func (d *Decision) check(ctx context.Context, checks []check) Report {
	d.dropTraces() // what is only checked is no call
	d.judgement.checked = true
	if !d.run(ctx, identify, true) {
		d.run(ctx, checks, true)
	}
	report := d.report().Reports[0]
	if d.calls[0].inPast != nil {
		report.Thread = "empty"
	}
	report.Stages, report.Rows = d.calls[0].times.Report(report.Refusal), d.calls[0].decidingRows(ctx)
	return report
}

// report makes the reports.
func (d *Decision) report() *Decision {
	first := d.firstRefused()
	d.Reports = d.oneReport[:0]
	for _, c := range d.calls {
		r := c.report(first != nil)
		d.Reports = append(d.Reports, r)
		if o := c.kernel.deps.Observer; o != nil {
			refused := r.Refusal
			if refused == nil && r.Verdict == VerdictRefused {
				refused = first
			}
			agent, tool := c.KnownNames()
			if !c.actsFor(agent) {
				agent = ""
			}
			o.Judged(string(r.Verdict), refused, agent, tool)
			if p := c.inPast; p != nil && p.deniedBy != "" && refused != nil && refused.Code == refusal.PermissionDenied {
				o.ThreadRefused(p.deniedBy)
			}
			for _, t := range c.times.Stages() {
				o.Stage(t.Stage, t.Took)
			}
		}
	}
	if j := d.judgement.request.Judged; j != nil {
		j.note(d, first)
		d.judgement.request.Judged = nil // it is part of its request, which a call may outlive
	}
	d.finishTraces()
	return d
}
