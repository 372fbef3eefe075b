package httptool

import (
	"context"
	"net/http"
	"net/url"
	"sync"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Client runs tools of the type http. It is safe for concurrent use.
type Client struct {
	out *outbound.Client

	mu      sync.Mutex
	targets map[string]*url.URL // parsed; not changed
}

// maxTargets bounds the parsed URLs. Beyond it, all are parsed again.
const maxTargets = 4096

// New returns a client that sends its requests by out.
func New(out *outbound.Client) *Client { return &Client{out: out, targets: map[string]*url.URL{}} }

// target parses the URL of a tool, once.
func (c *Client) target(text string) (*url.URL, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if target := c.targets[text]; target != nil {
		return target, nil
	}
	target, err := outbound.ParseURL(text)
	if err != nil {
		return nil, err
	}
	if len(c.targets) >= maxTargets {
		clear(c.targets)
	}
	c.targets[text] = target
	return target, nil
}

// Run sends the request of a call, as often as its effect allows.
func (c *Client) Run(ctx context.Context, call tool.Call) (tool.Result, *refusal.Error) {
	target, err := c.target(call.Run.URL)
	if err != nil {
		return tool.Result{}, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	sent, refused := newRequestTemplate(target, call)
	if refused != nil {
		return tool.Result{}, refused
	}
	if err := c.out.CheckAddresses(target, call.Run.Addresses); err != nil {
		return tool.Result{}, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	s := &sending{out: c.out, ctx: ctx, call: call, requestTemplate: sent}
	return c.out.Run(ctx, call, s.attempt)
}

// sending is one call on its way: what all of its attempts share.
type sending struct {
	out  *outbound.Client
	ctx  context.Context
	call tool.Call
	requestTemplate
}

// attempt sends the call once and reads the response.
func (s *sending) attempt() (result tool.Result, f *outbound.Failure) {
	ctx, call := s.ctx, &s.call
	dispatched := false
	defer safe.Catch(func(panicked error) {
		if what := panicked.Error(); dispatched && !refuse.Retryable(call.Effect) {
			f = outbound.UnsentFailure(refuse.OutcomeUnknown("%s: %s", call.Tool, what))
		} else {
			f = outbound.UnsentFailure(refuse.Internal(what))
		}
	})
	request, err := s.newRequest(ctx, call)
	if err != nil {
		return tool.Result{}, outbound.UnsentFailure(refuse.Unavailable("no request can be made of %s", call.Tool))
	}
	if err := s.out.AuthorizeCall(request, call); err != nil {
		return tool.Result{}, outbound.CredentialFailure(ctx, *call, err)
	}
	dispatched = true // until Send says otherwise: it may panic half-way
	response, dispatched, err := s.out.Send(request, call.Run.Addresses, !refuse.Retryable(call.Effect))
	if err != nil {
		return tool.Result{}, outbound.ConnectionFailure(ctx, *call, outbound.Origin(s.target), err, dispatched)
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return tool.Result{}, s.out.ResponseFailure(*call, response)
	}
	if s.method == http.MethodHead {
		return tool.Result{}, nil // the response to HEAD has no body, regardless of its headers
	}
	result, refused, err := outbound.ReadResult(response, *call)
	switch {
	case err != nil:
		return tool.Result{}, outbound.ConnectionFailure(ctx, *call, outbound.Origin(s.target), err, true)
	case refused != nil:
		return tool.Result{}, outbound.FinalFailure(refused)
	case outbound.Repeats(result.Body, request, call.Run.Credential):
		return tool.Result{}, outbound.FinalFailure(refuse.InvalidResult(*call, "it repeats the token that was issued for its caller"))
	}
	return result, nil
}
