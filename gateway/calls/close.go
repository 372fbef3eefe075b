package calls

import (
	"context"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/refusal"
)

// ThreadCloser is an Engine that can notify every callback server that a thread is closed. It
// notifies each once, and returns soon after its context ends.
type ThreadCloser interface {
	CloseThread(ctx context.Context, thread string)
}

const (
	// closeTime bounds how long servers are waited for, and so how long they hold up the end
	// of the process: it is less than that waits for its outcomes.
	closeTime = 3 * time.Second
	// maxClosing bounds the threads of which servers are being notified, and
	// maxClosingPerPrincipal those of one principal.
	maxClosing             = 32
	maxClosingPerPrincipal = maxClosing / 4
)

// CloseThread closes the thread that a request names: it forgets the thread's views, and
// notifies every callback server in the background, once. It neither knows nor says whether
// there was such a thread, and ends none of its calls and subscriptions. The group is made of
// the caller's own scope, so it is never another tenant's.
func (e *Executor) CloseThread(ctx context.Context, request gateway.Request) error {
	a, err := e.AdmitQuery(ctx, request)
	switch {
	case err != nil:
		return err
	case request.Thread == "":
		return refusal.New(refusal.BadRequest, "The request names no thread; expected its name in the header Callgate-Thread.")
	case !a.InProject():
		return refusal.New(refusal.ProjectMismatch, "No call can be made in the workspace and the project of this request, so there is no thread to close. Name those of the calls of the thread.")
	}
	principal, group := a.Principal(), a.Group()
	if !e.closings.begin(principal) {
		refused := refusal.New(refusal.Overloaded, "Too many threads are being closed. Close the thread again later.")
		refused.RetryAfterMS = time.Second.Milliseconds()
		return refused
	}
	e.views.Forget(principal, group)
	e.journal.Go(func() {
		defer e.closings.end(principal)
		if e.closer == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), closeTime)
		defer cancel()
		// Nothing depends on the notices.
		_ = safe.Do(func() error { e.closer.CloseThread(ctx, group); return nil })
	})
	return nil
}

// closings counts the threads that are being closed, by their principals. The zero value has
// none.
type closings struct {
	mu          sync.Mutex
	all         int
	byPrincipal map[string]int
}

// begin reports whether there is room for another; if so, the caller calls end. Without
// credentials all callers are one, which may have all of it.
func (c *closings) begin(principal string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= maxClosing || principal != "" && c.byPrincipal[principal] >= maxClosingPerPrincipal {
		return false
	}
	if c.byPrincipal == nil {
		c.byPrincipal = map[string]int{}
	}
	c.all++
	c.byPrincipal[principal]++
	return true
}

func (c *closings) end(principal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.byPrincipal[principal]--; c.byPrincipal[principal] == 0 {
		delete(c.byPrincipal, principal)
	}
}
