package mcp

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/engine/outbound"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Run runs a call. The package comment says what each failure means.
func (c *Client) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	p, err := endpointOfRun(call.Run)
	switch {
	case err != nil:
		return tool.Result{}, refuse.Unavailable("%s: %w", call.Tool, err)
	case call.Run.Tool == "":
		return tool.Result{}, refuse.Unavailable("%s does not say which tool of its server it is", call.Tool)
	case c.options.Outbound == nil:
		return tool.Result{}, refuse.Unavailable("%s: there is nothing to reach it with", call.Tool)
	}
	if p.variables, err = resolveVariables(c.options.Outbound, p.env); err != nil {
		return tool.Result{}, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	to := newListener(call)
	result, refused := c.options.Outbound.Run(ctx, call, func() (tool.Result, *outbound.Failure) {
		// Asked for at each attempt: a link that was idle for long may be gone by then.
		l := c.acquire(p)
		defer c.release(l)
		return c.attempt(ctx, l, call, to)
	})
	if refused != nil {
		return result, refused
	}
	return result, nil
}

// attempt sends the call once.
func (c *Client) attempt(ctx context.Context, l *sharedSession, call tool.Call, to *listener) (result tool.Result, f *outbound.Failure) {
	e := &roundTrip{limit: maxWireBytes(call.Run.MaxResultBytes), once: !refuse.Retryable(call.Effect), listener: to}
	e.token, e.level = to.begin()
	defer to.end()
	defer func() {
		if p := recover(); p != nil {
			result, f = tool.Result{}, outbound.ConnectionFailure(ctx, call, "its server", refuse.Reason(safe.PanicError(p).Error()), e.sent.Load())
		}
	}()
	if l == nil {
		return result, outbound.UnsentFailure(refuse.Unavailable("%s: %w", call.Tool, errClosed))
	}
	s, f := l.readySession(ctx, call)
	if f != nil {
		return result, f
	}
	if !s.acceptsAnswers() {
		call.Asks = nil
	}
	params, refused := s.request(call, e)
	if refused != nil {
		return result, outbound.UnsentFailure(refused)
	}
	_, err := s.CallTool(e.withContext(ctx), params)
	a := e.response.Load()
	if a == nil {
		if err == nil {
			err = errNoResponse
		}
		a = &reply{err: endCause(s.connection, err)}
	} else if a.err == nil {
		s.answered.Store(true)
	}
	return c.outcome(ctx, l, s, call, e, a)
}

// errNoResponse is a request that ended without a response.
const errNoResponse refuse.Reason = "the request ended without an answer"

// outcome says what a reply means for the call.
func (c *Client) outcome(ctx context.Context, l *sharedSession, s *session, call tool.Call, e *roundTrip, a *reply) (tool.Result, *outbound.Failure) {
	switch {
	case a.err != nil:
		return tool.Result{}, outbound.ConnectionFailure(ctx, call, l.endpoint.String(), a.err, e.sent.Load())
	case a.tooLarge:
		return tool.Result{}, outbound.FinalFailure(refuse.ResultTooLarge(call))
	case a.invalid != "":
		return tool.Result{}, outbound.FinalFailure(refuse.InvalidResult(call, a.invalid))
	case a.sessionGone:
		l.drop(s)
		s.disconnect()
		return tool.Result{}, outbound.RetryableFailure(refuse.Unavailable("%s at %s: %w, and has not taken the call", call.Tool, l.endpoint.String(), errSessionGone))
	case a.rpcError != nil:
		return tool.Result{}, outbound.FinalFailure(rpcRefusal(call, a.rpcError))
	case a.status != 0:
		return tool.Result{}, c.options.Outbound.StatusFailure(call, a.status, a.retryAfter)
	}
	result, refused := resultOf(call, a.result)
	if refused != nil {
		return result, outbound.FinalFailure(refused)
	}
	return result, nil
}

