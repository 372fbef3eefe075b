package acp

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
)

// client runs tools by the client of a session.
type client struct {
	conn     *connection
	session  string
	exchange *exchange // whose context ends when the prompt is cancelled
	offers   wire.ClientCapabilities
}

// client is the client of the prompt's session.
func (x *exchange) client() client {
	c := x.session.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	return client{c, x.session.id, x, c.client}
}

// Offers reports whether the client implements a method.
func (c client) Offers(method string) bool {
	switch method {
	case wire.MethodReadTextFile:
		return c.offers.FS.ReadTextFile
	case wire.MethodWriteTextFile:
		return c.offers.FS.WriteTextFile
	case wire.MethodTerminalCreate:
		return c.offers.Terminal
	}
	return false
}

// ReadTextFile reads a file by the client.
func (c client) ReadTextFile(ctx context.Context, r wire.ReadTextFileRequest) (wire.ReadTextFileResponse, error) {
	r.SessionID = c.session
	raw, err := c.call(ctx, wire.MethodReadTextFile, r)
	if err != nil {
		return wire.ReadTextFileResponse{}, err
	}
	return wire.Read[wire.ReadTextFileResponse](raw)
}

// WriteTextFile writes a file by the client.
func (c client) WriteTextFile(ctx context.Context, r wire.WriteTextFileRequest) error {
	r.SessionID = c.session
	raw, err := c.call(ctx, wire.MethodWriteTextFile, r)
	if err != nil {
		return err
	}
	_, err = wire.Read[wire.EmptyResponse](raw)
	return err
}

// RunCommand runs a command to its end, or until the prompt is cancelled.
func (c client) RunCommand(ctx context.Context, r wire.CreateTerminalRequest) (delegate.Command, error) {
	r.SessionID = c.session
	if r.Cwd == "" {
		r.Cwd = c.exchange.session.commandsIn()
	}
	return delegate.RunCommand(ctx, c.exchange.ctx, func(requested context.Context, method string, params any) (json.RawMessage, error) {
		raw, err := c.call(requested, method, params)
		if err == nil && method == wire.MethodTerminalCreate {
			c.exchange.view.showTerminal(delegate.CallOf(ctx), raw)
		}
		return raw, err
	}, r)
}

// call sends a request, with the errors of delegate.
func (c client) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := c.conn.call(ctx, method, params)
	var own *jsonrpc.Error
	switch {
	case errors.As(err, &own):
		return nil, &delegate.Refused{Code: own.Code, Message: own.Message}
	case errors.Is(err, errNotSent):
		return nil, errors.Join(delegate.ErrNotSent, err)
	}
	return raw, err
}
