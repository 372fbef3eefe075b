package acptest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Patience is far longer than an answer takes on a machine under load.
const Patience = 60 * time.Second

// Error is the error that a peer answers with, or gets.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) }

// Message is one message that a peer has got.
type Message struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Error          `json:"error,omitempty"`
}

// Reporter is the part of testing.TB that peers need. A process without a test has one of
// its own.
type Reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Handler answers a request in a goroutine of its own, or takes a notification before the
// next message is read, and must not wait then.
type Handler func(params json.RawMessage) (result any, err *Error)

// Peer is one scripted end of a connection. It sends whatever it is told to, valid or not.
type Peer struct {
	t   Reporter
	out io.Writer

	mu       sync.Mutex
	came     *sync.Cond
	got      []Message
	ended    bool
	handlers map[string]Handler
	last     int

	writing sync.Mutex
	running sync.WaitGroup
}

// NewPeer reads from in until it ends, and writes to out. A request whose method has no
// handler gets the error -32601. A test ends in first, and then waits for Done.
func NewPeer(t Reporter, in io.Reader, out io.Writer, handlers map[string]Handler) *Peer {
	p := &Peer{t: t, out: out, handlers: handlers}
	p.came = sync.NewCond(&p.mu)
	p.running.Go(func() { p.read(in) })
	return p
}

func (p *Peer) read(in io.Reader) {
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		var m Message
		if len(line) > 0 {
			if broken := json.Unmarshal(line, &m); broken != nil {
				p.t.Errorf("a peer got a line that is no message: %v: %.300q", broken, line)
			}
		}
		p.mu.Lock()
		if err != nil {
			p.ended = true
			p.came.Broadcast()
			p.mu.Unlock()
			return
		}
		p.got = append(p.got, m)
		p.came.Broadcast()
		handler := p.handlers[m.Method]
		p.mu.Unlock()
		switch {
		case m.Method != "" && m.ID != nil:
			p.running.Go(func() { p.answer(m, handler) })
		case handler != nil:
			_, _ = handler(m.Params) // a notification has no answer
		}
	}
}

func (p *Peer) answer(m Message, handler Handler) {
	failure := &Error{Code: -32601, Message: "unknown method"}
	var result any
	if handler != nil {
		result, failure = handler(m.Params)
	}
	if failure != nil {
		p.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "error": failure})
		return
	}
	p.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
}

// Handle sets the handler of a method.
func (p *Peer) Handle(method string, h Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handlers[method] = h
}

func (p *Peer) send(message any) {
	var line strings.Builder
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false) // bytes that are passed on stay as they are
	if err := e.Encode(message); err != nil {
		p.t.Errorf("a message: %v", err)
		return
	}
	p.Send(strings.TrimSuffix(line.String(), "\n"))
}

// Send sends a line as it is. That the other side no longer reads is no error.
func (p *Peer) Send(line string) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = io.WriteString(p.out, line+"\n")
}

// Notify sends a notification.
func (p *Peer) Notify(method string, params any) {
	p.send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// Begin sends a request, and returns its id.
func (p *Peer) Begin(method string, params any) (id int) {
	p.mu.Lock()
	p.last++
	id = p.last
	p.mu.Unlock()
	p.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	return id
}

// End waits for the answer to a request that has begun, and returns its result; an error of
// the other side is an *Error.
func (p *Peer) End(id int) (json.RawMessage, error) {
	m, ok := p.Await(func(m Message) bool { return m.Method == "" && string(m.ID) == strconv.Itoa(id) })
	if !ok {
		return nil, fmt.Errorf("the request %d has no answer", id)
	}
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, nil
}

// Ask sends a request and waits for its answer.
func (p *Peer) Ask(method string, params any) (json.RawMessage, error) {
	return p.End(p.Begin(method, params))
}

// Call is Ask where an error fails the test. The result is read into into, if it is not nil.
func (p *Peer) Call(method string, params, into any) {
	p.t.Helper()
	result, err := p.Ask(method, params)
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	if into != nil {
		if err := json.Unmarshal(result, into); err != nil {
			p.t.Fatalf("%s: %v: %s", method, err, result)
		}
	}
}

// Await waits for a message, which may have come before. It is false where the connection
// ends first, or after Patience.
func (p *Peer) Await(is func(Message) bool) (Message, bool) {
	late := time.AfterFunc(Patience, p.Wake)
	defer late.Stop()
	end := time.Now().Add(Patience)
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for _, m := range p.got {
			if is(m) {
				return m, true
			}
		}
		if p.ended || !time.Now().Before(end) {
			return Message{}, false
		}
		p.came.Wait()
	}
}

// Wake has every Await look again at the messages that came.
func (p *Peer) Wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.came.Broadcast()
}

// Got are the messages so far with a method.
func (p *Peer) Got(method string) (all []Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.got {
		if m.Method == method {
			all = append(all, m)
		}
	}
	return all
}

// Done waits until the reading has ended and every handler has returned.
func (p *Peer) Done() { p.running.Wait() }
