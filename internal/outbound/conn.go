package outbound

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/internal/deadline"
)

const maxHeadBytes = 64 << 10 // of a response, informational ones before it included

var errHeadTooLong = errors.New("the head of the response is too long")

// conn is one connection of HTTP/1.1. One call at a time owns it, and reads and writes on
// its own goroutine. Nothing reads from an idle connection, so that a read without waiting
// proves whether it is open and has no unread bytes.
type conn struct {
	net.Conn  // TLS over wire, or wire
	wire      *wireConn
	server    *server
	reader    *bufio.Reader
	headLeft  int64 // how many bytes the head of the response may still have
	failed    bool  // a read failed: no more use
	timed     bool  // reads and writes have a deadline
	probe     [1]byte
	idleSince time.Time
	root      *deadline.Root // of the call that owns it; nil: none
	expire    deadline.Hook  // makes reads and writes fail when the root ends
	detach    func() bool    // takes the hook off the root; made once
}

// wireConn is the TCP connection under a conn.
type wireConn struct {
	net.Conn
	prober  *prober
	probing bool // reads do not wait
	arrived bool // some byte was read while probing
	wrote   bool // some byte may have been sent since this was reset
}

func (w *wireConn) Read(b []byte) (int, error) {
	if w.probing {
		n, err := w.prober.readNow(b)
		w.arrived = w.arrived || n > 0
		return n, err
	}
	return w.Conn.Read(b)
}

func (w *wireConn) Write(b []byte) (int, error) {
	n, err := w.Conn.Write(b)
	if n > 0 {
		w.wrote = true
	}
	return n, err
}

// dialConn opens a connection to a server, with TLS if its scheme is https. It fails with
// errNotHTTP1 if the server speaks another protocol.
func dialConn(ctx context.Context, s *server) (*conn, error) {
	opened, err := s.policy.dial(ctx, "tcp", s.address)
	if err != nil {
		return nil, err
	}
	wire := &wireConn{Conn: opened, prober: newProber(opened)}
	c := &conn{Conn: wire, wire: wire, server: s}
	c.expire.Call = func() { _ = opened.SetDeadline(time.Unix(1, 0)) }
	c.detach = func() bool { return c.root.Detach(&c.expire) }
	if s.tls != nil {
		if c.Conn, err = s.secure(ctx, wire); err != nil {
			_ = opened.Close()
			return nil, err
		}
	}
	c.reader = bufio.NewReaderSize(c, s.pool.readBuffer)
	return c, nil
}

// The protocols of a server over TLS, as far as they are known.
const (
	protocolsUnknown int32 = iota
	protocolsHTTP2         // it prefers HTTP/2
	protocolsNoHTTP1       // it does not agree on HTTP/1.1
)

// errNotHTTP1 is a server that agrees on another protocol than HTTP/1.1.
var errNotHTTP1 = errors.New("the server does not agree on HTTP/1.1")

// secure makes the handshake of TLS. HTTP/2 is offered first, so that a server without
// ALPN, which speaks HTTP/1.1, differs from one that speaks HTTP/2 alone: some of those
// accept a client that offers only HTTP/1.1, and agree on nothing.
func (s *server) secure(ctx context.Context, wire net.Conn) (net.Conn, error) {
	config, known := s.tls, s.protocols.Load()
	if known != protocolsUnknown {
		config = config.Clone()
		config.NextProtos = []string{"http/1.1"}
	}
	secured := tls.Client(wire, config)
	err := secured.HandshakeContext(ctx)
	agreed := secured.ConnectionState().NegotiatedProtocol
	switch {
	case err != nil && (known == protocolsUnknown || ctx.Err() != nil):
		return nil, err
	case known == protocolsUnknown && agreed == "h2":
		s.protocols.CompareAndSwap(protocolsUnknown, protocolsHTTP2)
		return nil, errNotHTTP1
	case known == protocolsUnknown || err == nil && agreed == "http/1.1":
		return secured, nil
	}
	// Some servers close a connection on which they agree on nothing.
	s.protocols.Store(protocolsNoHTTP1)
	return nil, errNotHTTP1
}

// Read reads for the reader: the head of a response within its bound, and its body.
func (c *conn) Read(b []byte) (int, error) {
	if c.headLeft <= 0 {
		return 0, errHeadTooLong
	}
	n, err := c.Conn.Read(b[:min(int64(len(b)), c.headLeft)])
	c.headLeft -= int64(n)
	c.failed = c.failed || err != nil
	return n, err
}

// noStop is the stop of work that needs none.
func noStop() bool { return true }

