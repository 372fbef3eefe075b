package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
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
		pools: newPools(options.MaxInFlight), bodyBytes: NewQuota(options.MaxBodyBytes),
		strangerLines: newLineLimiter(), shedLines: newLineLimiter(), unknown: map[string]*endpoint{},
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

	for _, method := range []string{http.MethodGet, http.MethodHead} { // agents and load balancers look whether anybody is there
		e.Handle(method, "/healthz", func(c *gin.Context) { c.String(http.StatusOK, "ok\n") })
		e.Handle(method, "/readyz", s.ready)
		e.Handle(method, "/", func(c *gin.Context) { c.String(http.StatusOK, pointer) })
	}
	e.NoRoute(s.observeUnknown, func(c *gin.Context) {
		s.refuseUnserved(c, refusal.NotFound, nothingHere)
	})
	e.NoMethod(s.observeUnknown, func(c *gin.Context) {
		s.refuseUnserved(c, refusal.MethodNotAllowed, "This path does not take this method.")
	})
	s.engine = e
	return s
}

const (
	nothingHere = "There is nothing at this path."
	whereToGo   = "Applications call below /v1, MCP clients at /mcp, operators at the admin listener."
)

// pointer is what a browser finds at the root.
const pointer = "This is Callgate, a gateway between language models and tools. Applications call it below /v1, and clients of MCP at /mcp.\n" +
	"Operators find the console at the admin listener, whose address is in the log of the start.\n"

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
	open := connectionOf(r)
	if s.Draining() || open.isTooStrange() {
		// Connection: close makes the client open a new connection for its next request,
		// which is not closed while the request is on its way.
		w.Header().Set("Connection", "close")
	}
	answer := &responseWriter{ResponseWriter: w, timeout: s.options.WriteTimeout, unreadBody: r.ContentLength != 0}
	s.engine.ServeHTTP(answer, r)
	open.count(answer.identified)
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

// PoolUse is how much of a bound of requests is taken. One caller has at most half of it.
type PoolUse struct {
	Pool  string `json:"pool"` // calls, reserved, streams or body_bytes
	Limit int64  `json:"limit"`
	Taken int64  `json:"taken"`
}

// Pools returns how much of each bound of requests is taken: slots, and the bytes of bodies.
func (s *Server) Pools() []PoolUse {
	of := func(name string, q *Quota) PoolUse { return PoolUse{name, q.limit, q.used()} }
	return []PoolUse{of("calls", s.pools.calls), of("reserved", s.pools.reserved), of("streams", s.pools.streams),
		of("body_bytes", s.bodyBytes)}
}
