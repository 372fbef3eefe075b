package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/program"
	"github.com/callgate/callgate/internal/refuse"
	"github.com/callgate/callgate/tool"
)

const (
	minLine         = 1 << 20   // bytes that a line may have whatever is waited for
	maxLine         = 128 << 20 // bytes above the limit, which are skipped, after which the program is given up
	maxNoiseLines   = 1000      // on end that are no messages
	maxNoiseBytes   = 1 << 20   // of these lines together
	replyTimeout    = 5 * time.Second
	discoverTimeout = 10 * time.Second // for a program to know the newest revision, or to say that it does not
)

// local carries a session over the standard input and output of a program, one message a
// line. All calls share the program.
type local struct {
	client  *Client
	server  string
	program *program.Program
	errors  *stderrTail

	done      chan struct{}
	writeLock chan struct{} // full while a line is written

	mu        sync.Mutex
	waiting   map[int64]*pendingRequest
	endErr    error // why done is closed
	linesRead uint64
	silent    bool // a call has waited for its whole timeout, in which no line came, and none has since

	// noise counts the lines on end that were no messages, and their bytes. Only readLines uses them.
	noise, noiseBytes int
}

const errNotReading refuse.Reason = "its program does not read what it is sent"

// pendingRequest is a request that was written and has no response yet.
type pendingRequest struct {
	*request
	reply     chan *reply // holds one
	linesRead uint64      // lines that had come when it was written
	silent    bool        // the program was silent then
}

func startLocal(l *sharedSession) (*local, error) {
	p, err := program.Start(l.endpoint.command, l.endpoint.folder, l.endpoint.variables)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, refuse.Reason("its program was not found")
	}
	if err != nil {
		return nil, err
	}
	c := &local{
		client: l.client, server: l.endpoint.server, program: p,
		errors: &stderrTail{secrets: secretLines(l.endpoint.env, l.endpoint.variables), done: make(chan struct{})},
		done:   make(chan struct{}), writeLock: make(chan struct{}, 1), waiting: map[int64]*pendingRequest{},
	}
	if !l.client.spawn(func() { p.Supervise(c.done) }) {
		p.Kill()
		return nil, errClosed
	}
	if !l.client.spawn(func() { c.errors.read(p.Errors) }) || !l.client.spawn(c.readLines) {
		c.fail(errClosed)
		return nil, errClosed
	}
	return c, nil
}

// roundTrip writes a request and waits for its response.
func (l *local) roundTrip(ctx context.Context, q *request) *reply {
	w := &pendingRequest{request: q, reply: make(chan *reply, 1)}
	l.mu.Lock()
	w.linesRead, w.silent = l.linesRead, l.silent
	l.waiting[q.id] = w
	l.mu.Unlock()
	if q.method == wire.MethodDiscover {
		// Programs of the older revisions may ignore a request that they do not know.
		defer time.AfterFunc(discoverTimeout, func() {
			l.complete(q.id, 0, &reply{rpcError: &jsonrpc.Error{Code: jsonrpc.CodeMethod}})
		}).Stop()
	}
	err := l.notify(ctx, q)
	if err == nil {
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-l.done:
			err = errProgramEnded
		case a := <-w.reply:
			return a
		}
	}
	return l.abandon(ctx, w, err)
}

// notify writes a notification, or a request without waiting for its response.
func (l *local) notify(ctx context.Context, q *request) error {
	line := q.encode()
	// A message is one line. In JSON, line breaks occur between tokens only.
	for i, c := range line {
		if c == '\n' || c == '\r' {
			line[i] = ' '
		}
	}
	return l.write(ctx, append(line, '\n'), q)
}

// listen writes the request. A program of the older revisions announces changes anyway.
func (l *local) listen(ctx context.Context, q *request) error {
	if q == nil {
		return nil
	}
	return l.notify(ctx, q)
}

// agreed does nothing: no line repeats the revision, and a program has one session.
func (l *local) agreed(string, string) {}

// abandon removes a request whose caller does not wait any longer, and returns its reply: the
// response, if it came meanwhile, or the error. If the program wrote nothing in the whole time of a
// call, and no other request is pending, it may hang, or do one thing at a time and be at work: it is pinged
// only once another call, which began after that, has waited in vain as well.
func (l *local) abandon(ctx context.Context, w *pendingRequest, why error) *reply {
	unresponsive := false
	l.mu.Lock()
	delete(l.waiting, w.id)
	if w.method == wire.MethodCall && errors.Is(ctx.Err(), context.DeadlineExceeded) && w.linesRead == l.linesRead && len(l.waiting) == 0 {
		unresponsive, l.silent = w.silent, true
	}
	if l.endErr != nil {
		why = l.endErr
	}
	l.mu.Unlock()
	select {
	case a := <-w.reply: // it came meanwhile
		return a
	default:
	}
	if unresponsive {
		l.client.spawn(func() { l.ping(w.linesRead) })
	}
	return &reply{err: why}
}

// ping asks the program for any output, and ends the session if there is none.
func (l *local) ping(received uint64) {
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
	unresponsive := l.linesRead == received
	l.mu.Unlock()
	if unresponsive {
		l.fail(refuse.Reason("its program said nothing while two calls waited for their whole timeouts, nor to a ping"))
	}
}

