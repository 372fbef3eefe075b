package configs

import (
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/dryrun"
)

// DryRun returns a judge by this configuration that makes no calls, and asks for no credentials.
func (c *Config) DryRun() (*dryrun.Judge, error) {
	return dryrun.New(&gateway.Config{
		Output: c.Output, Tools: c.Tools, Policy: c.Policy, Workspaces: c.Workspaces, Agents: c.Agents, Limits: c.Limits, Digest: c.Digest,
	})
}
