package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/mcp"
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
so that it runs beside serve, and several clients beside each other. A folder whose
process is ending is waited for, for server.drain and some seconds at most, so that
a client that starts its server anew finds its idempotency keys again.

The process ends when its input does, or by SIGTERM, once the calls in flight have
ended. Exit codes: 0 done, 2 usage or configuration, 3 internal.`,
		Example: `  callgate mcp
  callgate mcp --config callgate.yaml --agent Analyst --workspace acme --project alpha
  callgate audit verify callgate-data/mcp/1/audit.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := s.bounded(); err != nil {
				return err
			}
			loaded, err := e.load(config)
			if err != nil {
				return err
			}
			return e.serveMCP(c.Context(), config, loaded, s)
		},
	}
	configFlag(c, &config)
	s.whoFlags(c)
	return c
}

// serveMCP runs until the client leaves or ctx ends.
func (e env) serveMCP(ctx context.Context, path string, loaded *configs.Config, s subject) (err error) {
	logger := e.warnings()
	h, err := e.openOwnFolder(ctx, loaded, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	request := gateway.Request{Subject: gateway.Subject{Agent: s.agent, Workspace: s.workspace, Project: s.project}}
	if _, err := h.Kernel.Admit(ctx, request); err != nil {
		return err
	}
	h.Servers.WaitFirst(ctx)

	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	watched := make(chan error, 1)
	go func() { watched <- h.watchWithoutAuth(path, loaded, logger).Run(watching) }()
	defer func() {
		stopWatching()
		select {
		case e := <-watched:
			if e != nil {
				err = errors.Join(err, InternalError{e})
			}
		case <-time.After(settleTimeout): // a file system that does not answer holds nothing up
		}
	}()

	v, _ := version()
	face := mcp.New(mcp.Options{Kernel: h.Kernel, Version: v, RegistryNames: loaded.Server.MCPNames == configs.NamesRegistry})
	in := &eofNotifier{Reader: newCtxReader(ctx, io.NopCloser(e.stdin)), onEOF: func() { go h.announceExit(logger) }}
	answered := make(chan error, 1)
	go func() { answered <- face.Stdio(ctx, request, in, e.stdout) }()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-answered:
		return err
	case <-time.After(loaded.Server.ShutdownTimeout):
		h.cancelCalls()
	}
	select {
	case err := <-answered:
		return err
	case <-time.After(settleTimeout):
		return InternalError{errors.New("calls had not ended after they were cut off")}
	}
}

// maxFolders bounds how many processes share a data folder so.
const maxFolders = 16

// openOwnFolder opens a house in the first folder below data_dir that is free, or that the
// process that has it is about to give up: what a client that starts its server anew
// has sent before is known there. All else of the configuration is as it stands: what
// was accepted of servers is one for all.
func (e env) openOwnFolder(ctx context.Context, loaded *configs.Config, logger *slog.Logger) (h *Runtime, err error) {
	// As long as a process takes to end, all in all.
	waiting, cancel := context.WithTimeout(ctx, loaded.Server.ShutdownTimeout+3*settleTimeout)
	defer cancel()
	for n := 1; n <= maxFolders; {
		own := *loaded
		own.DataDir = filepath.Join(loaded.DataDir, "mcp", strconv.Itoa(n))
		h, err = e.openRuntime(ctx, &own, KernelConfig(&own, nil), Observers{Logger: logger})
		var held *audit.LockedError
		if !errors.As(err, &held) {
			return h, err
		}
		if held.ShuttingDown && waiting.Err() == nil {
			logger.Warn("waiting for a process that is ending", "folder", own.DataDir, "process", held.PID)
			if audit.AwaitUnlock(waiting, own.DataDir) == nil {
				continue
			}
		}
		n++
	}
	return nil, fmt.Errorf("all of %d folders are taken: %w", maxFolders, err)
}

// announceExit tells processes that want the folder that this one is ending. One that has
// ended already has given it up.
func (h *Runtime) announceExit(logger *slog.Logger) {
	if err := h.log.AnnounceShutdown(); err != nil && !errors.Is(err, os.ErrClosed) {
		logger.Warn("a process that is started now takes another folder", "cause", err.Error())
	}
}

// eofNotifier is a reader that tells of its end, once.
type eofNotifier struct {
	io.Reader
	onEOF func()
	once  sync.Once
}

func (f *eofNotifier) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err != nil {
		f.once.Do(f.onEOF)
	}
	return n, err
}

// watchWithoutAuth keeps the kernel at what the configuration's files say, where nobody is
// asked for a credential.
func (h *Runtime) watchWithoutAuth(path string, first *configs.Config, logger *slog.Logger) *configs.Watcher {
	return configs.NewWatcher(path, first, configs.WatcherOptions{
		Swap: func(_ context.Context, c *configs.Config) error {
			h.Servers.Prepare(c)
			if err := h.Kernel.Swap(KernelConfig(c, nil)); err != nil {
				return err
			}
			h.Servers.Commit()
			return nil
		},
		Report: func(e configs.Event) {
			for _, f := range e.Faults {
				logger.Error("configuration "+string(e.Kind), "fault", f.Error(), "digest", e.Digest)
			}
			if e.Kind == configs.RestartRequired {
				logger.Warn("configuration keys wait for a restart", "keys", e.Keys)
			}
		},
	})
}
