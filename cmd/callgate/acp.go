package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/input"
)

const acpHelp = `Serve one client of the Agent Client Protocol (ACP, version 1), such as an editor, on
standard input and output. The editor names the command, for instance in Zed:

  {"agent_servers": {"Callgate": {
    "command": "callgate",
    "args": ["acp", "--config", "/etc/callgate/callgate.yaml", "--model", "gpt-4.1"]}}}

Without -- COMMAND, Callgate is the agent: a model answers prompts, and Callgate judges,
records and runs its calls. The model's upstream needs chat completions and modes:
[orchestrate]. The folder of a session must lie within the roots of the project. MCP servers
that the editor names must be in servers.yaml, with accepted tools. Rules with "by: caller"
ask the user in the editor. Sessions are kept for this principal, agent and project only.

`

// acpFlags are the flags of the agent that Callgate itself is.
type acpFlags struct {
	model   string
	images  bool
	context uint64
}

func (f *acpFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.model, "model", "", "without a command: the `MODEL` that answers (default: the only one of the upstreams)")
	c.Flags().BoolVar(&f.images, "images", false, "without a command: the model takes images")
	c.Flags().Uint64Var(&f.context, "context-tokens", 0,
		"without a command: how many `TOKENS` the model's context holds, to tell the editor how full it is")
}

func newACP(e env) *cobra.Command {
	var config string
	var s subject
	var own acpFlags
	var proxy acpProxyFlags
	c := &cobra.Command{
		Use:   "acp [flags] [-- COMMAND [ARG…]]",
		Short: "Serve one client of the Agent Client Protocol, such as an editor",
		Long:  acpHelp + acpProxyHelp,
		Example: `  callgate acp --config callgate.yaml --model gpt-4.1 --agent Analyst
  callgate acp --unjudged note --env GEMINI_API_KEY -- gemini --acp`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if err := checkSubject(&s); err != nil {
				return err
			}
			switch at := c.ArgsLenAtDash(); {
			case at < 0 && len(args) == 0:
				if name := proxy.changed(c); name != "" {
					return fmt.Errorf("--%s is for the agent of a command behind --", name)
				}
				return serveACP(c.Context(), e, config, s, own)
			case at != 0 || len(args) == 0:
				return errors.New("an agent's command stands behind --, as in callgate acp -- gemini --acp")
			case own != acpFlags{}:
				return errors.New("--model, --images and --context-tokens are for the agent that Callgate itself is, without a command")
			}
			return serveACPProxy(c.Context(), e, config, s, proxy, args)
		},
	}
	configFlag(c, &config)
	subjectFlags(c, &s)
	own.register(c)
	proxy.register(c)
	return c
}

// serveACP is callgate acp without a command.
func serveACP(ctx context.Context, e env, config string, s subject, f acpFlags) error {
	loaded, err := e.Load(config)
	if err != nil {
		return err
	}
	a := app.ACP{Subject: gateway.Subject{Agent: s.Agent, Workspace: s.Workspace, Project: s.Project}, Model: f.model, Images: f.images,
		ContextTokens: f.context}
	return app.ServeACP(ctx, mainFile(loaded), loaded, a, input.ContextReader(ctx, io.NopCloser(e.Stdin)), e.Stdout,
		runtimeOptions(e, warningLog(e)))
}
