package store_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/store/redisstore"
)

// keeper is a store of calls and approvals.
type keeper interface {
	calls
	store.Approvals
}

var (
	_ keeper = (*store.Memory)(nil)
	_ keeper = (*boltstore.Store)(nil)
	_ keeper = (*redisstore.Store)(nil)
)

// eachKeeper runs a test for every backend that keeps approvals.
func eachKeeper(t *testing.T, test func(*testing.T, keeper, *clock)) {
	each(t, store.Bounds{}, func(t *testing.T, s calls, c *clock) { test(t, s.(keeper), c) })
}

var approvalRules = approval.Rules{
	"refunds": {Name: "refunds", Approve: 1, Within: 30 * time.Minute, Remember: map[approval.Scope]time.Duration{approval.AnyCall: time.Hour}},
	"deploys": {Name: "deploys", Approve: 2, Within: 4 * time.Hour},
}

// anybody may decide everything.
func anybody(v approval.Vote) approval.Voter {
	return approval.Voter{Principal: v.By, Approves: []string{"refunds", "deploys"}}
}

// question is an approval that is asked; equal arguments are the same call.
func question(t testing.TB, c *clock, id, principal, arguments string, rules ...string) approval.Approval {
	t.Helper()
	a, err := approval.Open(approval.Approval{
		ID: id, Rules: rules, Rows: []string{"policy.csv:3"}, Config: "c",
		Call: approval.Call{Principal: principal, Workspace: "w", Project: "q", Agent: "Analyst", Tool: "payments.refund", Version: "1.0.0", Definition: "d", Arguments: []byte(arguments)},
	}, approvalRules, c.now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func asked(t testing.TB, s keeper, a approval.Approval) approval.Approval {
	t.Helper()
	kept, joined, err := s.Ask(ctx, a)
	if err != nil || joined || kept.ID != a.ID {
		t.Fatalf("asked %s: %+v, joined %v, %v", a.ID, kept, joined, err)
	}
	return kept
}

func says(a approval.Approval, by string, yes bool) approval.Vote {
	return approval.Vote{By: by, Yes: yes, Digest: a.Digest, Rules: a.Rules}
}

func voted(t testing.TB, s keeper, a approval.Approval, by string, yes bool) approval.Approval {
	t.Helper()
	got, err := s.Vote(ctx, a.ID, says(a, by, yes))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func using(ids ...string) store.Task {
	task := once
	task.Using = ids
	return task
}

func TestAnApprovalIsUsedOnce(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{"n": 1}`, "refunds"))
		if got := voted(t, s, a, "ada", true); got.State(approvalRules, anybody, c.now()) != approval.Approved {
			t.Errorf("got %+v", got)
		}
		refused(t, s.Dispatch(ctx, opened(t, s, newCall("call_X", "")), using(a.ID, "call_none")), approval.ErrEnded)
		if found, _, err := s.Consents(ctx, "p", a.Digest, nil); err != nil || len(found) != 1 || found[0].Ran != "" || string(found[0].Arguments) != `{"n": 1}` {
			t.Errorf("after a dispatch that was refused: %+v, %v", found, err)
		}
		must(t, s.Dispatch(ctx, opened(t, s, newCall("call_B", "")), using(a.ID)))
		refused(t, s.Dispatch(ctx, opened(t, s, newCall("call_C", "k")), using(a.ID)), approval.ErrUsed)
		got, err := s.Approval(ctx, a.ID)
		if err != nil || got.Ran != "call_B" || got.State(approvalRules, anybody, c.now()) != approval.Used || got.Arguments != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		if call, err := s.Get(ctx, "call_B", store.Of("p")); err != nil || call.Step != store.Dispatched || !slices.Equal(call.Task.Using, []string{"call_A"}) {
			t.Errorf("got %+v, %v", call, err)
		}
		if call, err := s.Get(ctx, "call_C", store.Of("p")); err != nil || call.Step != store.Opened {
			t.Errorf("the call that was refused: %+v, %v", call, err)
		}
		if found, _, err := s.Consents(ctx, "p", a.Digest, nil); err != nil || len(found) > 0 {
			t.Errorf("a used approval is still found: %+v, %v", found, err)
		}
		// The same call asks anew.
		asked(t, s, question(t, c, "call_D", "p", `{"n": 1}`, "refunds"))
	})
}

// All approvals of a dispatch are used, or none of them.
func TestAllOrNone(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		first := asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		second := asked(t, s, question(t, c, "call_B", "p", `{}`, "deploys"))
		_, err := s.EndApproval(ctx, second.ID, approval.Ending{End: approval.EndRevoked, By: "op"})
		must(t, err)
		refused(t, s.Dispatch(ctx, opened(t, s, newCall("1", "")), using(first.ID, second.ID)), approval.ErrEnded)
		if got, err := s.Approval(ctx, first.ID); err != nil || got.Ran != "" {
			t.Errorf("got %+v, %v", got, err)
		}
		if s.Dispatch(ctx, opened(t, s, newCall("2", "")), using(first.ID, first.ID)) == nil {
			t.Error("an approval is named twice")
		}
		c.advance(time.Hour)
		refused(t, s.Dispatch(ctx, opened(t, s, newCall("3", "")), using(first.ID)), approval.ErrEnded)
	})
}

func TestAskJoins(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{"n": 1}`, "refunds"))
		asked(t, s, a) // the same request again
		for i, joins := range []struct {
			a    approval.Approval
			want bool
		}{
			{question(t, c, "1", "p", ` {"n":1}`, "refunds"), true}, {question(t, c, "2", "p", `{"n": 2}`, "refunds"), false},
			{question(t, c, "3", "other", `{"n": 1}`, "refunds"), false}, {question(t, c, "4", "p", `{"n": 1}`, "refunds", "deploys"), false},
		} {
			kept, joined, err := s.Ask(ctx, joins.a)
			if err != nil || joined != joins.want || joined != (kept.ID == "call_A") {
				t.Errorf("%d: joined %v to %s, %v", i, joined, kept.ID, err)
			}
		}
		denied := voted(t, s, a, "ada", false)
		if denied.Arguments != nil || denied.State(approvalRules, anybody, c.now()) != approval.Denied {
			t.Errorf("got %+v", denied)
		}
		for _, rules := range [][]string{{"refunds"}, {"refunds", "deploys"}} {
			kept, joined, err := s.Ask(ctx, question(t, c, "5", "p", `{"n": 1}`, rules...))
			if err != nil || !joined || kept.ID != "call_A" && len(rules) == 1 {
				t.Errorf("a denial that stands: joined %v to %s, %v", joined, kept.ID, err)
			}
		}
		if found, _, err := s.Consents(ctx, "p", a.Digest, nil); err != nil || len(found) != 2 {
			t.Errorf("got %+v, %v", found, err)
		}
		c.advance(30 * time.Minute)
		asked(t, s, question(t, c, "6", "p", `{"n": 1}`, "refunds"))
		// A vote lets it be used for longer than it can be voted on, and a call that asks then is asked for anew.
		early := asked(t, s, question(t, c, "call_E", "p", `{"n": 3}`, "refunds"))
		c.advance(early.Until.Sub(early.Opened) - time.Second)
		voted(t, s, early, "ada", true)
		c.advance(time.Second)
		asked(t, s, question(t, c, "call_F", "p", `{"n": 3}`, "refunds"))
	})
}

