// Package server is what every face over HTTP stands behind: it takes connections,
// reads who asks and what for, bounds how much may be under way, and keeps a line
// of every request. What a request means is its face's; so is how a refusal is
// written.
//
//	GET /healthz  the process lives
//	GET /readyz   it takes requests
//
// Every other path is a Route that a face mounts. Heads and bodies are read
// strictly, and a header that says who asks, or for whom, must stand once. A
// handler that breaks off is a refusal; where its answer had begun, the connection
// is cut, so that nobody takes a part for the whole.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
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

// Options are what a door works with.
type Options struct {
	Metrics Metrics
	Log     *slog.Logger
	// Refuse writes what is refused at a path that no face has, and on routes that
	// have no way of their own.
	Refuse func(*gin.Context, *refusal.Error)
	// Identify says who asks, by the head of a request, and notes that in the request:
	// it is Kernel.Identify. The bounds are shared between those whom it names. Without
	// it every request is refused, but for those of routes that are Open.
	Identify func(context.Context, *gateway.Request) (name string, err error)
	// CheckReady says why nobody can be let in now, or nil. It may be nil itself.
	CheckReady func() error
	// AllowedOrigins are the web pages that may ask, and the names of the gateway.
	AllowedOrigins AllowedOrigins
	// MaxInFlight bounds how many requests are answered at the same time, by their
	// Lane; beyond it, and beyond half of it for one caller, they are refused as
	// overloaded. Health checks are not counted.
	MaxInFlight int
	// MaxBodyBytes bounds the bytes of all bodies that are there, or on their way; 0 is
	// 256 MiB. Beyond it, and beyond half of it for one caller, they are refused as
	// overloaded.
	MaxBodyBytes int64
	// BodyTimeout bounds how long the body of a request may take to arrive; 0 is 30 s.
	BodyTimeout time.Duration
	// WriteTimeout bounds how long a client may take nothing of its answer; 0 is 30 s.
	WriteTimeout time.Duration
}

// Server answers requests. It is safe for concurrent use once everything is
// mounted.
type Server struct {
	options   Options
	engine    *gin.Engine
	refusals  map[string]func(*gin.Context, *refusal.Error) // by the path of a route
	pools     pools
	bodyBytes *quota        // bytes of bodies
	draining  chan struct{} // closed by Drain
	drain     sync.Once
}

// The defaults of Options.
const (
	defaultMaxInFlight  = 256
	defaultMaxBodyBytes = 256 << 20
	defaultBodyTimeout  = 30 * time.Second
	defaultWriteTimeout = 30 * time.Second
)

// New returns a door that leads nowhere yet.
func New(options Options) *Server {
	if options.MaxInFlight <= 0 {
		options.MaxInFlight = defaultMaxInFlight
	}
	if options.MaxBodyBytes <= 0 {
		options.MaxBodyBytes = defaultMaxBodyBytes
	}
	if options.BodyTimeout <= 0 {
		options.BodyTimeout = defaultBodyTimeout
	}
	if options.WriteTimeout <= 0 {
		options.WriteTimeout = defaultWriteTimeout
	}
	if options.Identify == nil {
		options.Identify = rejectAll
	}
	s := &Server{
		options: options, refusals: map[string]func(*gin.Context, *refusal.Error){}, draining: make(chan struct{}),
		pools: newPools(options.MaxInFlight), bodyBytes: newQuota(options.MaxBodyBytes),
	}
	e := gin.New()
	// gin trusts every proxy, decodes and redirects paths, and does not pass the
	// request's context on, unless it is told otherwise.
	if err := e.SetTrustedProxies(nil); err != nil {
		panic("server: " + err.Error()) // nil is always taken
	}
	e.UseRawPath = true
	e.UnescapePathValues = false
	e.RedirectTrailingSlash = false
	e.RedirectFixedPath = false
	e.HandleMethodNotAllowed = true
	e.ContextWithFallback = true

	e.GET("/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
	e.GET("/readyz", s.ready)
	e.NoRoute(s.observe, func(c *gin.Context) {
		s.options.Refuse(c, refusal.New(refusal.NotFound, "There is nothing at this path."))
	})
	e.NoMethod(s.observe, func(c *gin.Context) {
		refuse, mounted := s.refusals[c.Request.URL.Path]
		if !mounted {
			refuse = s.options.Refuse
		}
		refuse(c, refusal.New(refusal.MethodNotAllowed, "This path does not take this method."))
	})
	s.engine = e
	return s
}

// rejectAll refuses all requests: no function was given that identifies callers.
func rejectAll(context.Context, *gateway.Request) (string, error) {
	return "", errors.New("the door was not told how to identify callers")
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 {
		// A body whose length its head did not state: whoever forwarded it may have
		// seen another end of it, so nothing else is read from this connection
		// (RFC 9112, section 6.1).
		w.Header().Set("Connection", "close")
	}
	if s.Draining() {
		// Who is told so asks on a connection of its own next, and never on one that
		// is closed while its request is on the way.
		w.Header().Set("Connection", "close")
	}
	s.engine.ServeHTTP(&responseWriter{ResponseWriter: w, timeout: s.options.WriteTimeout, unreadBody: r.ContentLength != 0}, r)
}

// Drain makes the door say that it is not ready, for the time until it is shut
// down. Requests are still answered, each as the last of its connection; those of
// the lane Streams end.
func (s *Server) Drain() { s.drain.Do(func() { close(s.draining) }) }

// Draining tells whether Drain was called.
func (s *Server) Draining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// InFlight is how many requests are being answered.
func (s *Server) InFlight() int { return s.pools.inFlight() }

func (s *Server) ready(c *gin.Context) {
	if s.Draining() {
		c.String(http.StatusServiceUnavailable, "draining\n")
		return
	}
	if unready := s.options.CheckReady; unready != nil && unready() != nil {
		c.String(http.StatusServiceUnavailable, "not ready\n")
		return
	}
	c.String(http.StatusOK, "ready\n")
}
