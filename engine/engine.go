package engine

import (
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/engine/acp"
	"github.com/callgate/callgate/engine/callback"
	"github.com/callgate/callgate/engine/demo"
	"github.com/callgate/callgate/engine/httptool"
	"github.com/callgate/callgate/engine/oxp"
	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Options configure an engine. The zero value is usable and the strictest.
type Options struct {
	Now      func() time.Time // nil is time.Now
	Resolver *net.Resolver    // nil is the system's
	// Certificates that may sign for https tools; nil is the system's pool.
	Certificates *x509.CertPool
	// Interfaces lists this host's own addresses, which are never public; nil
	// is net.InterfaceAddrs. If it fails, nothing is public.
	Interfaces func() ([]net.Addr, error)
	// OnBreaker receives events of the tools' breakers; nil ignores them. It must not
	// block, and must be safe for concurrent use.
	OnBreaker func(outbound.BreakerEvent)
	// Transports run the types that the engine does not run itself.
	Transports map[string]Transport
	// ReadSecret reads the secret that a reference leads to; nil has no secrets.
	ReadSecret func(ctx context.Context, reference string) (string, error)
	// CallbackURL makes the URL at which the answer of a call is accepted until a time;
	// without it, tools that answer later are tool_unavailable.
	CallbackURL func(callID string, until time.Time) (string, error)
	// ServerURL is the URL of a server by its name; nil knows none.
	ServerURL func(server string) string
	// CallbackServers lists every callback server of the configuration, and every callback tool
	// that is stated by itself, as a server without a name whose URL is that of its calls; nil
	// is none.
	CallbackServers func() []tool.Server
	// CancelSubscription ends the subscription of a call, for a call of the same thread by a
	// tool of the type cancel_subscription; without it, those are tool_unavailable.
	CancelSubscription func(ctx context.Context, by tool.Call, id string) error
}

// Outbound returns the options of a client for a transport's own requests.
func (o Options) Outbound() outbound.Options {
	return outbound.Options{
		Now: o.Now, Resolver: o.Resolver, Certificates: o.Certificates, Interfaces: o.Interfaces, OnBreaker: o.OnBreaker,
		ReadSecret: o.ReadSecret,
	}
}

const (
	defaultTimeout     = 10 * time.Second
	defaultResultBytes = 1 << 20
)

// Engine runs tools. It is safe for concurrent use.
type Engine struct {
	out        *outbound.Client
	http       *httptool.Client
	demo       demo.Tools
	oxp        *oxp.Client
	callback   *callback.Client
	transports map[string]Transport // by the type of their tools
}

// New returns an engine. Close it to close its idle connections.
func New(options Options) *Engine {
	if options.Now == nil {
		options.Now = time.Now
	}
	out := outbound.New(options.Outbound())
	e := &Engine{
		out:      out,
		http:     httptool.New(out),
		demo:     demo.New(options.Now),
		oxp:      oxp.New(out),
		callback: callback.New(out, options.CallbackURL, options.ServerURL, options.CallbackServers),
	}
	e.transports = map[string]Transport{"acp": new(acp.Client), "callback": e.callback,
		"cancel_subscription": callback.NewUnsubscriber(options.CancelSubscription), "oxp": e.oxp}
	maps.Copy(e.transports, options.Transports)
	return e
}

// Close closes idle connections. Calls in flight continue, and the engine stays
// usable.
func (e *Engine) Close() {
	if e != nil {
		e.out.Close()
	}
}

// OpenBreakers counts the tools whose breaker is open.
func (e *Engine) OpenBreakers() int {
	if e == nil {
		return 0
	}
	return e.out.OpenBreakers()
}

// FailingBreakers lists the breakers of tools that are open or count failures.
func (e *Engine) FailingBreakers() []outbound.BreakerState {
	if e == nil {
		return nil
	}
	return e.out.FailingBreakers()
}

// Run runs a call and returns the tool's result, or a *refusal.Error. It returns
// within the tool's timeout. Once the call was dispatched, the context must not end
// because a client disconnects.
func (e *Engine) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	if e == nil {
		return tool.Result{}, refuse.Unavailable("there is no engine")
	}
	result, refused := e.run(ctx, call)
	if refused != nil {
		return tool.Result{Attempts: result.Attempts, Challenges: result.Challenges, InputRequired: result.InputRequired}, refused
	}
	return result, nil
}

