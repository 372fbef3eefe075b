package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/input"
)

const acpProxyHelp = `With -- COMMAND, Callgate starts an agent and stands between it and the client. Files,
commands and permissions that the agent asks the client for are calls of acp.fs.read,
acp.fs.write, acp.terminal.create and acp.permission.KIND: judged, recorded, and only then
passed on. The agent gets "callgate mcp" with the same configuration instead of the client's
MCP servers, or none where it may use no tool over MCP. Modes that ask nobody cannot be chosen.

There is no sandbox: what the agent's process does without a message is not seen. A call
that it reports to have run unjudged is recorded; --unjudged says what follows. The agent
gets PATH, HOME, LANG and what --env names. Its standard error is passed on, escaped. It ends
with the client, and so does its process group.

The configuration is reloaded while serving. The log is on standard error; audit log, store
and sessions are in the first of data_dir/acp/1 to 16 that no other process has. The process
ends with its input or by SIGTERM, after the calls in flight.

Exit codes: 0 the client has left, 1 the agent has ended, 2 usage or configuration,
3 internal.`

// acpProxyFlags are the flags of the proxy.
type acpProxyFlags struct {
	unjudged   string
	modes, env []string
	delegation bool
}

func (f *acpProxyFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.unjudged, "unjudged", string(acp.Cancel),
		"with a command: the `REACTION` to a call that ran unjudged: note, cancel the turn, or kill the agent")
	c.Flags().StringArrayVar(&f.modes, "allow-mode", nil,
		"with a command: the only mode that may be chosen, by `ID` (repeatable; default: all that ask somebody)")
	c.Flags().StringArrayVar(&f.env, "env", nil, "with a command: the `NAME` of a variable for the agent (repeatable)")
	c.Flags().BoolVar(&f.delegation, "require-delegation", true,
		"with a command: refuse clients that run neither files nor terminals for the agent")
}

// changed is the first of the flags that was given; empty: none.
func (f *acpProxyFlags) changed(c *cobra.Command) string {
	for _, name := range []string{"unjudged", "allow-mode", "env", "require-delegation"} {
		if c.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// settings are what the flags choose.
func (f *acpProxyFlags) settings() (acp.ProxySettings, error) {
	s := acp.ProxySettings{Unjudged: acp.Reaction(f.unjudged), AllowModes: f.modes, WithoutDelegation: !f.delegation}
	if !slices.Contains([]acp.Reaction{acp.Note, acp.Cancel, acp.Kill}, s.Unjudged) {
		return s, fmt.Errorf("--unjudged is note, cancel or kill, not %q", f.unjudged)
	}
	return s, nil
}

// environment are the variables that the flags name.
func (f *acpProxyFlags) environment() (variables []string, err error) {
	for _, name := range f.env {
		value, ok := os.LookupEnv(name)
		switch {
		case name == "" || strings.Contains(name, "="):
			return nil, errors.New("--env is the name of a variable, without its value")
		case !ok:
			return nil, fmt.Errorf("--env %s: there is no such variable", name)
		}
		variables = append(variables, name+"="+value)
	}
	return variables, nil
}

// serveACPProxy is callgate acp -- COMMAND.
func serveACPProxy(ctx context.Context, e env, config string, s subject, f acpProxyFlags, command []string) error {
	settings, err := f.settings()
	if err != nil {
		return err
	}
	variables, err := f.environment()
	if err != nil {
		return err
	}
	loaded, err := e.Load(config)
	if err != nil {
		return err
	}
	tools, err := mcpCommand(mainFile(loaded), s)
	if err != nil {
		return err
	}
	subject := gateway.Subject{Agent: s.Agent, Workspace: s.Workspace, Project: s.Project}
	in := input.ContextReader(ctx, io.NopCloser(e.Stdin))
	err = app.ServeACPProxy(ctx, mainFile(loaded), loaded, subject, app.ACPProxy{
		Command: command, Environment: variables, Stderr: e.Stderr, MCPCommand: tools, Settings: settings,
	}, in, e.Stdout, runtimeOptions(e, warningLog(e)))
	if errors.Is(err, acp.ErrAgentEnded) || errors.Is(err, acp.ErrUnjudged) {
		fmt.Fprintf(e.Stderr, "callgate: %v\n", err)
		return cli.ErrRefused
	}
	return err
}

// mcpCommand is the command by which the agent gets the gateway's tools, as the same subject.
func mcpCommand(config string, s subject) ([]string, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("the path of this program is not known: %w", err)
	}
	// It is always named: the program is started in a folder that is not ours, and a
	// callgate.yaml there must not count.
	if config == "" {
		config = configs.BuiltIn
	} else if config, err = filepath.Abs(config); err != nil {
		return nil, fmt.Errorf("--config: %w", err)
	}
	command := []string{program, "mcp", "--config", config}
	for _, flag := range []struct{ name, value string }{{"--agent", s.Agent}, {"--workspace", s.Workspace}, {"--project", s.Project}} {
		if flag.value != "" {
			command = append(command, flag.name, flag.value)
		}
	}
	return command, nil
}
