package calls

import (
	"context"
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

// closeTime bounds how long servers are waited for, and so how long they hold up the end
// of the process: it is less than that waits for its outcomes.
const closeTime = 3 * time.Second

// CloseThread closes the thread that a request names: it forgets the thread's views, and
// notifies every callback server in the background, once. It neither knows nor says whether
// there was such a thread, and ends none of its calls and subscriptions. The group is made of
// the caller's own scope, so it is never another tenant's.
func (e *Executor) CloseThread(ctx context.Context, request gateway.Request) error {
	a, err := e.Kernel.AdmitQuery(ctx, request)
	switch {
	case err != nil:
		return err
	case request.Thread == "":
		return refusal.New(refusal.BadRequest, "The request names no thread; expected its name in the header Callgate-Thread.")
	case !a.InProject():
		return refusal.New(refusal.ProjectMismatch, "No call can be made in the workspace and the project of this request, so there is no thread to close. Name those of the calls of the thread.")
	}
	if err := a.CloseThread(ctx); err != nil {
		return err
	}
	principal, group := a.Principal(), a.Group()
	if !e.closings.Begin(principal) {
		refused := refusal.New(refusal.Overloaded, "Too many threads are being closed. Close the thread again later.")
		refused.RetryAfterMS = time.Second.Milliseconds()
		return refused
	}
	e.views.Forget(principal, group)
	e.journal.Go(func() {
		defer e.closings.End(principal)
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
