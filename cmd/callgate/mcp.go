package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/input"
)

func newMCP(e env) *cobra.Command {
	var config string
	var s subject
	c := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the tools to one client of the Model Context Protocol",
		Long: `Serve the tools that the agent may use to one client of the Model Context Protocol, such as an
editor or a desktop application, on standard input and output. Calls are judged, recorded and
executed as in serve, which offers the same at /mcp. The client names the command:

  {"mcpServers": {"callgate": {
    "command": "callgate",
    "args": ["mcp", "--config", "/etc/callgate/callgate.yaml", "--agent", "Analyst"]}}}

The configuration is reloaded while serving. The log is on standard error; audit log and store
are in the first of data_dir/mcp/1 to 16 that no other process has. A restarted process waits
for its exiting predecessor, for server.shutdown_timeout and some seconds at most, so that
idempotency keys are found again. The process ends with its input or by SIGTERM, after the
calls in flight.`,
		Example: `  callgate mcp --config callgate.yaml --agent Analyst --workspace acme --project alpha
  callgate audit verify callgate-data/mcp/1/audit.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkSubject(&s); err != nil {
				return err
			}
			loaded, err := e.Load(config)
			if err != nil {
				return err
			}
			subject := gateway.Subject{Agent: s.Agent, Workspace: s.Workspace, Project: s.Project}
			in := input.ContextReader(c.Context(), io.NopCloser(e.Stdin))
			return app.ServeStdio(c.Context(), mainFile(loaded), loaded, subject, in, e.Stdout, runtimeOptions(e, warningLog(e)))
		},
	}
	configFlag(c, &config)
	subjectFlags(c, &s)
	return c
}
