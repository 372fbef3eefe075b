package main

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/workers"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Engine runs the tools of scenes. Close ends what it has started.
type Engine interface {
	workers.Engine
	Close()
}

// Judge judges completions of cases. It is for one goroutine.
type Judge struct {
	config  *gateway.Config
	engine  func() Engine
	kernels map[settings]*gateway.Kernel
}

// settings are those that a case may change.
type settings struct {
	maxBytes      int
	agentRequired bool
}

// New returns a judge by a configuration that asks for no credentials. engine makes the engine of
// a scene; nil: cases with scenes are errors.
func New(config *gateway.Config, engine func() Engine) (*Judge, error) {
	if config == nil || config.Identity != nil {
		return nil, errors.New("eval: a configuration that needs credentials, or none")
	}
	return &Judge{config: config, engine: engine, kernels: map[settings]*gateway.Kernel{}}, nil
}

// configOf is the configuration for the settings of a case.
func (j *Judge) configOf(c *Case) *gateway.Config {
	config := *j.config
	config.AgentRequired = config.AgentRequired || c.AgentRequired
	if c.MaxBytes > 0 {
		config.Output.MaxBytes = c.MaxBytes
	}
	return &config
}

// kernel returns the kernel for the settings of a case.
func (j *Judge) kernel(c *Case) (*gateway.Kernel, error) {
	s := settings{c.MaxBytes, c.AgentRequired}
	if k := j.kernels[s]; k != nil {
		return k, nil
	}
	k, err := gateway.New(j.configOf(c), gateway.Deps{})
	if err != nil {
		return nil, err
	}
	j.kernels[s] = k
	return k, nil
}

// judge judges a completion as one of the case. own says that it is the case's own, which its
// finish reason is about.
func (j *Judge) judge(ctx context.Context, c *Case, completion string, own bool) (gateway.Report, error) {
	k, err := j.kernel(c)
	if err != nil {
		return gateway.Report{}, err
	}
	return k.Check(ctx, gateway.Request{
		Subject: c.subject(),
		Inputs:  []gateway.Input{{Completion: []byte(completion), Truncated: own && parser.Truncates(c.FinishReason)}},
	}), ctx.Err()
}

// outcome is what became of a completion. Without a refusal and a call, it was a text.
type outcome struct {
	refusal *refusal.Error
	line    []byte // that a model reads
	passed  *Call
}
