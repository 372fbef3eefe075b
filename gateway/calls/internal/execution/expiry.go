package execution

import (
	"context"
	"sync"

	"github.com/callgate/callgate/gateway/calls/internal/stored"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/tool"
)

// Expire ends a call whose tool has not answered in time, unless it is being ended already.
func (r *Runtime) Expire(ctx context.Context, call *stored.Call) {
	if c := r.Restore(call); c.Begin() {
		c.Expire(ctx)
	}
}

// Expire reports whether it has ended the call itself.
func (c *Call) Expire(ctx context.Context) bool {
	c.expired = true
	o := c.Finish(ctx, tool.Result{}, refuse.Timeout(c.WrittenName(), c.stored.Task.Effect), c.Started())
	return !c.endedByOther && !o.Pending
}

// endings are the waiting calls that this process is ending. One goroutine at a time ends
// each, however often that is requested while the store is unreachable. The zero value is
// empty.
type endingCalls struct {
	mu   sync.Mutex
	byID map[string]bool
}

// Begin marks the call as being ended, until the store has confirmed it. It is false where
// the call is marked already.
func (c *Call) Begin() bool {
	e := &c.runtime.ending
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.byID[c.ID()] {
		return false
	}
	if e.byID == nil {
		e.byID = map[string]bool{}
	}
	e.byID[c.ID()] = true
	c.onEnded = func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.byID, c.ID())
	}
	return true
}
