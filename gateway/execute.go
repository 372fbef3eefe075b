package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// engineGrace is how much longer than its own timeout an engine may take before its
// answer is not waited for.
const engineGrace = time.Second

// Execute runs the calls of a decision of ModeCall, in their order, and releases
// it. A decision that is refused runs nothing; one is executed once. From
// dispatch on the calls do not end with ctx: the caller may leave, the outcome is
// written down all the same.
//
// The calls are kept in the store before the first is dispatched, or none is, and
// each is dispatched in the store before its tool is called.
func (k *Kernel) Execute(ctx context.Context, d *Decision) []Outcome {
	defer d.Release()
	outcomes := d.execute(ctx, d.executions())
	for i := range outcomes {
		if outcomes[i].Pending {
			d.calls[i].finishTrace(VerdictCall, nil, "", 0, nil)
		}
	}
	return outcomes
}

// execute is Execute for executions of which one may stand in the store already, under
// its idempotency key.
func (d *Decision) execute(ctx context.Context, executions []*execution) []Outcome {
	first := d.consume(ModeCall)
	if first == nil {
		first = d.persist(context.WithoutCancel(ctx), executions)
	}
	return d.outcomes(first, func(i int) Outcome { return executions[i].execute(ctx) })
}

// consume says why a decision must not be acted on in a mode. With nil the caller may act
// on it, and nobody else can any more.
func (d *Decision) consume(mode Mode) *refusal.Error {
	if refused := d.Refusal(); refused != nil {
		return refused
	}
	if d.mode != mode {
		return refusal.At(refusal.Execute, refusal.Internal, nothingDone).WithCause(fmt.Errorf("a decision of the mode %q in the mode %q", d.mode, mode))
	}
	if !d.consumed.CompareAndSwap(false, true) {
		return refusal.At(refusal.Execute, refusal.Internal, unknownState).WithCause(errors.New("a decision was executed or handed over twice"))
	}
	return nil
}

// execute dispatches one call and returns its outcome. The caller waits until ctx ends.
func (c *execution) execute(ctx context.Context) Outcome {
	acting := context.WithoutCancel(ctx)
	if err := c.markDispatched(acting); err != nil {
		return c.refuseUndispatched(acting, refusal.From(refusal.Execute, err))
	}
	start := c.kernel.deps.Now()
	if c.callsBack() {
		return c.dispatchCallback(ctx, start)
	}
	output, err := c.runTool(acting)
	if err == nil && output.Pending {
		return c.markPending(ctx, output, start)
	}
	return c.finish(ctx, output, err, start)
}

// refuseUndispatched ends a call whose tool was not called.
func (c *execution) refuseUndispatched(ctx context.Context, refused *refusal.Error) Outcome {
	c.forget(ctx)
	c.recordNotRun(refused)
	c.finishTrace(VerdictRefused, refused, audit.Failed, 0, nil)
	r := Report{Tool: c.parsed.Name, HasTool: c.parsed.HasName}
	o := Outcome{CallID: c.id, Refusal: refused, Status: httpStatus(refused)}
	o.setResult(refusedResult(r, refused))
	return o
}

// finish wraps what came back and concludes the call. The result goes to who
// asked, where somebody is there until ctx ends.
func (c *execution) finish(ctx context.Context, output tool.Result, err error, start time.Time) Outcome {
	o := Outcome{CallID: c.id}
	returned := c.trace.start()
	c.trace.add(string(refusal.Execute), start, returned, refusal.From(refusal.Execute, err))
	if err == nil {
		var result wrapper.ToolResult
		result, err = c.wrapGuarded(output)
		o.setResult(result)
		c.trace.step(string(refusal.Wrap), returned, err)
	}
	if err != nil {
		o.Refusal = afterDispatch(err)
		o.setResult(refusedResult(Report{Tool: c.parsed.Name, HasTool: true}, o.Refusal))
	}
	o.Status = httpStatus(o.Refusal)
	if o.Refusal != nil && len(output.Challenges) > 0 {
		c.metadata.Challenges = output.Challenges
	}
	if o.Refusal != nil && output.InputRequired != nil && c.stored == nil {
		c.metadata.Asked, c.metadata.AskedCallDigest = output.InputRequired, c.questionDigest()
	}
	o.applyMetadata(c.metadata, c.input.Dialogue)
	r := c.record(audit.Ending)
	r.Verdict, r.Outcome, r.Attempt = audit.ToolCall, audit.Result, c.priorAttempts+max(output.Attempts, 1)
	if o.Refusal != nil {
		r.Outcome, r.Stage, r.Code = auditOutcome(o.Refusal.Code), o.Refusal.Stage, o.Refusal.Code
		if c.expired {
			r.Outcome = audit.Expired
		}
	}
	r.Micros = c.kernel.deps.Now().Sub(start).Microseconds()
	return c.commit(ctx, o, r)
}

// afterDispatch is the refusal for an error of a call that was dispatched: where
// it says nothing itself, the call may have had an effect.
func afterDispatch(err error) *refusal.Error {
	var refused *refusal.Error
	if errors.As(err, &refused) && refused != nil {
		return refused
	}
	return refusal.At(refusal.Execute, refusal.Internal, unknownState).WithCause(err)
}

// auditOutcome names the outcome of a call that has no result.
func auditOutcome(code refusal.Code) audit.Outcome {
	switch code {
	case refusal.ToolTimeout:
		return audit.Timeout
	case refusal.OutcomeUnknown, refusal.Internal:
		return audit.Unknown
	}
	return audit.Failed
}

// runEngine asks the engine, contains its panics, and waits no longer than the
// tool's timeout and a grace.
func (c *execution) runEngine(ctx context.Context) (tool.Result, error) {
	if c.kernel.deps.Engine == nil {
		return tool.Result{}, refusal.New(refusal.ToolUnavailable, fmt.Sprintf("%s cannot be run here. Use another tool, or say what you cannot do.", c.writtenName()))
	}
	run := c.tool.Run()
	task := tool.Call{
		ID: c.id, Tool: c.tool.Name(), Version: c.tool.Version(), Effect: c.tool.Effect(), Run: run,
		Arguments: c.parsed.Arguments, Typed: c.tool.HasOutputSchema(), Roots: c.project.Roots,
		Thread: c.request.Thread, Ancestors: c.request.Ancestors, User: c.request.User, Asks: c.allowedQuestions(),
	}
	c.notifier.Attach(&task)
	if c.answers != nil {
		task.State, task.Answers = c.answers.State, c.answers.ByName
	}
	ctx, cancel := context.WithTimeout(ctx, run.Timeout+engineGrace)
	defer cancel()
	type answer struct {
		output tool.Result
		err    error
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a = answer{err: refusal.At(refusal.Execute, refusal.Internal, unknownState).WithCause(safe.PanicError(p))}
			}
			answers <- a
		}()
		a.output, a.err = c.kernel.deps.Engine.Run(ctx, task)
	}()
	select {
	case a := <-answers:
		return c.checkQuestions(a.output, a.err)
	case <-ctx.Done():
		return tool.Result{}, c.timeoutRefusal(c.tool.Effect())
	}
}

// timeoutRefusal is the answer for a tool that did not answer: what acts once may have
// acted.
func (c *call) timeoutRefusal(effect string) error {
	if effect == "once" {
		return refusal.New(refusal.OutcomeUnknown, fmt.Sprintf("%s did not answer in time. Whether it acted is not known; do not send the call again without finding out.", c.writtenName()))
	}
	return refusal.New(refusal.ToolTimeout, fmt.Sprintf("%s did not answer in time.", c.writtenName()))
}
