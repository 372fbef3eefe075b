package mcp

import (
	"context"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/callgate/callgate/engine/internal/refuse"
	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/tool"
)

const (
	minLine         = 1 << 20  // bytes that a line may have whatever is waited for
	maxLine         = 16 << 20 // beyond what may be kept; then the program is given up
	replyTimeout    = 5 * time.Second
	discoverTimeout = 10 * time.Second // for a program to know the newest revision, or to say that it does not
)

// local carries a session over the standard input and output of a program, one message a
// line. All calls share the program.
type local struct {
	client  *Client
	server  string
	program *program
	errors  *stderrTail

	incoming  chan jsonrpc.Message
	done      chan struct{}
	once      sync.Once
	writeLock chan struct{} // held by who writes

	mu        sync.Mutex
	waiting   map[int64]*pendingRequest
	endErr    error
	linesRead uint64 // lines
}

// pendingRequest is a request that was written and has no response yet.
type pendingRequest struct {
	*roundTrip
	linesRead uint64 // lines that had come when it was written
}

func startLocal(l *sharedSession) (*local, error) {
	p, err := startProgram(l.endpoint)
	if err != nil {
		return nil, err
	}
	c := &local{
		client: l.client, server: l.endpoint.server, program: p,
		errors:   &stderrTail{secrets: secretLines(l.endpoint.env, l.endpoint.variables), done: make(chan struct{})},
		incoming: make(chan jsonrpc.Message), done: make(chan struct{}), writeLock: make(chan struct{}, 1),
		waiting: map[int64]*pendingRequest{},
	}
	if !l.client.spawn(func() { p.supervise(c.done) }) {
		p.kill()
		return nil, errClosed
	}
	if !l.client.spawn(func() { c.errors.read(p.errors) }) || !l.client.spawn(c.listen) {
		c.fail(errClosed)
		return nil, errClosed
	}
	return c, nil
}

// Read returns the response to a request of the SDK.
func (l *local) Read(context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-l.incoming:
		return m, nil
	case <-l.done:
		return nil, io.EOF
	}
}

// Write writes a request. Its response comes later.
func (l *local) Write(ctx context.Context, m jsonrpc.Message) (err error) {
	defer recoverTo(&err)
	request, ok := m.(*jsonrpc.Request)
	if !ok {
		return nil // nothing is passed on that the SDK would answer
	}
	if request.Method == wire.NoticeCancelled {
		l.abandon(request)
	}
	var e *roundTrip
	// The answer to listening is its end, which nobody waits for.
	if request.IsCall() && request.Method != wire.MethodListen {
		e = roundTripOf(ctx)
	}
	line, err := e.encode(request)
	if err != nil {
		return err
	}
	// A message is a line. In JSON an end of one stands between tokens alone.
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	if e != nil {
		l.await(request, e)
	}
	return l.write(ctx, append(line, '\n'), e)
}

// await registers a request whose response is expected.
func (l *local) await(request *jsonrpc.Request, e *roundTrip) {
	id := request.ID.Raw().(int64)
	l.mu.Lock()
	l.waiting[id] = &pendingRequest{e, l.linesRead}
	l.mu.Unlock()
	if request.Method != wire.MethodDiscover {
		return
	}
	// Programs of before that revision may say nothing to what they do not know.
	time.AfterFunc(discoverTimeout, func() {
		l.complete(id, &reply{rpcError: &rpcError{code: jsonrpc.CodeMethodNotFound}})
	})
}

// abandon forgets a request that nobody waits for any more. If the program wrote nothing
// since the request, and no other request is pending, the program may hang, and is
// pinged.
func (l *local) abandon(request *jsonrpc.Request) {
	members, _ := object(request.Params)
	id, err := strconv.ParseInt(string(members["requestId"]), 10, 64)
	if err != nil {
		return
	}
	l.mu.Lock()
	w := l.waiting[id]
	delete(l.waiting, id)
	silent := w != nil && w.linesRead == l.linesRead && len(l.waiting) == 0
	l.mu.Unlock()
	if silent {
		l.client.spawn(func() { l.ping(w.linesRead) })
	}
}

