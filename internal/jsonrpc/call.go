package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/callgate/callgate/wrapper"
)

// ErrBadResponse is a response that is none: it answers the call, and says nothing.
var ErrBadResponse = errors.New("the peer's response is not one of JSON-RPC")

// Pending is a request of ours that was written.
type Pending struct {
	conn *Conn
	id   int64
	done chan answer // holds one
}

// answer is the answer to a request of ours.
type answer struct {
	result json.RawMessage
	err    error
}

// Call sends a request and waits for its answer: the bytes of the result, or an *Error of the
// peer, or why there is none. Once ctx ends a late answer is dropped.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p, err := c.Start(ctx, method, params)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// Start sends a request. Its Wait must be called, once.
func (c *Conn) Start(ctx context.Context, method string, params any) (*Pending, error) {
	p := &Pending{conn: c, done: make(chan answer, 1)}
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return nil, ErrEnded
	}
	c.lastID++
	p.id = c.lastID
	c.waiting[p.id] = p
	c.mu.Unlock()
	if err := c.send(ctx, p.ID(), method, params); err != nil {
		p.forget()
		return nil, err
	}
	return p, nil
}

// ID is the id of the request, as the peer knows it.
func (p *Pending) ID() ID { return NumberID(p.id) }

// Wait waits for the answer, as Call does.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case a := <-p.done:
		return a.result, a.err
	case <-ctx.Done():
	}
	p.forget()
	select {
	case a := <-p.done: // it came meanwhile
		return a.result, a.err
	default:
		return nil, ctx.Err()
	}
}

func (p *Pending) forget() {
	p.conn.mu.Lock()
	defer p.conn.mu.Unlock()
	delete(p.conn.waiting, p.id)
}

// resolve gives a response to the call that waits for it, and reports whether one does.
func (c *Conn) resolve(m *Message, fault *Error) bool {
	id, ok := m.ID.Number()
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.waiting[id]
	if p == nil {
		return false
	}
	delete(c.waiting, id)
	switch {
	case fault != nil:
		p.done <- answer{err: ErrBadResponse}
	case m.Err != nil:
		p.done <- answer{err: m.Err}
	default:
		p.done <- answer{result: m.Result}
	}
	return true
}

// Notify sends a notification. Params are marshalled to an object; nil are none.
func (c *Conn) Notify(method string, params any) error {
	return c.NotifyContext(context.Background(), method, params)
}

// NotifyContext sends a notification unless ctx has ended when it is its turn.
func (c *Conn) NotifyContext(ctx context.Context, method string, params any) error {
	return c.send(ctx, ID{}, method, params)
}

// Send writes a message that was encoded, on one line, unless ctx has ended when it is its turn.
func (c *Conn) Send(ctx context.Context, line []byte) error { return c.out.Write(ctx, line) }

// Encode is a request as JSON in which nothing hides, or without an id a notification.
func Encode(id ID, method string, params any) ([]byte, error) {
	return wrapper.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      ID     `json:"id,omitzero"`
		Method  string `json:"method"`
		Params  any    `json:"params,omitempty"`
	}{"2.0", id, method, params})
}

func (c *Conn) send(ctx context.Context, id ID, method string, params any) error {
	line, err := Encode(id, method, params)
	if err != nil {
		return err
	}
	return c.out.Write(ctx, line)
}
