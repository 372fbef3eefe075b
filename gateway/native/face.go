// Package native is the face of Callgate's own wire format: it translates HTTP
// to the kernel and back, and decides nothing.
//
//	POST /v1/check       judges, and executes nothing
//	POST /v1/calls       judges and executes
//	GET  /v1/calls/{id}  what became of a call
//	GET  /v1/tools       what an agent may use
//	GET  /healthz        the process lives
//	GET  /readyz         it takes calls
//
// Bodies are read strictly and never bound. A header that says who asks, or for
// whom, must stand once. What is refused comes back in the one shape that models
// read, with the status of its code.
package native

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// Metrics is told of requests. It must be safe for concurrent use.
type Metrics interface {
	Request(route string) (done func(status int))
	Shed()
}

// Options are what a face works with.
type Options struct {
	Kernel  *gateway.Kernel
	Metrics Metrics
	Log     *slog.Logger
	// MostInFlight bounds how many requests are answered at the same time; beyond
	// it they are refused as overloaded. Health checks are not counted.
	MostInFlight int
	// MostHeld bounds the bytes of all bodies that are there, or on their way; 0 is
	// 256 MiB. Beyond it they are refused as overloaded.
	MostHeld int64
	// BodyTime bounds how long the body of a request may take to arrive; 0 is 30 s.
	BodyTime time.Duration
}

// Face answers requests. It is safe for concurrent use.
type Face struct {
	options  Options
	engine   *gin.Engine
	slots    chan struct{}
	held     atomic.Int64 // bytes of bodies
	draining atomic.Bool
}

// The defaults of Options.
const (
	defaultInFlight = 256
	defaultHeld     = 256 << 20
	defaultBodyTime = 30 * time.Second
)

// New returns the face of a kernel.
func New(options Options) *Face {
	if options.MostInFlight <= 0 {
		options.MostInFlight = defaultInFlight
	}
	if options.MostHeld <= 0 {
		options.MostHeld = defaultHeld
	}
	if options.BodyTime <= 0 {
		options.BodyTime = defaultBodyTime
	}
	f := &Face{options: options, slots: make(chan struct{}, options.MostInFlight)}
	e := gin.New()
	// gin trusts every proxy, decodes and redirects paths, and does not pass the
	// request's context on, unless it is told otherwise.
	if err := e.SetTrustedProxies(nil); err != nil {
		panic("native: " + err.Error()) // nil is always taken
	}
	e.UseRawPath = true
	e.UnescapePathValues = false
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ContextWithFallback = true

	e.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", f.ready)
	v1 := e.Group("/v1", f.observe, f.contain)
	// A body that drips must not keep others out: requests count once they are there.
	v1.POST("/check", f.receive, f.bound, f.check)
	v1.POST("/calls", f.receive, f.bound, f.calls)
	v1.GET("/calls/:id", f.bound, f.lookup)
	v1.GET("/tools", f.bound, f.tools)
	e.NoRoute(f.observe, func(c *gin.Context) {
		f.refuse(c, refusal.New(refusal.NotFound, "There is nothing at this path."))
	})
	e.NoMethod(f.observe, func(c *gin.Context) {
		f.refuse(c, refusal.New(refusal.MethodNotAllowed, "This path does not take this method."))
	})
	f.engine = e
	return f
}

// ServeHTTP answers one request.
func (f *Face) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 {
		// A body whose length its head did not state: whoever forwarded it may have
		// seen another end of it, so nothing else is read from this connection
		// (RFC 9112, section 6.1).
		w.Header().Set("Connection", "close")
	}
	f.engine.ServeHTTP(w, r)
}

// Drain makes the face say that it is not ready, for the time until it is shut
// down. Requests are still answered.
func (f *Face) Drain() { f.draining.Store(true) }

// Draining tells whether Drain was called.
func (f *Face) Draining() bool { return f.draining.Load() }

// InFlight is how many requests are being answered.
func (f *Face) InFlight() int { return len(f.slots) }

func (f *Face) ready(c *gin.Context) {
	if f.draining.Load() {
		c.String(http.StatusServiceUnavailable, "draining\n")
		return
	}
	c.String(http.StatusOK, "ready\n")
}

func (f *Face) check(c *gin.Context) {
	request := c.MustGet(keyAsked).(asked)
	report := f.options.Kernel.Check(c.Request.Context(), request.Request)
	c.Header(headerCallID, report.CallID)
	if r := report.Refusal; r != nil && (r.Code == refusal.Unauthenticated || r.Code == refusal.CallerRateLimited || r.Code == refusal.LimiterUnavailable && r.Stage == refusal.Identity) {
		f.refuse(c, r)
		return
	}
	note(c, report.Refusal)
	f.answer(c, http.StatusOK, checked{ID: request.id, Report: report})
}

func (f *Face) calls(c *gin.Context) {
	request := c.MustGet(keyAsked).(asked)
	key, refused := idempotencyKey(c.Request)
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	o := f.options.Kernel.Handle(c.Request.Context(), request.Request, key)
	c.Header(headerCallID, o.CallID)
	note(c, o.Refusal)
	if o.Refusal != nil {
		retryAfter(c, o.Refusal)
	}
	switch {
	case o.Pending:
		f.answer(c, o.Status, map[string]string{"call_id": o.CallID, "state": "pending"})
	case o.Result == nil:
		text := string(o.Text)
		f.answer(c, o.Status, acted{ID: request.id, Text: &text})
	default:
		f.result(c, o.Status, request.id, o.Result)
	}
}

func (f *Face) lookup(c *gin.Context) {
	request, refused := f.readHead(c)
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	call, err := f.options.Kernel.Lookup(c.Request.Context(), request.Request, c.Param("id"))
	if err != nil {
		f.refuse(c, refusal.From(refusal.Request, err))
		return
	}
	c.Header(headerCallID, call.ID)
	f.state(c, call)
}

func (f *Face) tools(c *gin.Context) {
	request, refused := f.readHead(c)
	if refused != nil {
		f.refuse(c, refused)
		return
	}
	tools, err := f.options.Kernel.Tools(c.Request.Context(), request.Request)
	if err != nil {
		f.refuse(c, refusal.From(refusal.Identity, err))
		return
	}
	f.answer(c, http.StatusOK, map[string][]gateway.Tool{"tools": tools})
}

// detached is a context that does not end with the request.
func detached(c *gin.Context) context.Context { return context.WithoutCancel(c.Request.Context()) }
