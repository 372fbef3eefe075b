package native_test

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/boltstore"
	"github.com/callgate/callgate/tool"
)

// handedOver hands a call of pay over, and returns its refusal.
func (o office) handedOver(t *testing.T, amount string) *refusal.Error {
	t.Helper()
	ctx := context.Background()
	a, err := o.Executor.Kernel.Admit(ctx, gateway.Request{})
	if err != nil {
		t.Fatal(err)
	}
	out := o.Executor.HandOver(ctx, a.Judge(ctx, gateway.ModeEnforce, gateway.Input{Completion: []byte(pay(amount))}))
	return out[0].Refusal
}

// slowOutcomes is a log that writes no outcome of a call that was handed over before it may.
type slowOutcomes struct {
	gateway.Journal
	may chan struct{}
}

func (s slowOutcomes) Append(ctx context.Context, r audit.Record) error {
	if r.Outcome == audit.HandedOver {
		<-s.may
	}
	return s.Journal.Append(ctx, r)
}

// A hand-over for which there is no room, since too many outcomes are not written yet, uses no
// approval up.
func TestHandOverWithoutRoom(t *testing.T) {
	may := make(chan struct{})
	o := newOffice(t, func(p *calls.Deps) { p.Journal = slowOutcomes{p.Journal, may} })
	o.governed(t, "p, Analyst, *, pay, args.amount < 5, allow\np, Analyst, *, pay, args.amount > 5, ask:refunds\n")
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	full := false
	for i := 0; i < 1000 && !full; i++ {
		full = o.handedOver(t, "1") != nil
	}
	refused := o.handedOver(t, "7")
	if !full || refused == nil || refused.Code != refusal.AuditUnavailable {
		t.Errorf("full %v: %v", full, refused)
	}
	if s := o.send(t, "GET", "/v1/calls/"+id, ""); s.State != "approved" {
		t.Errorf("the approval: %+v", s)
	}
	close(may)
	if err := o.Executor.Kernel.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if refused := o.handedOver(t, "7"); refused != nil {
		t.Errorf("once there is room: %v", refused)
	}
	if s := o.send(t, "GET", "/v1/calls/"+id, ""); s.State == "approved" {
		t.Errorf("the approval: %+v", s)
	}
}

// dies is the store of a process that dies before it has ended a call.
type dies struct {
	calls.Store
	gone *atomic.Bool
}

func (s dies) Finish(context.Context, string, store.Ending) (store.Call, error) {
	if s.gone.Load() {
		return store.Call{}, store.ErrEnded
	}
	return store.Call{}, store.ErrUnavailable
}

// A call that was handed over is run by the application. Where the process dies before that is
// written, the next one does not run it, whatever its effect is, and records no other outcome.
func TestDiesWhileItHandsOver(t *testing.T) {
	dir, gone := t.TempDir(), &atomic.Bool{}
	defer gone.Store(true)
	opened := func() *boltstore.Store {
		f, err := boltstore.Open(dir, boltstore.Options{Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := opened()
	var deps calls.Deps
	o := newOffice(t, func(p *calls.Deps) {
		p.Store, p.Approvals, p.Node = dies{before, gone}, before, "node"
		deps = *p
	})
	c := officeConfig(t, "p, Analyst, *, pay, , ask:refunds\n", func(tools string) string {
		return strings.Replace(tools, "effect: once", "effect: idempotent", 1)
	})
	o.now.Tools = c.Tools
	changed := *o.now
	if err := o.Executor.Kernel.Swap(&changed); err != nil {
		t.Fatal(err)
	}
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	if refused := o.handedOver(t, "7"); refused != nil {
		t.Fatal(refused)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	after := opened()
	defer after.Close()
	var ran atomic.Int32
	deps.Store, deps.Approvals = after, after
	deps.Engine = facetest.ToolFunc(func(call tool.Call) (tool.Result, error) {
		ran.Add(1)
		return tool.Result{Body: call.Arguments, JSON: true}, nil
	})
	next, err := calls.New(&changed, deps)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.Open(t.TempDir(), audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, r := range o.Journal.Records() {
		if err := log.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	r := next.Reconcile(calls.Backlog{Ended: log.EndedCalls}, func(calls.ReconcileStats) {})
	r.Stop(context.Background())
	if err := next.Kernel.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	if ran.Load() != 0 {
		t.Errorf("it ran %d times", ran.Load())
	}
	a, err := next.Desk().Get(context.Background(), id)
	if err != nil || a.Ran == "" {
		t.Fatalf("%+v, %v", a, err)
	}
	if call, err := after.Get(context.Background(), a.Ran, store.OfAnyone()); err != nil || call.Step != store.Ended || call.Answer.Status != http.StatusOK {
		t.Errorf("%+v, %v", call, err)
	}
	for _, r := range o.Journal.Records() {
		if r.CallID == a.Ran && r.Event == audit.Ending && r.Outcome != audit.HandedOver {
			t.Errorf("it has the outcome %s", r.Outcome)
		}
	}
}
