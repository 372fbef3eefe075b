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
	"log/slog"
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
	bodyBytes *Quota        // bytes of bodies
	draining  chan struct{} // closed by Drain
	drain     sync.Once

	logRatio      atomic.Uint64        // the bits of a float64, see LogRequests
	unknown       map[string]*endpoint // for requests that no route takes, by their method
	strangerLines *lineLimiter         // log lines about requests whose caller was not identified
	shedLines     *lineLimiter         // and about those of identified callers that a bound refused
}

// The defaults of Options.
const (
	defaultMaxInFlight  = 256
	defaultMaxBodyBytes = 256 << 20
	defaultBodyTimeout  = 30 * time.Second
	defaultWriteTimeout = 30 * time.Second
)

// endpoint is a mounted route, with everything about it that is the same for each request.
type endpoint struct {
	Route
	server *Server
	path   string // in the log and in the metrics
	known  []string
	single []string // the headers that may stand once
	begin  func()
	end    func(status int)
	// Of request lines, with what is in each of them.
	log, errorLog slog.Handler
}
