package eval

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// MaxTurns is how many completions a model may send after the one that was refused.
const MaxTurns = 5

// Models names the scripted models, in the order of the reports.
var Models = []struct {
	Name string
	New  func(Intent, string) Model
}{{"fields", NewFields}, {"words", NewWords}, {"stubborn", NewStubborn}}

// Stubborn is the name of the model that is to get nowhere.
const Stubborn = "stubborn"

// Result is how one exchange went.
type Result struct {
	Case  string       `json:"case"`
	Code  refusal.Code `json:"code"` // of the first refusal
	Model string       `json:"model"`
	Ends  Ending       `json:"ends"`
	// Turns is how many completions followed the first until the exchange ended; MaxTurns
	// where it did not.
	Turns int `json:"turns"`
	// Settled says that the exchange ended as it was to end: with the call that was wanted, or
	// with a text where no call could pass.
	Settled bool `json:"settled"`
	// Accepted says that a call passed, the wanted one or another.
	Accepted bool           `json:"accepted"`
	Codes    []refusal.Code `json:"codes"`             // of all refusals, in order
	Message  string         `json:"message,omitempty"` // the last refusal's, where it is not settled
}

// Judge judges completions of cases. It is for one goroutine.
type Judge struct {
	config  *gateway.Config
	kernels map[settings]*gateway.Kernel
}

// settings are those that a case may change.
type settings struct {
	maxBytes      int
	agentRequired bool
}

// New returns a judge by a configuration that asks for no credentials.
func New(config *gateway.Config) (*Judge, error) {
	if config == nil || config.Identity != nil {
		return nil, fmt.Errorf("eval: a configuration that needs credentials, or none")
	}
	return &Judge{config: config, kernels: map[settings]*gateway.Kernel{}}, nil
}

// kernel returns the kernel for the settings of a case.
func (j *Judge) kernel(c *Case) (*gateway.Kernel, error) {
	s := settings{c.MaxBytes, c.AgentRequired}
	if k := j.kernels[s]; k != nil {
		return k, nil
	}
	config := *j.config
	config.AgentRequired = config.AgentRequired || s.agentRequired
	if s.maxBytes > 0 {
		config.Output.MaxBytes = s.maxBytes
	}
	k, err := gateway.New(&config, gateway.Deps{})
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
		Subject: gateway.Subject{Agent: c.Agent, Workspace: c.Workspace, Project: c.Project},
		Inputs:  []gateway.Input{{Completion: []byte(completion), Truncated: own && parser.Truncates(c.FinishReason)}},
	}), ctx.Err()
}

// Run has one scripted model answer the refusals of a case. An error is a fault of the case, whose
// completion is not refused with its code, or of the kernel.
func (j *Judge) Run(ctx context.Context, c *Case, name string, create func(Intent, string) Model) (Result, error) {
	r := Result{Case: c.Name, Code: c.Code, Model: name, Ends: c.Ends}
	model := create(c.Intent, c.Completion)
	completion := c.Completion
	for ; ; r.Turns++ {
		report, err := j.judge(ctx, c, completion, r.Turns == 0 || name == Stubborn)
		if err != nil {
			return r, err
		}
		refused := report.Refusal
		if r.Turns == 0 && (refused == nil || refused.Code != c.Code) {
			found := "no refusal"
			if refused != nil {
				found = string(refused.Code)
			}
			return r, fmt.Errorf("the case %q: found %s; expected that it is refused with %s", c.Name, found, c.Code)
		}
		if refused == nil {
			r.Accepted = report.Call != nil
			r.Settled = c.Ends == EndsInText && report.Call == nil || c.Call != nil && report.Call != nil && c.Call.equals(report.Call)
			return r, nil
		}
		r.Codes = append(r.Codes, refused.Code)
		if r.Turns == MaxTurns {
			r.Message = refused.Message
			return r, nil
		}
		if completion, err = answer(model, &report); err != nil {
			return r, err
		}
	}
}

// answer has a model read a refusal, as the bytes that go back to a real one.
func answer(model Model, report *gateway.Report) (string, error) {
	var tool *string
	if report.HasTool {
		tool = &report.Tool
	}
	result, err := wrapper.Refusal(tool, report.Refusal)
	if err != nil {
		return "", err
	}
	return model.Next(result.Line), nil
}

// equals compares with a call that passed: the tool, and the values of the arguments.
func (c *Call) equals(passed *gateway.PassedCall) bool {
	return c.Tool == passed.Tool && encode(decode(string(c.Arguments))) == encode(decode(string(passed.Arguments)))
}
