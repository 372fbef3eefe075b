package mcp

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// TestWaitingIsBounded: so many questions wait and no more, of each principal and in
// all, and what has ended makes room.
func TestWaitingIsBounded(t *testing.T) {
	var w pendingQuestions
	to := make(chan clientAnswer, 2*maxPending)
	names := make([]string, 16)
	var ids []string
	for n := range maxPending / maxPendingPerPrincipal {
		for range maxPendingPerPrincipal / len(names) {
			added := w.add(fmt.Sprint(n), names, to)
			if len(added) != len(names) {
				t.Fatalf("%d wait, and there is no room", len(w.open))
			}
			ids = append(ids, added...)
		}
		if w.add(fmt.Sprint(n), names[:1], to) != nil {
			t.Fatalf("principal %d has more than its part", n)
		}
	}
	if len(w.open) != maxPending || w.add("another", names[:1], to) != nil {
		t.Errorf("%d wait, and there is room", len(w.open))
	}
	if !w.resolve("0", ids[0], nil) || w.resolve("0", ids[0], nil) || w.resolve("1", ids[1], nil) || len(to) != 1 {
		t.Errorf("%d were answered", len(to))
	}
	if left := w.remove(ids[:3]); len(left) != 2 || len(w.remove(ids[:3])) != 0 {
		t.Errorf("%d were left", len(left))
	}
	if w.add("0", names[:4], to) != nil || len(w.add("0", names[:3], to)) != 3 {
		t.Error("what has ended made other room than its own")
	}
	w.remove(ids)
	if len(w.open) != 3 || len(w.perPrincipal) != 1 {
		t.Errorf("%d wait, of %d principals", len(w.open), len(w.perPrincipal))
	}
}

// TestCollectKeepsTheClient: a client that is waited for is sent something meanwhile;
// one that takes nothing any more is not waited for.
func TestCollectKeepsTheClient(t *testing.T) {
	to := make(chan clientAnswer, 1)
	beats := 0
	h := &elicitor{heartbeat: func() error {
		if beats++; beats == 3 {
			to <- clientAnswer{"q", []byte(`{}`)}
		}
		return nil
	}}
	if answers, why := h.collectAnswers(context.Background(), to, 1, time.Hour, time.Millisecond); why != "" || len(answers) != 1 || beats < 3 {
		t.Errorf("%v %q after %d beats", answers, why, beats)
	}
	h.heartbeat = func() error { return errors.New("gone") }
	if _, why := h.collectAnswers(context.Background(), to, 1, time.Hour, time.Millisecond); why != reasonAbandoned {
		t.Errorf("%q", why)
	}
}
