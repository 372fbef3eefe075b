package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxServers      = 256 // beyond this many, the one used longest ago is dropped
	maxIdle         = 128 // idle connections of one server
	idleTimeout     = 30 * time.Second
	maxOnceIdle     = time.Second // of a connection that carries a once request
	sessionsPerHost = 8

	defaultReadBuffer = 4 << 10
)

// serverKey identifies requests that share connections.
type serverKey struct {
	scheme, host string
	addresses    string // as the tool lists them, so that no allowance leaks
}

// pool holds one server for each origin and list of addresses. It is safe for concurrent
// use.
type pool struct {
	resolver     *net.Resolver
	certificates *x509.CertPool
	interfaces   func() ([]net.Addr, error)
	readBuffer   int // bytes

	mu      sync.Mutex
	uses    uint64
	servers map[serverKey]*server
	reaping bool // a timer closes connections that are idle for long
}

// server is one origin as the tools of one list of addresses may reach it.
type server struct {
	pool    *pool
	policy  *addressPolicy
	address string      // host:port
	tls     *tls.Config // of its own connections; nil for http

	protocols atomic.Int32

	// Under the pool's lock.
	used       uint64
	dropped    bool
	idle       []*conn            // the one used last is at the end
	transports [2]*http.Transport // the second opens a connection for each request
}

func newPool(options Options) *pool {
	return &pool{
		resolver:     options.Resolver,
		certificates: options.Certificates,
		interfaces:   options.Interfaces,
		readBuffer:   options.ReadBuffer,
		servers:      map[serverKey]*server{},
	}
}

// server returns the server of a URL.
func (p *pool) server(target *url.URL, addresses []string) (*server, error) {
	var room [128]byte
	listed := room[:0]
	for _, address := range addresses {
		listed = append(append(listed, address...), ' ')
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.uses++
	if s := p.servers[serverKey{target.Scheme, target.Host, string(listed)}]; s != nil { // which makes no string
		s.used = p.uses
		return s, nil
	}
	policy, err := newAddressPolicy(addresses, p.resolver, p.interfaces)
	if err != nil {
		return nil, err
	}
	if len(p.servers) >= maxServers {
		p.evict()
	}
	s := &server{pool: p, policy: policy, used: p.uses}
	s.address = net.JoinHostPort(target.Hostname(), cmp.Or(target.Port(), map[string]string{"https": "443"}[target.Scheme], "80"))
	if target.Scheme == "https" {
		s.tls = p.tlsConfig()
		s.tls.ServerName, s.tls.NextProtos = target.Hostname(), []string{"h2", "http/1.1"}
	}
	p.servers[serverKey{target.Scheme, target.Host, string(listed)}] = s
	return s, nil
}

func (p *pool) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		RootCAs:            p.certificates,
		ClientSessionCache: tls.NewLRUClientSessionCache(sessionsPerHost),
	}
}

// takeIdle removes and returns the idle connection that was used last, if it is idle for
// less than most; else nil.
func (s *server) takeIdle(most time.Duration) *conn {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	last := len(s.idle) - 1
	if last < 0 || time.Since(s.idle[last].idleSince) >= most {
		return nil
	}
	c := s.idle[last]
	s.idle[last] = nil
	s.idle = s.idle[:last]
	return c
}

// keep stores a connection for another request, or closes it.
func (s *server) keep(c *conn) {
	c.idleSince = time.Now()
	p := s.pool
	p.mu.Lock()
	kept := !s.dropped && len(s.idle) < maxIdle
	if kept {
		s.idle = append(s.idle, c)
		if !p.reaping {
			p.reaping = true
			time.AfterFunc(idleTimeout, p.reap)
		}
	}
	p.mu.Unlock()
	if !kept {
		_ = c.wire.Conn.Close()
	}
}

// reap closes connections that are idle for too long, and comes again if others are left.
func (p *pool) reap() {
	var closing []*conn
	p.mu.Lock()
	p.reaping = false
	for _, s := range p.servers {
		expired := 0
		for expired < len(s.idle) && time.Since(s.idle[expired].idleSince) >= idleTimeout {
			expired++
		}
		closing = append(closing, s.idle[:expired]...)
		s.idle = append([]*conn(nil), s.idle[expired:]...)
		p.reaping = p.reaping || len(s.idle) > 0
	}
	if p.reaping {
		time.AfterFunc(idleTimeout/2, p.reap)
	}
	p.mu.Unlock()
	closeAll(closing)
}

// closeAll closes idle connections. It does not wait for their servers.
func closeAll(conns []*conn) {
	for _, c := range conns {
		_ = c.wire.Conn.Close()
	}
}

// transport returns a transport of net/http for requests that conn does not carry. With
// fresh, each request has a connection of its own, and is never sent on a second one.
func (s *server) transport(fresh bool) *http.Transport {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	which, dial := 0, s.policy.dial
	if fresh {
		which, dial = 1, dialOnce(dial)
	}
	if s.transports[which] == nil {
		s.transports[which] = &http.Transport{
			Proxy:                  nil,
			DialContext:            dial,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      fresh,
			DisableCompression:     true, // decoded here, within bounds
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeadBytes,
			TLSClientConfig:        s.pool.tlsConfig(),
			// Calls on one connection wait for each other's writes, even after their deadlines.
			HTTP2: &http.HTTP2Config{WriteByteTimeout: idleTimeout},
		}
	}
	return s.transports[which]
}

// dispatchedKey is the context key of an *atomic.Bool: whether the request was dispatched.
type dispatchedKey struct{}

// errDispatched is a second connection for one request.
var errDispatched = errors.New("the request was dispatched before")

// dialOnce refuses to dial for a request that was dispatched before: the HTTP transport
// repeats some requests by itself, such as one without a body to a server of HTTP/2 that
// says it did nothing.
func dialOnce(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network,
	address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		if dispatched, ok := ctx.Value(dispatchedKey{}).(*atomic.Bool); ok && dispatched.Load() {
			return nil, errDispatched
		}
		return dial(ctx, network, address)
	}
}

// evict drops the server that was used longest ago. Its requests in flight continue.
func (p *pool) evict() {
	var oldest serverKey
	first := true
	for key, s := range p.servers {
		if first || s.used < p.servers[oldest].used {
			oldest, first = key, false
		}
	}
	p.servers[oldest].dropped = true
	p.servers[oldest].closeIdle()
	delete(p.servers, oldest)
}

// closeIdle closes the idle connections, under the pool's lock. It does not wait for net/http,
// which ends TLS, so that a server which does not read would hold the lock.
func (s *server) closeIdle() {
	closeAll(s.idle)
	s.idle = nil
	for _, t := range s.transports {
		if t != nil {
			go t.CloseIdleConnections()
		}
	}
}

func (p *pool) closeIdle() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.servers {
		s.closeIdle()
	}
}
