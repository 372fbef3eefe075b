package app

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

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/mcp"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/telemetry"
)

// ServeStdio serves one client of the Model Context Protocol on a reader and a writer,
// for a subject, until the client leaves or ctx ends.
func ServeStdio(ctx context.Context, path string, loaded *configs.Config, subject gateway.Subject, stdin io.Reader, stdout io.Writer, o Options) error {
	var face *mcp.Face
	follow := func(h *Runtime) []subscriber {
		face = mcp.New(mcp.Options{Executor: h.Executor, Version: o.Version,
			RegistryNames: loaded.Server.MCPNames == configs.NamesRegistry})
		h.Servers.OnChange(face.ToolsChanged)
		return []subscriber{func(context.Context, *configs.Config, *gateway.Config) (change, error) {
			return change{commit: face.ToolsChanged, abort: doNothing}, nil
		}}
	}
	return serveOne(ctx, path, loaded, "mcp", subject, o, follow, func(h *Runtime, request gateway.Request) error {
		in := h.announcing(stdin, o.Logger)
		return h.answerUntil(ctx, loaded.Server.ShutdownTimeout, func() error { return face.Stdio(ctx, request, in, stdout) })
	})
}

// serveOne opens a Runtime in a folder of its own for one client, and serves it. The subject must be
// admitted. While it is served, changed files of the configuration are loaded; besides the tool
// servers, the given subscribers follow them.
func serveOne(ctx context.Context, path string, loaded *configs.Config, kind string, subject gateway.Subject, o Options,
	followers func(*Runtime) []subscriber, serve func(*Runtime, gateway.Request) error,
) (err error) {
	o.noApprovers = loaded.Store.Kind != configs.StoreRedis
	h, err := openOwnFolder(ctx, loaded, kind, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	request := gateway.Request{Subject: subject}
	if _, err := h.Executor.Kernel.Admit(ctx, request); err != nil {
		return err
	}
	h.subscribe(h.followServers)
	h.subscribe(h.threads.follow)
	if followers != nil {
		for _, follow := range followers(h) {
			h.subscribe(follow)
		}
	}
	stopWatch := runWatch(ctx, h.watch(path, loaded, telemetry.New(), o.Logger))
	defer func() { err = stopWatch(err) }()
	return serve(h, request)
}

// firstListTime is how long an editor or its agent is kept waiting for tool servers that were just started.
const firstListTime = 10 * time.Second

// awaitServers waits for the first lists of all tool servers, for a while.
func (r *Runtime) awaitServers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, firstListTime)
	defer cancel()
	r.Servers.WaitFirst(ctx)
}

// announcing returns a reader that announces the exit of this process once the client has left.
func (r *Runtime) announcing(stdin io.Reader, logger *slog.Logger) io.Reader {
	return &eofNotifier{Reader: stdin, onEOF: func() { go r.announceExit(logger) }}
}

// answerUntil runs a face of one client until it returns, or for a time after ctx has ended; then
// calls that still run are cut off.
func (r *Runtime) answerUntil(ctx context.Context, patience time.Duration, face func() error) error {
	answered := make(chan error, 1)
	go func() { answered <- face() }()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
	}
	r.Executor.Drain()
	select {
	case err := <-answered:
		return err
	case <-time.After(patience):
		r.cancelCalls()
	}
	select {
	case err := <-answered:
		return err
	case <-time.After(settleTimeout):
		return cli.InternalError{Err: errors.New("calls had not ended after they were cut off")}
	}
}

// maxFolders bounds how many processes run beside each other below one data_dir.
const maxFolders = 16

// openOwnFolder opens a Runtime in the first of the folders data_dir/KIND/1 to 16 that is
// free, or whose process is about to exit: a client that restarts its server then finds its
// idempotency keys again. The rest of the configuration applies unchanged; accepted
// definitions of tool servers are shared.
func openOwnFolder(ctx context.Context, loaded *configs.Config, kind string, o Options) (h *Runtime, err error) {
	o.stopsOf = loaded.DataDir
	// The longest that a process takes to exit.
	waiting, cancel := context.WithTimeout(ctx, loaded.Server.ShutdownTimeout+3*settleTimeout)
	defer cancel()
	for n := 1; n <= maxFolders; {
		own := *loaded
		own.DataDir = filepath.Join(loaded.DataDir, kind, strconv.Itoa(n))
		h, err = Open(ctx, &own, nil, o)
		var lock *audit.LockedError
		if !errors.As(err, &lock) {
			return h, err
		}
		if lock.ShuttingDown && waiting.Err() == nil {
			o.Logger.Warn("waiting for another process to exit", "folder", own.DataDir, "process", lock.PID)
			if audit.AwaitUnlock(waiting, own.DataDir) == nil {
				continue
			}
		}
		n++
	}
	return nil, fmt.Errorf("all of %d folders are taken: %w", maxFolders, err)
}

// announceExit tells processes that wait for the data folder that this one is exiting.
func (r *Runtime) announceExit(logger *slog.Logger) {
	if err := r.log.AnnounceShutdown(); err != nil && !errors.Is(err, os.ErrClosed) {
		logger.Warn("could not announce the shutdown; a process started now takes another data folder", "cause", err.Error())
	}
}

// eofNotifier calls onEOF at the first error of its reader.
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
