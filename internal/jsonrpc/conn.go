package jsonrpc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/wrapper"
)

// The defaults of Options.
const (
	defaultMaxFrame      = 8 << 20
	defaultMaxConcurrent = 64
	defaultWriteTimeout  = 30 * time.Second
)

// ErrEnded is why a call has no answer: the peer has left, or Run is over.
var ErrEnded = errors.New("the connection has ended")

// Options say how a connection works. In, Out and Handle are needed. No two of Receive, Notify
// and Unsolicited run at a time: they run on the goroutine that reads, in the order of the messages, and
// hold everything up that comes later.
type Options struct {
	In  io.Reader
	Out io.Writer
	// MaxFrame bounds the bytes of a line that is read; 0: 8 MiB.
	MaxFrame int
	// MaxConcurrent bounds the requests of the peer that are being answered; 0: 64. One
	// beyond it is refused at once.
	MaxConcurrent int
	// WriteTimeout bounds how long the peer may take to read a line; 0: 30 s. Then the
	// connection ends.
	WriteTimeout time.Duration
	// Drain says that requests go on when In or ctx ends, and are answered. Otherwise their
	// contexts end; an answer is still written.
	Drain bool
	// Unread are the names that lead to a value which is not read; see ReadExcept.
	Unread []string

	// Receive is called for each request that will be handled, before Handle and before any
	// later message is looked at. An error answers the request. Nil accepts all.
	Receive func(ctx context.Context, m *Message) *Error
	// Handle answers a request, on a goroutine of its own. Its context ends by Cancel. The
	// result is marshalled; nil is null. For the error NoAnswer nothing is written.
	Handle func(ctx context.Context, m *Message) (result any, fault *Error)
	// Answered is called for each request that Handle has answered, on its goroutine, once the answer
	// was written or cannot be. Nil needs none.
	Answered func(m *Message)
	// Notify takes a notification; nil drops all.
	Notify func(ctx context.Context, m *Message)
	// Unsolicited takes a response that no call of ours waits for, or one that is a fault of the
	// peer, for which fault is set; nil drops them. It is never answered by Conn.
	Unsolicited func(ctx context.Context, m *Message, fault *Error)
	// Refuse may replace the error of a request that Conn answers itself.
	Refuse func(why Refusal, e *Error) *Error
	// Encode encodes an answer, in place of the form of JSON-RPC; fault is nil, or the answer.
	Encode func(id ID, result any, fault *Error) ([]byte, error)
	// Panicked is told of a panic in one of these functions, which quotes no data. Nil drops it.
	Panicked func(err error)
}

// Refusal is why Conn answers a message itself.
type Refusal int

// The refusals.
const (
	NotMessage Refusal = iota // it is no message
	TooLong                   // the line is longer than MaxFrame
	TooMany                   // MaxConcurrent requests are being answered
	IDInUse                   // a request of that id is being answered
	Failed                    // a function of Options panicked, or its answer is no JSON
)

// NoAnswer is the error of a Handle whose request is not answered.
var NoAnswer = &Error{}

// Conn is a connection with one peer. Its methods may be called concurrently, and before Run.
type Conn struct {
	options Options
	lines   *Lines
	out     *Writer
	slots   chan struct{} // full of requests that are being answered
	unsent  chan struct{} // full of requests whose answer was not written
	ended   chan struct{} // closed when nothing of the peer is looked at any more
	busy    sync.WaitGroup

	mu      sync.Mutex
	over    bool                      // ended is closed
	cancels map[ID]context.CancelFunc // of the requests that are being answered
	waiting map[int64]*Pending        // our calls
	lastID  int64
}

// New returns a connection that does not read yet.
func New(o Options) *Conn {
	o.MaxFrame = cmp.Or(o.MaxFrame, defaultMaxFrame)
	o.MaxConcurrent = cmp.Or(o.MaxConcurrent, defaultMaxConcurrent)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, defaultWriteTimeout)
	if o.Encode == nil {
		o.Encode = encode
	}
	return &Conn{
		options: o, lines: NewLines(o.In, o.MaxFrame), out: NewWriter(o.Out, o.WriteTimeout),
		slots: make(chan struct{}, o.MaxConcurrent), unsent: make(chan struct{}, 2*o.MaxConcurrent),
		ended:   make(chan struct{}),
		cancels: map[ID]context.CancelFunc{}, waiting: map[int64]*Pending{},
	}
}

// Run reads until In or ctx ends, or the peer does not read any longer. Then calls of ours fail,
// and Run returns once all requests have been answered; later ones of ours fail. The error is that
// of reading or writing; the end of In and of ctx is none. A read of In that does not return is left
// behind, and its bytes are dropped. Run may be called once.
func (c *Conn) Run(ctx context.Context) error {
	parent := ctx
	if c.options.Drain {
		parent = context.WithoutCancel(ctx)
	}
	handlers, stop := context.WithCancel(parent)
	defer stop()
	read := make(chan error, 1)
	go func() { read <- c.read(handlers) }()
	var err error
	select {
	case err = <-read:
		if ctx.Err() != nil {
			err = nil // a reader may end with it
		}
	case <-ctx.Done():
	case <-c.out.Broken():
	}
	c.end()
	if !c.options.Drain {
		stop()
	}
	c.busy.Wait()
	c.out.Close()
	if !errors.Is(c.out.err, ErrClosed) {
		err = errors.Join(err, c.out.err)
	}
	return err
}

// Ended is closed when nothing of the peer is looked at any more.
func (c *Conn) Ended() <-chan struct{} { return c.ended }

// end fails the calls that wait.
func (c *Conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	close(c.ended)
	for id, p := range c.waiting {
		delete(c.waiting, id)
		p.done <- answer{err: ErrEnded}
	}
}

