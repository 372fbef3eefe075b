package redisstore

import (
	"testing"
	"time"

	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// The second call of a decision waits for the first, and is opened behind the records of both.
func TestMarkIsBeforeTheDecisionOfAnOpenedCall(t *testing.T) {
	seq, now := uint64(10), time.Now()
	r := &Store{options: Options{Log: Log{Mark: func() uint64 { return seq }}}, held: map[store.Key]held{}}
	later := func(of time.Duration) uint64 {
		now = now.Add(of)
		return r.confirmed(now)
	}
	later(0)
	if got := later(markAge); got != 10 {
		t.Fatalf("found the mark %d of a quiet log", got)
	}
	seq = 12 // the decision of two calls
	c := &store.Commit{Volatile: true, Changes: []store.Replacement{{Key: store.Key{Kind: store.CallRecord, ID: "call_2"}, Now: &store.Call{ID: "call_2", Step: store.Opened}}}}
	if outcome, done := (backend{Store: r}).commitHere(c); !done || outcome != store.Committed {
		t.Fatal(outcome, done)
	}
	later(time.Second)
	if got := later(2 * markAge); got > 10 {
		t.Errorf("the mark is %d, and a call of record 12 is not dispatched yet", got)
	}
	r.held = nil
	if got := later(2 * markAge); got != 12 {
		t.Errorf("the mark is %d, of a log that is quiet since record 12", got)
	}
}

// What was written before the last seconds is in Redis, also where nothing was written since.
func TestOldWritesAreForgottenWhileRedisIsThere(t *testing.T) {
	s := redistest.Start(t)
	r := join(t, Options{Options: redisconn.Options{URL: func() string { return "redis://" + s.Address() }, Prefix: "x:"}, Node: "n", Wait: 30 * time.Second})
	for _, id := range []string{"grant_old", "grant_new"} {
		if err := r.AddGrant(ctx, approval.Grant{ID: id, Key: "k", Until: time.Now().Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	r.mu.Lock()
	r.recent.kept[0].at = time.Now().Add(-recentTime)
	r.mu.Unlock()
	within(t, "the old one is forgotten", func() bool {
		kept := r.kept()
		return len(kept) == 1 && kept[0].ID == "grant_new"
	})
}
