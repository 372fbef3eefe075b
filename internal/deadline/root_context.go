package deadline

import (
	"context"
	"sync"
)

// Root is a context that ends when it is cancelled, and the work of many contexts made from
// it with it. A Hook on it costs no allocation and no goroutine, unlike context.AfterFunc.
// It is safe for concurrent use.
type Root struct {
	context.Context
	cancel context.CancelFunc

	mu    sync.Mutex
	first *Hook
	ended bool
}

// NewRoot returns a root that has not ended.
func NewRoot() *Root {
	ctx, cancel := context.WithCancel(context.Background())
	return &Root{Context: ctx, cancel: cancel}
}

// Hook is called when the root ends to which it is attached. It belongs to one piece of work
// at a time.
type Hook struct {
	Call           func() // must not block, and must not use the root
	previous, next *Hook
	attached       bool
}

// Cancel ends the root, and calls its hooks. None of them is running when it returns.
func (r *Root) Cancel() {
	r.cancel()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	for h := r.first; h != nil; {
		next := h.next
		h.previous, h.next, h.attached = nil, nil, false
		h.Call()
		h = next
	}
	r.first = nil
}

// Attach makes the end of the root call a hook. If the root has ended, it calls it now.
func (r *Root) Attach(h *Hook) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		h.Call()
		return
	}
	if h.next = r.first; h.next != nil {
		h.next.previous = h
	}
	r.first, h.attached = h, true
}

// Detach takes a hook off. It is false if the root has ended, and then the hook was called.
func (r *Root) Detach(h *Hook) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !h.attached {
		return false
	}
	if h.next != nil {
		h.next.previous = h.previous
	}
	if h.previous != nil {
		h.previous.next = h.next
	} else {
		r.first = h.next
	}
	h.previous, h.next, h.attached = nil, nil, false
	return true
}

// TimeOnly reports whether a context is one of this package that ends in time, by Cancel or
// with a Root alone, and returns that root, or nil. Work with a deadline of its own, such as
// a connection, needs no timer for its end: it attaches a Hook to the root.
func TimeOnly(ctx context.Context) (*Root, bool) {
	for {
		c, ok := ctx.(*Context)
		if !ok {
			return nil, false
		}
		switch parent := c.parent.(type) {
		case *Context:
			ctx = parent
		case *Root:
			return parent, true
		default:
			return nil, parent.Done() == nil
		}
	}
}
