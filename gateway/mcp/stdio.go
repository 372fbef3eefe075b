package mcp

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/refusal"
)

// maxConcurrent bounds the requests of one client that are answered at the same time.
const maxConcurrent = 64

// Stdio answers one client, a message a line, until its input ends or ctx does, and
// returns once all requests have been answered. The request identifies the client; its
// inputs are ignored. From dispatch on a call does not end with ctx.
//
// A client older than 2026-07-28 must begin with initialize. A request that it cancels gets
// no response; a call that was dispatched is still completed.
func (f *Face) Stdio(ctx context.Context, request gateway.Request, in io.Reader, out io.Writer) error {
	s := &stdioSession{
		face: f, request: request, id: rand.Text(), out: out, cancels: map[any]context.CancelFunc{},
		slots: make(chan struct{}, maxConcurrent),
	}
	var leave context.CancelFunc
	s.inputEnded, leave = context.WithCancel(ctx)
	err := s.read(ctx, bufio.NewReaderSize(in, 64<<10))
	leave() // no answer can come any more
	s.calls.Wait()
	return errors.Join(err, s.failed)
}

// stdioSession is the session of one client on a pair of streams.
type stdioSession struct {
	face       *Face
	request    gateway.Request
	id         string          // the key of its log level
	inputEnded context.Context // ends when nothing is read any more
	// initialized says that there was an initialize, and questionKinds which questions the
	// client answers by it. Only the reader uses them.
	initialized   bool
	questionKinds []string

	slots chan struct{}
	calls sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	failed  error                      // of writing
	cancels map[any]context.CancelFunc // by the id of the request
}

