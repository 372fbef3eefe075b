package calls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/refusal"
)

// queued waits until so many messages wait in a thread.
func queued(t *testing.T, q *queues, group string, want int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		q.mu.Lock()
		found := len(q.byGroup[group])
		q.mu.Unlock()
		if found == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d wait in %s, want %d", found, group, want)
		}
	}
}

// Messages of one thread are let in one at a time, in the order in which they came, so none
// starves; another thread does not wait for them; and nothing is kept of a thread without any.
func TestTIP20OneAfterTheOther(t *testing.T) {
	var q queues
	ctx := context.Background()
	first, err := q.Enter(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var order []int
	for n := range maxQueued {
		all.Go(func() {
			leave, err := q.Enter(ctx, "t")
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, n) // one at a time: the race detector looks on
			leave()
		})
		queued(t, &q, "t", n+1)
	}
	other, err := q.Enter(ctx, "other") // while t is busy
	if err != nil {
		t.Fatal(err)
	}
	other()
	first()
	first() // once counts
	all.Wait()
	if !slices.IsSorted(order) || len(order) != maxQueued {
		t.Errorf("let in were %v", order)
	}
	if len(q.byGroup) != 0 {
		t.Errorf("%d threads are kept", len(q.byGroup))
	}
}

// Only so many wait; each further one is refused at once and can be posted again.
func TestTIP20WaitingIsBounded(t *testing.T) {
	var q queues
	ctx, cancel := context.WithCancel(context.Background())
	leave, err := q.Enter(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for n := range maxQueued {
		all.Go(func() {
			if _, err := q.Enter(ctx, "t"); err == nil {
				t.Errorf("message %d was let in", n)
			}
		})
		queued(t, &q, "t", n+1)
	}
	if _, queued := q.join("t"); queued {
		cancel()
		t.Fatalf("message %d may wait", maxQueued+1)
	}
	for n := range 1000 {
		_, err := q.Enter(context.Background(), "t")
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Code != refusal.Overloaded || refused.RetryAfterMS <= 0 {
			t.Fatalf("%d: %v", n, err)
		}
	}
	cancel() // their tools have left
	all.Wait()
	queued(t, &q, "t", 0)
	leave()
	for n := range 1000 { // of a thread each: none leaves anything behind
		leave, err := q.Enter(context.Background(), fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		leave()
	}
	if len(q.byGroup) != 0 {
		t.Errorf("%d threads are kept", len(q.byGroup))
	}
}
