package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Runner holds an engine, and runs nothing but approved calls on it. It is safe for
// concurrent use.
type Runner struct{ pool *workers.Pool }

// NewRunner returns the runner of an engine; without one, every tool is unavailable. Up to
// idle goroutines of calls are kept for the next calls, for good.
func NewRunner(engine workers.Engine, idle int) Runner {
	return Runner{workers.New(engine, idle)}
}

// engineGrace is how much longer than its own timeout an engine may take before its
// answer is not waited for.
const engineGrace = time.Second

// Run calls the engine, recovers from its panics, and waits no longer than the tool's
// timeout and a grace. The questions of the tool that it returns were checked. The notifier
// receives progress and logs; it may be nil.
func (r Runner) Run(ctx context.Context, a Approved, notifier *events.Notifier) (tool.Result, error) {
	c := a.call
	if c == nil {
		return tool.Result{}, refusal.At(refusal.Execute, refusal.Internal,
			refuse.NothingDone).WithCause(errors.New("a call that was not approved"))
	}
	if !r.pool.HasEngine() {
		return tool.Result{}, refusal.New(refusal.ToolUnavailable,
			fmt.Sprintf("%s cannot be run here. Use another tool, or say what you cannot do.", c.WrittenName()))
	}
	task := c.task()
	notifier.Attach(&task)
	answer, ok := r.pool.Run(ctx, task, task.Run.Timeout+engineGrace, &c.running)
	if !ok {
		return tool.Result{}, refuse.Timeout(c.WrittenName(), task.Effect)
	}
	return elicit.CheckQuestions(answer.Output, answer.Err, c.allowedQuestions(), c.WrittenName())
}

// task is the engine's input: the checked arguments are executed.
func (c *Call) task() tool.Call {
	task := tool.Call{
		ID: c.id, Tool: c.tool.Name(), Version: c.tool.Version(), Effect: c.tool.Effect(), Run: c.tool.Run(),
		Arguments: c.parsed.Arguments, Typed: c.tool.HasOutputSchema(), Roots: c.project.Roots,
		Thread: c.group(), Ancestors: c.ancestorGroups(), User: c.request.User, QuestionKinds: c.allowedQuestions(),
		Stopper: c,
	}
	task.Caller = c.exchangedCaller()
	if c.elicited.answers != nil {
		task.State, task.Answers = c.elicited.answers.State, c.elicited.answers.ByName
	}
	return task
}
