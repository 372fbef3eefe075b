package mcp

import (
	"context"
	"sync"

	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// maxQueued is how many notifications wait for a client to take them, and maxQueuedBytes how
// long they are together.
const (
	maxQueued      = 64
	maxQueuedBytes = 256 << 10
)

// notifier sends progress and log messages to the client of a running call. A slow client holds
// nothing up: messages wait in a bounded queue for one goroutine that sends them, and are
// dropped if it is full. A nil notifier sends nothing.
type notifier struct {
	ctx context.Context // of the request: after its end nothing is sent
	// send sends one message, and no two at a time. In the end it must not be waited
	// for as long as before, however many there are to come.
	send          func(line []byte, ending bool) error
	progressToken any // chosen by the client

	mu       sync.Mutex
	queue    chan []byte // nil until the first message
	bytes    int         // of the messages in it
	sent     chan struct{}
	reported bool // progress was reported, and how far it was
	last     float64
	ending   bool
}

// progress sends a progress report to the client. It never blocks.
func (r *notifier) progress(p tool.Progress) {
	params := object{"progressToken": r.progressToken, "progress": p.Done}
	if p.Total != 0 {
		params["total"] = p.Total
	}
	if p.Message != "" {
		params["message"] = wrapper.EscapeText(p.Message)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if (!r.reported || p.Done > r.last) && r.notify(wire.NoticeProgress, params) {
		r.reported, r.last = true, p.Done
	}
}

// notify adds a notification to the queue, and reports whether there was room, and JSON for
// the parameters. The notifier must be locked.
func (r *notifier) notify(method string, params object) bool {
	line, err := jsonrpc.Encode(jsonrpc.ID{}, method, params)
	return err == nil && r.enqueue(line)
}

// enqueue adds a message to the queue, and reports whether there was room. The notifier must
// be locked.
func (r *notifier) enqueue(line []byte) bool {
	if r.ending || r.bytes+len(line) > maxQueuedBytes {
		return false
	}
	if r.queue == nil {
		r.queue, r.sent = make(chan []byte, maxQueued), make(chan struct{})
		go r.run()
	}
	select {
	case r.queue <- line:
		r.bytes += len(line)
		return true
	default:
		return false
	}
}

// run sends the messages of the queue until it is closed.
func (r *notifier) run() {
	defer close(r.sent)
	for line := range r.queue {
		r.sendOne(line)
		r.mu.Lock()
		r.bytes -= len(line)
		r.mu.Unlock()
	}
}

// sendOne sends one message. It ignores a failure, because sending the response fails, too.
func (r *notifier) sendOne(line []byte) {
	defer safe.Discard() // it costs this message alone
	if r.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	ending := r.ending
	r.mu.Unlock()
	_ = r.send(line, ending)
}

// close stops the notifier. When it returns, each message has been sent or is dropped.
func (r *notifier) close() {
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
