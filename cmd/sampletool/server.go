package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/callgate/callgate/internal/sample"
)

// limits bound what a client can hold, and how long stopping may take.
type limits struct {
	header, read, write, idle time.Duration
	grace                     time.Duration // after which running requests are cut off
	headerBytes               int
}

func defaultLimits() limits {
	return limits{
		header: 5 * time.Second,
		read:   15 * time.Second,
		// The longest wait of /slow, and time to read and answer.
		write:       maxWait + 20*time.Second,
		idle:        60 * time.Second,
		grace:       5 * time.Second,
		headerBytes: 32 << 10,
	}
}

// server is a handler with its limits.
type server struct {
	handler http.Handler
	limits  limits
	stderr  io.Writer
}

// serve serves until ctx ends, then lets running requests finish for the time
// of grace. It closes the listener.
func (s server) serve(ctx context.Context, listener net.Listener) error {
	h := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: s.limits.header,
		ReadTimeout:       s.limits.read,
		WriteTimeout:      s.limits.write,
		IdleTimeout:       s.limits.idle,
		MaxHeaderBytes:    s.limits.headerBytes,
		ErrorLog:          log.New(s.stderr, "sampletool: ", 0),
	}
	return sample.Serve(ctx, h, listener, s.limits.grace)
}