// ping asks the program for any output, and ends the session if there is none.
func (l *local) ping(heard uint64) {
	ctx, cancel := context.WithTimeout(l.client.ctx, replyTimeout)
	defer cancel()
	if l.write(ctx, []byte(`{"jsonrpc":"2.0","id":"alive","method":"ping"}`+"\n"), nil) == nil {
		select {
		case <-l.done:
			return
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	silent := l.linesRead == heard
	l.mu.Unlock()
	if silent {
		l.fail(refuse.Reason("its program did not say anything any longer"))
	}
}

// write writes one line at a time. After a partial write the program cannot be used any
// more.
func (l *local) write(ctx context.Context, line []byte, e *roundTrip) error {
	select {
	case l.writeLock <- struct{}{}:
		defer func() { <-l.writeLock }()
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errProgramEnded
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	deadline, _ := ctx.Deadline()
	if e != nil {
		e.sent.Store(true)
	}
	_ = l.program.input.SetWriteDeadline(deadline)
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(late)
		_ = l.program.input.SetWriteDeadline(time.Now())
	})
	n, err := l.program.input.Write(line)
	if !stop() {
		<-late // or it would end the next
	}
	if err != nil {
		if n > 0 || ctx.Err() == nil {
			l.fail(refuse.Reason("its program does not read what it is sent"))
		}
		return err
	}
	return nil
}

// handleLine handles one line. An error ends the session: after a line that is no
// message, it is not known where the next begins or which request it answers.
func (l *local) handleLine(line []byte) error {
	m, err := readMessage(line)
	switch {
	case err != nil:
		var g idScanner
		g.scan(line)
		id, ok := g.id()
		if !ok || !l.complete(id, &reply{invalid: err.Error()}) {
			return &tool.InvalidListError{Err: err}
		}
	case m.hasMethod && m.id == nil:
		l.handleNotification(m)
	case m.hasMethod:
		ctx, cancel := context.WithTimeout(l.client.ctx, replyTimeout)
		defer cancel()
		return l.write(ctx, append(serverReply(m), '\n'), nil)
	case m.id != nil:
		// One that is not waited for is late, or was never asked for: nobody is given it.
		if id, err := strconv.ParseInt(string(m.id), 10, 64); err == nil {
			a := responseOf(m)
			if w := l.pending(id); w != nil && int64(len(line)) > w.limit {
				a = &reply{tooLarge: true}
			}
			l.complete(id, a)
		}
	}
	return nil
}

// handleNotification handles a changed list of tools, or the progress of a call. Logs are
// ignored, because they do not say to which call they belong.
func (l *local) handleNotification(m *message) {
	switch m.method {
	case wire.NoticeChanged:
		l.client.toolsChanged(l.server)
	case wire.NoticeProgress:
		if r, ok := readProgress(m.params); ok {
			if e := l.roundTripOfToken(r.token); e != nil {
				e.listener.onProgress(r)
			}
		}
	}
}

// roundTripOfToken is the round trip with a progress token; nil if there is none.
func (l *local) roundTripOfToken(token string) *roundTrip {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.waiting {
		if w.token == token {
			return w.roundTrip
		}
	}
	return nil
}

func (l *local) pending(id int64) *pendingRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting[id]
}

// complete ends the round trip with an id, and reports whether it was pending.
func (l *local) complete(id int64, a *reply) bool {
	l.mu.Lock()
	w := l.waiting[id]
	delete(l.waiting, id)
	l.mu.Unlock()
	if w == nil {
		return false
	}
	name, _ := jsonrpc.MakeID(float64(id))
	l.deliver(w.complete(name, a))
	return true
}

func (l *local) deliver(m jsonrpc.Message) {
	select {
	case l.incoming <- m:
	case <-l.done:
	}
}

// fail ends the session. The first cause stays.
func (l *local) fail(why error) {
	l.once.Do(func() {
		l.mu.Lock()
		l.endErr = why
		l.mu.Unlock()
		close(l.done)
	})
}

// Close ends the session. It does not wait for the program.
func (l *local) Close() error {
	l.fail(errClosed)
	return nil
}

// SessionID is empty: the SDK needs none.
func (l *local) SessionID() string      { return "" }
func (l *local) ended() <-chan struct{} { return l.done }

func (l *local) cause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.endErr
}

func (l *local) closeSession()  {}
func (l *local) hasState() bool { return false }
func (l *local) modern() bool   { return false }
