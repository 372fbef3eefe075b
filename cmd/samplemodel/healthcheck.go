package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"time"
)

const healthTimeout = 2 * time.Second

// healthcheck asks a running server whether it is alive, for containers that
// have no other program: 0 yes, 1 no, 2 a wrong argument.
func healthcheck(ctx context.Context, args []string, stderr io.Writer) int {
	flags := flag.NewFlagSet("samplemodel healthcheck", flag.ContinueOnError)
	listen := flags.String("listen", defaultListen, "the `address` that the server listens on")
	if code, ok := parse(flags, args, stderr); !ok {
		return code
	}
	host, port, err := net.SplitHostPort(*listen)
	if err != nil {
		fmt.Fprintf(stderr, "samplemodel: --listen: %v\n", err)
		return exitUsage
	}
	// Every address of the host is one to listen on, and none to connect to.
	if a, err := netip.ParseAddr(host); host == "" || err == nil && a.IsUnspecified() {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/healthz", nil)
	if err != nil {
		fmt.Fprintf(stderr, "samplemodel: --listen %s: found no address; expected host:port\n", *listen)
		return exitUsage
	}
	// A transport of its own knows no proxy.
	transport := &http.Transport{DisableKeepAlives: true}
	response, err := transport.RoundTrip(request)
	if err != nil {
		fmt.Fprintf(stderr, "samplemodel: not healthy: %v\n", err)
		return exitFailed
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		fmt.Fprintf(stderr, "samplemodel: not healthy: status %d\n", response.StatusCode)
		return exitFailed
	}
	return exitDone
}
