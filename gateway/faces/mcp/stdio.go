package mcp

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

const (
	// maxConcurrent bounds the requests of one client that are answered at the same time.
	maxConcurrent = 64
	// readPatience is how long a client may leave a line unread: a person may have stopped it for
	// a while.
	readPatience = 5 * time.Minute
)

// Stdio answers one client, a message a line, until its input ends or ctx does, or it has not read a
// line for five minutes, and returns once all requests have been answered. The request identifies the
// client; its inputs are ignored. From dispatch on a call does not end with ctx.
//
// A client older than 2026-07-28 must begin with initialize. A request that it cancels gets
// no response; a call that was dispatched is still completed.
func (f *Face) Stdio(ctx context.Context, request gateway.Request, in io.Reader, out io.Writer) error {
	s := &stdioSession{face: f, request: request, id: rand.Text()}
	s.conn = jsonrpc.New(jsonrpc.Options{
		In: in, Out: out, MaxFrame: f.maxMessageBytes(), MaxConcurrent: maxConcurrent, WriteTimeout: readPatience,
		Drain: true, Unread: unread,
		Receive: s.receive, Handle: s.handle, Notify: s.notified, Unsolicited: s.respond, Refuse: refuse, Encode: encodeAnswer,
	})
	telling, stop := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() { s.announce(telling) })
	err := s.conn.Run(ctx)
	stop()
	told.Wait()
	if err != nil {
		return fmt.Errorf("standard input and output: %w", err)
	}
	return nil
}

// stdioSession is the session of one client on a pair of streams.
type stdioSession struct {
	face    *Face
	request gateway.Request
	id      string // the key of its log level
	conn    *jsonrpc.Conn
	// initialized says that there was an initialize, and questionKinds which questions the
	// client answers by it. Only the reader uses them.
	initialized   bool
	questionKinds []string
	// announces says that the client, of a revision with initialize, has said that it is ready.
	announces atomic.Bool
}

// announce tells the client of changed lists of tools until ctx ends.
func (s *stdioSession) announce(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.face.changed:
		}
		// One that is not ready has no list yet.
		if s.announces.Load() && s.conn.NotifyContext(ctx, wire.NoticeChanged, nil) != nil {
			return
		}
	}
}

// refuse is the error of a message that the connection refuses.
func refuse(why jsonrpc.Refusal, e *jsonrpc.Error) *jsonrpc.Error {
	switch why {
	case jsonrpc.TooMany:
		refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
		refused.RetryAfterMS = 1000
		return refusalError(refused).Error
	case jsonrpc.Failed:
		return refusalError(refusal.From(refusal.Any, e)).Error
	}
	return newError(e.Code, "%s", e.Message).Error
}

// encodeAnswer encodes an answer: that of handle, or an error of the connection.
func encodeAnswer(id jsonrpc.ID, result any, fault *jsonrpc.Error) ([]byte, error) {
	a, ok := result.(*response)
	if !ok {
		a = &response{fault: &rpcError{Error: fault}}
	}
	return a.encode(&message{Message: &jsonrpc.Message{ID: id}}), nil
}

// notified takes a notification.
func (s *stdioSession) notified(ctx context.Context, read *jsonrpc.Message) {
	if _, fault := messageOf(read, nil); fault != nil {
		s.complain(ctx, fault)
		return
	}
	if read.Method == wire.NoticeInitialized {
		s.announces.Store(true)
	}
	if read.Method == wire.NoticeCancelled {
		from, to := parser.Span(read.Params, "requestId")
		if id, ok := jsonrpc.ParseID(read.Params[from:to]); ok {
			s.conn.Cancel(id)
		}
	}
}

// complain answers a message that has no response. A failure to write ends the connection.
func (s *stdioSession) complain(ctx context.Context, fault *rpcError) {
	_ = s.conn.Send(ctx, (&response{fault: fault}).encode(nil))
}

// receive reads a request, before any later message is looked at.
func (s *stdioSession) receive(ctx context.Context, read *jsonrpc.Message) *jsonrpc.Error {
	m, fault := messageOf(read, nil)
	modern := m.statesRevision()
	if fault == nil {
		fault = s.checkInitialized(m, modern)
	}
	var key string
	if fault == nil {
		key, fault = m.idempotencyKey(nil)
	}
	if fault != nil {
		return fault.Error
	}
	r := request{message: m, modern: modern, idempotencyKey: key}
	r.notifier = &notifier{ctx: ctx, send: func(line []byte, _ bool) error { return s.conn.Send(ctx, line) }}
	r.pause = s.pause
	if !modern {
		r.session, r.announced = s.id, true
		if len(s.questionKinds) > 0 {
			r.elicitor = s.elicitor(ctx)
		}
	}
	read.State = r
	return nil
}

// checkInitialized returns the fault of a request before an initialize, or of a request of
// 2026-07-28 without its _meta.
func (s *stdioSession) checkInitialized(m *message, modern bool) *rpcError {
	switch {
	case modern:
		if f := m.checkRequestMeta(); f != nil {
			return f
		}
		if version := stringOf(m.meta()[wire.MetaVersion]); version != wire.Revision2026 {
			return unsupported(version)
		}
	case m.Method == wire.MethodInitialize:
		s.initialized, s.questionKinds = true, m.declaredKinds()
	case !s.initialized && m.Method != wire.MethodPing:
		return newError(jsonrpc.CodeRequest, "A client begins with %s, or says in each request's _meta of which revision it is.",
			wire.MethodInitialize)
	}
	return nil
}

// handle answers a request, unless the client has cancelled it.
func (s *stdioSession) handle(ctx context.Context, read *jsonrpc.Message) (any, *jsonrpc.Error) {
	r := read.State.(request)
	var a *response
	if admission, err := s.face.options.Executor.Kernel.Admit(ctx, s.request); err != nil {
		a = &response{fault: refusalError(refusal.From(refusal.Identity, err))}
	} else {
		r.admission = admission
		r.inSession(s.id)
		a = s.face.handle(ctx, r)
	}
	if ctx.Err() != nil {
		return nil, jsonrpc.NoAnswer
	}
	return a, nil
}

// respond gives an answer on standard input to the question that waits for it. A response
// that no question waits for gets no reply, because responses never do: the call may be over
// without the client knowing it yet.
func (s *stdioSession) respond(ctx context.Context, read *jsonrpc.Message, wrong *jsonrpc.Error) {
	m, fault := messageOf(read, wrong)
	if fault != nil {
		s.complain(ctx, fault)
		return
	}
	admission, err := s.face.options.Executor.Kernel.Admit(ctx, s.request)
	if err != nil {
		s.complain(ctx, refusalError(refusal.From(refusal.Identity, err)))
		return
	}
	s.face.respond(admission, m, nil)
}

// elicitor returns an elicitor for the client on the pair of streams, for a request whose
// context ends when the client cancels it.
func (s *stdioSession) elicitor(ctx context.Context) *elicitor {
	return &elicitor{
		kinds: s.questionKinds,
		send:  func(line []byte) error { return s.conn.Send(ctx, line) },
		wait:  func(wait func(context.Context)) *refusal.Error { return s.pause(ctx, wait) },
	}
}

// pause runs a function that waits until the client cancels its request, or nothing is read any
// more.
func (s *stdioSession) pause(ctx context.Context, wait func(context.Context)) *refusal.Error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	go func() {
		select {
		case <-s.conn.Ended():
			done()
		case <-ctx.Done():
		}
	}()
	wait(ctx)
	return nil
}
