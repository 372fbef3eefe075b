// Package lab says what a configuration would answer to calls, and makes none of them.
//
// A Judge asks the checks of the kernel itself, from the agent's name to the boundaries of the
// project. Calls come from four sources: the files of tests of a policy (RunTests), the audit log
// (Replay), live traffic (Comparer), and the rows and lists of two configurations (Compare). What
// comes of a call is one type, Judgement, and how two of them differ a Change.
package lab

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
)

// Call is a call to judge.
type Call struct {
	Agent, Workspace, Project string
	Tool                      string
	Version                   string          // of the tool; empty is the highest
	Arguments                 json.RawMessage // an object, as a model writes it
	// Past is what its thread and its caller did before; nil: that is not known.
	Past *gateway.Assumed
}

// Verdict is the verdict of a configuration on a call.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "allowed"
	Asks    Verdict = "asks" // people must approve it first
	Refused Verdict = "refused"
)

// Judgement is the verdict of a configuration on a call, and its reason.
type Judgement struct {
	Verdict Verdict
	Code    refusal.Code   // of a refusal
	Refusal *refusal.Error // the refusal itself; nil where only a record shows it
	Rules   []string       // by which people are asked, sorted
	// Rows are the places of the policy rows that decided, as file:line. It is empty where no
	// row matched, and where the call was refused before the policy was asked.
	Rows []string
	// NeedsPast says that the policy reads what the thread or the caller has done before, which is not known: with it the
	// judgement may be another one.
	NeedsPast bool
}

// judgementOf is what the kernel reports.
func judgementOf(r gateway.Report) Judgement {
	j := Judgement{Verdict: Allowed, Rules: r.Approval, Refusal: r.Refusal, Rows: r.Rows}
	switch {
	case r.Refusal != nil:
		j.Verdict, j.Code = Refused, r.Refusal.Code
	case len(r.Approval) > 0:
		j.Verdict = Asks
	}
	return j
}

// Change is how two judgements on a call differ.
type Change string

// The changes, as they are listed.
const (
	NewlyRefused Change = "newly_refused"
	NewlyAsks    Change = "newly_asks"
	NewlyAllowed Change = "newly_allowed"
	OtherCode    Change = "other_code" // refused by both, for another reason
)

// Changes lists the changes.
func Changes() []Change { return []Change{NewlyRefused, NewlyAsks, NewlyAllowed, OtherCode} }

// Between says how the judgement after differs from the one before; "" where it does not.
func Between(before, after Judgement) Change {
	switch {
	case before.Verdict != after.Verdict:
		return map[Verdict]Change{Refused: NewlyRefused, Asks: NewlyAsks, Allowed: NewlyAllowed}[after.Verdict]
	case before.Code != after.Code:
		return OtherCode
	}
	return ""
}

// Judge judges by one configuration. It is safe for concurrent use.
type Judge struct {
	kernel *gateway.Kernel
	config *gateway.Config
}

// NewJudge returns a judge by a configuration, whose Identity must be nil: calls are judged for
// the agent that they name, for any caller. An incomplete configuration is an error.
func NewJudge(config *gateway.Config) (*Judge, error) {
	if config != nil && config.Identity != nil {
		return nil, errors.New("lab: a configuration that needs credentials")
	}
	kernel, err := gateway.New(config, gateway.Deps{NewID: func() string { return "" }})
	if err != nil {
		return nil, err
	}
	return &Judge{kernel: kernel, config: config}, nil
}

// Judge judges a call. Nothing is taken from the limits, nobody is asked, and nothing is recorded
// or executed. Paths in arguments are judged by the files of this machine.
func (j *Judge) Judge(ctx context.Context, c Call) Judgement {
	if c.Past != nil {
		report, known := j.kernel.CheckAfter(ctx, c.request(), c.Past)
		judged := judgementOf(report)
		judged.NeedsPast = !known
		return judged
	}
	judged := judgementOf(j.kernel.Check(ctx, c.request()))
	if reachedPolicy(judged) {
		reads, err := j.config.Policy.Reads(c.Agent, c.Workspace, c.Project, c.Tool)
		judged.NeedsPast = err != nil || !reads.None()
	}
	return judged
}

// Foresee judges a call whose arguments nobody has: by every check but those that read them. Known is
// false where the answer of the policy depends on them; whether the schema and the boundaries
// accept them is never known. The error is that of ctx, or of the policy.
func (j *Judge) Foresee(ctx context.Context, c Call) (_ Judgement, known bool, err error) {
	c.Arguments = json.RawMessage("{}") // some that can be read
	report, outlook, err := j.kernel.Foresee(ctx, c.request())
	if err != nil {
		return Judgement{}, false, err
	}
	judged := judgementOf(report)
	if judged.Verdict == Allowed && outlook == policy.WillAsk {
		judged.Verdict = Asks
	}
	return judged, judged.Verdict == Refused || outlook != policy.Depends, nil
}

// After gives a request to the policy what was done before: steps, all at one time. MadeBy names those that have made
// a value which conditions then saw, and the call itself.
func (j *Judge) After(r *policy.Request, steps []gateway.Step) (madeBy func(saw string) []string, err error) {
	for i := range steps {
		steps[i].At = TestTime
	}
	before, err := j.kernel.Assume(steps, TestTime)
	if err != nil {
		return nil, err
	}
	if r.Past, err = j.kernel.ViewAfter(*r, before); err != nil {
		return nil, err
	}
	with, err := j.kernel.Assume(append(slices.Clip(steps),
		gateway.Step{Tool: r.Tool, Arguments: r.Arguments, At: TestTime, Name: "this call"}), TestTime)
	if err != nil {
		return nil, err
	}
	return func(saw string) []string {
		if strings.HasPrefix(saw, "thread.labels=") {
			return before.MadeBy(saw)
		}
		return with.MadeBy(saw)
	}, nil
}

func (c Call) request() gateway.Request {
	return gateway.Request{
		Subject: gateway.Subject{Agent: c.Agent, Workspace: c.Workspace, Project: c.Project},
		Inputs:  []gateway.Input{{Native: &gateway.NativeCall{Name: c.Tool, Version: c.Version, Arguments: c.Arguments}}},
	}
}

// Reach reports whether an agent could ever call a tool in a project: never where the project
// does not list the agent, or the tool is not registered, whatever the policy says.
func (j *Judge) Reach(agent, workspace, project, tool string) (policy.Reach, error) {
	if p, _ := j.config.Workspaces.Project(agent, workspace, project); p == nil {
		return policy.Never, nil
	}
	if _, registered := j.config.Tools.Lookup(tool); !registered {
		return policy.Never, nil
	}
	return j.config.Policy.Reach(agent, workspace, project, tool)
}
