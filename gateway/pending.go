package gateway

import (
	"context"
	"sync"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/refusal"
)

// pending are the calls whose tools answer later. The zero value is empty.
type pending struct {
	mu    sync.Mutex
	calls map[string]waiting
}

type waiting struct {
	call  *call
	start time.Time
}

func (p *pending) add(c *call, start time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls == nil {
		p.calls = map[string]waiting{}
	}
	p.calls[c.id] = waiting{c, start}
}

// take removes a call: whoever takes it ends it, and nobody else.
func (p *pending) take(id string) (waiting, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w, ok := p.calls[id]
	delete(p.calls, id)
	return w, ok
}

// Complete ends a call whose tool answered later, with its output or an error,
// and returns what became of it. A call that is not pending is not_found: it
// never was, or has ended already.
func (k *Kernel) Complete(ctx context.Context, callID string, output Output, err error) (Outcome, error) {
	w, ok := k.mine.take(callID)
	if !ok {
		return Outcome{}, refusal.New(refusal.NotFound, "There is no such call that waits for an answer.")
	}
	return w.call.finish(ctx, output, err, w.start), nil
}

// debts are outcomes that are not written down yet.
type debts struct {
	mu   sync.Mutex
	open int
	none chan struct{} // closed when open falls to zero
	room chan struct{} // holds a token for each decision whose handing over is owed
}

// again is how often an outcome that could not be written is tried again.
const again = 250 * time.Millisecond

// pay writes an outcome down. The call has ended, so it is owed: where the
// journal refuses, it is tried again until it is there. Meanwhile the journal
// refuses new decisions too, so the debts are no more than the calls in flight.
func (k *Kernel) pay(r audit.Record) {
	if k.write(context.Background(), r) != nil {
		k.owe(func() {}, r)
	}
}

// owe writes outcomes down beside the caller, in their order, and says when that
// is done.
func (k *Kernel) owe(done func(), records ...audit.Record) {
	d := &k.owed
	d.mu.Lock()
	if d.open++; d.none == nil {
		d.none = make(chan struct{})
	}
	d.mu.Unlock()
	go func() {
		defer done()
		for _, r := range records {
			for k.write(context.Background(), r) != nil {
				time.Sleep(again)
			}
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.open--; d.open == 0 {
			close(d.none)
			d.none = nil
		}
	}()
}

// Settle waits until every outcome is written down. Its error says that some
// are not, when ctx ends before.
func (k *Kernel) Settle(ctx context.Context) error {
	k.owed.mu.Lock()
	none := k.owed.none
	k.owed.mu.Unlock()
	if none == nil {
		return nil
	}
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return refusal.New(refusal.AuditUnavailable, "The outcome of a call could not be recorded.").WithCause(ctx.Err())
	}
}