// read handles the lines, one after the other.
func (c *Conn) read(ctx context.Context) (err error) {
	defer safe.Recover(&err) // of In
	for {
		line, err := c.lines.Next()
		switch {
		case errors.Is(err, ErrTooLong):
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("cannot read: %w", err)
		case len(line) == 0:
			continue
		}
		if !c.begin() {
			return nil
		}
		if err != nil {
			c.handle(ctx, readBeginning(line), TooLong, Errorf(CodeRequest, "The message is longer than %d bytes.", c.options.MaxFrame))
		} else {
			m, fault := ReadExcept(line, c.options.Unread...)
			c.handle(ctx, m, NotMessage, fault)
		}
		c.busy.Done()
	}
}

// begin reports whether messages are still looked at, and makes Run wait for a busy.Done.
func (c *Conn) begin() bool {
	select {
	case <-c.out.Broken():
		return false
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.busy.Add(1)
	}
	return !c.over
}

// handle handles one message, or begins to. The fault, if there is one, has a reason.
func (c *Conn) handle(ctx context.Context, m *Message, why Refusal, fault *Error) {
	switch {
	case m.IsResponse():
		if !c.resolve(m, fault) && c.options.Unsolicited != nil {
			c.guard(func() { c.options.Unsolicited(ctx, m, fault) })
		}
	case fault != nil:
		c.refuse(m.ID, why, fault)
	case !m.IsNotification():
		c.receive(ctx, m)
	case c.options.Notify != nil:
		c.guard(func() { c.options.Notify(ctx, m) })
	}
}

// receive begins to answer a request.
func (c *Conn) receive(ctx context.Context, m *Message) {
	ctx, why, fault := c.admit(ctx, m.ID)
	if fault != nil {
		c.refuse(m.ID, why, fault)
		return
	}
	if c.options.Receive != nil {
		a := c.called(func() (any, *Error) { return nil, c.options.Receive(ctx, m) })
		if a.fault != nil {
			c.release(m.ID)
			c.answer(m.ID, a)
			return
		}
	}
	// A peer that does not read has its requests wait here, and not each in a goroutine.
	select {
	case c.unsent <- struct{}{}:
	case <-c.out.Broken():
	}
	select {
	case <-c.out.Broken(): // now there is room, since the answers that waited have failed
		c.release(m.ID)
		return
	default:
	}
	c.busy.Go(func() {
		a := c.called(func() (any, *Error) { return c.options.Handle(ctx, m) })
		c.release(m.ID) // the peer may use it again once it has the answer
		c.answer(m.ID, a)
		if c.options.Answered != nil {
			c.guard(func() { c.options.Answered(m) })
		}
		<-c.unsent
	})
}

// admit takes a slot for a request. Its context ends by Cancel.
func (c *Conn) admit(ctx context.Context, id ID) (context.Context, Refusal, *Error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancels[id] != nil {
		return nil, IDInUse, Errorf(CodeRequest, "A request of this id is being answered.")
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return nil, TooMany, Errorf(CodeInternal, "Too many requests are being answered.")
	}
	ctx, c.cancels[id] = context.WithCancel(ctx)
	return ctx, 0, nil
}

// release gives the slot of a request back.
func (c *Conn) release(id ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancels[id]()
	delete(c.cancels, id)
	<-c.slots
}

// Cancel ends the context of a request of the peer that is being answered, and reports whether
// there is one of that id.
func (c *Conn) Cancel(id ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	cancel := c.cancels[id]
	if cancel != nil {
		cancel()
	}
	return cancel != nil
}

// guard runs a function that may panic, and reports whether it did not.
func (c *Conn) guard(f func()) bool {
	err := safe.Do(func() error { f(); return nil })
	if err != nil && c.options.Panicked != nil {
		c.options.Panicked(err)
	}
	return err == nil
}

// answered is the answer to a request.
type answered struct {
	result any
	fault  *Error
}

// called returns the answer of a function that may panic.
func (c *Conn) called(f func() (any, *Error)) (a answered) {
	if !c.guard(func() { a.result, a.fault = f() }) {
		a = c.failed()
	}
	return a
}

// failed is the answer after a panic, which it does not describe.
func (c *Conn) failed() answered {
	return answered{fault: c.refusal(Failed, Errorf(CodeInternal, "The request failed."))}
}

func (c *Conn) refusal(why Refusal, e *Error) *Error {
	if c.options.Refuse != nil {
		if own := c.options.Refuse(why, e); own != nil {
			return own
		}
	}
	return e
}

func (c *Conn) refuse(id ID, why Refusal, e *Error) {
	c.answer(id, answered{fault: c.refusal(why, e)})
}

// answer writes an answer. A failure to write ends the connection, and needs no other reply.
func (c *Conn) answer(id ID, a answered) {
	if a.fault == NoAnswer {
		return
	}
	line, err := c.options.Encode(id, a.result, a.fault)
	if err != nil {
		if line, err = encode(id, nil, c.failed().fault); err != nil {
			line = []byte(`{"jsonrpc":"2.0","id":` + id.String() + `,"error":{"code":-32603,"message":"The request failed."}}`)
		}
	}
	_ = c.out.Write(context.Background(), line)
}

// encode encodes an answer as JSON-RPC says. A result has nothing that hides.
func encode(id ID, result any, fault *Error) ([]byte, error) {
	if fault != nil {
		return wrapper.Marshal(struct {
			Version string `json:"jsonrpc"`
			ID      ID     `json:"id"`
			Error   *Error `json:"error"`
		}{"2.0", id, fault})
	}
	return wrapper.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      ID     `json:"id"`
		Result  any    `json:"result"`
	}{"2.0", id, result})
}
