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

const (
	headerTime  = 5 * time.Second
	readTime    = 15 * time.Second
	writeTime   = maxStall + 20*time.Second
	idleTime    = 60 * time.Second
	grace       = 5 * time.Second // after which running requests are cut off
	headerBytes = 32 << 10
)

// serve serves until ctx ends, which ends what is stalled or paused, and lets
// the other requests finish for the time of grace. It closes the listener.
func serve(ctx context.Context, handler http.Handler, listener net.Listener, stderr io.Writer) error {
	h := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTime,
		ReadTimeout:       readTime,
		WriteTimeout:      writeTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          log.New(stderr, "samplemodel: ", 0),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	return sample.Serve(ctx, h, listener, grace)
}
