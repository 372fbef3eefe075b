package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/acp"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/program"
)

// ACPProxy is an agent of the Agent Client Protocol that an editor reaches through the gateway.
type ACPProxy struct {
	Command     []string // the agent's program and its arguments
	Environment []string // NAME=value, beside what every program gets
	// Stderr gets the lines of the agent's standard error, escaped.
	Stderr io.Writer
	// MCPCommand is the command that serves the gateway's tools to the agent.
	MCPCommand []string
	// Settings are those of the face that an operator chooses.
	Settings acp.ProxySettings
}

// ServeACPProxy relays between an editor on a reader and a writer and an agent that it starts, for
// a subject, until one of them leaves or ctx ends. Then the agent has ended.
func ServeACPProxy(ctx context.Context, path string, loaded *configs.Config, subject gateway.Subject, x ACPProxy, stdin io.Reader, stdout io.Writer, o Options) error {
	if !Has(configs.ACPProxy) {
		return fmt.Errorf("found a command of an agent; expected none: this program was built without %s", configs.ACPProxy)
	}
	return serveOne(ctx, path, loaded, "acp", subject, o, nil, func(h *Runtime, request gateway.Request) error {
		h.awaitServers(ctx)
		agent, err := startAgent(x)
		if err != nil {
			return err
		}
		defer agent.end()
		err = RelayACP(ctx, acp.ProxyOptions{
			Executor: h.Executor, Request: request, Log: o.Logger, ProxySettings: x.Settings,
			MCPServer: wire.MCPServer{Transport: wire.Stdio, Name: "callgate", Command: x.MCPCommand[0], Args: x.MCPCommand[1:]},
		}, acp.Agent{Out: agent.Output, In: agent.Input, Kill: agent.end}, h.announcing(stdin, o.Logger), stdout)
		if errors.Is(err, acp.ErrAgentEnded) {
			return fmt.Errorf("%w: %s", err, agent.Status())
		}
		return err
	})
}

// RelayACP relays between an editor and an agent until one of them leaves or ctx ends, then ends the agent. The
// error is nil where the editor has left. The program must have the proxy: see Has.
func RelayACP(ctx context.Context, o acp.ProxyOptions, agent acp.Agent, in io.Reader, out io.Writer) error {
	return linked.acpProxy(ctx, o, agent, in, out)
}

// agentProgram is the program of an agent.
type agentProgram struct {
	*program.Program
	once  sync.Once
	done  chan struct{} // closed when it is to end
	ended sync.WaitGroup
}

// startAgent starts the program of an agent.
func startAgent(x ACPProxy) (*agentProgram, error) {
	started, err := program.Start(x.Command, "", x.Environment)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("the agent's program was not found: write its path, or a name that PATH finds")
	case err != nil:
		return nil, fmt.Errorf("the agent cannot be started: %w", err)
	}
	a := &agentProgram{Program: started, done: make(chan struct{})}
	a.ended.Go(func() { a.Supervise(a.done) })
	a.ended.Go(func() {
		program.EachLine(a.Errors, func(line string) { fmt.Fprintf(x.Stderr, "agent: %s\n", line) })
	})
	return a, nil
}

// end ends the program with everything that it has started, and returns when that is done.
func (a *agentProgram) end() {
	a.once.Do(func() { close(a.done) })
	a.ended.Wait()
}
