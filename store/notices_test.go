package store_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/redisstore"
)

// noticeStore is a store of which people can be told what has changed.
type noticeStore interface {
	keeper
	store.Notices
}

var (
	_ noticeStore = (*store.Memory)(nil)
	_ noticeStore = (*boltstore.Store)(nil)
	_ noticeStore = (*redisstore.Store)(nil)
)

const lease = 30 * time.Second

func eachNoticeStore(t *testing.T, test func(*testing.T, noticeStore, *clock)) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) { test(t, s.(noticeStore), c) })
}

// claims claims notices, of which there must be those of some approvals, in any order.
func claims(t *testing.T, s noticeStore, ids ...string) []store.Notice {
	t.Helper()
	got, err := s.ClaimNotices(ctx, 100, lease)
	var names []string
	for i := range got {
		if names = append(names, got[i].Approval.ID); len(got[i].Approval.Arguments) > 0 {
			t.Errorf("%s comes with its arguments", got[i].Approval.ID)
		}
	}
	slices.Sort(names)
	if err != nil || !slices.Equal(names, ids) {
		t.Fatalf("claimed %q, want %q; %v", names, ids, err)
	}
	return got
}

func TestNoticesAreClaimedOnce(t *testing.T) {
	eachNoticeStore(t, func(t *testing.T, s noticeStore, c *clock) {
		claims(t, s)
		a := asked(t, s, question(t, c, "call_A", "p", `{"pin": 1}`, "refunds"))
		asked(t, s, question(t, c, "call_B", "q", `{}`, "refunds"))
		first := claims(t, s, "call_A", "call_B")
		claims(t, s)
		waiting := approval.Notified(0).With(approval.Waiting)
		for i := range first {
			must(t, s.SettleNotice(ctx, &first[i], waiting, 0))
		}
		c.advance(time.Hour)
		claims(t, s)
		c.advance(-time.Hour)

		// Each kind of change is told of, and what was told before is known.
		voted(t, s, a, "ada", true)
		again := claims(t, s, "call_A")[0]
		must(t, s.SettleNotice(ctx, &again, waiting, 0))
		// A vote that is repeated is no change.
		watch, err := s.WatchApproval(a.ID)
		must(t, err)
		defer watch.Stop()
		voted(t, s, a, "ada", true)
		claims(t, s)
		quiet(t, s, watch, "a repeated vote wakes those who watch")
		voted(t, s, a, "bob", true)
		again = claims(t, s, "call_A")[0]
		if again.Notified != waiting || again.Tries != 0 || len(again.Approval.Votes) != 2 {
			t.Errorf("claimed %+v", again)
		}
		// A change during a claim is told of once the claim has ended.
		must(t, s.Dispatch(ctx, opened(t, s, newCall("x", "")), using(a.ID)))
		claims(t, s)
		must(t, s.SettleNotice(ctx, &again, waiting.With(approval.Approved), 0))
		used := claims(t, s, "call_A")[0]
		if used.Notified != waiting.With(approval.Approved) || used.Approval.Ran != "x" || used.Approval.RanAt.IsZero() {
			t.Errorf("claimed %+v", used)
		}
		must(t, s.SettleNotice(ctx, &used, used.Notified.With(approval.Used), 0))
		_, err = s.EndApproval(ctx, "call_B", approval.Ending{End: approval.EndWithdrawn})
		must(t, err)
		claims(t, s, "call_B")
		refused(t, s.SettleNotice(ctx, &store.Notice{Approval: approval.Approval{ID: "none", Call: a.Call}}, 0, 0), store.ErrNotFound)
	})
}

// A claim ends with its time: others have the notice then, and the first one's claim counts no
// longer, but what it has told does.
func TestClaimsEnd(t *testing.T) {
	eachNoticeStore(t, func(t *testing.T, s noticeStore, c *clock) {
		asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		slow := claims(t, s, "call_A")[0]
		c.advance(lease - time.Millisecond)
		claims(t, s)
		c.advance(time.Millisecond)
		next := claims(t, s, "call_A")[0]
		must(t, s.SettleNotice(ctx, &slow, approval.Notified(0).With(approval.Waiting), 0))
		claims(t, s)
		c.advance(lease)
		if got := claims(t, s, "call_A")[0]; !got.Notified.Has(approval.Waiting) || got.Tries != 0 {
			t.Errorf("claimed %+v", got)
		}
		must(t, s.SettleNotice(ctx, &next, 0, time.Hour)) // which has it no longer, either
	})
}

func TestNoticesArePutOff(t *testing.T) {
	eachNoticeStore(t, func(t *testing.T, s noticeStore, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		for tries, again := range []time.Duration{5 * time.Second, time.Minute, 3 * time.Minute} {
			n := claims(t, s, "call_A")[0]
			if n.Tries != tries {
				t.Errorf("put off %d times, want %d", n.Tries, tries)
			}
			must(t, s.SettleNotice(ctx, &n, 0, again))
			c.advance(again - time.Millisecond)
			claims(t, s)
			c.advance(time.Millisecond)
		}
		n := claims(t, s, "call_A")[0]
		must(t, s.SettleNotice(ctx, &n, 0, time.Hour))
		// A change makes it due at once.
		voted(t, s, a, "ada", true)
		n = claims(t, s, "call_A")[0]
		must(t, s.SettleNotice(ctx, &n, 0, 0))
		voted(t, s, a, "bob", true)
		if n := claims(t, s, "call_A")[0]; n.Tries != 0 {
			t.Errorf("put off %d times after it was settled", n.Tries)
		}
	})
}

