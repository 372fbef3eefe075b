package mcp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Run runs a call. The package comment explains each failure.
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
	if p.variables, err = resolveVariables(ctx, c.options.Outbound, p.env); err != nil {
		return tool.Result{}, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	to := newListener(call)
	result, refused := c.options.Outbound.Run(ctx, call, func() (tool.Result, *outbound.Failure) {
		// Acquired for each attempt: a session that was idle for long may be gone by then.
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
	token, level := to.begin()
	defer to.end()
	var q *request
	defer safe.Catch(func(panicked error) {
		result, f = tool.Result{}, outbound.ConnectionFailure(ctx, call, "its server", refuse.Reason(panicked.Error()), q != nil && q.sent)
	})
	if l == nil {
		return result, outbound.UnsentFailure(refuse.Unavailable("%s: %w", call.Tool, errClosed))
	}
	s, f := l.readySession(ctx, call)
	if f != nil {
		return result, f
	}
	if !s.modern {
		call.QuestionKinds = nil
	}
	var refused *refusal.Error
	if q, refused = s.callRequest(call, token, level); refused != nil {
		return result, outbound.UnsentFailure(refused)
	}
	q.listener = to
	a := s.do(ctx, q)
	if a.err == nil {
		s.answered.Store(true)
	}
	if !q.rejected && a.doubtsSession() {
		if ping := s.ping(ctx); ping.deniesSession() {
			l.drop(s)
			if f := l.lostSession(ctx, call, a, ping); f != nil {
				return result, f
			}
		}
	}
	return c.outcome(ctx, l, call, q, a)
}

// lostSession is the failure of a call that got a reply in a session that the server denies by its answer to a ping. It
// is nil where the reply says itself how the call ended: by an error that names it, which is told by its words, or by a
// status while no session can be had in which the server answers otherwise.
func (l *sharedSession) lostSession(ctx context.Context, call tool.Call, a, ping *reply) *outbound.Failure {
	renewed, f := l.readySession(ctx, call)
	gone := f == nil && renewed.known(ctx)
	cause := refuse.Unavailable("%s at %s: %w", call.Tool, l.endpoint.String(), errSessionGone)
	switch {
	case gone && refuse.Retryable(call.Effect):
		return outbound.RetryableFailure(cause)
	case gone && a.addressesNobody() && ping.status < http.StatusInternalServerError:
		return outbound.UntakenFailure(cause)
	case a.rpcError != nil && !a.unaddressed:
		a.status = 0
	case !refuse.Retryable(call.Effect) && !a.addressesNobody():
		return outbound.FinalFailure(refuse.OutcomeUnknown("%s at %s was sent the call: %w", call.Tool, l.endpoint.String(), errSessionGone))
	}
	return nil
}

// outcome maps a reply to the outcome of the call.
func (c *Client) outcome(ctx context.Context, l *sharedSession, call tool.Call, q *request, a *reply) (tool.Result, *outbound.Failure) {
	var without *credentialError
	switch {
	case errors.As(a.err, &without) && !q.sent:
		return tool.Result{}, outbound.CredentialFailure(ctx, call, without.error)
	case a.err != nil:
		return tool.Result{}, outbound.ConnectionFailure(ctx, call, l.endpoint.String(), a.err, q.sent)
	case a.tooLarge:
		return tool.Result{}, outbound.FinalFailure(refuse.ResultTooLarge(call))
	case a.invalid != "":
		return tool.Result{}, outbound.FinalFailure(refuse.InvalidResult(call, a.invalid))
	case q.rejected:
		return tool.Result{}, outbound.RetryAfterFailure(refuse.Status(call, http.StatusUnauthorized, 0), 0)
	case a.rpcError != nil && blamesCall(a.status):
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

// blamesCall reports whether the JSON-RPC error in a response of a status is about the call.
// With any other status it is about credentials, or says that the server is busy, which the
// status says better. 0 is the error of a response without a status of its own.
func blamesCall(status int) bool {
	switch status {
	case 0, http.StatusBadRequest, http.StatusNotFound, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// readySession returns a session that the server still knows.
func (l *sharedSession) readySession(ctx context.Context, call tool.Call) (*session, *outbound.Failure) {
	for range 2 {
		s, err := l.get(ctx)
		if err != nil {
			return nil, l.openFailure(ctx, call, err)
		}
		if s.ready(ctx) {
			// A server that was started anew may have other tools, and had nobody to announce them to.
			if !s.compared.Swap(true) {
				l.client.toolsChanged(l.endpoint.server, true)
			}
			return s, nil
		}
		l.drop(s)
	}
	return nil, outbound.RetryableFailure(refuse.Unavailable("%s at %s: %w", call.Tool, l.endpoint.String(), errSessionGone))
}

// openFailure is the failure of a call whose session could not be opened. Nothing of the
// call was sent.
func (l *sharedSession) openFailure(ctx context.Context, call tool.Call, err error) *outbound.Failure {
	var without *credentialError
	switch {
	case errors.As(err, &without):
		return outbound.CredentialFailure(ctx, call, without.error)
	case ctx.Err() == nil && errors.Is(err, errBackingOff):
		return outbound.RetryableFailure(refuse.Unavailable("%s at %s: %w", call.Tool, l.endpoint.String(), err))
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = refuse.Reason("it did not answer when a session was opened")
	}
	return outbound.ConnectionFailure(ctx, call, l.endpoint.String(), err, false)
}

// callRequest makes the request of a call, which asks for progress with a token and for logs
// of a level; either may be empty.
func (s *session) callRequest(call tool.Call, token, level string) (*request, *refusal.Error) {
	if !s.modern && (call.State != nil || len(call.Answers) > 0) {
		return nil, refuse.Failed("The tool's server takes no answers any longer, so that nothing was sent; call the tool anew.").
			WithCause(fmt.Errorf("%s: its server speaks an older revision than the one in which it asked", call.Tool))
	}
	headers, err := s.headerParams(call)
	if err != nil {
		return nil, refuse.Failed(
			"The arguments are too long for this tool; send less in one call.").WithCause(fmt.Errorf("%s: %w", call.Tool, err))
	}
	answers, err := encodeAnswers(call)
	if err != nil {
		return nil, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	meta := s.meta(call.QuestionKinds)
	if token != "" {
		meta[wire.MetaProgress] = token
	}
	// A server of the older revisions has one level for its whole session, which others
	// share, and the logs of a program do not say to which call they belong.
	if level != "" && s.modern && s.http {
		meta[wire.MetaLevel] = level
	}
	q := s.newRequest(wire.MethodCall, meta,
		slices.Concat([]byte(`"name":`), encodeJSON(call.Run.Tool), []byte(`,"arguments":`), call.Arguments, answers))
	q.limit, q.once, q.token = maxWireBytes(call.Run.MaxResultBytes), !refuse.Retryable(call.Effect), token
	if s.modern {
		q.headers[wire.HeaderName] = wire.EncodeHeader(call.Run.Tool)
	}
	maps.Copy(q.headers, headers)
	return q, nil
}

// headerParams are the headers that repeat arguments of a call.
func (s *session) headerParams(call tool.Call) (map[string]string, error) {
	all := s.headers.Load()
	if all == nil || !s.modern {
		return nil, nil
	}
	return bindHeaders((*all)[call.Run.Tool], call.Arguments)
}

// Discover lists the tools of a server, with the schemas as the server wrote them. A list
// that cannot be used is a *tool.InvalidListError.
func (c *Client) Discover(ctx context.Context, server tool.Server) ([]tool.Definition, error) {
	p, err := endpointOfServer(server)
	if err == nil {
		p.variables, err = resolveVariables(ctx, c.options.Outbound, p.env)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server.Name, err)
	}
	l := c.acquire(p)
	if l == nil {
		return nil, fmt.Errorf("%s: %w", server.Name, errClosed)
	}
	defer c.release(l)
	for first := true; ; first = false {
		s, err := l.get(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s at %s: no session could be opened: %s", server.Name, p.String(), reason(err))
		}
		found, err := s.listWithin(ctx, server.Timeout)
		if err == nil {
			s.compared.Store(true)
			return found, nil
		}
		if !s.known(ctx) {
			if l.drop(s); first {
				continue
			}
		}
		if unreadable := new(tool.InvalidListError); errors.As(err, &unreadable) {
			return nil, fmt.Errorf("%s at %s: %w", server.Name, p.String(), unreadable)
		}
		return nil, fmt.Errorf("%s at %s: %s", server.Name, p.String(), reason(err))
	}
}
