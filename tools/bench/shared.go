package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// shared starts a gateway whose limits are on a Redis of its own, its log in
// memory; or nothing, where redis-server is not installed.
func (h *hall) shared(ctx context.Context, program string, files map[string]string) (*subject, error) {
	server, _ := exec.LookPath("redis-server") // empty where it is not there
	if server == "" {
		fmt.Fprintln(os.Stderr, "left out: limits on Redis, since redis-server is not installed")
		return nil, nil
	}
	address, err := h.redis(ctx, server)
	if err != nil {
		return nil, err
	}
	files = maps.Clone(files)
	files["limits.yaml"] = wideLimits + "on_store_loss: refuse\n# end\n"
	files["callgate.yaml"] += "redis: {url: \"redis://" + address + "\"}\n"
	return h.callGateway(ctx, program, "shared", memory, files)
}

// redis starts a Redis that keeps nothing, and waits until it listens.
func (h *hall) redis(ctx context.Context, server string) (address string, err error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(h.work, "redis")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	c := exec.Command(server, "--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", dir, "--save", "", "--appendonly", "no",
		"--maxmemory-policy", "noeviction")
	ended, err := h.begin(c)
	if err != nil {
		return "", err
	}
	address = fmt.Sprintf("127.0.0.1:%d", port)
	for range 100 {
		if conn, err := net.Dial("tcp", address); err == nil {
			return address, conn.Close()
		}
		select {
		case <-ended:
			return "", errors.New("redis-server ended at once")
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return "", errors.New("redis-server did not come up")
}
