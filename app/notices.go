package app

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/callgate/callgate/app/notices"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/telemetry"
)

// noticeSender sends notices of approvals to the endpoint of the configuration in force.
type noticeSender struct {
	*notices.Sender
	client  *outbound.Client
	current *configs.Notify
}

// newNoticeSender starts a sender, which must be closed before the store.
func newNoticeSender(r *Runtime, metrics *telemetry.Metrics, logger *slog.Logger) *noticeSender {
	client := outbound.New(outbound.Options{})
	return &noticeSender{client: client, Sender: notices.New(notices.Deps{
		Store: r.store.notices(), Kernel: r.Executor.Kernel, Client: client, Observer: metrics, Log: logger,
	})}
}

// Close ends the sender.
func (n *noticeSender) Close() {
	n.Sender.Close()
	n.client.Close()
}

// follow has notices sent to the endpoint that a configuration names. It fails if the keys
// cannot be read: no notice could be signed.
func (n *noticeSender) follow(_ context.Context, c *configs.Config, _ *gateway.Config) (change, error) {
	to := c.Approvals.Notify
	if to.Equal(n.current) {
		return change{commit: doNothing, abort: doNothing}, nil
	}
	var endpoint *notices.Endpoint
	if to != nil {
		if _, err := to.Keys(); err != nil {
			return change{}, fmt.Errorf("%s: notify: %w", c.ApprovalsFile, err)
		}
		endpoint = &notices.Endpoint{URL: to.URL, Addresses: to.Addresses, Keys: to.Keys}
	}
	return change{abort: doNothing, commit: func() {
		n.current = to
		n.Follow(endpoint)
	}}, nil
}

// notices are where a store keeps what people are still to be told; nil where it cannot.
func (k callStore) notices() store.Notices {
	kept, _ := k.Store.(store.Notices)
	return kept
}
