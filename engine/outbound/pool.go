package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxTransports   = 256 // beyond this many origins, the one used longest ago goes
	maxIdle         = 64  // idle connections of one origin
	idleTimeout     = 30 * time.Second
	maxHeaderBytes  = 64 << 10
	sessionsPerHost = 8
)

// origin identifies requests that share connections.
type origin struct {
	scheme, host string
	addresses    string // as the tool lists them, so that no allowance leaks
	singleUse    bool   // of a connection for each call
}

// pool holds one transport for each origin. It is safe for concurrent use.
type pool struct {
	resolver     *net.Resolver
	certificates *x509.CertPool
	interfaces   func() ([]net.Addr, error)

	mu         sync.Mutex
	uses       uint64
	transports map[origin]*pooled
}

type pooled struct {
	*http.Transport
	used uint64
}

func newPool(options Options) *pool {
	return &pool{
		resolver:     options.Resolver,
		certificates: options.Certificates,
		interfaces:   options.Interfaces,
		transports:   map[origin]*pooled{},
	}
}

// transport returns the transport for a target. With singleUse, each request has a
// connection of its own, never one that the server may be about to close.
func (p *pool) transport(target *url.URL, addresses []string, fresh bool) (*http.Transport, error) {
	key := origin{target.Scheme, target.Host, strings.Join(addresses, " "), fresh}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses++
	if t := p.transports[key]; t != nil {
		t.used = p.uses
		return t.Transport, nil
	}
	g, err := newAddressPolicy(addresses, p.resolver, p.interfaces)
	if err != nil {
		return nil, err
	}
	if len(p.transports) >= maxTransports {
		p.evict()
	}
	dial := g.dial
	if fresh {
		dial = dialOnce(dial)
	}
	t := &http.Transport{
		Proxy:                  nil,
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      fresh,
		DisableCompression:     true, // decoded here, within bounds
		MaxIdleConnsPerHost:    maxIdle,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		TLSClientConfig: &tls.Config{
			MinVersion:         tls.VersionTLS12,
			RootCAs:            p.certificates,
			ClientSessionCache: tls.NewLRUClientSessionCache(sessionsPerHost),
		},
	}
	p.transports[key] = &pooled{t, p.uses}
	return t, nil
}

// dispatchedKey is the context key of an *atomic.Bool: whether the request was dispatched.
type dispatchedKey struct{}

// errDispatched is a second connection for one request.
var errDispatched = errors.New("the request was dispatched before")

// dialOnce refuses to dial for a request that was dispatched before: the HTTP transport
// repeats some requests by itself, such as one without a body to a server of HTTP/2 that
// says it did nothing.
func dialOnce(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if dispatched, ok := ctx.Value(dispatchedKey{}).(*atomic.Bool); ok && dispatched.Load() {
			return nil, errDispatched
		}
		return dial(ctx, network, address)
	}
}

// evict drops the transport that was used longest ago. Its requests in flight continue.
func (p *pool) evict() {
	var oldest origin
	first := true
	for key, t := range p.transports {
		if first || t.used < p.transports[oldest].used {
			oldest, first = key, false
		}
	}
	p.transports[oldest].CloseIdleConnections()
	delete(p.transports, oldest)
}

func (p *pool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range p.transports {
		t.CloseIdleConnections()
	}
}
