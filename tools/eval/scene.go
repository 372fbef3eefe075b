package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/tool"
)

// scene is where an exchange takes place whose refusals come from more than the completion: from
// limits, people, the log, the store or the tools. A scene executes calls that pass, with the
// kernel and the engine that are served, a limiter, a store and a log in memory, and a server of
// its own on loopback in place of the tools' own.
type scene struct {
	config gateway.Config
	agent  string
	deps   calls.Deps
	engine Engine
	server *toolServer // may be nil

	// opens does what comes before the first completion, and waits what happens while a model
	// waits; either may be nil.
	opens       func(ctx context.Context, s *scene, c *Case) error
	waits       func()
	constraints gateway.Constraints
	repeats     int                      // how often the first completion stands in its answer beside once
	run         func(tool.Call) tool.Run // how a tool is run instead; nil: as configured
	approval    string                   // that the first completion names
	approvalID  string                   // the approval that a call asked for last
	passed      *tool.Call               // the last call that gave a result
	later       time.Duration            // by which the clock is ahead
	executor    *calls.Executor
}

// now is the clock of the scene: it continues, and jumps while a model waits.
func (s *scene) now() time.Time { return time.Now().Add(s.later) }

// Close ends the engine and the server.
func (s *scene) Close() {
	s.engine.Close()
	s.server.Close()
}

// answer judges a completion of a case, and executes its call.
func (s *scene) answer(ctx context.Context, c *Case, completion string, first bool) (outcome, error) {
	a, err := s.executor.Kernel.Admit(ctx, gateway.Request{Subject: c.subject()})
	if err != nil {
		return outcome{}, fmt.Errorf("the case %q: its request is refused: %w", c.Name, err)
	}
	input := gateway.Input{Completion: []byte(completion)}
	inputs := []gateway.Input{input}
	if first {
		inputs[0].Truncated = parser.Truncates(c.FinishReason)
		if s.approval != "" {
			inputs[0].Dialogue = &elicit.Dialogue{Approval: s.approval}
		}
		inputs = append(inputs, slices.Repeat([]gateway.Input{input}, s.repeats)...)
	}
	s.passed = nil
	d := a.WithConstraints(s.constraints).Open(ctx, gateway.ModeCall, inputs...).Judge(ctx)
	o := s.executor.Execute(ctx, d)[0]
	if o.Pending {
		return outcome{}, fmt.Errorf("the case %q: its tool answers later", c.Name)
	}
	h := outcome{refusal: o.Refusal, line: o.Result}
	if o.ApprovalRequest != nil {
		s.approvalID = o.ApprovalRequest.ID
	}
	if o.Refusal == nil && s.passed != nil {
		h.passed = &Call{Tool: s.passed.Tool, Arguments: s.passed.Arguments}
	}
	return h, ctx.Err()
}

// wait lets a time pass.
func (s *scene) wait(d time.Duration) {
	s.later += d
	if s.waits != nil && d > 0 {
		s.waits()
	}
}

// sceneEngine is the engine of a scene.
type sceneEngine struct{ *scene }

// Run runs a call the way that the scene says.
func (e sceneEngine) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	if e.run != nil {
		call.Run = e.run(call)
	}
	result, err := e.engine.Run(ctx, call)
	if err == nil {
		e.passed = &call
	}
	return result, err
}

// setPolicy gives every call everywhere one effect.
func (s *scene) setPolicy(effect string) (err error) {
	s.config.Policy, _, err = policy.Load(policy.Source{File: "scene", Data: []byte("p, " + s.agent + ", *, *, , " + effect + "\n# end\n")},
		nil, nil)
	return err
}

var errUnasked = errors.New("people were not asked")

// ask asks for the first completion of a case.
func (s *scene) ask(ctx context.Context, c *Case) error {
	if _, err := s.answer(ctx, c, c.Completion, true); err != nil {
		return err
	}
	if s.approvalID == "" {
		return errUnasked
	}
	return nil
}
