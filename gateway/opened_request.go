package gateway

import (
	"context"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Opened is a request whose caller was identified, or refused. Its inputs were not read.
// Between it and its judgement comes idempotency (see gateway/calls), the first write to
// the store: a call whose key has been used before is not judged again. Either Refuse or
// Judge ends it.
type Opened struct{ decision *Decision }

// Open identifies the caller of a request.
func (k *Kernel) Open(ctx context.Context, request Request) Opened {
	return k.open(request, ModeCall, nil).identify(ctx)
}

// Open identifies the caller again, for inputs of the request.
func (a *Admission) Open(ctx context.Context, mode Mode, inputs ...Input) Opened {
	if a.kernel == nil {
		r := Report{Verdict: VerdictRefused, Refusal: refuse.NotAdmitted(), Stages: []trace.StageReport{}}
		return Opened{&Decision{Reports: []Report{r}, mode: mode}}
	}
	request := a.request
	request.Inputs = inputs
	return a.kernel.open(request, mode, a).identify(ctx)
}

func (d *Decision) identify(ctx context.Context) Opened {
	d.run(ctx, identify, false)
	return Opened{d}
}

// Calls returns one call for each input; none where the request was refused.
func (o Opened) Calls() []*Call {
	if o.refused() {
		return nil
	}
	return o.decision.calls
}

func (o Opened) refused() bool {
	return o.decision.firstRefused() != nil || len(o.decision.calls) == 0
}

// ReadTool reads the tool of a completion that is refused before it is judged, so that
// the refusal can name it.
func (o Opened) ReadTool(ctx context.Context) {
	c := o.decision.calls[0]
	if guarded(ctx, check{stage: refusal.Parse, run: readInput}, c) != nil || c.parsed.Kind != parser.Call {
		c.parsed.Result = parser.Result{}
	}
}

// Refuse refuses the request before it is judged, and writes that down.
func (o Opened) Refuse(ctx context.Context, refused *refusal.Error) *Decision {
	o.decision.calls[0].refused = refused
	return o.decision.end(ctx)
}

// Judge judges the inputs of the request, all or none, unless its caller was refused, and
// writes the decision down.
func (o Opened) Judge(ctx context.Context) *Decision {
	d := o.decision
	if len(d.calls) == 0 {
		return d
	}
	if !o.refused() {
		d.run(ctx, judge, false)
	}
	return d.end(ctx)
}

// end writes down what the pipeline did not, and makes the reports.
func (d *Decision) end(ctx context.Context) *Decision {
	d.recordRest(ctx)
	return d.report()
}
