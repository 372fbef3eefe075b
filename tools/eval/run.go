package main

import (
	"context"
	"fmt"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// MaxTurns is how many completions a model may send after the one that was refused.
const MaxTurns = 5

// Models names the scripted models, in the order of the reports.
var Models = []struct {
	Name string
	New  func(Intent, string) Model
}{{"fields", NewFields}, {"stubborn", NewStubborn}}

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

// stage is where the completions of an exchange are judged: by a kernel that only checks, or in a
// scene.
type stage struct {
	*Judge
	scene *scene // may be nil
}

// judged judges a completion of an exchange.
func (s stage) judged(ctx context.Context, c *Case, completion string, first bool) (outcome, error) {
	if s.scene != nil {
		return s.scene.answer(ctx, c, completion, first)
	}
	report, err := s.judge(ctx, c, completion, first)
	if err != nil {
		return outcome{}, err
	}
	h := outcome{refusal: report.Refusal}
	if report.Call != nil {
		h.passed = &Call{Tool: report.Call.Tool, Arguments: report.Call.Arguments}
	}
	if report.Refusal == nil {
		return h, nil
	}
	var tool *string
	if report.HasTool {
		tool = &report.Tool
	}
	result, err := wrapper.Refusal(tool, report.Refusal)
	h.line = result.Line
	return h, err
}

// Run has one scripted model answer the refusals of a case. An error is a fault of the case, whose
// completion is not refused with its code, or of the kernel.
func (j *Judge) Run(ctx context.Context, c *Case, name string, create func(Intent, string) Model) (Result, error) {
	r := Result{Case: c.Name, Code: c.Code, Model: name, Ends: c.Ends}
	on := stage{Judge: j}
	if c.Scene != "" {
		opened, err := j.newScene(ctx, c)
		if err != nil {
			return r, err
		}
		defer opened.Close()
		on.scene = opened
	}
	model := create(c.Intent, c.Completion)
	completion := c.Completion
	for ; ; r.Turns++ {
		h, err := on.judged(ctx, c, completion, r.Turns == 0 || name == Stubborn)
		if err != nil {
			return r, err
		}
		if r.Turns == 0 && (h.refusal == nil || h.refusal.Code != c.Code) {
			found := "no refusal"
			if h.refusal != nil {
				found = string(h.refusal.Code)
			}
			return r, fmt.Errorf("the case %q: found %s; expected that it is refused with %s", c.Name, found, c.Code)
		}
		if h.refusal == nil {
			r.Accepted = h.passed != nil
			r.Settled = c.Ends == EndsInText && h.passed == nil || c.Call != nil && h.passed != nil && c.Call.equals(h.passed)
			return r, nil
		}
		r.Codes = append(r.Codes, h.refusal.Code)
		if r.Turns == MaxTurns {
			r.Message = h.refusal.Message
			return r, nil
		}
		reply := model.Next(h.line)
		if on.scene != nil {
			on.scene.wait(reply.Wait)
		}
		completion = reply.Completion
	}
}
