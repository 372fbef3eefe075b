package configs

import (
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/policy/lab"
)

// Rules is what calls are judged by, without what asks for credentials or hooks; nil for nil.
func (c *Config) Rules() *gateway.Config {
	if c == nil {
		return nil
	}
	return &gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits,
		Approvals: c.Approvals.Rules, Digest: c.Digest,
		Threads: gateway.Threads{DefaultLabels: c.Threads.DefaultLabels, ShareUnnamed: c.Threads.Unnamed == UnnamedShared},
	}
}

// DryRun returns a judge by this configuration that makes no calls, and asks for no credentials.
func (c *Config) DryRun() (*lab.Judge, error) { return lab.NewJudge(c.Rules()) }
