package approvals_test

import (
	"context"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// between is a store before whose next dispatch something else happens.
type between struct {
	calls.Store
	office *office
}

func (b between) Dispatch(ctx context.Context, id string, task store.Task) error {
	if happens := b.office.beforeDispatch; happens != nil {
		b.office.beforeDispatch = nil
		happens()
	}
	b.checkDecision(id, &task)
	return b.Store.Dispatch(ctx, id, task)
}

// checkDecision checks that the decision of a call that is dispatched, which is in the log by then,
// names the approvals that the dispatch uses up, and the key that the call holds.
func (b between) checkDecision(id string, task *store.Task) {
	b.office.t.Helper()
	kept, err := b.Get(context.Background(), id, store.OfAnyone())
	decisions := b.office.Journal.Find(id, func(r audit.Record) bool { return r.Event == audit.Decision && r.Verdict == audit.ToolCall })
	if err != nil || len(decisions) != 1 {
		b.office.t.Errorf("%s is dispatched: %v, decisions %+v", id, err, decisions)
		return
	}
	key, digest := "", ""
	if kept.Key != "" {
		key, digest = hex.EncodeToString(store.KeyHash(kept.Scope, kept.Key)), kept.Digest
	}
	r := decisions[0]
	said, used := slices.Concat(r.Approvals, r.Spends), slices.Concat(task.Using, task.Spends)
	slices.Sort(said)
	slices.Sort(used)
	if !slices.Equal(said, used) || r.KeySHA256 != key || r.RequestSHA256 != digest {
		b.office.t.Errorf("the dispatch of %s uses %q and spends %q, of the key %q %q; its decision says %+v", id, task.Using, task.Spends, key, digest, r)
	}
}

// TestEndedBeforeTheDispatch: a call that was judged, and whose approval ends before it is
// dispatched, does not run, on every face.
func TestEndedBeforeTheDispatch(t *testing.T) {
	const required, denied = refusal.ApprovalRequired, refusal.ApprovalDenied
	for name, c := range map[string]struct {
		happens func(t *testing.T, o *office, id string)
		code    refusal.Code
		ran     int
	}{
		"revoked": {func(t *testing.T, o *office, id string) {
			if _, err := o.Executor.Desk().End(t.Context(), id, approval.EndRevoked, "op", ""); err != nil {
				t.Error(err)
			}
		}, denied, 0},
		"withdrawn": {func(t *testing.T, o *office, id string) {
			if _, err := o.Executor.Desk().End(t.Context(), id, approval.EndWithdrawn, "app", ""); err != nil {
				t.Error(err)
			}
		}, required, 0},
		"denied":  {func(t *testing.T, o *office, id string) { o.vote(t, id, vote{By: "bob"}) }, denied, 0},
		"expired": {func(_ *testing.T, o *office, _ string) { o.later.Store(int64(31 * time.Minute)) }, refusal.ApprovalExpired, 0},
		"used by another call": {func(t *testing.T, o *office, _ string) {
			if w := faces()[0].send(o, call{Arguments: `{"amount":7}`}); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}, required, 1},
	} {
		for _, f := range faces() {
			t.Run(name+"/"+f.name, func(t *testing.T) {
				o := newOffice(t, asking)
				pay := call{Arguments: `{"amount":7}`}
				id := o.bring(t, faces()[0], pay).id
				o.vote(t, id, vote{By: "ada", Yes: true})
				before := len(o.Journal.Records())
				o.beforeDispatch = func() { c.happens(t, o, id) }
				w := f.send(o, pay)
				if o.beforeDispatch != nil {
					t.Fatalf("it was not judged: %d %s", w.Code, w.Body)
				}
				if err := o.Executor.Kernel.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(o.ran) != c.ran {
					t.Errorf("%d calls ran", len(o.ran))
				}
				found := false
				for _, r := range o.Journal.Records()[before:] {
					found = found || r.Event == audit.Ending && r.Code == c.code
				}
				if !found {
					t.Errorf("no outcome says %s: %d %s", c.code, w.Code, w.Body)
				}
			})
		}
	}
}

// TestTheLogSaysUntilWhen: the record of a late yes says until when it can be used, as the approval does.
func TestTheLogSaysUntilWhen(t *testing.T) {
	o := newOffice(t, asking)
	id := o.bring(t, faces()[0], call{Arguments: `{"amount":7}`}).id
	o.later.Store(int64(29 * time.Minute))
	o.vote(t, id, vote{By: "ada", Yes: true})
	a, err := o.Executor.Desk().Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	yes := o.Journal.Find(id, func(r audit.Record) bool { return r.Code == audit.Yes })
	if len(yes) != 1 || yes[0].Until.Sub(a.Closes()).Abs() > time.Minute || !yes[0].Until.After(a.Until) {
		t.Errorf("%+v; expected until %s", yes, a.Closes())
	}
}

// TestKeyIsGone: who brings an approved call needs a credential that is valid then, and a yes counts
// while its voter is one.
func TestKeyIsGone(t *testing.T) {
	o, pay := newOffice(t, asking), call{Arguments: `{"amount":7}`}
	id := o.bring(t, faces()[0], pay).id
	o.vote(t, id, vote{By: "ada", Yes: true})
	o.lacks["app"] = everything
	for path, body := range map[string]string{"/v1/calls/" + id + "/resume": "", "/v1/calls": `{"tool":{"name":"pay","arguments":{"amount":7}}}`} {
		if w := o.post(path, body, pay, "Content-Type", "text/plain"); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), string(refusal.Unauthenticated)) {
			t.Errorf("%s without a key: %d %s", path, w.Code, w.Body)
		}
	}
	delete(o.lacks, "app")
	o.lacks["ada"] = everything
	if w := o.post("/v1/calls/"+id+"/resume", "", pay); w.Code != http.StatusAccepted || len(o.ran) != 0 {
		t.Errorf("the voter's key is gone: %d %s", w.Code, w.Body)
	}
	delete(o.lacks, "ada")
	if w := o.post("/v1/calls/"+id+"/resume", "", pay); w.Code != http.StatusOK || len(o.ran) != 1 {
		t.Errorf("both are back: %d %s", w.Code, w.Body)
	}
}

