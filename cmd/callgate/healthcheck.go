package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/netx"
)

func newHealthcheck(e env) *cobra.Command {
	var config, address string
	c := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask a gateway on this host whether it is ready",
		Long: `Ask /readyz of the gateway that serves this configuration on this host: exit code 0 when it is
ready, else 1. In a container's health check use --address, since reading the configuration
fails while somebody edits it.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if address == "" {
				loaded, err := e.Load(config)
				if err != nil {
					return err
				}
				address = loaded.Server.Listen
			}
			return askReady(c.Context(), e, address)
		},
	}
	configFlag(c, &config)
	c.Flags().StringVar(&address, "address", "", "the gateway's `HOST:PORT` (default: the configuration's)")
	return c
}

const healthTimeout = 3 * time.Second

func askReady(ctx context.Context, e env, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--address is %q; expected host:port", address)
	}
	if netx.IsUnspecifiedHost(host) {
		host = "127.0.0.1"
	}
	ctx, cancel := context.WithTimeout(ctx, healthTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	// Its own gateway, and nothing in between.
	client := &http.Client{Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		fmt.Fprintf(e.Stdout, "%s is not reached\n", net.JoinHostPort(host, port))
		return cli.ErrRefused
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 256))
	fmt.Fprintf(e.Stdout, "%d %s", response.StatusCode, body)
	if response.StatusCode != http.StatusOK {
		return cli.ErrRefused
	}
	return nil
}
