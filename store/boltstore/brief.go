package boltstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callgate/callgate/store"
)

// brief are the calls that a process keeps to itself: those without a key, until one of them waits or
// uses an approval. Then it leaves for the file, which it never comes back from: whoever does not find
// a call here finds it there, if it is anywhere. A nil brief has none.
type brief struct {
	file  *store.Engine
	owner string // of the calls that leave
	now   func() time.Time

	mu      sync.Mutex
	running map[string]*running
	unused  sync.Pool   // of *running
	quota   store.Quota // of running calls
	ended   ended
}

// running is a call that has not ended.
type running struct {
	call    store.Call
	counted int64         // bytes
	leaving chan struct{} // closed when it has left or stays; nil: it does not leave
	late    *store.Defer  // with which it is perhaps in the file, or comes to be there
}

var errElsewhere = errors.New("the call is not kept in memory")

func newBrief(file *store.Engine, owner string, now func() time.Time, bounds store.Bounds) *brief {
	b := &brief{file: file, owner: owner, now: now, running: map[string]*running{},
		unused: sync.Pool{New: func() any { return &running{} }}}
	b.quota = store.NewQuota(bounds.WithDefaults(briefCalls, briefBytes))
	b.ended = newEnded(b, bounds)
	return b
}

// lock locks b.mu. It returns a running call once that does not leave; nil: it is none. With an error
// nothing is locked.
func (b *brief) lock(ctx context.Context, id string) (*running, error) {
	if b == nil {
		return nil, errElsewhere
	}
	for {
		b.mu.Lock()
		r := b.running[id]
		if r == nil || r.leaving == nil {
			return r, nil
		}
		leaving := r.leaving
		b.mu.Unlock()
		select {
		case <-leaving:
		case <-ctx.Done():
			return nil, store.Unavailable(ctx.Err())
		}
	}
}

// lockForChange is lock for a change that is to be in the file where the call is.
func (b *brief) lockForChange(ctx context.Context, id string) (*running, error) {
	for {
		r, err := b.lock(ctx, id)
		if err != nil || r == nil || r.late == nil {
			return r, err
		}
		late := *r.late
		b.mu.Unlock()
		if err := b.wait(ctx, id, late); err != nil {
			return nil, err
		}
	}
}

// get returns a call.
func (b *brief) get(ctx context.Context, id string) (store.Call, error) {
	r, err := b.lock(ctx, id)
	if err != nil {
		return store.Call{}, err
	}
	defer b.mu.Unlock()
	if r != nil {
		return r.call, nil
	}
	_, call, err := b.hasEnded(id)
	return call, err
}

// hasEnded returns a call that has ended, and its slot. b.mu is locked.
func (b *brief) hasEnded(id string) (n uint32, call store.Call, err error) {
	if n, call, err = b.ended.get(id, b.now()); err == nil && n == 0 {
		err = errElsewhere
	}
	return n, call, err
}

// open keeps a call that is about to be judged.
func (b *brief) open(ctx context.Context, call store.Call) error {
	r, err := b.lock(ctx, call.ID)
	if err != nil {
		return err
	}
	defer b.mu.Unlock()
	if r != nil {
		return r.call.Reopen(call)
	}
	switch _, prior, err := b.hasEnded(call.ID); {
	case err == nil:
		return prior.Reopen(call)
	case !errors.Is(err, errElsewhere) || call.Key != "":
		return err
	case !store.IsID(call.ID):
		return store.ErrNoID
	}
	if err := b.quota.Admit(call.Scope.Principal); err != nil {
		return err
	}
	r = b.unused.Get().(*running)
	r.call = store.NewOpened(call, b.now())
	b.running[call.ID] = r
	b.count(r, 1)
	return nil
}

// count counts what a running call takes now; a call that is new is 1, and one that leaves -1.
func (b *brief) count(r *running, calls int) {
	size := int64(0)
	if calls >= 0 {
		size = r.call.Size()
	}
	b.quota.Add(store.Count{Principal: r.call.Scope.Principal, Of: store.Usage{Total: store.Amount{Calls: calls, Bytes: size - r.counted}}})
	r.counted = size
}

// drop removes a running call.
func (b *brief) drop(r *running) {
	b.count(r, -1)
	delete(b.running, r.call.ID)
	*r = running{}
	b.unused.Put(r)
}

