package mcp

import (
	"context"
	"sync"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/wrapper"
)

// maxTold is how many notifications wait for a client to take them, and maxToldBytes how
// long they are together.
const (
	maxTold      = 64
	maxToldBytes = 256 << 10
)

// reporter tells a client how far its call is, and what its tool logs, while it runs. A client that is slow,
// or gone, holds nothing up: what it is told waits in a queue of bounded length for
// one goroutine that sends it, and what finds no room there is dropped. Nil tells
// nothing.
type reporter struct {
	ctx context.Context // of the request: who left it is told no more
	// send sends one message, and no two at a time. In the end it must not be waited
	// for as long as before, however many there are to come.
	send  func(line []byte, ending bool) error
	token any // of the client's choice

	mu     sync.Mutex
	queue  chan []byte // nil until something is told
	bytes  int         // that wait in it
	sent   chan struct{}
	began  bool // some progress was told, and how far it was
	last   float64
	ending bool
}

// tell takes what to tell. It never waits.
func (r *reporter) tell(p gateway.Progress) {
	params := object{"progressToken": r.token, "progress": p.Done}
	if p.Total != 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = wrapper.EscapeText(p.Message)
	}
	line, err := wrapper.Marshal(object{"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
	if err != nil {
		return // what is no number says nothing
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if (!r.began || p.Done > r.last) && r.put(line) {
		r.began, r.last = true, p.Done
	}
}

// put has one message wait, under mu, and tells whether there is room.
func (r *reporter) put(line []byte) bool {
	if r.ending || r.bytes+len(line) > maxToldBytes {
		return false
	}
	if r.queue == nil {
		r.queue, r.sent = make(chan []byte, maxTold), make(chan struct{})
		go r.pass()
	}
	select {
	case r.queue <- line:
		r.bytes += len(line)
		return true
	default:
		return false
	}
}

// pass sends what is in the queue until it ends.
func (r *reporter) pass() {
	defer close(r.sent)
	for line := range r.queue {
		r.try(line)
		r.mu.Lock()
		r.bytes -= len(line)
		r.mu.Unlock()
	}
}

// try sends one message. That it cannot, the answer will find out, too.
func (r *reporter) try(line []byte) {
	defer func() { _ = recover() }() // nothing breaks off but this
	if r.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	ending := r.ending
	r.mu.Unlock()
	_ = r.send(line, ending)
}

// end has nothing told any more. Once it returns, all that was told is sent, or never
// will be.
func (r *reporter) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	queue := r.queue
	if queue != nil && !r.ending {
		close(queue)
	}
	r.ending = true
	r.mu.Unlock()
	if queue != nil {
		<-r.sent
	}
}