// readySession is a session that the server still knows.
func (l *sharedSession) readySession(ctx context.Context, call tool.Call) (*session, *outbound.Failure) {
	for range 2 {
		s, err := l.get(ctx)
		if err != nil {
			return nil, l.openFailure(ctx, call, err)
		}
		switch err := s.ready(ctx); {
		case err == nil:
			return s, nil
		case !errors.Is(err, errSessionGone):
			return nil, outbound.ConnectionFailure(ctx, call, l.endpoint.String(), err, false)
		}
		l.drop(s)
		s.disconnect()
	}
	return nil, outbound.RetryableFailure(refuse.Unavailable("%s at %s: %w", call.Tool, l.endpoint.String(), errSessionGone))
}

// openFailure is the failure of a call whose session could not be opened. Nothing of the
// call was sent.
func (l *sharedSession) openFailure(ctx context.Context, call tool.Call, err error) *outbound.Failure {
	switch {
	case ctx.Err() == nil && errors.Is(err, errBackingOff):
		return outbound.RetryableFailure(refuse.Unavailable("%s at %s: %w", call.Tool, l.endpoint.String(), err))
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = refuse.Reason("it did not answer when a session was opened")
	}
	return outbound.ConnectionFailure(ctx, call, l.endpoint.String(), err, false)
}

// request makes the parameters of a call.
func (s *session) request(call tool.Call, e *roundTrip) (*sdk.CallToolParams, *refusal.Error) {
	if !s.acceptsAnswers() && (call.State != nil || len(call.Answers) > 0) {
		return nil, refuse.Failed("The tool's server takes no answers any longer, so that nothing was sent; call the tool anew.").
			WithCause(fmt.Errorf("%s: its server speaks an older revision than the one in which it asked", call.Tool))
	}
	var err error
	if e.headers, err = s.headerParams(call); err != nil {
		return nil, refuse.Failed("The arguments are too long for this tool; send less in one call.").WithCause(fmt.Errorf("%s: %w", call.Tool, err))
	}
	answers, err := encodeAnswers(call)
	if err != nil {
		return nil, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	params := &sdk.CallToolParams{Meta: sdk.Meta{}, Name: call.Run.Tool, Arguments: e.embedArguments(call.Arguments, answers)}
	if e.token != "" {
		params.Meta[wire.MetaProgress] = e.token
	}
	// A server of the older revisions has one level for its whole session, which others
	// share, and what a program logs comes by one way for all calls.
	if e.level != "" && s.connection.modern() {
		params.Meta[wire.MetaLevel] = e.level
	}
	if len(call.Asks) > 0 {
		params.Meta[sdk.MetaKeyClientCapabilities] = capabilitiesFor(call.Asks)
	}
	return params, nil
}

// headerParams are the headers that repeat arguments of a call.
func (s *session) headerParams(call tool.Call) (map[string]string, error) {
	all := s.headers.Load()
	if all == nil || !s.connection.modern() {
		return nil, nil
	}
	return bindHeaders((*all)[call.Run.Tool], call.Arguments)
}

// endCause is why a connection ended; err if it has not.
func endCause(c connection, err error) error {
	if cause := c.cause(); cause != nil {
		return cause
	}
	return err
}

// Discover lists the tools of a server, with the schemas as the server wrote them. A list
// that cannot be used is a *tool.InvalidListError.
func (c *Client) Discover(ctx context.Context, server tool.Server) ([]tool.Definition, error) {
	p, err := endpointOfServer(server)
	if err == nil {
		p.variables, err = resolveVariables(c.options.Outbound, p.env)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server.Name, err)
	}
	l := c.acquire(p)
	if l == nil {
		return nil, fmt.Errorf("%s: %w", server.Name, errClosed)
	}
	defer c.release(l)
	for range 2 {
		s, err := l.get(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s at %s: no session could be opened: %s", server.Name, p.String(), reason(err))
		}
		found, err := s.list(ctx)
		switch {
		case err == nil:
			return found, nil
		case errors.Is(err, errSessionGone):
			l.drop(s)
			s.disconnect()
			continue
		}
		if unreadable := new(tool.InvalidListError); errors.As(err, &unreadable) {
			return nil, fmt.Errorf("%s at %s: %w", server.Name, p.String(), unreadable)
		}
		return nil, fmt.Errorf("%s at %s: %s", server.Name, p.String(), reason(err))
	}
	return nil, fmt.Errorf("%s at %s: %w", server.Name, p.String(), errSessionGone)
}