// write writes one line at a time. After a partial write the program cannot be used any
// more.
func (l *local) write(ctx context.Context, line []byte, q *request) error {
	select {
	case l.writeLock <- struct{}{}:
		defer func() { <-l.writeLock }()
	case <-ctx.Done():
		return ctx.Err()
	case <-l.done:
		return errProgramEnded
	}
	select {
	case <-l.done:
		return errProgramEnded
	default:
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	deadline, _ := ctx.Deadline()
	if q != nil {
		q.sent = true
	}
	_ = l.program.Input.SetWriteDeadline(deadline)
	late := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(late)
		_ = l.program.Input.SetWriteDeadline(time.Now())
	})
	n, err := l.program.Input.Write(line)
	if !stop() {
		<-late // or it would end the next
	}
	if err != nil {
		tooLate := errors.Is(err, os.ErrDeadlineExceeded)
		switch {
		case !tooLate && l.client.spawn(func() { l.fail(l.refusedInput()) }):
			select {
			case <-l.done:
			case <-ctx.Done():
			}
		case n > 0 || !tooLate:
			l.fail(errNotReading)
		}
		return err
	}
	return nil
}

// refusedInput says why a program's input is closed: as a rule the program has ended, and its
// output, which says so too, was not read to its end yet.
func (l *local) refusedInput() error {
	if l.program.ExitsWithin(program.Grace) {
		return l.errors.exitError()
	}
	return errNotReading
}

// handleLine handles one line. An error ends the session: after a broken message, it is not known
// where the next begins or which request it answers.
func (l *local) handleLine(line []byte) error {
	m, err := readMessage(line)
	if err != nil {
		return l.handleOther(line, err)
	}
	l.noise, l.noiseBytes = 0, 0
	return l.handleMessage(m, line)
}

// handleMessage handles the message of a line.
func (l *local) handleMessage(m *message, line []byte) error {
	switch {
	case m.hasMethod && m.id == nil:
		l.handleNotification(m)
	case m.hasMethod:
		ctx, cancel := context.WithTimeout(l.client.ctx, replyTimeout)
		defer cancel()
		return l.write(ctx, append(serverReply(m), '\n'), nil)
	case m.id != nil:
		// A response that is not waited for is late, or to no request, and is dropped.
		if id, ok := requestID(m.id); ok {
			l.complete(id, int64(len(line)), replyOf(m))
		}
	case m.rpcError != nil:
		l.complete(l.greeting(), int64(len(line)), replyOf(m))
	}
	return nil
}

// greeting is the id of the request that an error without an id answers: of the one that begins a session, while
// nothing else was asked. Later such an error may be about a notification, a reply, or a call that was given up.
// 0 is the id of none.
func (l *local) greeting() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, w := range l.waiting {
		if len(l.waiting) == 1 && (w.method == wire.MethodDiscover || w.method == wire.MethodInitialize) {
			return id
		}
	}
	return 0
}

// handleOther handles a line that is no message for a reason. It fails the request whose id the line
// holds. Many programs print a line of their own, some with a message in it: one that does not begin as a message
// is passed over.
func (l *local) handleOther(line []byte, why error) error {
	g, resembles := scanLine(line)
	if id, ok := g.id(); ok && l.complete(id, 0, &reply{invalid: why.Error()}) {
		return nil
	}
	l.noise++
	l.noiseBytes += len(line)
	if !resembles && l.noise <= maxNoiseLines && l.noiseBytes <= maxNoiseBytes {
		return nil
	}
	return &tool.InvalidListError{Err: refuse.Reason(fmt.Sprintf(
		"%s: its program wrote %s to standard output, which is for messages alone; have it log to standard error", why,
		l.errors.quote(line)))}
}

// scanLine scans a line that is no message, and reports whether it begins as one does, or as several do, or is one
// line of a message that was written on many.
func scanLine(line []byte) (g idScanner, resembles bool) {
	inner := bytes.TrimLeft(line, "[ \t\r")
	if bytes.HasPrefix(inner, []byte("{")) {
		g.scan(inner)
	}
	return g, g.version || bytes.HasPrefix(inner, []byte(`"`+versionName+`"`))
}

// handleNotification handles a changed list of tools, or the progress of a call. Logs are
// ignored, because they do not say to which call they belong.
func (l *local) handleNotification(m *message) {
	switch m.method {
	case wire.NoticeChanged:
		l.client.toolsChanged(l.server, true)
	case wire.NoticeProgress:
		if r, ok := readProgress(m.params); ok {
			if q := l.requestOfToken(r.token); q != nil {
				q.listener.onProgress(r)
			}
		}
	}
}

// requestOfToken is the pending request with a progress token; nil if there is none.
func (l *local) requestOfToken(token string) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.waiting {
		if w.token == token {
			return w.request
		}
	}
	return nil
}

// complete ends the request with an id by a reply of a length, which it may have, and reports
// whether it was pending.
func (l *local) complete(id, length int64, a *reply) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.waiting[id]
	if w == nil {
		return false
	}
	delete(l.waiting, id)
	if length > w.limit {
		a = &reply{tooLarge: true}
	}
	w.reply <- a
	return true
}

// fail ends the session. The first cause stays.
func (l *local) fail(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.endErr == nil {
		l.endErr = why
		close(l.done)
	}
}

// endCause is why the session has ended; nil if the gateway needs it no longer.
func (l *local) endCause() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if errors.Is(l.endErr, errClosed) {
		return nil
	}
	return l.endErr
}

// disconnect ends the session. It does not wait for the program.
func (l *local) disconnect() { l.fail(errClosed) }

func (l *local) ended() <-chan struct{} { return l.done }

func (l *local) closeSession() {}