// TestNobodyCanDecideIt: an approval that takes no yes any more, and has too few, answers no call, although its last yes
// keeps it for longer: the same call asks people anew, on every face.
func TestNobodyCanDecideIt(t *testing.T) {
	for name, c := range map[string]struct {
		rule  string
		lacks string
	}{
		"one yes of two":               {rule: "two"},
		"its voter approves no longer": {"one", "ada"},
	} {
		for _, f := range faces() {
			t.Run(name+"/"+f.name, func(t *testing.T) {
				o, pay := newOffice(t, map[string]string{"policy.csv": "p, Analyst, *, pay, , ask:" + c.rule + "\n"}), call{Arguments: `{"amount":7}`}
				desk := o.Executor.Desk()
				id := o.bring(t, f, pay).id
				a, err := desk.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				o.later.Store(int64(time.Until(a.Until) - time.Minute))
				o.vote(t, id, vote{By: "ada", Yes: true})
				o.later.Store(int64(time.Until(a.Until) + time.Minute))
				o.lacks[c.lacks] = everything
				waiting := func() int {
					if err := desk.Measure(t.Context()); err != nil {
						t.Error(err)
					}
					return desk.Waiting()
				}
				if a, err = desk.Get(t.Context(), id); err != nil || !strings.HasPrefix(desk.RefuseEnded(&a, desk.State(&a)).Message, "Nobody has said within") {
					t.Errorf("%v: %v", desk.RefuseEnded(&a, desk.State(&a)), err)
				}
				if n := waiting(); n != 0 {
					t.Errorf("%d wait, and nobody can decide any", n)
				}
				o.bring(t, f, pay)
				if ids := o.opened(); len(ids) != 2 || ids[1] == id || waiting() != 1 {
					t.Errorf("asked by %q, %d wait", ids, waiting())
				}
			})
		}
	}
}

// TestClockSteps: the time of an approval is the one that callers got, whatever the clock does. A step
// back lengthens it by the step.
func TestClockSteps(t *testing.T) {
	for name, c := range map[string]struct {
		steps []time.Duration
		code  refusal.Code
	}{
		"back":             {[]time.Duration{-time.Hour}, ""},
		"back, and over":   {[]time.Duration{-time.Hour, 31 * time.Minute}, refusal.ApprovalRequired},
		"over, and back":   {[]time.Duration{31 * time.Minute, 0}, ""},
		"over":             {[]time.Duration{31 * time.Minute}, refusal.ApprovalRequired},
		"almost over":      {[]time.Duration{29 * time.Minute}, ""},
		"over, by a month": {[]time.Duration{31 * 24 * time.Hour}, refusal.ApprovalRequired},
	} {
		t.Run(name, func(t *testing.T) {
			o, pay := newOffice(t, asking), call{Arguments: `{"amount":7}`}
			o.vote(t, o.bring(t, faces()[0], pay).id, vote{By: "ada", Yes: true})
			for _, step := range c.steps {
				o.later.Store(int64(step))
			}
			if got := o.bring(t, faces()[0], pay); got.code != string(c.code) {
				t.Errorf("%q, want %q", got.code, c.code)
			}
		})
	}
}
