package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Outbound is what a Transport reaches its servers with: by the rules of this
// package's own requests, and with its words for what went wrong. It is safe for
// concurrent use.
type Outbound struct {
	now      func() time.Time
	pool     *pool
	breakers *breakers
	secrets  func(place string) (string, error)
}

// NewOutbound returns one of its own connections and breakers. Close it to give up
// its idle connections.
func NewOutbound(options Options) *Outbound {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Interfaces == nil {
		options.Interfaces = net.InterfaceAddrs
	}
	return &Outbound{now: options.Now, pool: newPool(options), breakers: newBreakers(options.OnBreaker), secrets: options.ReadSecret}
}

// Close closes idle connections. Requests in flight go on.
func (o *Outbound) Close() { o.pool.closeIdle() }

// OpenBreakers is of how many tools the breaker is not closed.
func (o *Outbound) OpenBreakers() int { return o.breakers.countOpen() }

// Run makes the attempts of a call, as many as its effect allows, where the
// breaker of its tool lets them through.
func (o *Outbound) Run(ctx context.Context, call tool.Call, attempt func() (tool.Result, *Failure)) (tool.Result, *refusal.Error) {
	return withRetries(ctx, call, o.breakers.forCall(call), attempt)
}

// Send sends one request to an address that is allowed. It follows no redirect,
// keeps no cookie and asks no proxy. With once, the request has a connection of its
// own and is not repeated. sent tells whether it may have reached the server, where
// there is no response, too.
func (o *Outbound) Send(request *http.Request, addresses []string, once bool) (response *http.Response, sent bool, err error) {
	transport, err := o.pool.transport(request.URL, addresses, once)
	if err != nil {
		return nil, false, err
	}
	var dispatched atomic.Bool
	request = request.WithContext(httptrace.WithClientTrace(
		context.WithValue(request.Context(), dispatchedKey{}, &dispatched),
		&httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { dispatched.Store(true) }},
	))
	// With it the transport could send the body again by itself.
	request.GetBody = nil
	response, err = transport.RoundTrip(request)
	return response, dispatched.Load(), err
}

// Credential is the header for a credential, as it stands at its place now. No error
// holds any of it.
func (o *Outbound) Credential(place string) (string, error) { return credential(o.secrets, place) }

// Secret is what stands at a place now. No error holds any of it.
func (o *Outbound) Secret(place string) (string, error) {
	if o.secrets == nil {
		return "", errors.New("there are no secrets here")
	}
	return o.secrets(place)
}

// StatusFailure judges an answer of another status than 2xx, with its Retry-After.
func (o *Outbound) StatusFailure(call tool.Call, code int, after string) *Failure {
	return &Failure{refusal: statusRefusal(call, code), retry: transientStatus(code), retryAfter: retryAfter(o.now, after), health: healthOfStatus(code)}
}

// FinalFailure is the failure of a server that was reached and answered for itself, so
// that another attempt would end alike.
func FinalFailure(refused *refusal.Error) *Failure {
	return &Failure{refusal: refused, health: healthOK}
}

// RetryableFailure is the failure of a call that its server has not taken. Another attempt
// may end otherwise, and it tells nothing of the server's health.
func RetryableFailure(refused *refusal.Error) *Failure {
	return &Failure{refusal: refused, retry: true}
}

// UnsentFailure is the failure of a call of which nothing could be sent, and of which
// another attempt would end alike.
func UnsentFailure(refused *refusal.Error) *Failure { return &Failure{refusal: refused} }

// Reason is an error whose text is of our own making, so that an operator can be
// told it.
type Reason string

func (r Reason) Error() string { return string(r) }