// read handles the messages, one after the other.
func (s *stdioSession) read(ctx context.Context, in *bufio.Reader) error {
	for ctx.Err() == nil && s.writable() {
		line, long, err := readLine(in, s.face.maxMessageBytes())
		switch {
		case long:
			s.writeResponse(nil, &response{fault: newError(wire.CodeRequest, "The message is longer than %d bytes.", s.face.maxMessageBytes())})
		case len(line) > 0 && ctx.Err() == nil:
			s.handleLine(context.WithoutCancel(ctx), line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("cannot read standard input: %w", err)
		}
	}
	return nil
}

// readLine reads a line of bounded length without its end. If the line is longer, nothing of
// it is returned.
func readLine(in *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > most+len("\r\n"); long {
			line = nil
		} else {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return bytes.TrimRight(line, "\r\n"), long, err
	}
}

// handleLine answers one message, or begins to.
func (s *stdioSession) handleLine(ctx context.Context, line []byte) {
	m, fault := readMessage(line)
	if fault == nil && m.isNotification() {
		if m.method == wire.NoticeCancelled {
			s.cancel(m.params["requestId"])
		}
		return
	}
	if m.isResponse {
		s.respond(ctx, m, fault)
		return
	}
	modern := m.statesRevision()
	if fault == nil {
		fault = s.checkOpening(m, modern)
	}
	var key string
	if fault == nil {
		key, fault = m.idempotencyKey(nil)
	}
	if fault != nil {
		s.writeResponse(m, &response{fault: fault})
		return
	}
	ctx, done, fault := s.startRequest(ctx, m.id)
	if fault != nil {
		s.writeResponse(m, &response{fault: fault})
		return
	}
	r := request{message: m, modern: modern, idempotencyKey: key}
	r.notifier = &notifier{ctx: ctx, send: func(line []byte, _ bool) error { return s.notify(ctx, line) }}
	r.pause = s.pause
	if !modern {
		r.session = s.id
		if len(s.questionKinds) > 0 {
			r.elicitor = s.elicitor(ctx)
		}
	}
	s.calls.Go(func() {
		a := s.handle(ctx, r)
		cancelled := ctx.Err() != nil
		done() // the client may use the id again once it has the answer
		if !cancelled {
			s.writeResponse(m, a)
		}
	})
}

// checkOpening returns the fault of a request before an initialize, or of a request of
// 2026-07-28 without its _meta.
func (s *stdioSession) checkOpening(m *message, modern bool) *rpcError {
	switch {
	case modern:
		if f := m.checkRequestMeta(); f != nil {
			return f
		}
		if version := stringOf(m.meta()[wire.MetaVersion]); version != wire.Revision2026 {
			return unsupported(version)
		}
	case m.method == wire.MethodInitialize:
		s.initialized, s.questionKinds = true, m.declaredKinds()
	case !s.initialized && m.method != wire.MethodPing:
		return newError(wire.CodeRequest, "A client begins with %s, or says in each request's _meta of which revision it is.", wire.MethodInitialize)
	}
	return nil
}

// startRequest takes a slot for a request. Its context ends when the client cancels it; done
// gives the slot back.
func (s *stdioSession) startRequest(ctx context.Context, id any) (_ context.Context, done func(), _ *rpcError) {
	select {
	case s.slots <- struct{}{}:
	default:
		refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
		refused.RetryAfterMS = 1000
		return nil, nil, refusalError(refused)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancels[id] != nil {
		<-s.slots
		return nil, nil, newError(wire.CodeRequest, "A request of this id is being answered.")
	}
	ctx, cancel := context.WithCancel(ctx)
	s.cancels[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		delete(s.cancels, id)
		s.mu.Unlock()
		cancel()
		<-s.slots
	}, nil
}

func (s *stdioSession) cancel(id any) {
	if !validID(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.cancels[id]; cancel != nil {
		cancel()
	}
}

// handle answers a request, also if the answer panics.
func (s *stdioSession) handle(ctx context.Context, r request) (a *response) {
	defer func() {
		if p := recover(); p != nil {
			a = &response{fault: refusalError(refusal.From(refusal.Any, safe.PanicError(p)))}
		}
	}()
	admission, err := s.face.options.Executor.Admit(ctx, s.request)
	if err != nil {
		return &response{fault: refusalError(refusal.From(refusal.Identity, err))}
	}
	r.admission = admission
	return s.face.handle(ctx, r)
}

// writeResponse writes an answer.
func (s *stdioSession) writeResponse(m *message, a *response) {
	line := a.encode(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.writeLine(line)
}

// notify writes a notification of a request, unless the client has cancelled the request.
func (s *stdioSession) notify(ctx context.Context, line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.writeLine(line)
}

// writeLine writes one line, under mu.
func (s *stdioSession) writeLine(line []byte) error {
	if s.failed == nil {
		if _, err := s.out.Write(append(line, '\n')); err != nil {
			s.failed = fmt.Errorf("cannot write to standard output: %w", err)
		}
	}
	return s.failed
}

// writable reports whether the output still accepts lines.
func (s *stdioSession) writable() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil
}

// respond gives an answer on standard input to the question that waits for it. A response
// that no question waits for gets no reply, because responses never do: the call may be over
// without the client knowing it yet.
func (s *stdioSession) respond(ctx context.Context, m *message, wrong *rpcError) {
	if wrong != nil {
		s.writeResponse(nil, &response{fault: wrong})
		return
	}
	admission, err := s.face.options.Executor.Admit(ctx, s.request)
	if err != nil {
		s.writeResponse(nil, &response{fault: refusalError(refusal.From(refusal.Identity, err))})
		return
	}
	s.face.respond(admission, m, nil)
}

// elicitor returns an elicitor for the client on the pair of streams, for a request whose
// context ends when the client cancels it.
func (s *stdioSession) elicitor(ctx context.Context) *elicitor {
	return &elicitor{
		kinds: s.questionKinds,
		send:  func(line []byte) error { return s.notify(ctx, line) },
		wait:  func(wait func(context.Context)) *refusal.Error { return s.pause(ctx, wait) },
	}
}

// pause runs a function that waits until the client cancels its request, or nothing is read any
// more.
func (s *stdioSession) pause(ctx context.Context, wait func(context.Context)) *refusal.Error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(s.inputEnded, done)()
	wait(ctx)
	return nil
}
