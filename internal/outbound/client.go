package outbound

import (
	"context"
	"crypto/x509"
	"net"
	"net/url"
	"time"

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/internal/renew"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// Client sends requests to servers of tools by the rules of this package. It is safe for
// concurrent use.
type Client struct {
	now      func() time.Time
	pool     *pool
	breakers *breakers
	secrets  func(ctx context.Context, reference string) (string, error)
	tokens   tokens
	// exchanged are the tokens that were issued for callers.
	exchanged exchanges
}

// Options are the settings of outbound requests. The zero value is usable and the
// strictest.
type Options struct {
	Now      func() time.Time // nil is time.Now
	Resolver *net.Resolver    // nil is the system's
	// Certificates that may sign for https servers; nil is the system's pool.
	Certificates *x509.CertPool
	// Interfaces lists this host's own addresses, which are never public; nil is
	// net.InterfaceAddrs. If it fails, no address is public.
	Interfaces func() ([]net.Addr, error)
	// OnBreaker receives events of the tools' breakers; nil ignores them. It must not
	// block, and must be safe for concurrent use.
	OnBreaker func(BreakerEvent)
	// ReadBuffer is how many bytes one read of a connection takes at most; 0 is 4 KiB.
	ReadBuffer int
	// ReadSecret reads the secret that a reference leads to; nil has no secrets.
	ReadSecret func(ctx context.Context, reference string) (string, error)
}

// New returns a client with its own connections and breakers. Close it to
// close idle connections.
func New(options Options) *Client {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Interfaces == nil {
		options.Interfaces = net.InterfaceAddrs
	}
	if options.ReadBuffer <= 0 {
		options.ReadBuffer = defaultReadBuffer
	}
	o := &Client{now: options.Now, pool: newPool(options), breakers: newBreakers(options.OnBreaker), secrets: options.ReadSecret}
	o.tokens.client, o.tokens.all = o, map[string]*renew.Value[string]{}
	o.exchanged.client, o.exchanged.all = o, map[exchangeKey]*exchange{}
	return o
}

// Now is the time by the client's clock.
func (o *Client) Now() time.Time { return o.now() }

// Close closes idle connections, and ends fetches of tokens. Requests in flight continue; no token
// is fetched any more.
func (o *Client) Close() {
	o.tokens.group.Close()
	o.pool.closeIdle()
}

// OpenBreakers counts the tools whose breaker is open.
func (o *Client) OpenBreakers() int { return o.breakers.countOpen() }

// FailingBreakers lists the breakers of tools that are open or count failures, by tool and
// version.
func (o *Client) FailingBreakers() []BreakerState { return o.breakers.failing() }

// Run makes the attempts of a call, as many as its effect allows, while the breaker of
// its tool lets them through.
func (o *Client) Run(ctx context.Context, call tool.Call, attempt func() (tool.Result, *Failure)) (tool.Result, *refusal.Error) {
	return withRetries(ctx, call, o.breakers.forCall(call), attempt)
}

// CheckAddresses reports a list of addresses of a server that is invalid.
func (o *Client) CheckAddresses(target *url.URL, addresses []string) error {
	_, err := o.pool.server(target, addresses)
	return err
}

// Origin is the scheme and host of a URL.
func Origin(target *url.URL) string { return target.Scheme + "://" + target.Host }

// StatusFailure is the failure of an attempt that got a status other than 2xx, with its
// Retry-After.
func (o *Client) StatusFailure(call tool.Call, code int, after string) *Failure {
	pause := netx.RetryAfter(after, o.now(), firstPause)
	return &Failure{
		refusal:    refuse.Status(call, code, pause),
		retry:      transientStatus(code, pause),
		retryAfter: pause,
		health:     healthOfStatus(code),
	}
}
