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
	return &Outbound{now: options.Now, pool: newPool(options), breakers: newBreakers(options.Breaker), secrets: options.Secret}
}

// Close closes idle connections. Requests in flight go on.
func (o *Outbound) Close() { o.pool.closeIdle() }

// OpenBreakers is of how many tools the breaker is not closed.
func (o *Outbound) OpenBreakers() int { return o.breakers.open() }

// Failure is why one attempt gave no result.
type Failure = fault

// Run makes the attempts of a call, as many as its effect allows, where the
// breaker of its tool lets them through.
func (o *Outbound) Run(ctx context.Context, call Call, attempt func() (Result, *Failure)) (Result, *refusal.Error) {
	return tries(ctx, call, o.breakers.of(call), attempt)
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

// Status judges an answer of another status than 2xx, with its Retry-After.
func (o *Outbound) Status(call Call, code int, after string) *Failure {
	return &fault{refused: status(call, code), again: passing(code), after: retryAfter(o.now, after), health: judge(code)}
}

// Lost judges an attempt that ended without a whole answer. at says where the
// server is, and holds no more of a URL than its origin.
func Lost(ctx context.Context, call Call, at string, err error, sent bool) *Failure {
	return lost(ctx, call, at, err, sent)
}

// Answered is the failure of a server that was reached and answered for itself, so
// that another attempt would end alike.
func Answered(refused *refusal.Error) *Failure { return &fault{refused: refused, health: well} }

// Untaken is the failure of a call that its server has not taken. Another attempt
// may end otherwise, and it tells nothing of the server's health.
func Untaken(refused *refusal.Error) *Failure { return &fault{refused: refused, again: true} }

// Untried is the failure of a call of which nothing could be sent, and of which
// another attempt would end alike.
func Untried(refused *refusal.Error) *Failure { return &fault{refused: refused} }

// Refused is what the failure means for the call.
func (f *fault) Refused() *refusal.Error { return f.refused }

// Unavailable refuses a call of a tool that cannot be reached. The format is for the
// operator.
func Unavailable(format string, args ...any) *refusal.Error { return unavailable(format, args...) }

// Invalid refuses a result in a form that cannot be passed on. what is for the
// operator, and holds nothing that the tool sent.
func Invalid(call Call, what string) *refusal.Error { return invalid(call, what) }

// TooLarge refuses a result that is larger than allowed.
func TooLarge(call Call) *refusal.Error { return tooLarge(call) }

// Failed refuses a call whose tool was reached and said no. The message is for the
// model; give the operator a cause.
func Failed(message string) *refusal.Error { return failed(message) }

// Quoted is a text of a server's as it may go on to a model: no longer than 2 KiB,
// between quotes that it cannot end, and with nothing in it that does not show.
func Quoted(s string) string { return quoted(s) }

// Once tells whether calls of this effect are sent at most once.
func Once(effect string) bool { return !retried(effect) }

// Panicked names a panic without its value, which may hold a call's content.
func Panicked(p any) string { return panicked(p) }

// Reason is an error whose text is of our own making, so that an operator can be
// told it.
type Reason string

func (r Reason) Error() string { return string(r) }

// Describe says what went wrong on the wire, and quotes nothing that came over it.
func Describe(err error) string {
	var b *blockedError
	if errors.As(err, &b) {
		return b.reason
	}
	return describe(err)
}
