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
		Long: `Serve one client of the Model Context Protocol on standard input and output: a
desktop application, an editor, or an agent that starts its servers itself. It
lists the tools that the agent may use, and every call is judged, written to the
audit log and executed as in serve. The client's own configuration names the
command, for instance:

  {"mcpServers": {"callgate": {
    "command": "callgate",
    "args": ["mcp", "--config", "/etc/callgate/callgate.yaml", "--agent", "Analyst"]}}}

A gateway that serves HTTP has the same at http://HOST:PORT/mcp.

Nothing but messages is written to standard output; the log is on standard error.
The configuration is reloaded while serving. The audit log and the store are in a
folder of their own, the first of data_dir/mcp/1 to 16 that no other process has,
so that it runs beside serve, and several clients beside each other. If the process
that has a folder is exiting, this one waits for it, for server.shutdown_timeout and
some seconds at most, so that a client that restarts its server finds its idempotency
keys again.

The process ends when its input does, or by SIGTERM, once the calls in flight have
ended. Exit codes: 0 done, 2 usage or configuration, 3 internal.`,
		Example: `  callgate mcp
  callgate mcp --config callgate.yaml --agent Analyst --workspace acme --project alpha
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
