package capture

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/wrapper"
)

const (
	maxConcurrent = 256
	dialTimeout   = 10 * time.Second
	headerTimeout = 10 * time.Second
	idleTimeout   = 30 * time.Second
	// stopTimeout is how long requests in flight may take once the proxy stops.
	stopTimeout = 5 * time.Second
)

// proxy is the handler.
type proxy struct {
	options  Options
	reverse  *httputil.ReverseProxy
	recorder *recorder
	slots    chan struct{}
	enough   chan struct{} // closed after the last of Options.Requests
}

// Serve serves until the context ends, or the requests are enough. Requests in flight may take stopTimeout more;
// then they are broken off. The summary is of what was recorded.
func Serve(ctx context.Context, listener net.Listener, o Options) (Summary, error) {
	transport := &http.Transport{ // no proxy
		DialContext:           (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:   dialTimeout,
		DisableCompression:    true, // the application chose its encodings
		ForceAttemptHTTP2:     true,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   32,
		ExpectContinueTimeout: time.Second,
	}
	defer transport.CloseIdleConnections()
	p := &proxy{options: o, recorder: newRecorder(o), slots: make(chan struct{}, maxConcurrent), enough: make(chan struct{})}
	discard := log.New(io.Discard, "", 0) // lines of net/http may hold what peers sent
	p.reverse = &httputil.ReverseProxy{Rewrite: p.rewrite, Transport: transport, FlushInterval: -1, ErrorLog: discard, ModifyResponse: recordEarly, ErrorHandler: unreachable}

	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{Handler: p, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, ErrorLog: discard, BaseContext: func(net.Listener) context.Context { return base }}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	var err error
	select {
	case err = <-served:
		return p.recorder.summary(), err
	case <-ctx.Done():
	case <-p.enough:
	}
	stopping, stop := context.WithTimeout(base, cmp.Or(o.stopTimeout, stopTimeout))
	defer stop()
	if server.Shutdown(stopping) != nil {
		cancel()
		err = server.Close()
	}
	if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
		err = errors.Join(err, closed)
	}
	p.recorder.finish()
	return p.recorder.summary(), err
}

// rewrite sends a request to the upstream as it came.
func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	r.SetURL(p.options.Upstream)
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
		if values, ok := r.In.Header[name]; ok {
			r.Out.Header[name] = values
		}
	}
}

// unreachable answers in the place of an upstream that did not.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	recordOf(r).record()
	refuse(w, http.StatusBadGateway, "callgate capture: no answer of the upstream: "+cmp.Or(netx.Describe(err), "it could not be reached"))
}

// refuse answers in the shape that clients of all three APIs read a message from.
func refuse(w http.ResponseWriter, status int, message string) {
	body, err := wrapper.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": "capture_error", "message": message}})
	if err != nil {
		body = []byte("{}")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone needs no answer
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if problem := p.foreign(r); problem != "" {
		refuse(w, http.StatusForbidden, "callgate capture: "+problem)
		return
	}
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	default:
		refuse(w, http.StatusServiceUnavailable, fmt.Sprintf("callgate capture: more than %d requests at the same time", maxConcurrent))
		return
	}
	api := apiOf(r)
	if api == "" {
		p.reverse.ServeHTTP(w, r)
		return
	}
	number, ok := p.recorder.begin()
	if !ok { // it stops
		p.reverse.ServeHTTP(w, r)
		return
	}
	x := &exchange{recorder: p.recorder, number: number, api: api, encoding: r.Header.Get("Content-Encoding"), secrets: credentialsOf(r.Header, r.URL.Query())}
	x.body = &copiedBody{ReadCloser: r.Body, memory: &p.recorder.memory, length: r.ContentLength}
	r.Body = x.body
	// Also where the answer breaks off, by a panic of the reverse proxy that net/http expects.
	defer func() {
		x.record()
		p.recorder.end()
		if number == p.options.Requests {
			close(p.enough)
		}
	}()
	p.reverse.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
}

// recordEarly records a request of which the upstream has read all before it answered. A stream may take
// minutes more.
func recordEarly(response *http.Response) error {
	if x := recordOf(response.Request); x != nil && x.body.whole() {
		x.record()
	}
	return nil
}

// foreign says why a request is not one of a program on this machine: a page in a browser may not make up tools.
func (p *proxy) foreign(r *http.Request) string {
	if p.options.AnyHost {
		return ""
	}
	if !netx.IsLoopbackHost(netx.Hostname(r.Host)) {
		return "the Host is not of this machine; expected 127.0.0.1 or localhost"
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return ""
	}
	u, err := url.Parse(origin)
	if err != nil || !netx.IsLoopbackHost(netx.Hostname(u.Host)) {
		return "the Origin is not of this machine; expected none, or one of localhost"
	}
	return ""
}

// apiOf names the API that a request is for, as its importer is named, or "".
func apiOf(r *http.Request) string {
	if r.Method != http.MethodPost {
		return ""
	}
	for _, known := range []struct{ path, api string }{
		{"/chat/completions", "openai"},
		{"/messages", "anthropic"}, {"/messages/count_tokens", "anthropic"},
		{"/responses", "responses"}, {"/responses/input_tokens", "responses"},
	} {
		if strings.HasSuffix(r.URL.Path, known.path) {
			return known.api
		}
	}
	return ""
}
