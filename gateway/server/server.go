// Package server serves HTTP for every face: it reads the head and the body of a request,
// identifies the caller, bounds the work in flight and logs each request. The face decides what
// a request means and how a refusal is written.
//
//	GET /healthz  the process runs
//	GET /readyz   it accepts requests
//
// Every other path is a Route of a face. Heads and bodies are read strictly, and a header that
// names the caller or its subject must not be repeated. A handler that panics becomes a refusal;
// if its answer has begun, the connection is closed, so that no client takes a part for the
// whole.
package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// Metrics counts requests. It must be safe for concurrent use.
type Metrics interface {
	// Route returns what to call at the begin and at the end of each request to a route.
	Route(route string) (begin func(), end func(status int))
	Shed()
}

// Options configure a Server.
type Options struct {
	Metrics Metrics
	Log     *slog.Logger
	// RequestLog takes the lines of requests that did not fail; nil is Log. It may write them
	// later.
	RequestLog *slog.Logger
	// Refuse writes refusals at unknown paths that are of no API, and on routes without a Refuse
	// of their own.
	Refuse func(*gin.Context, *refusal.Error)
	// Identify returns the name of the caller by the head of a request, and stores it in the
	// request: it is Kernel.Identify. The bounds count by that name. Without it only Public
	// routes are served.
	Identify func(context.Context, *gateway.Request) (name string, err error)
	// CheckReady returns why no caller can be admitted now, or nil. It may be nil itself.
	CheckReady func() error
	// AllowedOrigins are the web pages that may send requests, and the names of the gateway.
	AllowedOrigins AllowedOrigins
	// MaxInFlight bounds how many requests are answered at the same time, by their Pool.
	// Beyond it, and beyond half of it for one caller, they are refused as overloaded. Health
	// checks are not counted.
	MaxInFlight int
	// MaxBodyBytes bounds the bytes of all bodies that are held or being read; 0 is 256 MiB.
	// Beyond it, and beyond half of it for one caller, requests are refused as overloaded.
	MaxBodyBytes int64
	// BodyTimeout bounds how long the body of a request may take to arrive; 0 is 30 s.
	BodyTimeout time.Duration
	// WriteTimeout bounds how long a client may not read its answer; 0 is 30 s.
	WriteTimeout time.Duration
}

// Server answers requests. It is safe for concurrent use once every route is mounted.
type Server struct {
	options   Options
	engine    *gin.Engine
	refusals  map[string]func(*gin.Context, *refusal.Error) // by the path of a route
	apis      []API
	pools     pools
	bodyBytes *quota        // bytes of bodies
	draining  chan struct{} // closed by Drain
	drain     sync.Once

	logRatio      atomic.Uint64        // the bits of a float64, see LogRequests
	unknown       map[string]*endpoint // for requests that no route takes, by their method
	strangerLines *lineLimiter         // log lines about requests whose caller was not identified
}

// The defaults of Options.
const (
	defaultMaxInFlight  = 256
	defaultMaxBodyBytes = 256 << 20
	defaultBodyTimeout  = 30 * time.Second
	defaultWriteTimeout = 30 * time.Second
)

// New returns a server without routes.
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
	if options.RequestLog == nil {
		options.RequestLog = options.Log
	}
	if options.Identify == nil {
		options.Identify = rejectAll
	}
	s := &Server{
		options: options, refusals: map[string]func(*gin.Context, *refusal.Error){}, draining: make(chan struct{}),
		pools: newPools(options.MaxInFlight), bodyBytes: newQuota(options.MaxBodyBytes),
		strangerLines: newLineLimiter(), unknown: map[string]*endpoint{},
	}
	s.LogRequests(1)
	for _, method := range append(methods, otherMethod) {
		s.unknown[method] = s.newEndpoint(Route{Method: method}, "none")
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
	e.NoRoute(s.observeUnknown, func(c *gin.Context) {
		s.refuseUnserved(c, refusal.NotFound, "There is nothing at this path.")
	})
	e.NoMethod(s.observeUnknown, func(c *gin.Context) {
		s.refuseUnserved(c, refusal.MethodNotAllowed, "This path does not take this method.")
	})
	s.engine = e
	return s
}

// rejectAll refuses all requests: Options has no Identify.
func rejectAll(context.Context, *gateway.Request) (string, error) {
	return "", errors.New("Options.Identify is not set")
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if len(r.TransferEncoding) > 0 {
		// The head does not state the length of the body. A proxy may have seen another end
		// of it, so nothing else is read from this connection (RFC 9112, section 6.1).
		w.Header().Set("Connection", "close")
	}
	if s.Draining() {
		// Connection: close makes the client open a new connection for its next request,
		// which is not closed while the request is on its way.
		w.Header().Set("Connection", "close")
	}
	s.engine.ServeHTTP(&responseWriter{ResponseWriter: w, timeout: s.options.WriteTimeout, unreadBody: r.ContentLength != 0}, r)
}

// Drain makes the server report that it is not ready, until it is shut down. Requests are
// still answered, each as the last of its connection; those of the pool Streams end.
func (s *Server) Drain() {
	s.drain.Do(func() {
		close(s.draining)
		s.logSuppressed(time.Now(), true)
	})
}

// Draining reports whether Drain was called.
func (s *Server) Draining() bool {
	select {
	case <-s.draining:
		return true
	default:
		return false
	}
}

// InFlight returns the number of requests being answered.
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
