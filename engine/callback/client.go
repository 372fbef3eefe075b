package callback

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Client runs tools that accept a call and call back with the answer. The gateway reads
// the answer.
type Client struct {
	out     *outbound.Client
	address func(callID string, until time.Time) (string, error)
	base    func(server string) string
	servers func() []tool.Server
}

// New returns a client that sends its requests by out. callbackURL makes
// the URL at which the answer of a call is accepted until a time; if it is nil, no
// tool can call back. serverURL is the URL of a server by its name; nil knows none. servers
// lists the servers that are told of closed threads; nil is none. One without a name is a tool
// that is stated by itself, by the URL of its calls.
func New(out *outbound.Client, callbackURL func(callID string, until time.Time) (string, error), serverURL func(server string) string,
	servers func() []tool.Server) *Client {
	return &Client{out, callbackURL, serverURL, servers}
}

// invocation is the body of a call, without its arguments, which precede it byte for byte
// as they were validated.
type invocation struct {
	Operation string   `json:"operation"`
	ID        string   `json:"id"`
	Callback  string   `json:"callback_url"`
	Group     string   `json:"group_id"`
	Ancestors []string `json:"thread_ancestors,omitempty"` // a root thread has none
	User      string   `json:"user_id,omitempty"`
}

// Run sends a call to its tool, and waits until it is accepted, which any status of 2xx
// says. If it is not known whether the tool has the call, it may still answer, so the
// call is pending.
func (c *Client) Run(ctx context.Context, call tool.Call) (tool.Result, error) {
	target, err := outbound.ParseURL(call.Run.URL)
	if err != nil {
		return tool.Result{}, refuse.Unavailable("%s: %w", call.Tool, err)
	}
	if c.address == nil {
		return tool.Result{}, refuse.Unavailable("%s calls back, and there is no address here at which it could", call.Tool)
	}
	until := c.out.Now().Add(call.Run.MaxAge)
	address, err := c.address(call.ID, until)
	if err != nil {
		return tool.Result{}, refuse.Unavailable("%s: no address to call back at can be made: %w", call.Tool, err)
	}
	sent := invocation{Operation: call.Run.Tool, ID: call.ID, Callback: address, Group: cmp.Or(call.Thread, call.ID),
		Ancestors: call.Ancestors, User: call.User}
	body, err := outbound.EncodeWith("arguments", call.Arguments, sent)
	if err != nil {
		return tool.Result{}, refuse.Internal("an invocation cannot be encoded")
	}
	perhaps := false // the server may have the call
	result, refused := c.out.Run(ctx, call, func() (tool.Result, *outbound.Failure) {
		f, lost := c.attempt(ctx, call, target, body)
		perhaps = perhaps || lost
		return tool.Result{}, f
	})
	if refused != nil && !perhaps {
		return result, refused
	}
	result.Pending, result.Until = true, until
	return result, nil
}

// attempt sends a call once. lost says that it was sent, and that it is not known whether
// it was accepted.
func (c *Client) attempt(ctx context.Context, call tool.Call, target *url.URL, body []byte) (f *outbound.Failure, lost bool) {
	request := outbound.NewRequest(ctx, http.MethodPost, target, body)
	request.Header.Set("Callgate-Call-Id", call.ID)
	if err := c.out.Authorize(request, call.Run.Credential); err != nil {
		return outbound.CredentialFailure(ctx, call, err), false
	}
	response, stood, err := c.out.Send(request, call.Run.Addresses, !refuse.Retryable(call.Effect))
	if err != nil {
		return outbound.ConnectionFailure(ctx, call, outbound.Origin(target), err, stood), stood
	}
	defer response.Body.Close() // which is not read
	switch code := response.StatusCode; {
	case code/100 == 2:
		return nil, false
	case code < 500 && code != http.StatusUnauthorized:
		// Another attempt of the same call would end alike.
		return outbound.FinalFailure(c.out.ResponseFailure(call, response).Refusal()), false
	default:
		f := c.out.ResponseFailure(call, response)
		return f, f.Refusal().Code == refusal.OutcomeUnknown // a proxy may have passed it on
	}
}