// What a store would write down as something else is refused: JSON has no other texts than UTF-8, and ids
// stand beside others in lists.
func TestApprovalsOfOddNames(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		for name, change := range map[string]func(*approval.Approval){
			"an id":                   func(a *approval.Approval) { a.ID = "a\xff" },
			"an id with a zero":       func(a *approval.Approval) { a.ID = "a\x00b" },
			"an id with a space":      func(a *approval.Approval) { a.ID = "a b" },
			"a principal":             func(a *approval.Approval) { a.Principal = "\xff" },
			"a thread":                func(a *approval.Approval) { a.Thread = "\xff" },
			"the principal of a vote": func(a *approval.Approval) { a.Votes = []approval.Vote{{By: "\xff", Rules: a.Rules}} },
		} {
			a := question(t, c, "odd", "p", `{"n": 1}`, "refunds")
			if change(&a); a.Validate() == nil {
				t.Errorf("%s: it is valid", name)
			}
			if _, _, err := s.Ask(ctx, a); err == nil {
				t.Errorf("%s: it is kept", name)
			}
		}
		asked(t, s, question(t, c, "nobody", "", "{}", "refunds"))
	})
}

func TestEqualQuestionsAtOnceAreOne(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		var all sync.WaitGroup
		var kept atomic.Int64
		for i := range 50 {
			all.Go(func() {
				if _, joined, err := s.Ask(ctx, question(t, c, fmt.Sprint("call_", i), "p", `{}`, "refunds")); err != nil {
					t.Error(err)
				} else if !joined {
					kept.Add(1)
				}
			})
		}
		all.Wait()
		if kept.Load() != 1 {
			t.Errorf("%d approvals of one call", kept.Load())
		}
	})
}

