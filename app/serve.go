package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/faces/agenthooks"
	"github.com/callgate/callgate/gateway/faces/callback"
	"github.com/callgate/callgate/gateway/faces/chat"
	"github.com/callgate/callgate/gateway/faces/mcp"
	"github.com/callgate/callgate/gateway/faces/messages"
	"github.com/callgate/callgate/gateway/faces/models"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/gateway/faces/oxp"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/server/framing"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/telemetry"
	"github.com/callgate/callgate/upstream"
)

// The limits of connections. Bodies have a time limit of their own; see gateway/server.
const (
	headTimeout  = 5 * time.Second
	idleTimeout  = 60 * time.Second
	writeTimeout = 60 * time.Second // beyond the longest that an answer may take
	maxHeadBytes = 32 << 10
	longestCall  = 10 * time.Minute
)

// Serve serves the configuration that was loaded from path over HTTP, until its
// context ends or a listener fails. It makes the metrics and the traces itself.
func Serve(ctx context.Context, path string, loaded *configs.Config, o Options) (err error) {
	logger := o.Logger
	metrics := telemetry.NewLabelled(loaded.CallLabels)
	metrics.Built(o.Version, o.Revision)
	authn := &Authn{Metrics: metrics, Logger: logger}
	defer authn.Close()
	authenticator, prepared, err := authn.prepare(ctx, loaded)
	switch {
	case err != nil && ctx.Err() != nil: // it was stopped while it waited for keys
		logger.Info("stopped before serving", "cause", err.Error())
		return nil
	case err != nil:
		return err
	}
	prepared.commit()
	traces := &Tracing{logger: logger, replica: replicaName(), version: o.Version}
	defer traces.Close()
	if prepared, err = traces.follow(ctx, loaded, nil); err != nil {
		return err
	}
	prepared.commit()
	o.Metrics, o.Tracing = metrics, traces
	h, err := Open(ctx, loaded, authenticator, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()

	front := server.New(server.Options{
		Metrics: metrics, Log: logger, RequestLog: o.RequestLog, Refuse: native.Refuse, Identify: h.Executor.Kernel.Identify,
		CheckReady:     authn.unready,
		MaxInFlight:    loaded.Server.MaxInFlight,
		AllowedOrigins: server.AllowedOrigins{Origins: loaded.Server.Origins, Hosts: loaded.Server.Hosts},
	})
	front.LogRequests(loaded.RequestLogRatio)
	native.New(native.Options{Executor: h.Executor, Log: logger}).Mount(front)
	base := &publicURL{stated: loaded.Server.PublicURL}
	overMCP := mcp.Options{Executor: h.Executor, Version: o.Version, RegistryNames: loaded.Server.MCPNames == configs.NamesRegistry}
	if loaded.Auth.Mode == configs.AuthJWT {
		overMCP.ProtectedResource = &mcp.ProtectedResource{Base: base.url, Issuer: authn.issuer}
	}
	mcp.New(overMCP).Mount(front)
	h.serveModels(loaded)
	client := upstream.NewClient(upstream.Options{ReadSecret: h.secrets.Resolve,
		Observe: func(a upstream.Attempt) { metrics.UpstreamRequest(string(a.Code), a.Status, a.Took) }})
	defer client.Close()
	callback.New(callback.Options{Executor: h.Executor, Verify: h.callbacks.verify}).Mount(front)
	oxp.New(oxp.Options{Executor: h.Executor, Log: logger, CheckReady: authn.unready, URL: h.callbacks.publicURL}).Mount(front)
	agenthooks.New(h.Executor).Mount(front)
	did := runs.New(runs.Options{})
	(&runs.Face{Executor: h.Executor, Log: did, Refuse: native.Refuse}).Mount(front)
	forModels := turns.Options{Executor: h.Executor, Upstreams: h.models.Load, Client: client, Runs: did, Budgets: h.budgets.ledger}
	for _, face := range ModelFaces(forModels) {
		face.Mount(front)
	}
	models.New(models.Options{Executor: h.Executor, Upstreams: h.models.Load, Client: client, Log: logger, Refuse: chat.Refuse,
		RefuseAnthropic: messages.Refuse}).Mount(front)
	sender := newNoticeSender(h, metrics, logger)
	defer sender.Close()
	if prepared, err = sender.follow(ctx, loaded, nil); err != nil {
		return err
	}
	prepared.commit()
	forOperators := &operators{runtime: h, runs: did, version: o.Version, pools: front.Pools}
	forOperators.loaded.Store(loaded)
	for _, follow := range []subscriber{keepEach(logger), h.compared.follow, forOperators.follow, logWarnings(logger),
		followRequestLog(front), traces.follow, authn.follow, h.followModels, h.threads.follow, h.callbacks.follow, h.followServers,
		sender.follow} {
		h.subscribe(follow)
	}
	keep(loaded, configs.Kept(), logger)
	watch := h.watch(path, loaded, metrics, logger)
	public := newHTTPServer(front)
	forOperators.watch, forOperators.health = watch, healthOf(watch, h, authn, front)
	others := newAdminHandler(forOperators.health, metrics)
	if loaded.Server.Profiling {
		others = withProfiles(others)
	}
	own, err := forOperators.handlers(loaded.Server, logger)
	if err != nil {
		return err
	}
	internal := newHTTPServer(adminGuard(loaded.Server, h.Executor.Kernel, own, others))
	internal.ReadTimeout, internal.WriteTimeout = adminTimeout, adminTimeout
	listener, err := net.Listen("tcp", loaded.Server.Listen)
	if err != nil {
		return cannotListen("server.listen", loaded.Server.Listen, err)
	}
	h.callbacks.listening(listener.Addr().String())
	base.listening(listener.Addr())
	adminListener, err := net.Listen("tcp", loaded.Server.AdminListen)
	if err != nil {
		listener.Close()
		return cannotListen("server.admin_listen", loaded.Server.AdminListen, err)
	}

	debug.FreeOSMemory() // of what loading the configuration has left
	stopWatch := runWatch(ctx, watch)
	defer func() { err = stopWatch(err) }()
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)

	failed := make(chan error, 2)
	go func() { failed <- public.Serve(framing.NewListener(listener)) }()
	go func() { failed <- internal.Serve(adminListener) }()
	serving := []any{"listen", listener.Addr().String(), "admin", adminListener.Addr().String(), "digest", loaded.Digest,
		"auth", loaded.Auth.Mode}
	if servesConsole(own) {
		serving = append(serving, "console", "http://"+adminListener.Addr().String()+"/console")
	}
	logger.Info("serving", serving...)
	metrics.Reloaded(loaded.Digest)
	for {
		select {
		case <-hangups:
			watch.Reload()
		case err := <-failed:
			return fmt.Errorf("a listener failed: %w", err)
		case <-ctx.Done():
			h.Executor.Drain()
			return drain(logger, front, public, internal, h.cancelCalls, cmp.Or(o.DrainDelay, drainDelay), loaded.Server.ShutdownTimeout)
		}
	}
}

