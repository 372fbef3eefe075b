// Package dryrun judges calls by a configuration without making them: for tests of a policy, and
// to compare configurations.
package dryrun

import (
	"context"
	"encoding/json"
	"fmt"

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
}

// Outcome is the judgement on a call.
type Outcome struct {
	// Asks names the rules by which people must approve the call first, sorted; it is empty
	// where nobody is asked, and where the call is refused.
	Asks []string
	// Refusal is the first refusal; nil where the call passes.
	Refusal *refusal.Error
	// Rows are the places of the policy rows that decided, as file:line. It is empty where no
	// row matched, and where the call was refused before the policy was asked.
	Rows []string
}

// Judge judges by one configuration. It is safe for concurrent use.
type Judge struct {
	kernel *gateway.Kernel
	config *gateway.Config
}

// New returns a judge by a configuration, whose Identity must be nil: calls are judged for
// the agent that they name, for any caller. An incomplete configuration is an error.
func New(config *gateway.Config) (*Judge, error) {
	if config != nil && config.Identity != nil {
		return nil, fmt.Errorf("dryrun: a configuration that needs credentials")
	}
	kernel, err := gateway.New(config, gateway.Deps{NewID: func() string { return "" }})
	if err != nil {
		return nil, err
	}
	return &Judge{kernel: kernel, config: config}, nil
}

// Judge judges a call by the checks of the kernel, from the agent's name to the boundaries of the
// project. Nothing is taken from the limits, nobody is asked, and nothing is recorded or
// executed. Paths in arguments are judged by the files of this machine.
func (j *Judge) Judge(ctx context.Context, c Call) Outcome {
	report := j.kernel.Check(ctx, gateway.Request{
		Subject: gateway.Subject{Agent: c.Agent, Workspace: c.Workspace, Project: c.Project},
		Inputs:  []gateway.Input{{Native: &gateway.NativeCall{Name: c.Tool, Version: c.Version, Arguments: c.Arguments}}},
	})
	return Outcome{Asks: report.Approval, Refusal: report.Refusal, Rows: report.Rows}
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