// dispatch records that the tool of an opened call is about to be called. A call that uses approvals
// leaves, so that both are one transition.
func (b *brief) dispatch(ctx context.Context, id string, task store.Task) error {
	if len(task.Using)+len(task.Spends) > 0 {
		return b.leave(ctx, id, func(c *store.Call) error { return c.RequireStep(store.Opened) }, func(c store.Call) error {
			if _, err := b.file.Open(ctx, c); err != nil {
				return err
			}
			err := b.file.Dispatch(ctx, id, task)
			if err != nil {
				_ = b.file.Settle(ctx, id) // which leaves a call that is dispatched to TakeBack
			}
			return err
		})
	}
	r, err := b.lock(ctx, id)
	if err != nil {
		return err
	}
	defer b.mu.Unlock()
	if r == nil {
		_, call, err := b.hasEnded(id)
		if err != nil {
			return err
		}
		return call.Dispatch(task, "")
	}
	if err := r.call.Dispatch(task, ""); err != nil {
		return err
	}
	b.count(r, 0)
	return nil
}

// wait begins to wait for the tool of a call, which leaves for that.
func (b *brief) wait(ctx context.Context, id string, until store.Defer) error {
	return b.leave(ctx, id, func(c *store.Call) error {
		_, err := until.Apply(c, b.now())
		c.Owner = b.owner
		return err
	}, func(c store.Call) error { return b.file.Adopt(ctx, c) })
}

// leave has the file keep a call, as it is prepared for that. Whoever asks for the call meanwhile waits.
// If the file does not keep it, it stays as it was; where the file may keep it later, it leaves before
// it is changed here.
func (b *brief) leave(ctx context.Context, id string, prepare func(*store.Call) error, keep func(store.Call) error) error {
	r, err := b.lock(ctx, id)
	if err != nil {
		return err
	}
	var call store.Call
	if r != nil {
		call = r.call
	} else if _, call, err = b.hasEnded(id); err != nil {
		b.mu.Unlock()
		return err
	}
	if err := prepare(&call); err != nil || r == nil {
		b.mu.Unlock()
		return err
	}
	leaving := make(chan struct{})
	r.leaving = leaving
	b.mu.Unlock()
	err = errUncertain
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(leaving)
		r.leaving = nil
		switch {
		case err == nil:
			b.drop(r)
		case errors.Is(err, errUncertain) && call.Step == store.Waiting:
			r.late = &store.Defer{Until: call.Until}
		}
	}()
	err = keep(call)
	return err
}

// update makes one change of a call.
func (b *brief) update(ctx context.Context, id string, change store.Change) error {
	r, err := b.lockForChange(ctx, id)
	if err != nil {
		return err
	}
	defer b.mu.Unlock()
	if r != nil {
		_, err := change.Apply(&r.call, b.now())
		return err
	}
	n, call, err := b.hasEnded(id)
	if err != nil {
		return err
	}
	same, err := change.Apply(&call, b.now())
	if err == nil && !same {
		b.ended.change(n, &call)
		b.file.Notify(id)
	}
	return err
}

// finish ends a call and returns it as it is then.
func (b *brief) finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	r, err := b.lockForChange(ctx, id)
	if err != nil {
		return store.Call{}, err
	}
	defer b.mu.Unlock()
	if r == nil {
		n, call, err := b.hasEnded(id)
		if err != nil {
			return store.Call{}, err
		}
		same, err := call.Finish(ending, b.now())
		if err == nil && !same {
			b.ended.change(n, &call)
			b.file.Notify(id)
		}
		return call, err
	}
	if _, err := r.call.Finish(ending, b.now()); err != nil {
		return r.call, err
	}
	call := r.call
	b.drop(r)
	b.ended.add(&call, ending.Awaited)
	b.file.Notify(id)
	return call, nil
}

// settle removes a call that was not dispatched.
func (b *brief) settle(ctx context.Context, id string) error {
	r, err := b.lock(ctx, id)
	if err != nil {
		return err
	}
	defer b.mu.Unlock()
	switch {
	case r == nil && b.ended.find(id) == 0:
		return errElsewhere
	case r != nil && r.call.Step == store.Opened:
		b.drop(r)
	}
	return nil
}

// sweep removes at most limit calls that ended longer than store.Retention ago.
func (b *brief) sweep(limit int) int {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ended.sweep(b.now(), limit)
}

// unfinished returns at most limit running calls whose ids are behind after, in the order of their ids.
func (b *brief) unfinished(after string, limit int) (calls []store.Call) {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []string
	for id := range b.running {
		if strings.Compare(id, after) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids[:min(max(0, limit), len(ids))] {
		calls = append(calls, b.running[id].call)
	}
	return calls
}