// begin makes reads and writes end with a context. stop ends this, and is false if the
// context has ended before. Where only time or the end of the process's calls ends it, a
// deadline and a hook do, without a timer.
func (c *conn) begin(ctx context.Context) (stop func() bool) {
	if root, ok := deadline.TimeOnly(ctx); ok {
		at, _ := ctx.Deadline()
		// A little later than the context, so that its end is known by then.
		c.timed = c.wire.Conn.SetDeadline(at.Add(time.Millisecond)) == nil
		if root == nil {
			return noStop
		}
		c.root = root
		root.Attach(&c.expire)
		return c.detach
	}
	if c.timed {
		c.timed = c.wire.Conn.SetDeadline(time.Time{}) != nil
	}
	if ctx.Done() == nil {
		return noStop
	}
	return context.AfterFunc(ctx, c.expire.Call)
}

// alive reports whether the connection is open and nothing has arrived on it since the
// last response, not even a part of a TLS record: a server that closes, or that sends what
// it was not asked for, gets no further request.
func (c *conn) alive() bool {
	c.wire.probing, c.wire.arrived = true, false
	n, err := c.Conn.Read(c.probe[:])
	c.wire.probing = false
	return n == 0 && !c.wire.arrived && errors.Is(err, os.ErrDeadlineExceeded)
}

// exchange sends an encoded request, and reads the head of the response. stop is begin's.
// sent reports whether a byte of the request may have left. The connection is closed if
// there is an error.
func (c *conn) exchange(request *http.Request, encoded []byte, stop func() bool) (response *http.Response, sent bool, err error) {
	ctx := request.Context()
	c.wire.wrote = false
	completed := false
	defer func() {
		if !completed {
			sent = c.wire.wrote
			stop()
			_ = c.wire.Conn.Close()
		}
	}()
	progress, _ := ctx.(Progress)
	if progress != nil {
		progress.Connected()
	}
	if _, err = c.Conn.Write(encoded); err == nil {
		response, err = c.readHead(request, progress)
	}
	if err != nil {
		return nil, false, causeOf(ctx, err)
	}
	completed = true
	b := &body{ReadCloser: response.Body, conn: c, ctx: ctx, stop: stop}
	b.keep = !response.Close && response.ProtoAtLeast(1, 1) && response.StatusCode >= http.StatusOK
	if response.Body = b; b.ReadCloser == http.NoBody {
		b.finish(bodyRead) // from here on, another call may own the connection
	}
	return response, true, nil
}

// readHead reads responses up to the head of the final one.
func (c *conn) readHead(request *http.Request, progress Progress) (*http.Response, error) {
	c.headLeft = maxHeadBytes
	if progress != nil {
		if _, err := c.reader.Peek(1); err != nil {
			return nil, err
		}
		progress.Answered()
	}
	if response, err := readPlain(c.reader, request); response != nil || err != nil {
		c.headLeft = math.MaxInt64
		return response, err
	}
	for {
		response, err := http.ReadResponse(c.reader, request)
		if err != nil {
			return nil, err
		}
		// A status below 100 is no informational one: its response may have a body.
		if code := response.StatusCode; code < http.StatusContinue || code >= http.StatusOK || code == http.StatusSwitchingProtocols {
			c.headLeft = math.MaxInt64
			return response, nil
		}
	}
}

// causeOf returns the error of a context that ended, since the deadline that it set on the
// connection says less; otherwise err.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// body is the body of a response. At its end, or when it is closed, the connection is kept
// or closed.
type body struct {
	io.ReadCloser // net/http's; it is not closed, since it would read on
	conn          *conn
	ctx           context.Context
	stop          func() bool
	keep          bool // the server leaves the connection open
	state         atomic.Int32
}

// The states of a body.
const (
	bodyOpen int32 = iota
	bodyRead       // to its end
	bodyClosed
)

func (b *body) Read(p []byte) (int, error) {
	switch b.state.Load() {
	case bodyRead:
		return 0, io.EOF
	case bodyClosed:
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	if err == io.EOF {
		b.finish(bodyRead)
		return n, err
	}
	b.finish(bodyClosed)
	return n, causeOf(b.ctx, err)
}

// Close closes the connection, unless the body was read to its end. It may be called while
// Read waits.
func (b *body) Close() error {
	b.finish(bodyClosed)
	return nil
}

func (b *body) finish(state int32) {
	if !b.state.CompareAndSwap(bodyOpen, state) {
		return
	}
	running := b.stop()
	if state == bodyRead && running && b.keep && !b.conn.failed && b.conn.reader.Buffered() == 0 {
		b.conn.server.keep(b.conn)
	} else {
		_ = b.conn.wire.Conn.Close()
	}
}