// Those that are due longest come first, and no more than asked for.
func TestClaimsAreBounded(t *testing.T) {
	for name, open := range backends {
		if name == "cluster" {
			continue // each part has its own order
		}
		t.Run(name, func(t *testing.T) {
			c := newClock()
			s := open(t, c.now, store.Bounds{}).(noticeStore)
			for i := range 7 {
				asked(t, s, question(t, c, fmt.Sprint("call_", 9-i), "p", fmt.Sprint(i), "refunds"))
				c.advance(time.Millisecond)
			}
			for _, want := range []string{"987", "654", "3", ""} {
				notices, err := s.ClaimNotices(ctx, 3, lease)
				must(t, err)
				got := ""
				for i := range notices {
					got += strings.TrimPrefix(notices[i].Approval.ID, "call_")
				}
				if got != want {
					t.Errorf("claimed %q, want %q", got, want)
				}
			}
		})
	}
}

// Of many who claim at once each notice is had by one.
func TestClaimsAtOnce(t *testing.T) {
	eachNoticeStore(t, func(t *testing.T, s noticeStore, c *clock) {
		const many = 60
		for i := range many {
			asked(t, s, question(t, c, fmt.Sprint("call_", i), fmt.Sprint("p", i%7), fmt.Sprint(i), "refunds"))
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		had := map[string]int{}
		for range 8 {
			all.Go(func() {
				for {
					notices, err := s.ClaimNotices(ctx, 4, lease)
					if err != nil {
						t.Error(err)
					}
					if len(notices) == 0 {
						return
					}
					mu.Lock()
					for i := range notices {
						had[notices[i].Approval.ID]++
					}
					mu.Unlock()
				}
			})
		}
		all.Wait()
		for id, n := range had {
			if n != 1 {
				t.Errorf("%s was claimed %d times", id, n)
			}
		}
		if len(had) != many {
			t.Errorf("%d of %d were claimed", len(had), many)
		}
	})
}

func TestNoticesGoWithTheirApprovals(t *testing.T) {
	eachNoticeStore(t, func(t *testing.T, s noticeStore, c *clock) {
		asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		n := claims(t, s, "call_A")[0]
		must(t, s.SettleNotice(ctx, &n, approval.Notified(0).With(approval.Waiting), time.Second))
		c.advance(approval.Retention + time.Hour)
		swept, err := s.SweepApprovals(ctx, 10)
		if err != nil || swept != 1 {
			t.Fatalf("swept %d, %v", swept, err)
		}
		claims(t, s)
		// One with the same id is another.
		asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		if n := claims(t, s, "call_A")[0]; n.Notified != 0 || n.Tries != 0 {
			t.Errorf("claimed %+v", n)
		}
	})
}

// A notice that nobody has acknowledged is due at once when the file is opened again, also where it
// was claimed or put off; one that was acknowledged is not.
func TestNoticesOutliveTheProcess(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	o := boltstore.Options{Now: c.now}
	f := openFile(t, dir, o)
	for i, id := range []string{"claimed", "new", "off", "partly", "told"} {
		asked(t, f, question(t, c, id, "p", fmt.Sprint(i), "refunds"))
	}
	waiting := approval.Notified(0).With(approval.Waiting)
	for _, n := range claims(t, f, "claimed", "new", "off", "partly", "told") {
		switch n.Approval.ID {
		case "off":
			must(t, f.SettleNotice(ctx, &n, 0, time.Hour))
		case "partly":
			must(t, f.SettleNotice(ctx, &n, waiting, time.Hour))
		case "told":
			must(t, f.SettleNotice(ctx, &n, waiting, 0))
		}
	}
	must(t, f.Close())
	f = openFile(t, dir, o)
	for _, n := range claims(t, f, "claimed", "new", "off", "partly") {
		if n.Notified.Has(approval.Waiting) != (n.Approval.ID == "partly") {
			t.Errorf("%s: told of %v", n.Approval.ID, n.Notified.States())
		}
	}
}

// A gateway tells of what another has claimed and not settled in time. When Redis is emptied,
// what can still be decided is told of again: no log has what was told.
func TestNoticesOfAnotherGateway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := at(s.Address())
	o.Replicas = 2
	a, b := joining(t, t.TempDir(), o, testHooks{}), joining(t, t.TempDir(), o, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	c := newClock()
	c.ms.Store(time.Now().UnixMilli())
	asked(t, a, question(t, c, "call_A", "p", `{}`, "refunds"))
	due := func(of noticeStore, lease time.Duration) (n store.Notice) {
		t.Helper()
		patiently(t, func() error {
			got, err := of.ClaimNotices(ctx, 10, lease)
			if err == nil && len(got) == 0 {
				err = fmt.Errorf("nothing is due: %w", store.ErrUnavailable)
			}
			if err == nil {
				n = got[0]
			}
			return err
		})
		return n
	}
	due(a, time.Second) // and it dies
	n := due(b, time.Hour)
	must(t, b.SettleNotice(ctx, &n, approval.Notified(0).With(approval.Waiting), 0))
	claims(t, a)
	client := s.Client()
	defer client.Close()
	must(t, client.FlushAll(ctx).Err())
	if n := due(a, time.Hour); n.Approval.ID != "call_A" || n.Notified != 0 {
		t.Errorf("after a loss: %+v", n)
	}
}
