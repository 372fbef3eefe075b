package gateway

import (
	"context"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// check is one step of the pipeline. Its run refuses by returning an error, and
// can do nothing else.
type check struct {
	stage refusal.Stage
	run   func(context.Context, *Call) error
	// takes says that the step takes something or writes something down, so that
	// Check leaves it out.
	takes bool
	// applies reports whether the step is for a call at all; nil is for every call. A stage
	// that most calls skip costs them nothing.
	applies func(*Call) bool
	// waits says that the step may wait for something outside the process, so that
	// a trace shows it.
	waits bool
	// texts says that the step is for texts alone; every other is for what is none.
	texts bool
	// arguments says that the step reads the arguments, so that those which a hook has redacted are
	// taken through it again.
	arguments bool
	// foresee stands in for run where nobody has the arguments; a step that reads them and has none
	// is left out then.
	foresee func(context.Context, *Call) error
}

// The pipeline is every check, in the order of the contract, as two lists. Each is run
// whole: identify before anything of the input is looked at, judge after it. Between the
// two comes idempotency (see gateway/calls), the first write to the store: a call whose key
// has been used before is not judged again.
//
// What operators have stopped is refused as soon as the call is known that it is of, and again
// before it is dispatched (see gateway/calls). The steps of three stages stand apart: an identity that the model claims can only be checked
// once the completion was read, and a tool that could never be used here is refused before
// anything of its schema is shown, for which the project must be named. The constraints of the request are checked together with
// the envelope.
var (
	identify = []check{
		{stage: refusal.Identity, run: identifyCaller, waits: true},
	}
	judge = []check{
		{stage: refusal.Parse, run: readInput},
		{stage: refusal.Identity, run: checkAgentClaim},
		{stage: refusal.Parse, run: checkEnvelope},
		{stage: refusal.Parse, run: checkConstraints},
		{stage: refusal.Permission, run: checkStops, applies: mayBeStopped},
		{stage: refusal.Schema, run: findTool},
		{stage: refusal.Workspace, run: checkProjectNamed, applies: (*Call).namesNoProject},
		{stage: refusal.Permission, run: checkReach},
		{stage: refusal.Schema, run: checkStarted, waits: true, applies: isWithheld},
		{stage: refusal.Schema, run: validateArguments, arguments: true},
		{stage: refusal.Schema, run: checkAnswers},
		{stage: refusal.Schema, run: checkOutput, applies: isStructured, texts: true},
		{stage: refusal.Permission, run: checkPermission, arguments: true, foresee: foreseePermission},
		{stage: refusal.Rate, run: charge, takes: true, waits: true},
		{stage: refusal.Workspace, run: checkWorkspace},
		{stage: refusal.Project, run: checkProject},
		{stage: refusal.Project, run: checkBoundary, arguments: true},
		{stage: refusal.Permission, run: checkLatest, takes: true, waits: true, applies: mayBeOld},
		{stage: refusal.Approval, run: checkText, takes: true, waits: true, applies: hasTextHooks, texts: true},
		{stage: refusal.Approval, run: checkHooks, takes: true, waits: true, applies: hasCallHooks},
		{stage: refusal.Approval, run: checkApproval, takes: true, waits: true, applies: asksForApproval},
		{stage: refusal.Permission, run: reserve, takes: true, waits: true, applies: reserves},
		{stage: refusal.Log, run: recordDecision, takes: true, waits: true},
	}
)

// foresee is the pipeline for a call whose arguments nobody has.
var foresee = func() (list []check) {
	for _, c := range judge {
		if c.foresee != nil {
			c.run = c.foresee
		} else if c.arguments {
			continue
		}
		list = append(list, c)
	}
	return list
}()

// skips reports whether a check is not for the call.
func (c *Call) skips(check *check) bool {
	return c.refused != nil || (c.parsed.Kind == parser.Text) != check.texts || check.applies != nil && !check.applies(c)
}

// finished reports whether no further check applies, but for those of texts: a text is judged once it
// was read.
func (c *Call) finished() bool { return c.refused != nil || c.parsed.Kind == parser.Text }

// guarded runs a check; one that panics refuses.
func guarded(ctx context.Context, check check, c *Call) (err error) {
	defer safe.Catch(func(panicked error) { err = refusal.From(check.stage, panicked) })
	return check.run(ctx, c)
}

// run takes every input through a whole list of checks, one check after the other. It
// stops at the first check that refuses any input, and gives back what was taken. A dry
// run leaves out the checks that take something.
func (d *Decision) run(ctx context.Context, checks []check, dry bool) (refused bool) {
	now := d.calls[0].kernel.deps.Now
	before := now()
	for i, check := range checks {
		if check.takes && dry {
			continue
		}
		// The clock is read once for several steps of a stage on end, unless calls take turns.
		sameNext := len(d.calls) == 1 && i+1 < len(checks) && checks[i+1].stage == check.stage && !checks[i+1].takes && !check.waits
		for _, c := range d.calls {
			if c.skips(&check) {
				continue
			}
			if err := guarded(ctx, check, c); err != nil {
				c.refused = refusal.From(check.stage, refusal.AsCanceled(ctx, check.stage, err))
			}
			if sameNext && !c.finished() {
				continue
			}
			after := now()
			c.times.Add(check.stage, after.Sub(before))
			if check.waits {
				c.trace.Add(string(check.stage), before, after, c.refused)
			}
			before = after
			refused = refused || c.refused != nil
		}
		if refused {
			d.Release()
			return true
		}
	}
	return false
}
