// Package sample is what the sample programs share: exit codes, flags without arguments, a
// server that stops within bounds, and the check of its health for containers that have no
// other program. The name of a program begins each of its messages.
package sample

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// Exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1 // not healthy; or asked to stop, and requests had to be cut off
	ExitUsage  = 2 // a wrong argument, or something that is needed is not there
	ExitBroke  = 3 // the listener failed
)

// ExitError is an error that has an exit code of its own.
type ExitError struct {
	Code  int
	Cause error
}

func (e *ExitError) Error() string { return e.Cause.Error() }
func (e *ExitError) Unwrap() error { return e.Cause }

// Main runs a program until it ends or a signal ends its context, and exits with the code
// that run returns.
func Main(run func(ctx context.Context, args []string, stdout, stderr io.Writer) int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// Parse reads flags that have no arguments beside them. The first word of the set's name is
// the program's. It returns false where the program is to end with the code.
func Parse(flags *flag.FlagSet, args []string, stderr io.Writer) (int, bool) {
	program, _, _ := strings.Cut(flags.Name(), " ")
	flags.SetOutput(stderr)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return ExitDone, false
	case err != nil:
		return ExitUsage, false
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "%s: found the argument %q; expected flags only\n", program, flags.Arg(0))
		return ExitUsage, false
	}
	return ExitDone, true
}

// ExitCode reports how a program ended, and returns its exit code: that of an ExitError,
// or ExitUsage.
func ExitCode(program string, err error, stderr io.Writer) int {
	if err == nil {
		return ExitDone
	}
	fmt.Fprintf(stderr, "%s: %v\n", program, err)
	var e *ExitError
	if errors.As(err, &e) {
		return e.Code
	}
	return ExitUsage
}

// Listen listens on an address, and says on stdout where.
func Listen(program, address string, stdout io.Writer) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--listen %s: %w", address, err)
	}
	if _, err := fmt.Fprintf(stdout, "%s listening on %s\n", program, listener.Addr()); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("cannot say where it listens: %w", err)
	}
	return listener, nil
}

// Grace is the time that running requests have to finish when a program is asked to stop.
const Grace = 5 * time.Second

// NewServer returns a server that bounds what a client can hold. An answer is written in
// the time of write.
func NewServer(program string, handler http.Handler, write time.Duration, stderr io.Writer) *http.Server {
	return &http.Server{
		Handler: handler, ErrorLog: log.New(stderr, program+": ", 0),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: write, IdleTimeout: time.Minute,
		MaxHeaderBytes: 32 << 10,
	}
}

// Serve serves until ctx ends, and lets running requests finish for the time of grace. It
// closes the listener. Its errors are ExitErrors.
func Serve(ctx context.Context, h *http.Server, listener net.Listener, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- h.Serve(listener) }()
	select {
	case err := <-served:
		return &ExitError{ExitBroke, fmt.Errorf("listening on %s: %w", listener.Addr(), err)}
	case <-ctx.Done():
	}
	left, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := h.Shutdown(left)
	if err != nil {
		// Closing the connections ends the contexts of the requests that still run.
		_ = h.Close()
	}
	ended := <-served
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &ExitError{ExitFailed, fmt.Errorf("requests still ran after %s and were cut off", grace)}
	case err != nil || !errors.Is(ended, http.ErrServerClosed):
		return &ExitError{ExitBroke, fmt.Errorf("stopping: %w", errors.Join(err, ended))}
	}
	return nil
}

const healthTimeout = 2 * time.Second

// Healthcheck is the command PROGRAM healthcheck [--listen ADDRESS]: it asks a running server
// whether it is alive. The exit code is 0 for yes, 1 for no, 2 for a wrong argument.
func Healthcheck(ctx context.Context, program, defaultListen string, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet(program+" healthcheck", flag.ContinueOnError)
	listen := flags.String("listen", defaultListen, "the `address` that the server listens on")
	if code, ok := Parse(flags, args, stderr); !ok {
		return code
	}
	host, port, err := net.SplitHostPort(*listen)
	if err != nil {
		fmt.Fprintf(stderr, "%s: --listen: %v\n", program, err)
		return ExitUsage
	}
	// Every address of the host is one to listen on, and none to connect to.
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		fmt.Fprintf(stderr, "%s: --listen %s: found no address; expected host:port\n", program, *listen)
		return ExitUsage
	}
	// A transport of its own knows no proxy.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		fmt.Fprintf(stderr, "%s: not healthy: %v\n", program, err)
		return ExitFailed
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		fmt.Fprintf(stderr, "%s: not healthy: status %d\n", program, response.StatusCode)
		return ExitFailed
	}
	return ExitDone
}
