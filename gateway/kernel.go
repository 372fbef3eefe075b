package gateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// Kernel judges. It is safe for concurrent use.
type Kernel struct {
	state *State
	now   func() time.Time
}

// New returns a kernel that judges by a configuration. now is the clock that
// stages are timed with.
func New(state *State, now func() time.Time) (*Kernel, error) {
	if state == nil || state.Tools == nil || now == nil {
		return nil, errors.New("gateway: a kernel needs a configuration with tools, and a clock")
	}
	return &Kernel{state: state, now: now}, nil
}

// check is one stage of the pipeline. Its run refuses by returning an error.
type check struct {
	stage refusal.Stage
	run   func(context.Context, *call) error
}

// checks is the pipeline, in the order of the contract.
var checks = []check{
	{refusal.Parse, read},
	{refusal.Schema, validate},
}

// call is one completion on its way through the checks, with what they found.
type call struct {
	state   *State
	request Request
	parsed  parser.Result
	tool    *registry.Entry
	args    map[string]any // the decoded arguments
}

// Check judges one completion. It executes and takes nothing.
func (k *Kernel) Check(ctx context.Context, request Request) Report {
	c := &call{state: k.state, request: request}
	report := Report{Verdict: VerdictCall, Digest: k.state.Digest}
	for _, check := range checks {
		start := k.now()
		err := guarded(ctx, check, c)
		report.Stages = append(report.Stages, StageReport{check.stage, err == nil, k.now().Sub(start).Microseconds()})
		if err != nil {
			report.Verdict, report.Refusal = VerdictRefused, refusal.From(check.stage, err)
			return report
		}
		if c.parsed.Kind == parser.Text {
			report.Verdict, report.Text = VerdictText, c.parsed.Text
			return report
		}
	}
	report.Call = &Call{
		Tool: c.tool.Name(), Version: c.tool.Version(), Arguments: c.parsed.Arguments,
		Agent: request.Agent, Workspace: request.Workspace, Project: request.Project,
	}
	return report
}

// guarded runs a check; one that panics refuses.
func guarded(ctx context.Context, check check, c *call) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refusal.From(check.stage, fmt.Errorf("panic: %v", p))
		}
	}()
	return check.run(ctx, c)
}