func TestVotesAtOnceAreCountedExactly(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{}`, "deploys"))
		var all sync.WaitGroup
		for i := range 50 {
			for range 2 {
				all.Go(func() {
					if _, err := s.Vote(ctx, a.ID, says(a, fmt.Sprint("voter", i), true)); err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		got, err := s.Approval(ctx, a.ID)
		if err != nil || len(got.Votes) != 50 || got.Revision != 50 {
			t.Errorf("%d votes, revision %d, %v", len(got.Votes), got.Revision, err)
		}
	})
}

// One no among many yes: whatever their order, the approval is denied and cannot be used.
func TestANoAmongDispatches(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		for round := range 20 {
			a := asked(t, s, question(t, c, fmt.Sprint("call_", round), "p", fmt.Sprint(round), "refunds"))
			voted(t, s, a, "ada", true)
			var all sync.WaitGroup
			var ran, denied atomic.Int64
			for i := range 4 {
				id := opened(t, s, newCall(fmt.Sprintf("%d-%d", round, i), ""))
				all.Go(func() {
					switch err := s.Dispatch(ctx, id, using(a.ID)); {
					case err == nil:
						ran.Add(1)
					case !errors.Is(err, approval.ErrUsed) && !errors.Is(err, approval.ErrEnded):
						t.Error(err)
					}
				})
			}
			all.Go(func() {
				if _, err := s.Vote(ctx, a.ID, says(a, "bob", false)); err == nil {
					denied.Add(1)
				} else if !errors.Is(err, approval.ErrUsed) {
					t.Error(err)
				}
			})
			all.Wait()
			if ran.Load()+denied.Load() != 1 {
				t.Errorf("%d dispatches, %d denials", ran.Load(), denied.Load())
			}
		}
	})
}

func TestVotesThatAreRefused(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		_, err := s.Vote(ctx, "call_none", says(a, "ada", true))
		refused(t, err, store.ErrNotFound)
		other := says(a, "ada", true)
		other.Digest = strings.Repeat("0", 64)
		_, err = s.Vote(ctx, a.ID, other)
		refused(t, err, approval.ErrDigest)
		c.advance(30 * time.Minute)
		_, err = s.Vote(ctx, a.ID, says(a, "ada", true))
		refused(t, err, approval.ErrEnded)
		lapsed, err := s.Lapsed(ctx, 10)
		if err != nil || len(lapsed) != 1 || lapsed[0].ID != a.ID {
			t.Errorf("got %+v, %v", lapsed, err)
		}
		expired := approval.Ending{End: approval.EndExpired}
		if got, err := s.EndApproval(ctx, a.ID, expired); err != nil || got.Arguments != nil || got.State(approvalRules, anybody, c.now()) != approval.Expired {
			t.Errorf("got %+v, %v", got, err)
		}
		_, err = s.EndApproval(ctx, a.ID, expired)
		refused(t, err, approval.ErrEnded)
		if lapsed, err := s.Lapsed(ctx, 10); err != nil || len(lapsed) > 0 {
			t.Errorf("it is told twice: %+v, %v", lapsed, err)
		}
	})
}

func TestBoundsOfApprovals(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		n := 0
		ask := func(principal string) error {
			n++
			_, _, err := s.Ask(ctx, question(t, c, fmt.Sprintf("call_%04d", n), principal, fmt.Sprint(n), "refunds"))
			return err
		}
		for range store.MaxLiveOfPrincipal {
			must(t, ask("p"))
		}
		refused(t, ask("p"), store.ErrFull)
		must(t, ask("q"))
		_, err := s.EndApproval(ctx, "call_0001", approval.Ending{End: approval.EndWithdrawn})
		must(t, err)
		must(t, ask("p"))
		refused(t, ask("p"), store.ErrFull)
		// The others' calls go on.
		must(t, s.Dispatch(ctx, opened(t, s, newCall("x", "")), once))
		c.advance(30 * time.Minute) // all of them expire, whether somebody marks them or not
		must(t, ask("p"))
	})
}

func TestListOfApprovals(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		for i := range 5 {
			rule := []string{"refunds", "deploys"}[i%2]
			asked(t, s, question(t, c, fmt.Sprint("call_", i), fmt.Sprint("p", i), fmt.Sprint(i), rule))
		}
		_, err := s.EndApproval(ctx, "call_2", approval.Ending{End: approval.EndWithdrawn})
		must(t, err)
		for _, tc := range []struct {
			f    store.ApprovalFilter
			want string
		}{
			{store.ApprovalFilter{Limit: 10}, "01234"}, {store.ApprovalFilter{Limit: 2}, "01"}, {store.ApprovalFilter{Limit: 2, After: "call_1"}, "23"},
			{store.ApprovalFilter{Limit: 10, Live: true}, "0134"}, {store.ApprovalFilter{Limit: 10, Rule: "refunds"}, "024"},
			{store.ApprovalFilter{Limit: 2, Live: true, Rule: "refunds", After: "call_0"}, "4"}, {store.ApprovalFilter{}, ""},
		} {
			got := ""
			found, err := s.Approvals(ctx, tc.f)
			for _, a := range found {
				got += strings.TrimPrefix(a.ID, "call_")
			}
			if err != nil || got != tc.want {
				t.Errorf("%+v: %s, want %s; %v", tc.f, got, tc.want, err)
			}
		}
	})
}

func TestGrantsAreKept(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		v := says(a, "ada", true)
		v.Remember = approval.Remember{Scope: approval.AnyCall, For: time.Hour}
		got, err := s.Vote(ctx, a.ID, v)
		must(t, err)
		grants := got.Grants(approvalRules, anybody, c.now())
		if len(grants) != 1 {
			t.Fatalf("got %+v", grants)
		}
		g := grants[0]
		must(t, s.AddGrant(ctx, g))
		must(t, s.AddGrant(ctx, g))
		kept := func(want int) {
			t.Helper()
			_, found, err := s.Consents(ctx, "p", a.Digest, []string{"none", g.Key})
			if err != nil || len(found) != want || want > 0 && (found[0].ID != g.ID || found[0].Until != g.Until) {
				t.Errorf("got %+v, %v", found, err)
			}
			if list, err := s.Grants(ctx, "", 10); err != nil || len(list) != want {
				t.Errorf("listed %+v, %v", list, err)
			}
		}
		kept(1)
		for i := range 3 { // a grant is not used up
			must(t, s.Dispatch(ctx, opened(t, s, newCall(fmt.Sprint(i), "")), using(g.ID)))
		}
		removed, err := s.RevokeGrant(ctx, g.ID)
		if err != nil || removed.ID != g.ID {
			t.Errorf("got %+v, %v", removed, err)
		}
		kept(0)
		_, err = s.RevokeGrant(ctx, g.ID)
		refused(t, err, store.ErrNotFound)
		refused(t, s.Dispatch(ctx, opened(t, s, newCall("late", "")), using(g.ID)), approval.ErrEnded)
		must(t, s.AddGrant(ctx, g)) // again, since its reply was lost
		kept(0)
		c.advance(time.Minute)
		g.Opened, g.Until = g.Opened.Add(time.Minute), g.Until.Add(time.Minute) // by later votes
		must(t, s.AddGrant(ctx, g))
		kept(1)
		c.advance(time.Hour)
		kept(0)
		refused(t, s.Dispatch(ctx, opened(t, s, newCall("later", "")), using(g.ID)), approval.ErrEnded)
	})
}

func TestSweepOfApprovals(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		asked(t, s, question(t, c, "lapsed", "p", `1`, "refunds"))
		used := asked(t, s, question(t, c, "used", "p", `2`, "refunds"))
		denied := asked(t, s, question(t, c, "denied", "p", `3`, "refunds"))
		voted(t, s, used, "ada", true)
		voted(t, s, denied, "ada", false)
		must(t, s.Dispatch(ctx, opened(t, s, newCall("x", "")), using(used.ID)))
		for _, id := range []string{"grant_over", "grant_revoked"} {
			must(t, s.AddGrant(ctx, approval.Grant{ID: id, Key: "k", Until: c.now().Add(time.Hour)}))
		}
		_, err := s.RevokeGrant(ctx, "grant_revoked")
		must(t, err)
		c.advance(approval.Retention - time.Millisecond)
		if n, err := s.SweepApprovals(ctx, 10); err != nil || n != 1 { // the grant that is over
			t.Errorf("swept %d, %v", n, err)
		}
		c.advance(time.Hour)
		if n, err := s.SweepApprovals(ctx, 2); err != nil || n != 2 {
			t.Errorf("swept %d, %v", n, err)
		}
		if n, err := s.Sweep(ctx, 10); err != nil || n != 2 { // which also sweeps approvals
			t.Errorf("swept %d, %v", n, err)
		}
		if all, err := s.Approvals(ctx, store.ApprovalFilter{Limit: 10}); err != nil || len(all) > 0 {
			t.Errorf("got %+v, %v", all, err)
		}
	})
}

func TestApprovalsAreWatched(t *testing.T) {
	eachKeeper(t, func(t *testing.T, s keeper, c *clock) {
		a := asked(t, s, question(t, c, "call_A", "p", `{}`, "refunds"))
		for _, change := range []func(){
			func() { voted(t, s, a, "ada", true) },
			func() { must(t, s.Dispatch(ctx, opened(t, s, newCall("x", "")), using(a.ID))) },
		} {
			w, err := s.WatchApproval(a.ID)
			must(t, err)
			change()
			<-w.Changed
			w.Stop()
		}
	})
}

// Every change that was confirmed is in the file when it is opened again.
func TestApprovalsOutliveTheProcess(t *testing.T) {
	c, dir := newClock(), t.TempDir()
	o := boltstore.Options{Now: c.now, UnkeyedInMemory: true}
	f := openFile(t, dir, o)
	var approvals []approval.Approval
	for _, id := range []string{"waiting", "approved", "used", "denied"} {
		approvals = append(approvals, asked(t, f, question(t, c, id, "p", fmt.Sprintf("%q", id), "refunds")))
	}
	voted(t, f, approvals[1], "ada", true)
	voted(t, f, approvals[2], "ada", true)
	voted(t, f, approvals[3], "ada", false)
	must(t, f.Dispatch(ctx, opened(t, f, newCall("x", "")), using("used"))) // a call without a key is written for that
	g := approval.Grant{ID: "grant_1", Key: "k", Until: c.now().Add(time.Hour)}
	must(t, f.AddGrant(ctx, g))
	must(t, f.Close())

	f = openFile(t, dir, o)
	for i, want := range []approval.State{approval.Waiting, approval.Approved, approval.Used, approval.Denied} {
		got, err := f.Approval(ctx, approvals[i].ID)
		if err != nil || got.State(approvalRules, anybody, c.now()) != want {
			t.Errorf("%s: %+v, %v", approvals[i].ID, got, err)
		}
		if found, grants, err := f.Consents(ctx, "p", approvals[i].Digest, []string{"k"}); err != nil || (len(found) == 1) != (want != approval.Used) || len(grants) != 1 {
			t.Errorf("%s: found %d, %d grants, %v", approvals[i].ID, len(found), len(grants), err)
		}
	}
	if call, err := f.Get(ctx, "x", store.Of("p")); err != nil || call.Step != store.Dispatched {
		t.Errorf("got %+v, %v", call, err)
	}
	refused(t, f.Dispatch(ctx, opened(t, f, newCall("y", "")), using("used")), approval.ErrUsed)
	must(t, f.Dispatch(ctx, opened(t, f, newCall("z", "")), using("approved")))
}

// A dispatch that was refused since the disk was slow leaves its approval usable.
func TestASlowDiskSpendsNoApproval(t *testing.T) {
	c := newClock()
	var slow atomic.Bool
	release := make(chan struct{})
	dir := t.TempDir()
	patiently := openFile(t, dir, boltstore.Options{Now: c.now})
	a := asked(t, patiently, question(t, c, "call_A", "p", `{"n": 1}`, "refunds"))
	voted(t, patiently, a, "ada", true)
	must(t, patiently.Close())
	f := openFile(t, dir, beforeCommit(boltstore.Options{Now: c.now, Wait: 500 * time.Millisecond}, func() error {
		if slow.Load() {
			<-release
		}
		return nil
	}))
	id := opened(t, f, newCall("x", "k"))
	slow.Store(true)
	refused(t, f.Dispatch(ctx, id, using(a.ID)), store.ErrUnavailable)
	slow.Store(false)
	close(release)
	for end := time.Now().Add(patient); ; time.Sleep(5 * time.Millisecond) {
		got, err := f.Approval(ctx, a.ID)
		if err == nil && got.Ran == "" && got.Revision > 1 && string(got.Arguments) == `{"n": 1}` {
			next := fmt.Sprint("y", time.Now().UnixNano())
			if _, err = f.Open(ctx, newCall(next, "")); err == nil {
				err = f.Dispatch(ctx, next, using(a.ID))
			}
			if err == nil {
				break
			}
			if !errors.Is(err, store.ErrUnavailable) { // as where the machine stands still, which is a slow disk
				t.Fatal(err)
			}
		}
		if time.Now().After(end) {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
}
