package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var ctx = context.Background()

func TestOneKeyOneCall(t *testing.T) {
	m := NewMemory(time.Now)
	scope := Scope{"p", "w", "q"}
	var opened atomic.Int64
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			prior, err := m.Open(ctx, Call{ID: fmt.Sprint(i), Scope: scope, Key: "k", Digest: "d"})
			if err != nil {
				t.Error(err)
			}
			if prior == nil {
				opened.Add(1)
			} else if prior.State != Pending || prior.Digest != "d" {
				t.Errorf("got %+v", prior)
			}
		})
	}
	all.Wait()
	if opened.Load() != 1 {
		t.Errorf("%d calls for one key", opened.Load())
	}
	for _, other := range []Scope{{"x", "w", "q"}, {"p", "x", "q"}, {"p", "w", "x"}} {
		if prior, _ := m.Open(ctx, Call{ID: fmt.Sprint(other), Scope: other, Key: "k"}); prior != nil {
			t.Errorf("the key of another scope is taken: %+v", prior)
		}
	}
}

func TestLifeOfACall(t *testing.T) {
	now := time.Unix(0, 0)
	m := NewMemory(func() time.Time { return now })
	call := Call{ID: "1", Scope: Scope{Principal: "p"}, Key: "k"}
	if prior, err := m.Open(ctx, call); prior != nil || err != nil {
		t.Fatal(prior, err)
	}
	if got, err := m.Get(ctx, "1", "p"); err != nil || got.State != Pending {
		t.Errorf("got %+v, %v", got, err)
	}
	for _, other := range []string{"", "q"} {
		if _, err := m.Get(ctx, "1", other); !errors.Is(err, ErrAbsent) {
			t.Errorf("%q sees another's call", other)
		}
	}
	if err := m.Close(ctx, "1", Done, Answer{Result: []byte("r"), Status: 200}); err != nil {
		t.Fatal(err)
	}
	call.ID = "2"
	now = now.Add(Keep - 1)
	if prior, _ := m.Open(ctx, call); prior == nil || prior.ID != "1" || string(prior.Answer.Result) != "r" {
		t.Errorf("got %+v", prior)
	}
	now = now.Add(1)
	if prior, _ := m.Open(ctx, call); prior != nil {
		t.Errorf("a key is kept too long: %+v", prior)
	}
	if err := m.Drop(ctx, "2"); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(ctx, "2", Done, Answer{}); !errors.Is(err, ErrAbsent) {
		t.Errorf("got %v", err)
	}
	if m.held != 0 || m.order.Len() != 0 || len(m.byID) != 0 || len(m.byKey) != 0 {
		t.Errorf("left over: %+v", m)
	}
}

// TestFull: what a key needs is never given up; what nobody's key needs is.
func TestFull(t *testing.T) {
	m := NewMemory(time.Now)
	m.calls, m.bytes = 4, 10
	for i := range 3 {
		m.Open(ctx, Call{ID: fmt.Sprint("key", i), Key: fmt.Sprint(i)})
		m.Close(ctx, fmt.Sprint("key", i), Done, Answer{Result: []byte("r")})
	}
	for i := range 10 {
		if _, err := m.Open(ctx, Call{ID: fmt.Sprint("free", i)}); err != nil {
			t.Fatal(i, err)
		}
		m.Close(ctx, fmt.Sprint("free", i), Done, Answer{Result: []byte("r")})
	}
	if _, err := m.Get(ctx, "key0", ""); err != nil {
		t.Error("a call with a key was given up")
	}
	m.Open(ctx, Call{ID: "last", Key: "last"})
	if _, err := m.Open(ctx, Call{ID: "more", Key: "more"}); !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
	if m.order.Len() > 4 {
		t.Errorf("%d calls", m.order.Len())
	}
}