func (e *Engine) run(ctx context.Context, call tool.Call) (result tool.Result, refused *refusal.Error) {
	defer safe.Catch(func(panicked error) { refused = refuse.Internal(panicked.Error()) })
	if len(call.Arguments) == 0 {
		return tool.Result{}, refuse.Internal("the call has no arguments, so nothing was judged")
	}
	if call.Run.Timeout <= 0 {
		call.Run.Timeout = defaultTimeout
	}
	if call.Run.MaxResultBytes <= 0 {
		call.Run.MaxResultBytes = defaultResultBytes
	}
	bounded := deadline.WithTimeout(ctx, call.Run.Timeout)
	defer bounded.Cancel()
	ctx = bounded
	if ctx.Err() != nil {
		return tool.Result{}, refuse.Stopped(ctx, call)
	}
	switch call.Run.Type {
	case "http":
		return e.http.Run(ctx, call)
	case "demo":
		return e.demo.Run(ctx, call)
	case "client":
		return tool.Result{}, refusal.New(refusal.ToolUnavailable,
			"This tool is run by the application and cannot be run here; continue without it.").
			WithCause(fmt.Errorf("%s is of type client, which the gateway does not run", call.Tool))
	}
	t := e.transports[call.Run.Type]
	if t == nil {
		return tool.Result{}, refuse.Unavailable("%s has a type that this engine does not run", call.Tool)
	}
	result, err := t.Run(ctx, call)
	return result, refusal.From(refusal.Execute, err)
}

// Bounded reports whether calls of a tool end soon after the deadline of their context
// whatever its server does: over HTTP without TLS each read and write has that deadline, or
// its end closes the connection. With TLS a call may go over HTTP/2, where all calls to a
// server wait for one connection, and closing a connection may wait for the server. Programs
// and sessions may have other deadlines, and a file with a credential may be on a disk that
// hangs; a token for the caller comes from another server.
func (e *Engine) Bounded(run tool.Run) bool {
	return run.Type == "http" && strings.HasPrefix(run.URL, "http://") && !fetches(run.Credential)
}

// fetches reports whether a call itself reads a file for its credential, or exchanges its caller's token: other tokens
// are fetched, and commands run, beside the calls that wait for them.
func fetches(c *tool.Credential) bool {
	return c != nil && c.In != tool.InOAuth &&
		(c.In == tool.InExchange || slices.ContainsFunc(c.References(), func(r string) bool { return strings.HasPrefix(r, "file:") }))
}

// Authorization asks the server of a tool for the state of an authorization, at the
// address of its challenge: pending, completed or failed. Its error is a *refusal.Error.
func (e *Engine) Authorization(ctx context.Context, run tool.Run, address string) (status string, err error) {
	defer safe.Catch(func(panicked error) { err = refuse.Internal(panicked.Error()) })
	client, ok := e.transports["oxp"].(*oxp.Client)
	if !ok {
		return "", oxp.NoAuthorization()
	}
	if run.Timeout <= 0 {
		run.Timeout = defaultTimeout
	}
	return client.Authorization(ctx, run, address)
}

// Cancel notifies the server of a callback tool that the answer of a call is no longer
// needed. Servers of other types are not notified.
func (e *Engine) Cancel(ctx context.Context, call tool.Call) {
	if c, ok := e.transports[call.Run.Type].(*callback.Client); ok && call.Run.Type == "callback" {
		c.Cancel(ctx, call)
	}
}

// CloseThread notifies every callback server that a thread is closed, whether or not it has had
// calls of it: all at the same time, each once. It returns when they have answered or ctx ends.
func (e *Engine) CloseThread(ctx context.Context, thread string) {
	e.callback.CloseThread(ctx, thread)
}

// CheckResponse says why what a person has chosen may not be sent to a URL, which the tool of a
// call has stated.
func (e *Engine) CheckResponse(call tool.Call, url string) error {
	return e.callback.CheckResponse(call, url)
}

// Respond sends what a person has chosen to a callback tool, once.
func (e *Engine) Respond(ctx context.Context, call tool.Call, url string, selected int) error {
	return e.callback.Respond(ctx, call, url, selected)
}

// Discover lists the tools of a server within the server's timeout, and that of its start. Its error is for the
// operator; that of a list that cannot be used is a *tool.InvalidListError.
func (e *Engine) Discover(ctx context.Context, s tool.Server) (found []tool.Definition, err error) {
	defer safe.Catch(func(panicked error) { found, err = nil, fmt.Errorf("%s: %w", s.Name, panicked) })
	t := e.transports[s.Type]
	if t == nil {
		return nil, fmt.Errorf("%s is of the type %s, which this engine does not know", s.Name, s.Type)
	}
	if s.Timeout <= 0 {
		s.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, s.StartTime()+s.Timeout)
	defer cancel()
	return t.Discover(ctx, s)
}
