package identity

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/callgate/callgate/internal/netx"
)

const (
	maxDocument    = 1 << 20 // bytes, of a key set and of a discovery document
	maxRedirects   = 3
	maxAnswerHead  = 64 << 10
	connectTimeout = 5 * time.Second
)

// httpClient fetches documents: without a proxy, without cookies, with redirects
// within one origin alone, and bounded in size. Time is bounded by the context.
// Each fetch has connections of its own, as minutes pass between two.
type httpClient struct {
	http      *http.Client
	plainHTTP bool // it uses http, and connects to loopback alone
}

var (
	errCrossOriginRedirect = errors.New("a redirect to another host, scheme or port; expected none")
	errTooManyRedirects    = fmt.Errorf("more than %d redirects", maxRedirects)
	errNotLoopback         = errors.New("an address of http that is not loopback")
)

// newClient returns a client for the origin of a valid URL.
func newClient(base string, roots *x509.CertPool) *httpClient {
	c := &httpClient{plainHTTP: strings.HasPrefix(strings.ToLower(base), "http:")}
	dialer := &net.Dialer{Timeout: connectTimeout}
	if c.plainHTTP {
		// On the resolved address: a name server may return any.
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(address)
			if err != nil || !netx.IsLoopbackAddr(at.Addr()) {
				return errNotLoopback
			}
			return nil
		}
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxAnswerHead,
		},
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			first := via[0].URL
			switch {
			case next.URL.Scheme != first.Scheme || next.URL.Host != first.Host || next.URL.User != nil:
				return errCrossOriginRedirect
			case len(via) > maxRedirects:
				return errTooManyRedirects
			}
			return nil
		},
	}
	return c
}

// fetch returns the body of a response with status 200. Its errors quote neither address
// nor body.
func (c *httpClient) fetch(ctx context.Context, address string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("an address of the wrong form")
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "callgate")
	response, err := c.http.Do(request)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("found the status %d; expected 200", response.StatusCode)
	}
	return readBounded(response.Body)
}

var errTooLarge = fmt.Errorf("a document of more than %d bytes", maxDocument)

// readBounded reads at most maxDocument bytes.
func readBounded(r io.Reader) ([]byte, error) {
	document, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return nil, err
	}
	if len(document) > maxDocument {
		return nil, errTooLarge
	}
	return document, nil
}
