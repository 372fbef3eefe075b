package redisstore

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
)

// pair returns two gateways of one store, and the options of the first.
func pair(t *testing.T) (s *redistest.Server, o Options, a, b *Store) {
	t.Helper()
	s = redistest.Start(t)
	o = Options{Options: redisconn.Options{URL: func() string { return "redis://" + s.Address() }, Prefix: "x:"}, Node: "a", Wait: 30 * time.Second}
	other := o
	other.Node = "b"
	return s, o, join(t, o), join(t, other)
}

func start(t *testing.T, r *Store, id string, wait bool) {
	t.Helper()
	if _, err := r.Open(ctx, store.Call{ID: id, Key: "key of " + id, Digest: "d"}); err != nil {
		t.Fatal(err)
	}
	if err := r.Dispatch(ctx, id, store.Task{Tool: "t", Effect: "once"}); err != nil {
		t.Fatal(err)
	}
	if wait {
		if err := r.Update(ctx, id, store.Defer{Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
}

// A process remembers nothing of a call that another has ended, whatever it does with it last.
func TestEndedElsewhereIsNotHeld(t *testing.T) {
	s, _, a, b := pair(t)
	c := s.Client()
	defer c.Close()
	ending := func(by string) store.Ending { return store.Ending{State: store.Done, Attempt: by} }
	finish := func(id string) error { _, err := a.Finish(ctx, id, ending("a")); return err }
	deliver := func(id string) error { return a.Update(ctx, id, store.Deliver{}) }
	for _, it := range []struct {
		name       string
		wait, gone bool // gone: the call was removed since
		do         func(id string) error
		want       error
	}{
		{"finished again", false, false, finish, store.ErrEnded},
		{"a waiting call finished again", true, false, finish, store.ErrEnded},
		{"delivered", true, false, deliver, nil},
		{"delivered, and gone", true, true, deliver, store.ErrNotFound},
	} {
		t.Run(it.name, func(t *testing.T) {
			id := it.name
			start(t, a, id, it.wait)
			if _, err := b.Finish(ctx, id, ending("b")); err != nil {
				t.Fatal(err)
			}
			if it.gone {
				if err := c.Del(ctx, "x:{store}:call:"+id).Err(); err != nil {
					t.Fatal(err)
				}
			}
			if err := it.do(id); !errors.Is(err, it.want) {
				t.Errorf("got %v, expected %v", err, it.want)
			}
			if a.prune(); a.holds(id) {
				t.Error("still held")
			}
		})
	}
}

// A call that waits stays with its process while others change what is said of it: it is not recovered, and put back
// after a loss as it was last.
func TestWaitingCallsStayWithTheirProcess(t *testing.T) {
	s, _, a, b := pair(t)
	start(t, a, "1", true)
	if err := b.Update(ctx, "1", store.SetMetadata{At: store.Waiting, Metadata: []byte("m")}); err != nil {
		t.Fatal(err)
	}
	a.prune()
	if taken, err := a.Recover(ctx, store.Abandoned, 10); err != nil || len(taken) > 0 {
		t.Errorf("taken over: %+v, %v", taken, err)
	}
	c := s.Client()
	defer c.Close()
	if err := c.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	within(t, "the call is back", func() bool {
		call, err := a.Get(ctx, "1", store.OfAnyone())
		return err == nil && call.Step == store.Waiting && bytes.Equal(call.Metadata, []byte("m"))
	})
	within(t, "the other is connected again", func() bool {
		_, err := b.Finish(ctx, "1", store.Ending{State: store.Done, Attempt: "b"})
		return err == nil
	})
	a.prune()
	if a.holds("1") {
		t.Error("still held, though it has ended")
	}
}