func newHTTPServer(h http.Handler) *http.Server {
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, WriteTimeout: longestCall + writeTimeout,
		MaxHeaderBytes: maxHeadBytes,
		ErrorLog:       log.Default(),
		// Otherwise net/http answers OPTIONS * before gateway/server sees it.
		DisableGeneralOptionsHandler: true,
	}
	server.LimitConnections(s, server.MaxWaitingConnections())
	return s
}

// drainDelay stands for an Options.DrainDelay of zero.
const drainDelay = 500 * time.Millisecond

// drain ends readiness, then connections, and waits for the calls in flight. Calls that
// do not end in time are cut off; they are answered, and recorded with an unknown outcome.
func drain(logger *slog.Logger, front *server.Server, public, admin *http.Server, cut func(), delay, longest time.Duration) error {
	logger.Info("draining", "in_flight", front.InFlight())
	front.Drain()
	time.Sleep(min(delay, longest))
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	err := public.Shutdown(ctx)
	if err != nil {
		err = fmt.Errorf("%d requests had not ended after %s", front.InFlight(), duration.Spell(longest))
		cut()
		settling, cancel := context.WithTimeout(context.Background(), settleTimeout)
		defer cancel()
		if e := public.Shutdown(settling); e != nil {
			err = errors.Join(err, public.Close())
		}
	}
	if e := admin.Close(); e != nil {
		err = errors.Join(err, e)
	}
	logger.Info("stopped", "clean", err == nil)
	if err != nil {
		return cli.InternalError{Err: err}
	}
	return nil
}

// cannotListen says why there is no listener at the address of a key.
func cannotListen(key, address string, err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: %s: another program has it; stop that, or state another address", key, address)
	}
	return fmt.Errorf("%s: cannot listen on %s: %w", key, address, oserr.Reason(err))
}
