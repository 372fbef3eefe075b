package native_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// An answer with the same call twice is refused before anybody is asked: a yes is for one, and
// none may be used up while nothing runs.
func TestSameCallTwiceInAnAnswer(t *testing.T) {
	for _, mode := range []gateway.Mode{gateway.ModeCall, gateway.ModeEnforce} {
		o, ctx := newOffice(t), context.Background()
		a, err := o.Executor.Kernel.Admit(ctx, gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		both := a.Judge(ctx, mode, gateway.Input{Completion: []byte(pay("7"))}, gateway.Input{Completion: []byte(pay(" 7"))})
		end := o.Executor.Execute
		if mode == gateway.ModeEnforce {
			end = o.Executor.HandOver
		}
		end(ctx, both)
		if refused := both.Refusal(); refused == nil || o.ran.Load() != 0 || refused.Code != "approval_conflict" || both.Reports[1].Refusal == nil {
			t.Errorf("%s: %v", mode, both.Reports)
		}
		for _, r := range o.Journal.Records() {
			if r.Event == audit.Approval {
				t.Errorf("%s: asked: %+v", mode, r)
			}
		}
	}
}

type approvalStore interface{ store.Approvals }

// overtaken is a store of approvals that does something else before it says what people have
// said of a call.
type overtaken struct {
	approvalStore
	before *func()
}

func (s overtaken) Consents(ctx context.Context, principal, digest string, keys []string) ([]approval.Approval, []approval.Grant, error) {
	if before := *s.before; before != nil {
		*s.before = nil
		before()
	}
	return s.approvalStore.Consents(ctx, principal, digest, keys)
}

// Two requests take the same call up at once: the slower one gets the result of the other, and
// nobody is asked for a call that has run.
func TestTakenUpAtOnce(t *testing.T) {
	var before func()
	o := newOffice(t, func(p *calls.Deps) { p.Approvals = overtaken{p.Approvals, &before} })
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	var first answered
	before = func() { first = o.send(t, "POST", "/v1/calls/"+id+"/resume", "") }
	second := o.send(t, "POST", "/v1/calls/"+id+"/resume", "")
	if first.status != 200 || second.status != 200 || o.ran.Load() != 1 {
		t.Errorf("%+v, and %+v; ran %d times", first, second, o.ran.Load())
	}
	asked := 0
	for _, r := range o.Journal.Records() {
		if r.Event == audit.Approval && r.Code == audit.Requested {
			asked++
		}
	}
	if asked != 1 {
		t.Errorf("people were asked %d times", asked)
	}
}

// takenBack is a store of approvals in which one was used by a call that is gone, so many times
// that it is read.
type takenBack struct {
	approvalStore
	times *int
}

func (s takenBack) Approval(ctx context.Context, id string) (approval.Approval, error) {
	a, err := s.approvalStore.Approval(ctx, id)
	if err == nil && *s.times > 0 {
		*s.times, a.Ran = *s.times-1, "call_AAAAAAAAAAAAAAAAAAAAAAAAAA"
	}
	return a, err
}

// A call that was dispatched, and taken back since the store had not confirmed it, is not told to
// its caller as one that never was; nor is one that has run, and is kept no longer.
func TestDispatchIsTakenBack(t *testing.T) {
	var times int
	o := newOffice(t, func(p *calls.Deps) { p.Approvals = takenBack{p.Approvals, &times} })
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	for _, request := range [][2]string{{"GET", "/v1/calls/" + id}, {"POST", "/v1/calls/" + id + "/resume"}} {
		times = 1
		if got := o.send(t, request[0], request[1], ""); got.status != 503 || got.code != "store_unavailable" {
			t.Errorf("%s %s: %+v", request[0], request[1], got)
		}
		times = 2
		if got := o.send(t, request[0], request[1], ""); got.status != 404 || got.Result == nil || !strings.Contains(string(got.Result.Output), "no longer kept") {
			t.Errorf("%s %s: %+v", request[0], request[1], got)
		}
		times = 0
	}
	if got := o.send(t, "POST", "/v1/calls/"+id+"/resume", ""); got.status != 200 || o.ran.Load() != 1 {
		t.Errorf("once it is taken back: %+v; ran %d times", got, o.ran.Load())
	}
}

// usedBriefly is a store of approvals in which a call uses one right before it is said what
// people have said, and which takes that back, since it has not confirmed the call, before the
// approval is read again.
type usedBriefly struct {
	approvalStore
	changes *int // of the approval, by that
}

func (s usedBriefly) Consents(ctx context.Context, principal, digest string, keys []string) ([]approval.Approval, []approval.Grant, error) {
	asked, grants, err := s.approvalStore.Consents(ctx, principal, digest, keys)
	if *s.changes == 0 {
		asked, *s.changes = nil, 2
	}
	return asked, grants, err
}

func (s usedBriefly) Approval(ctx context.Context, id string) (approval.Approval, error) {
	a, err := s.approvalStore.Approval(ctx, id)
	a.Revision += *s.changes
	return a, err
}

// A request that takes a call up while another uses its approval is not refused for good where
// that use is taken back.
func TestTakenUpWhileAnotherIsTakenBack(t *testing.T) {
	changes := 1
	o := newOffice(t, func(p *calls.Deps) { p.Approvals = usedBriefly{p.Approvals, &changes} })
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	changes = 0
	if got := o.send(t, "POST", "/v1/calls/"+id+"/resume", ""); got.status != 200 || o.ran.Load() != 1 || changes != 2 {
		t.Errorf("%+v; ran %d times", got, o.ran.Load())
	}
}

// quicker is a store of calls in which another call has used an approval at the first dispatch, and
// unreadable is a store of approvals that cannot be read once after that.
type (
	quicker struct {
		calls.Store
		used *bool
	}
	unreadable struct {
		approvalStore
		used *bool
	}
)

func (s quicker) Dispatch(ctx context.Context, id string, task store.Task) error {
	if len(task.Using) > 0 && !*s.used {
		*s.used = true
		return approval.ErrUsed
	}
	return s.Store.Dispatch(ctx, id, task)
}

func (s unreadable) Approval(ctx context.Context, id string) (approval.Approval, error) {
	if *s.used {
		*s.used = false
		return approval.Approval{}, store.Unavailable(errors.New("no connection"))
	}
	return s.approvalStore.Approval(ctx, id)
}

// A request whose approval another one uses at that moment, and which cannot read then what became of
// the call, is not told that nothing has run.
func TestTakenUpWhileTheStoreFails(t *testing.T) {
	var used bool
	o := newOffice(t, func(p *calls.Deps) {
		p.Store, p.Approvals = quicker{p.Store, &used}, unreadable{p.Approvals, &used}
	})
	id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
	if err := o.vote(t, id, "ada", true, ""); err != nil {
		t.Fatal(err)
	}
	if got := o.send(t, "POST", "/v1/calls/"+id+"/resume", ""); got.status != 503 || got.code != "store_unavailable" || o.ran.Load() != 0 {
		t.Errorf("%+v; ran %d times", got, o.ran.Load())
	}
}

// A call that was judged as approved, and whose approval ends before its dispatch, does not run:
// its caller reads who ended it, and the reason.
func TestEndedBeforeTheDispatch(t *testing.T) {
	ctx := context.Background()
	for name, c := range map[string]struct {
		end        func(o office, id string) error
		code, says string
	}{
		"denied": {func(o office, id string) error { return o.vote(t, id, "bob", false, "paid already") }, "approval_denied", `"paid already"`},
		"revoked": {func(o office, id string) error {
			_, err := o.Executor.Desk().End(ctx, id, approval.EndRevoked, "ops", "a mistake")
			return err
		}, "approval_denied", `withdrawn this call's approval: "a mistake". Nothing was executed. Say so; people are asked again`},
		"called off": {func(o office, id string) error {
			_, err := o.Executor.Desk().End(ctx, id, approval.EndWithdrawn, "", "")
			return err
		}, "approval_required", "The call was called off. Nothing"},
		"expired": {func(o office, _ string) error {
			o.later.Store(int64(time.Hour))
			return nil
		}, "approval_expired", "was approved, and was not sent again in time"},
	} {
		for _, mode := range []gateway.Mode{gateway.ModeCall, gateway.ModeEnforce} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				o := newOffice(t)
				id := o.send(t, "POST", "/v1/calls", pay("7")).CallID
				if err := o.vote(t, id, "ada", true, ""); err != nil {
					t.Fatal(err)
				}
				a, err := o.Executor.Kernel.Admit(ctx, gateway.Request{})
				if err != nil {
					t.Fatal(err)
				}
				d := a.Judge(ctx, mode, gateway.Input{Completion: []byte(pay("7"))})
				if err := c.end(o, id); d.Refusal() != nil || err != nil {
					t.Fatal(d.Refusal(), err)
				}
				act := o.Executor.Execute
				if mode == gateway.ModeEnforce {
					act = o.Executor.HandOver
				}
				out := act(ctx, d)[0]
				if out.Refusal == nil || string(out.Refusal.Code) != c.code || !strings.Contains(out.Refusal.Message, c.says) || o.ran.Load() != 0 {
					t.Errorf("%v, ran %d times", out.Refusal, o.ran.Load())
				}
			})
		}
	}
}
