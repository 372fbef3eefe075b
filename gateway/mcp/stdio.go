package mcp

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// mostAtOnce bounds the requests of one client that are answered at the same time.
const mostAtOnce = 64

// Stdio answers one client, a message a line, until its input ends or ctx does, and
// returns once all that it was asked has been answered. The request says for whom;
// its inputs are not looked at. From dispatch on a call does not end with ctx.
//
// Of the era before 2026-07-28 the client must begin with initialize. What it
// cancels is not answered; a call that was dispatched goes on.
func (f *Face) Stdio(ctx context.Context, request gateway.Request, in io.Reader, out io.Writer) error {
	s := &session{
		face: f, request: request, id: rand.Text(), out: out, running: map[any]context.CancelFunc{},
		slots: make(chan struct{}, mostAtOnce),
	}
	var leave context.CancelFunc
	s.left, leave = context.WithCancel(ctx)
	err := s.read(ctx, bufio.NewReaderSize(in, 64<<10))
	leave() // nobody answers any more
	s.calls.Wait()
	return errors.Join(err, s.failed)
}

// session is one client on a pair of streams.
type session struct {
	face    *Face
	request gateway.Request
	id      string          // what its client says is kept by
	left    context.Context // ends when nothing is read any more
	// begun says that there was an initialize, and declared which questions it says
	// that the client answers; only the reader looks at them.
	begun    bool
	declared []string

	slots chan struct{}
	calls sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	failed  error                      // of writing
	running map[any]context.CancelFunc // by the id of the request
}

// read takes the messages in, one after the other.
func (s *session) read(ctx context.Context, in *bufio.Reader) error {
	for ctx.Err() == nil && s.writes() {
		line, long, err := lineOf(in, s.face.maxMessage())
		switch {
		case long:
			s.write(nil, &answer{fault: faulty(codeRequest, "The message is longer than %d bytes.", s.face.maxMessage())})
		case len(line) > 0 && ctx.Err() == nil:
			s.take(context.WithoutCancel(ctx), line)
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

// lineOf reads a line of bounded length without its end. Of one that is longer,
// nothing is kept.
func lineOf(in *bufio.Reader, most int) (line []byte, long bool, err error) {
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
		return trimmed(line), long, err
	}
}

func trimmed(line []byte) []byte {
	for n := len(line); n > 0 && (line[n-1] == '\n' || line[n-1] == '\r'); n-- {
		line = line[:n-1]
	}
	return line
}

// take answers one message, or begins to.
func (s *session) take(ctx context.Context, line []byte) {
	m, fault := read(line)
	if fault == nil && m.notification() {
		if m.method == "notifications/cancelled" {
			s.cancel(m.params["requestId"])
		}
		return
	}
	if m.response {
		s.respond(ctx, m, fault)
		return
	}
	modern := m.stateless()
	if fault == nil {
		fault = s.introduced(m, modern)
	}
	var key string
	if fault == nil {
		key, fault = m.key(nil)
	}
	if fault != nil {
		s.write(m, &answer{fault: fault})
		return
	}
	ctx, done, fault := s.begin(ctx, m.id)
	if fault != nil {
		s.write(m, &answer{fault: fault})
		return
	}
	r := asked{message: m, modern: modern, key: key}
	r.told = &reporter{ctx: ctx, send: func(line []byte, _ bool) error { return s.tell(ctx, line) }}
	if !modern {
		r.session = s.id
		if len(s.declared) > 0 {
			r.host = s.host(ctx)
		}
	}
	s.calls.Go(func() {
		a := s.answer(ctx, r)
		cancelled := ctx.Err() != nil
		done() // the client may use the id again once it has the answer
		if !cancelled {
			s.write(m, a)
		}
	})
}

// introduced says what has to come first.
func (s *session) introduced(m *message, modern bool) *fault {
	switch {
	case modern:
		if f := m.introduced(); f != nil {
			return f
		}
		if said := text(m.meta()[metaVersion]); said != revision2026 {
			return unsupported(said)
		}
	case m.method == methodInitialize:
		s.begun, s.declared = true, m.declares()
	case !s.begun && m.method != methodPing:
		return faulty(codeRequest, "A client begins with %s, or says in each request's _meta of which revision it is.", methodInitialize)
	}
	return nil
}

// begin makes room for a request. Its context ends when the client cancels it.
func (s *session) begin(ctx context.Context, id any) (_ context.Context, done func(), _ *fault) {
	select {
	case s.slots <- struct{}{}:
	default:
		refused := refusal.New(refusal.Overloaded, "Too many requests are being answered: wait 1000 ms, then send the same request again.")
		refused.RetryAfterMS = 1000
		return nil, nil, refuses(refused)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[id] != nil {
		<-s.slots
		return nil, nil, faulty(codeRequest, "A request of this id is being answered.")
	}
	ctx, cancel := context.WithCancel(ctx)
	s.running[id] = cancel
	return ctx, func() {
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
		cancel()
		<-s.slots
	}, nil
}

func (s *session) cancel(id any) {
	if !validID(id) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.running[id]; cancel != nil {
		cancel()
	}
}

// answer answers a request; one that breaks off is answered too.
func (s *session) answer(ctx context.Context, r asked) (a *answer) {
	defer func() {
		if p := recover(); p != nil {
			a = &answer{fault: refuses(refusal.From(refusal.Any, fmt.Errorf("panic of type %T", p)))}
		}
	}()
	admission, err := s.face.options.Kernel.Admit(ctx, s.request)
	if err != nil {
		return &answer{fault: refuses(refusal.From(refusal.Identity, err))}
	}
	r.admission = admission
	return s.face.answer(ctx, r)
}

// write writes an answer.
func (s *session) write(m *message, a *answer) {
	line := a.line(m)
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.put(line)
}

// tell writes what a client is told before it is answered, unless it has cancelled
// what that is of.
func (s *session) tell(ctx context.Context, line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.put(line)
}

// put writes one line, under mu.
func (s *session) put(line []byte) error {
	if s.failed == nil {
		if _, err := s.out.Write(append(line, '\n')); err != nil {
			s.failed = fmt.Errorf("cannot write to standard output: %w", err)
		}
	}
	return s.failed
}

// writes tells whether somebody still takes answers.
func (s *session) writes() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed == nil
}
