package outbound

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/callgate/callgate/internal/ascii"
)

// MaxOwnBody bounds requests that are written before the response is read: the buffers of
// the connection take this much from a server that answers without reading. A longer one is
// sent by net/http.
const MaxOwnBody = 32 << 10

// payload is the body of a request whose bytes are known. net/http cannot send it a second
// time by itself: it has no GetBody, and net/http does not know that it is empty.
type payload struct {
	bytes.Reader
	data []byte
}

func (*payload) Close() error { return nil }

// SetBody sets the body of a request, and its length.
func SetBody(request *http.Request, data []byte) {
	p := &payload{data: data}
	p.Reset(data)
	request.Body, request.ContentLength = p, int64(len(data))
}

// Progress is a context of a request that is told how far it has come, once or, where it is sent on another connection,
// again.
type Progress interface {
	context.Context
	Connected() // there is a connection that is about to take the request
	Answered()  // the first byte of the response has come
}

// Send sends one request to an allowed address. It follows no redirect, keeps no cookies
// and uses no proxy. With once, the request is never repeated, and its connection is new,
// or was used within the last second and is proven to be open. sent reports whether a
// byte of the request may have left, also if there is no response. A Progress that is the request's
// context is told of it. If that context has ended, nothing is sent.
func (o *Client) Send(request *http.Request, addresses []string, once bool) (response *http.Response, sent bool, err error) {
	// A kept connection learns of the end on another goroutine, which may come after the request.
	if err := request.Context().Err(); err != nil {
		return nil, false, err
	}
	s, err := o.pool.server(request.URL, addresses)
	if err != nil {
		return nil, false, err
	}
	data, empty := []byte(nil), request.Body == nil || request.Body == http.NoBody
	known, ok := request.Body.(*payload)
	if ok {
		data, empty = known.data, len(known.data) == 0
	}
	// Calls that may be repeated use HTTP/2 where the server speaks it.
	most := protocolsUnknown
	if once {
		most = protocolsHTTP2
	}
	own := (ok || empty) && (s.tls == nil || s.protocols.Load() <= most)
	if own {
		room := encodings.Get().(*[]byte)
		if encoded, ok := encodeRequest((*room)[:0], request, data); ok {
			response, sent, err = s.exchange(request, encoded, once)
			// Whatever came of it, nothing writes any more.
			*room = encoded
			encodings.Put(room)
			if !errors.Is(err, errNotHTTP1) {
				return response, sent, err
			}
		}
	}
	if empty && expectsBody(request.Method) {
		// net/http repeats such a request by itself, unless it cannot connect again.
		request.Body, once = http.NoBody, true
	}
	return s.roundTrip(request, once)
}

// exchange sends an encoded request on a connection of HTTP/1.1. It is sent on another
// one only if no byte of it was sent on the first.
func (s *server) exchange(request *http.Request, encoded []byte, once bool) (response *http.Response, sent bool, err error) {
	most := idleTimeout
	if once {
		most = maxOnceIdle
	}
	ctx := request.Context()
	for c := s.takeIdle(most); c != nil; c = s.takeIdle(most) {
		stop := c.begin(ctx)
		if !c.alive() {
			stop()
			_ = c.wire.Conn.Close()
			if ctx.Err() != nil {
				break // it says nothing about the other connections
			}
			continue
		}
		response, sent, err = c.exchange(request, encoded, stop)
		if err == nil || sent || ctx.Err() != nil {
			return response, sent, err
		}
	}
	c, err := dialConn(ctx, s)
	if once && errors.Is(err, errNotHTTP1) && s.protocols.Load() == protocolsHTTP2 {
		c, err = dialConn(ctx, s)
	}
	if err != nil {
		return nil, false, causeOf(ctx, err)
	}
	return c.exchange(request, encoded, c.begin(ctx))
}

// roundTrip sends a request by net/http.
func (s *server) roundTrip(request *http.Request, fresh bool) (response *http.Response, sent bool, err error) {
	var dispatched atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { dispatched.Store(true) }}
	if progress, ok := request.Context().(Progress); ok {
		trace.GotConn = func(httptrace.GotConnInfo) { dispatched.Store(true); progress.Connected() }
		trace.GotFirstResponseByte = progress.Answered
	}
	request = request.WithContext(httptrace.WithClientTrace(context.WithValue(request.Context(), dispatchedKey{}, &dispatched), trace))
	// With GetBody the transport could send the body again by itself.
	request.GetBody = nil
	response, err = s.transport(fresh).RoundTrip(request)
	return response, dispatched.Load(), err
}

// expectsBody reports whether requests of a method have a body.
func expectsBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// encodings is the memory of encoded requests, which are written when Send returns.
var encodings = sync.Pool{New: func() any { return new([]byte) }}

// encodeRequest appends a request to b as net/http writes it. It is false for a request that
// net/http would refuse or write in another way: that one is left to net/http.
func encodeRequest(b []byte, request *http.Request, data []byte) ([]byte, bool) {
	target := request.URL.RequestURI()
	host := request.URL.Host
	if scheme := request.URL.Scheme; scheme != "http" && scheme != "https" || target[0] != '/' {
		return nil, false
	}
	if !plainMethod(request.Method) || len(data) > MaxOwnBody || request.Host != "" && request.Host != host ||
		request.URL.User != nil || !plainHost(host) || !plainText(target) || request.Close || len(request.TransferEncoding) > 0 {
		return nil, false
	}
	names := make([]string, 0, 16)
	for name, values := range request.Header {
		switch name {
		case "Host", "Content-Length", "Transfer-Encoding", "Trailer", "Connection", "Expect", "Upgrade":
			return nil, false
		}
		if !ascii.IsToken(name) || len(values) != 1 || !plainText(values[0]) {
			return nil, false
		}
		names = append(names, name)
	}
	slices.Sort(names)
	b = slices.Grow(b, 512+len(target)+len(data))
	b = append(append(append(b, request.Method...), ' '), target...)
	b = append(append(b, " HTTP/1.1\r\nHost: "...), host...)
	b = append(append(b, "\r\nUser-Agent: "...), cmp.Or(request.UserAgent(), "callgate")...)
	if len(data) > 0 || expectsBody(request.Method) {
		b = strconv.AppendInt(append(b, "\r\nContent-Length: "...), int64(len(data)), 10)
	}
	for _, name := range names {
		if name != "User-Agent" {
			b = append(append(append(append(b, "\r\n"...), name...), ": "...), strings.Trim(request.Header[name][0], " \t")...)
		}
	}
	return append(append(b, "\r\n\r\n"...), data...), true
}

func plainMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// plainHost reports a host that is written as it is: letters, digits and the characters of
// names, ports and addresses in brackets, without a zone.
func plainHost(host string) bool {
	return host != "" && strings.Trim(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") == ""
}

// plainText reports a text without control characters but tabs.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
