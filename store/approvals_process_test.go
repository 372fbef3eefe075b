package store_test

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/store/boltstore"
)

// What gateways have written in the last seconds comes back when Redis is emptied: who has asked, voted,
// denied and revoked, which approvals were used, and grants. What nobody remembers does not.
func TestApprovalsAfterALoss(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	o := at(s.Address())
	o.Replicas = 2
	a, b := joining(t, t.TempDir(), o, testHooks{}), joining(t, t.TempDir(), o, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	c := newClock()
	c.ms.Store(time.Now().UnixMilli())
	approvals := map[string]approval.Approval{}
	for _, id := range []string{"waiting", "approved", "used", "denied", "revoked", "spent"} {
		approvals[id] = asked(t, a, question(t, c, id, "p", strconv.Quote(id), "deploys"))
	}
	voted(t, a, approvals["waiting"], "ada", true)
	for _, id := range []string{"approved", "used", "spent"} {
		voted(t, a, approvals[id], "ada", true)
		voted(t, b, approvals[id], "bob", true)
	}
	voted(t, b, approvals["denied"], "ada", false)
	_, err := b.EndApproval(ctx, "revoked", approval.Ending{End: approval.EndRevoked})
	must(t, err)
	must(t, b.Dispatch(ctx, opened(t, b, newCall("x", "")), using("used")))
	must(t, a.AddGrant(ctx, approval.Grant{ID: "grant_1", Key: "k", Call: approval.Call{Principal: "p"}, Until: time.Now().Add(time.Hour)}))
	must(t, a.Dispatch(ctx, opened(t, a, newCall("v", "")), spending("grant_1", "spent")))
	must(t, a.AddGrant(ctx, approval.Grant{ID: "grant_2", Key: "k", Call: approval.Call{Principal: "p"}, Until: time.Now().Add(time.Hour)}))
	_, err = b.RevokeGrant(ctx, "grant_2")
	must(t, err)

	client := s.Client()
	defer client.Close()
	emptied := func(c *redis.Client) { must(t, c.FlushAll(ctx).Err()) }
	emptied(client)
	restored := func(g *gateway) {
		t.Helper()
		for end := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
			_, err := g.Approval(ctx, "waiting")
			if err == nil {
				return
			}
			if time.Now().After(end) {
				t.Fatal(err)
			}
		}
	}
	restored(a)
	restored(b)
	for id, want := range map[string]approval.State{
		"waiting": approval.Waiting, "approved": approval.Approved, "used": approval.Used, "spent": approval.Used, "denied": approval.Denied, "revoked": approval.Withdrawn,
	} {
		got, err := a.Approval(ctx, id)
		if err != nil || got.State(approvalRules, anybody, time.Now()) != want {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	refused(t, a.Dispatch(ctx, opened(t, a, newCall("y", "")), using("used")), approval.ErrUsed)
	refused(t, a.Dispatch(ctx, opened(t, a, newCall("z", "")), using("revoked")), approval.ErrEnded)
	must(t, a.Dispatch(ctx, opened(t, a, newCall("w", "")), using("approved")))
	if _, grants, err := a.Consents(ctx, "p", approvals["used"].Digest, []string{"k"}); err != nil || len(grants) != 1 || grants[0].ID != "grant_1" {
		t.Errorf("%+v, %v", grants, err)
	}
	// What nobody remembers is asked anew; what the log says stays so.
	_, err = b.RevokeGrant(ctx, "grant_1")
	must(t, err)
	must(t, a.Close())
	must(t, b.Close())
	emptied(client)
	a, b = joining(t, a.node, o, testHooks{}), joining(t, b.node, o, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	if found, grants, err := a.Consents(ctx, "p", approvals["used"].Digest, []string{"k"}); err != nil || len(grants)+len(found) > 0 {
		t.Errorf("%+v, %+v, %v", found, grants, err)
	}
}

// An approval that was used stays so when Redis is emptied, also where the replica that used it no
// longer has the call: its answer was handed over, or it is old. So does one
// that a call by its grant has used.
func TestUsedApprovalsOutliveTheirCallsInLogs(t *testing.T) {
	t.Run("passed by", func(t *testing.T) { outlivesItsCall(t, using("used")) })
	t.Run("by its grant", func(t *testing.T) { outlivesItsCall(t, spending("grant_1", "used")) })
}

func outlivesItsCall(t *testing.T, task store.Task) {
	s := redistest.Start(t)
	o := at(s.Address())
	o.Replicas = 2
	a, b := joining(t, t.TempDir(), o, testHooks{}), joining(t, t.TempDir(), o, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	c := newClock()
	c.ms.Store(time.Now().UnixMilli())
	q := asked(t, a, question(t, c, "used", "p", `{}`, "refunds"))
	voted(t, a, q, "ada", true)
	must(t, a.AddGrant(ctx, approval.Grant{ID: "grant_1", Approval: q.ID, Key: "k", Call: approval.Call{Principal: "p"}, Until: time.Now().Add(time.Hour)}))
	id := opened(t, b, newCall("x", ""))
	must(t, b.Dispatch(ctx, id, task))
	_, err := b.Finish(ctx, id, store.Ending{State: store.Done, Attempt: "1", Answer: store.Answer{Status: 200}, Deliver: true})
	must(t, err)
	must(t, b.Settle(ctx, id))
	_, err = b.Sweep(ctx, 100)
	must(t, err)
	client := s.Client()
	defer client.Close()
	must(t, client.FlushAll(ctx).Err())
	for _, g := range []*gateway{a, b} {
		patiently(t, func() error {
			_, err := g.Approval(ctx, "used")
			return err
		})
	}
	if got, err := a.Approval(ctx, "used"); err != nil || got.Ran != "x" {
		t.Errorf("after a loss: %+v, %v", got, err)
	}
	refused(t, a.Dispatch(ctx, opened(t, a, newCall("y", "")), using("used")), approval.ErrUsed)
}

// A vote on one replica wakes the request that waits at another.
func TestVotesOfAnotherReplicaAreSeen(t *testing.T) {
	o := at(redistest.Shared(t))
	o.Replicas = 2
	a, b := joining(t, t.TempDir(), o, testHooks{}), joining(t, t.TempDir(), o, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	c := newClock()
	c.ms.Store(time.Now().UnixMilli())
	q := asked(t, a, question(t, c, "call_A", "p", `{}`, "refunds"))
	voted(t, b, q, "ada", true)
	for end := time.Now().Add(patient); ; {
		w, err := a.WatchApproval(q.ID)
		must(t, err)
		got, err := a.Approval(ctx, q.ID)
		must(t, err)
		if len(got.Votes) == 2 {
			w.Stop()
			return
		}
		if len(got.Votes) == 1 {
			voted(t, b, q, "bob", true)
		}
		select {
		case <-w.Changed:
		case <-time.After(time.Until(end)):
			t.Fatal("nobody was woken")
		}
		w.Stop()
	}
}

// Fifty people vote at two replicas at once, each of them at both: every vote counts once. Of an
// approval that one of them denies, whatever the order, nothing can run.
func TestVotesAtTwoReplicas(t *testing.T) {
	t.Parallel()
	o := at(redistest.Shared(t))
	o.Replicas = 2
	a, b := joining(t, t.TempDir(), o, testHooks{}), joining(t, t.TempDir(), o, testHooks{})
	a.wait(t, true)
	b.wait(t, true)
	c := newClock()
	c.ms.Store(time.Now().UnixMilli())
	counted, denied := asked(t, a, question(t, c, "counted", "p", `1`, "deploys")), asked(t, b, question(t, c, "denied", "p", `2`, "deploys"))
	var all sync.WaitGroup
	vote := func(s keeper, q approval.Approval, by string, yes bool) {
		all.Go(func() {
			for end := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
				_, err := s.Vote(ctx, q.ID, says(q, by, yes))
				if err == nil || q.ID == denied.ID && errors.Is(err, approval.ErrEnded) { // after the no
					return
				}
				if !errors.Is(err, store.ErrUnavailable) || time.Now().After(end) {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 50 {
		for _, s := range []keeper{a, b} {
			vote(s, counted, fmt.Sprint("voter", i), true)
			vote(s, denied, fmt.Sprint("voter", i), i != 25)
		}
	}
	all.Wait()
	for i, s := range []keeper{a, b} {
		got, err := s.Approval(ctx, counted.ID)
		if err != nil || len(got.Votes) != 50 || got.Revision != 50 || got.State(approvalRules, anybody, c.now()) != approval.Approved {
			t.Errorf("%d votes, revision %d, %v", len(got.Votes), got.Revision, err)
		}
		if got, err = s.Approval(ctx, denied.ID); err != nil || got.State(approvalRules, anybody, c.now()) != approval.Denied || got.Ended.By != "voter25" {
			t.Errorf("%+v, %v", got, err)
		}
		refused(t, s.Dispatch(ctx, opened(t, s, newCall(fmt.Sprint("x", i), "")), using(denied.ID)), approval.ErrEnded)
	}
}

// racedApprovals are those that TestEachApprovalIsUsedOnce makes.
const racedApprovals = 40

// patiently repeats what a busy machine has refused.
func patiently(t testing.TB, try func() error) {
	t.Helper()
	for end := time.Now().Add(patient); ; time.Sleep(20 * time.Millisecond) {
		err := try()
		if err == nil {
			return
		}
		if !errors.Is(err, store.ErrUnavailable) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func racerPrincipal(i int) string { return fmt.Sprint("p", i%20) }

// raceApprovals dispatches by every approval, several at once.
func raceApprovals(s keeper, name string) {
	var all sync.WaitGroup
	for racer := range 4 {
		all.Go(func() {
			for i := range racedApprovals {
				c := newCall(fmt.Sprintf("%s-%d-%d", name, racer, i), "")
				c.Scope.Principal = racerPrincipal(i)
				if _, err := s.Open(ctx, c); err != nil {
					continue // the other processes do it
				}
				if s.Dispatch(ctx, c.ID, using(fmt.Sprint("asked-", i))) == nil {
					fmt.Println(c.ID, fmt.Sprint("asked-", i))
					continue
				}
				_ = s.Settle(ctx, c.ID)
			}
		})
	}
	all.Wait()
}

// Eight racers of two processes, one of which is killed, dispatch by the same approvals: each
// approval is used by exactly one call.
func TestEachApprovalIsUsedOnce(t *testing.T) {
	t.Parallel()
	redistest.Require(t)
	s := redistest.Start(t)
	o := at(s.Address())
	g := join(t, o, testHooks{})
	c := newClock()
	c.ms.Store(time.Now().UnixMilli())
	for i := range racedApprovals {
		a := question(t, c, fmt.Sprint("asked-", i), racerPrincipal(i), fmt.Sprint(i), "refunds")
		patiently(t, func() error { _, _, err := g.Ask(ctx, a); return err })
		patiently(t, func() error { _, err := g.Vote(ctx, a.ID, says(a, "ada", true)); return err })
	}
	killed, other := spawn(t, "approvals", t.TempDir(), "killed", o), spawn(t, "approvals", t.TempDir(), "other", o)
	confirmed := map[string]string{}
	note := func(line [2]string) {
		if line[0] == "error" {
			t.Fatal(line[1])
		}
		if before := confirmed[line[1]]; before != "" {
			t.Errorf("%s was used by %s and %s", line[1], before, line[0])
		}
		confirmed[line[1]] = line[0]
	}
	for range 20 { // in the middle of it
		line, open := <-killed.lines
		if !open {
			break
		}
		note(line)
	}
	must(t, killed.cmd.Process.Signal(syscall.SIGKILL))
	for _, p := range []*spawned{killed, other} {
		for line := range p.lines {
			note(line)
		}
		_ = p.cmd.Wait()
	}
	// A dispatch that got no reply is taken back, or its process was killed with it.
	unused := 0
	for i := range racedApprovals {
		id := fmt.Sprint("asked-", i)
		var a approval.Approval
		try := 0
		patiently(t, func() (err error) {
			if a, err = g.Approval(ctx, id); err != nil || a.Ran != "" {
				return err
			}
			unused++
			try++
			_ = g.Dispatch(ctx, openedBy(t, g, fmt.Sprintf("last-%s-%d", id, try), racerPrincipal(i)), using(id))
			return store.ErrUnavailable // look again
		})
		if by := confirmed[id]; by != "" && by != a.Ran {
			t.Errorf("%s: %s was told that it runs, and %s has run", id, by, a.Ran)
		}
		var call store.Call
		patiently(t, func() (err error) { call, err = g.Get(ctx, a.Ran, store.OfAnyone()); return err })
		if call.Step != store.Dispatched {
			t.Errorf("%s was used by %+v", id, call)
		}
		late := 0
		patiently(t, func() error {
			late++
			err := g.Dispatch(ctx, openedBy(t, g, fmt.Sprintf("late-%s-%d", id, late), racerPrincipal(i)), using(id))
			if errors.Is(err, approval.ErrUsed) {
				return nil
			}
			if err == nil {
				t.Errorf("%s was used twice", id)
			}
			return err
		})
	}
	t.Logf("%d approvals, %d confirmed by the racers, %d left", racedApprovals, len(confirmed), unused)
}

func openedBy(t testing.TB, s calls, id, principal string) string {
	t.Helper()
	c := newCall(id, "")
	c.Scope.Principal = principal
	return opened(t, s, c)
}

// writeApprovals takes approvals through their lives.
func writeApprovals(f *boltstore.Store) error {
	for i := 0; ; i++ {
		a, err := approval.Open(approval.Approval{
			ID: fmt.Sprint("asked-", i), Rules: []string{"refunds"},
			Call: approval.Call{Principal: racerPrincipal(i), Tool: "t", Arguments: []byte(strconv.Itoa(i))},
		}, approvalRules, time.Now())
		if err == nil {
			_, _, err = f.Ask(ctx, a)
		}
		if err != nil {
			return err
		}
		fmt.Println("waiting", a.ID)
		if _, err := f.Vote(ctx, a.ID, says(a, "ada", true)); err != nil {
			return err
		}
		fmt.Println("approved", a.ID)
		c := newCall(fmt.Sprint("call-", i), "")
		c.Scope.Principal = a.Principal
		_, opened := f.Open(ctx, c)
		if err := errors.Join(opened, f.Dispatch(ctx, c.ID, using(a.ID))); err != nil {
			return err
		}
		fmt.Println("used", a.ID)
	}
}

// A process that is killed leaves its approvals as it has said, or one step further.
func TestKilledWhileItWritesApprovals(t *testing.T) {
	for round := range 3 {
		dir := t.TempDir()
		p := spawn(t, "approvals in a file", dir, "x", at("x"))
		steps := map[string]string{}
		for range 10 + round { // ends at another step each time
			line := <-p.lines
			steps[line[1]] = line[0]
		}
		must(t, p.cmd.Process.Signal(syscall.SIGKILL))
		for id, step := range p.said(t) {
			steps[id] = step
		}
		_ = p.cmd.Wait()
		f := openFile(t, dir, boltstore.Options{})
		rank := map[string]int{"waiting": 1, "approved": 2, "used": 3}
		for id, step := range steps {
			a, err := f.Approval(ctx, id)
			got := string(a.State(approvalRules, anybody, time.Now()))
			if err != nil || rank[got] < rank[step] || rank[got] > rank[step]+1 {
				t.Errorf("%s was %s, and is %s, %v", id, step, got, err)
			}
			call, err := f.Get(ctx, a.Ran, store.OfAnyone())
			if (got == "used") != (err == nil && call.Step == store.Dispatched) {
				t.Errorf("%s is %s, its call %+v, %v", id, got, call, err)
			}
			if got == "used" {
				refused(t, f.Dispatch(ctx, openedBy(t, f, "late-"+id, a.Principal), using(id)), approval.ErrUsed)
			}
		}
		must(t, f.Close())
	}
}
