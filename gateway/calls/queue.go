package calls

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// maxQueued is how many messages of one thread wait for the one that is being taken in, and
// maxQueueTime for how long.
const (
	maxQueued    = 64
	maxQueueTime = 3 * gateway.StoreWait
)

// queues let the messages of one thread in one after the other, in the order in which
// they came; those of different threads do not wait for each other. A thread without a
// message takes no memory. The zero value is empty.
type queues struct {
	mu sync.Mutex
	// byGroup has the messages that wait behind the one that was let in.
	byGroup map[string][]chan struct{}
}

// Enter waits until a message of a thread is let in; the caller calls leave once it is taken
// in. The error is a refusal after which the tool posts again.
func (q *queues) Enter(ctx context.Context, group string) (leave func(), err error) {
	turn, queued := q.join(group)
	if !queued {
		return nil, refuseQueued()
	}
	leave = sync.OnceFunc(func() { q.next(group) })
	if turn == nil {
		return leave, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxQueueTime)
	defer cancel()
	select {
	case <-turn:
		return leave, nil
	case <-ctx.Done():
	}
	if !q.remove(group, turn) {
		leave() // it was let in meanwhile
	}
	return nil, refuseQueued()
}

// join adds a message to its thread. turn is closed when it is let in; nil: it is in already.
func (q *queues) join(group string) (turn chan struct{}, queued bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, busy := q.byGroup[group]
	switch {
	case !busy:
		if q.byGroup == nil {
			q.byGroup = map[string][]chan struct{}{}
		}
		q.byGroup[group] = nil
		return nil, true
	case len(waiting) >= maxQueued:
		return nil, false
	}
	turn = make(chan struct{})
	q.byGroup[group] = append(waiting, turn)
	return turn, true
}

// next lets the next message of a thread in.
func (q *queues) next(group string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.byGroup[group]
	if len(waiting) == 0 {
		delete(q.byGroup, group)
		return
	}
	close(waiting[0])
	q.byGroup[group] = slices.Delete(waiting, 0, 1)
}

// remove takes a message out that waits. It is false for one that was let in.
func (q *queues) remove(group string, turn chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	at := slices.Index(q.byGroup[group], turn)
	if at < 0 {
		return false
	}
	q.byGroup[group] = slices.Delete(q.byGroup[group], at, at+1)
	return true
}

func refuseQueued() *refusal.Error {
	refused := refusal.New(refusal.Overloaded, "Too many messages of this thread are taken in. Send the message again later.")
	refused.RetryAfterMS = time.Second.Milliseconds()
	return refused
}
