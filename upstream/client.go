package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"github.com/callgate/callgate/internal/deadline"
	"github.com/callgate/callgate/internal/outbound"
	"github.com/callgate/callgate/refusal"
)

// Options configure a Client. The zero value is usable.
type Options struct {
	Now func() time.Time // nil is time.Now
	// Certificates that may sign for upstreams; nil is the system's pool.
	Certificates *x509.CertPool
	// MaxBufferedBytes bounds the bytes of all answers being received; 0 is 256 MiB.
	// An answer beyond it fails with overloaded.
	MaxBufferedBytes int64
	// ReadSecret reads the secret that a reference of a credential leads to; nil has no secrets.
	ReadSecret func(ctx context.Context, reference string) (string, error)
	// Observe is called for each attempt when it ends or its stream begins. It must
	// not block.
	Observe func(Attempt)
}

// Attempt is the outcome of one request to an upstream.
type Attempt struct {
	Upstream string
	Status   int          // of the answer; 0 if there was none
	Code     refusal.Code // empty if the answer is usable so far, or is the provider's own 4xx
	Took     time.Duration
}

const (
	maxIdle        = 256 // idle connections of one host
	idleTimeout    = 90 * time.Second
	pingAfter      = 30 * time.Second // of silence, on HTTP/2
	pingTimeout    = 15 * time.Second
	writeTimeout   = 30 * time.Second // without a byte that the server takes, on HTTP/2
	maxHeaderBytes = 64 << 10
	readBuffer     = 16 << 10 // what one read of a fast stream takes
)

// Client sends requests to upstreams. Its connections are pooled by host and outlive every Set.
// It is safe for concurrent use.
type Client struct {
	now       func() time.Time
	observe   func(Attempt)
	transport *http.Transport
	plain     *outbound.Client // for upstreams without TLS, and for credentials
	alarms    *deadline.Alarms // of all exchanges
	budget    memoryBudget
}

// NewClient returns a client. Close it to close its idle connections.
func NewClient(options Options) *Client {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Observe == nil {
		options.Observe = func(Attempt) {}
	}
	if options.MaxBufferedBytes <= 0 {
		options.MaxBufferedBytes = defaultBufferedBytes
	}
	return &Client{
		alarms:  deadline.NewAlarms(),
		budget:  memoryBudget{limit: options.MaxBufferedBytes},
		now:     options.Now,
		observe: options.Observe,
		plain: outbound.New(outbound.Options{Now: options.Now, Certificates: options.Certificates, ReadBuffer: readBuffer,
			ReadSecret: options.ReadSecret}),
		transport: &http.Transport{
			Proxy:                  nil,
			DialContext:            (&net.Dialer{Timeout: maxConnectTime}).DialContext,
			TLSHandshakeTimeout:    maxConnectTime,
			ForceAttemptHTTP2:      true,
			DisableCompression:     true,
			ReadBufferSize:         readBuffer,
			MaxIdleConnsPerHost:    maxIdle,
			IdleConnTimeout:        idleTimeout,
			MaxResponseHeaderBytes: maxHeaderBytes,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: options.Certificates},
			HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: writeTimeout},
		},
	}
}

// Close closes idle connections, and ends fetches of tokens.
func (c *Client) Close() {
	c.transport.CloseIdleConnections()
	c.plain.Close()
}

// Hold returns a count of 0 bytes. Release it once the answer is no longer needed.
func (c *Client) Hold() *Reservation { return &Reservation{budget: &c.budget} }
