package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
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
	served := make(chan error, 1)
	go func() { served <- h.Serve(listener) }()
	select {
	case err := <-served:
		return &exitError{exitBroke, fmt.Errorf("listening on %s: %w", listener.Addr(), err)}
	case <-ctx.Done():
	}
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := h.Shutdown(left)
	if err != nil {
		_ = h.Close()
	}
	ended := <-served
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{exitFailed, fmt.Errorf("requests still ran after %s and were cut off", grace)}
	case err != nil || !errors.Is(ended, http.ErrServerClosed):
		return &exitError{exitBroke, fmt.Errorf("stopping: %w", errors.Join(err, ended))}
	}
	return nil
}
