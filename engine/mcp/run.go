package mcp

import (
	"context"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callgate/callgate/engine"
)

// Run runs a call. See the package for what a failure means.
func (c *Client) Run(ctx context.Context, call engine.Call) (engine.Result, error) {
	p, err := placeOf(call.Run.Server, call.Run.URL, call.Run.Command, call.Run.Credential, call.Run.Addresses)
	switch {
	case err != nil:
		return engine.Result{}, engine.Unavailable("%s: %w", call.Tool, err)
	case call.Run.Tool == "":
		return engine.Result{}, engine.Unavailable("%s does not say which tool of its server it is", call.Tool)
	case c.options.Outbound == nil:
		return engine.Result{}, engine.Unavailable("%s: there is nothing to reach it with", call.Tool)
	}
	// Asked for at each attempt: a link that was idle for long may be gone by then.
	result, refused := c.options.Outbound.Run(ctx, call, func() (engine.Result, *engine.Failure) {
		return c.attempt(ctx, c.link(p), call)
	})
	if refused != nil {
		return result, refused
	}
	return result, nil
}

// attempt sends the call once.
func (c *Client) attempt(ctx context.Context, l *link, call engine.Call) (result engine.Result, f *engine.Failure) {
	e := &exchange{limit: wire(call.Run.MaxResultBytes), once: engine.Once(call.Effect)}
	defer func() {
		if p := recover(); p != nil {
			result, f = engine.Result{}, engine.Lost(ctx, call, "its server", engine.Reason(engine.Panicked(p)), e.sent.Load())
		}
	}()
	if l == nil {
		return result, engine.Untried(engine.Unavailable("%s: %w", call.Tool, errClosed))
	}
	s, f := l.readySession(ctx, call)
	if f != nil {
		return result, f
	}
	var err error
	if e.headers, err = s.params(call); err != nil {
		return result, engine.Untried(engine.Failed("The arguments are too long for this tool; send less in one call.").WithCause(fmt.Errorf("%s: %w", call.Tool, err)))
	}
	_, err = s.CallTool(e.within(ctx), &sdk.CallToolParams{Name: call.Run.Tool, Arguments: e.carry(call.Arguments)})
	a := e.answer.Load()
	if a == nil {
		if err == nil {
			err = errUnanswered
		}
		a = &answer{lost: ended(s.connection, err)}
	} else if a.lost == nil {
		s.answered.Store(true)
	}
	return c.outcome(ctx, l, s, call, e, a)
}

// errUnanswered is a request that ended without an answer.
const errUnanswered engine.Reason = "the request ended without an answer"

// outcome says what an answer means for the call.
func (c *Client) outcome(ctx context.Context, l *link, s *session, call engine.Call, e *exchange, a *answer) (engine.Result, *engine.Failure) {
	switch {
	case a.lost != nil:
		return engine.Result{}, engine.Lost(ctx, call, l.place.at(), a.lost, e.sent.Load())
	case a.large:
		return engine.Result{}, engine.Answered(engine.TooLarge(call))
	case a.bad != "":
		return engine.Result{}, engine.Answered(engine.Invalid(call, a.bad))
	case a.gone:
		l.drop(s)
		s.end()
		return engine.Result{}, engine.Untaken(engine.Unavailable("%s at %s: %w, and has not taken the call", call.Tool, l.place.at(), errGone))
	case a.failed != nil:
		return engine.Result{}, engine.Answered(refusedBy(call, a.failed))
	case a.status != 0:
		return engine.Result{}, c.options.Outbound.Status(call, a.status, a.after)
	}
	result, refused := resultOf(call, a.result)
	if refused != nil {
		return engine.Result{}, engine.Answered(refused)
	}
	return result, nil
}

// readySession is a session that the server still knows.
func (l *link) readySession(ctx context.Context, call engine.Call) (*session, *engine.Failure) {
	for range 2 {
		s, err := l.session(ctx)
		if err != nil {
			return nil, l.unopened(ctx, call, err)
		}
		switch err := s.ready(ctx); {
		case err == nil:
			return s, nil
		case !errors.Is(err, errGone):
			return nil, engine.Lost(ctx, call, l.place.at(), err, false)
		}
		l.drop(s)
		s.end()
	}
	return nil, engine.Untaken(engine.Unavailable("%s at %s: %w", call.Tool, l.place.at(), errGone))
}

// unopened is a call for which no session could be opened. Nothing of it was sent.
func (l *link) unopened(ctx context.Context, call engine.Call, err error) *engine.Failure {
	switch {
	case ctx.Err() == nil && errors.Is(err, errResting):
		return engine.Untaken(engine.Unavailable("%s at %s: %w", call.Tool, l.place.at(), err))
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		err = engine.Reason("it did not answer when a session was opened")
	}
	return engine.Lost(ctx, call, l.place.at(), err, false)
}

// params are the headers that the arguments of a call give.
func (s *session) params(call engine.Call) (map[string]string, error) {
	all := s.headers.Load()
	if all == nil || !s.connection.modern() {
		return nil, nil
	}
	return paramsOf((*all)[call.Run.Tool], call.Arguments)
}

// ended is why a connection ended; err, where it has not.
func ended(c connection, err error) error {
	if cause := c.cause(); cause != nil {
		return cause
	}
	return err
}

// Discover lists the tools of a server, with the schemas as the server wrote them.
func (c *Client) Discover(ctx context.Context, server engine.Server) ([]engine.Definition, error) {
	p, err := placeOf(server.Name, server.URL, server.Command, server.Credential, server.Addresses)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", server.Name, err)
	}
	l := c.link(p)
	if l == nil {
		return nil, fmt.Errorf("%s: %w", server.Name, errClosed)
	}
	for range 2 {
		s, err := l.session(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s at %s: no session could be opened: %s", server.Name, p.at(), reason(err))
		}
		found, err := s.list(ctx)
		switch {
		case err == nil:
			return found, nil
		case errors.Is(err, errGone):
			l.drop(s)
			s.end()
			continue
		}
		return nil, fmt.Errorf("%s at %s: %s", server.Name, p.at(), reason(err))
	}
	return nil, fmt.Errorf("%s at %s: %w", server.Name, p.at(), errGone)
}
