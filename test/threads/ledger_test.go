package threads_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
	"github.com/callgate/callgate/tool"
)

// inMemory and sharedOn are where threads are kept; each call of what they return is another, empty one. Redis has a clock of
// its own.
func inMemory(_ *testing.T, now func() time.Time) *store.Engine {
	return store.NewThreads(now, store.ThreadBounds{})
}

func sharedOn(address string) func(*testing.T, func() time.Time) *store.Engine {
	n := 0
	return func(t *testing.T, _ func() time.Time) *store.Engine {
		n++
		return onRedis(t, address, fmt.Sprintf("p%d:", n), "a").Engine
	}
}

// onRedis is the store of a gateway on Redis, which is ready.
func onRedis(t *testing.T, address, prefix, node string) *redisstore.Store {
	t.Helper()
	r, err := redisstore.New(t.Context(), redisstore.Options{
		Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: prefix}, Node: node, Wait: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	for ready, cause := r.Ready(); !ready; ready, cause = r.Ready() {
		if time.Sleep(time.Millisecond); cause == nil {
			t.Fatal("it is not ready, and does not say why")
		}
	}
	return r
}

// faulty is a ledger, and a store of calls, that fail for some time.
type faulty struct {
	*store.Engine
	calls.Store
	now            func() time.Time
	terms          *history.Terms
	away, unstored time.Time // until then
	lost           bool      // replies of the store are, until then
	elsewhere      bool      // the call has been ended by another

	before func(ctx context.Context, at string) // what happens before it is asked
}

func (f *faulty) Past(ctx context.Context, of store.ThreadKeys, latest bool) (history.Past, error) {
	if err := f.happens(ctx, "past"); err != nil {
		return history.Past{}, err
	}
	return f.Engine.Past(ctx, of, latest)
}

func (f *faulty) Reserve(ctx context.Context, of store.ThreadKeys, decide func(history.Past) ([]history.Adds, error)) ([]store.Reserved, error) {
	if err := f.happens(ctx, "reserve"); err != nil {
		return nil, err
	}
	return f.Engine.Reserve(ctx, of, decide)
}

func (f *faulty) happens(ctx context.Context, at string) error {
	if f.before != nil {
		f.before(ctx, at)
	}
	return ctx.Err()
}

var errAway = store.Unavailable(errors.New("away"))

func (f *faulty) EndResult(ctx context.Context, of store.ThreadKeys, adds history.Adds) (store.Reserved, error) {
	if f.now().Before(f.away) {
		return store.Reserved{}, errAway
	}
	return f.Engine.EndResult(ctx, of, adds)
}

func (f *faulty) finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	if f.elsewhere {
		other := ending
		other.Attempt, other.Counted, other.Adds = "another", store.Counted{}, history.Adds{}
		_, _ = f.Store.Finish(ctx, id, other)
	}
	if f.now().Before(f.unstored) {
		if f.lost {
			_, _ = f.Store.Finish(ctx, id, ending)
		}
		return store.Call{}, errAway
	}
	return f.Store.Finish(ctx, id, ending)
}

// faultyCalls is the store of faulty.
type faultyCalls struct {
	calls.Store
	*faulty
}

func (f faultyCalls) Finish(ctx context.Context, id string, ending store.Ending) (store.Call, error) {
	return f.finish(ctx, id, ending)
}

// openFaulty opens a gateway whose policy asks for results.
func openFaulty(t *testing.T, change ...func(*calls.Deps)) (*facetest.Fixture, *faulty) {
	t.Helper()
	kept := &faulty{Engine: store.NewThreads(time.Now, store.ThreadBounds{}), now: time.Now}
	f := facetest.New(t, facetest.Options{
		Config: facetest.Config(t, map[string]string{
			"tools.yaml": toolsFile, "workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/w]}}}}\n",
			"callgate.yaml": "registry: {files: [tools.yaml]}\nthreads: {labels: [untrusted, customer]}\n",
			"policy.csv":    "p, Analyst, *, files.write, thread.results('files.read') > 0, allow\np, Analyst, *, files.read, , allow\np, Analyst, *, clock.now, , allow\n",
		}),
		Engine: facetest.ToolFunc(func(tool.Call) (tool.Result, error) { return tool.Result{Body: []byte(`{}`), JSON: true}, nil }),
		Change: func(_ *gateway.Config, d *calls.Deps) {
			kept.Store = d.Store
			d.Ledger, d.Store = kept, faultyCalls{d.Store, kept}
			for _, c := range change {
				c(d)
			}
		},
	})
	terms, _, err := f.Executor.Kernel.Config().Terms()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kept.KeepTerms(t.Context(), terms, nil); err != nil {
		t.Fatal(err)
	}
	kept.terms = terms
	return f, kept
}

// readsFile is a request whose results are counted.
func readsFile() gateway.Request {
	return gateway.Request{
		Subject: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, Thread: "t",
		Inputs: []gateway.Input{{Native: &gateway.NativeCall{Name: "files.read", Arguments: []byte(`{"path":"a"}`)}}},
	}
}

// results are those of files.read that count in the thread of readsFile.
func (f *faulty) results(t *testing.T) int64 {
	t.Helper()
	past, err := f.Past(t.Context(), store.KeysOf(store.Scope{Workspace: "acme", Project: "alpha"}, "thread t"), true)
	if err != nil {
		t.Fatal(err)
	}
	n, err := history.NewView(f.terms, nil, past, nil, history.Adds{}).Value(history.Term{Kind: history.Results, Tool: "files.read"}.ID())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestHandedOverCountsByItsDecision: what is handed over counts for the answers behind its own, by the record that is durable before
// it is handed over; what is not handed over after all counts nothing.
func TestHandedOverCountsByItsDecision(t *testing.T) {
	for _, over := range []bool{true, false} {
		f, kept := openFaulty(t)
		a, err := f.Executor.Kernel.Admit(t.Context(), readsFile())
		if err != nil {
			t.Fatal(err)
		}
		d := a.Judge(t.Context(), gateway.ModeEnforce, readsFile().Inputs...)
		if refused := d.Refusal(); refused != nil {
			t.Fatal(refused)
		}
		want := int64(0)
		if over {
			f.Executor.HandOver(t.Context(), d)
			want = 1
		}
		d.Release()
		if err := f.Executor.Kernel.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := kept.results(t); got != want {
			t.Errorf("handed over %t: %d results, expected %d", over, got, want)
		}
		for _, r := range f.Journal.Records() {
			if decides := r.Event == audit.Decision; slices.Contains(r.Adds, "thread.results('files.read')=1") != decides || (r.Turn > 0) != decides {
				t.Errorf("handed over %t: %s adds %q by turn %d", over, r.Event, r.Adds, r.Turn)
			}
		}
	}
}

// TestResultIsCountedBeforeItIsDelivered: a result is in its thread, once, before anybody reads it. Where that cannot be said, the
// outcome is pending, and it is tried again; what another has ended adds nothing.
func TestResultIsCountedBeforeItIsDelivered(t *testing.T) {
	for name, tt := range map[string]struct {
		away, unstored time.Duration
		lost, other    bool
		pending        bool
		results        int64
	}{
		"at once":                           {results: 1},
		"the ledger is away":                {away: time.Second, results: 1},
		"the ledger is away for long":       {away: time.Minute, pending: true, results: 1},
		"the store is away":                 {unstored: time.Second, results: 1},
		"both, one after the other":         {away: time.Second, unstored: time.Minute, pending: true, results: 1},
		"the replies of the store are lost": {unstored: time.Minute, lost: true, pending: true, results: 1},
		"another has ended the call":        {other: true, results: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, kept := openFaulty(t)
				kept.lost, kept.elsewhere = tt.lost, tt.other
				kept.away, kept.unstored = time.Now().Add(tt.away), time.Now().Add(tt.unstored)
				o := f.Executor.Handle(t.Context(), readsFile(), "")
				if o.Pending != tt.pending || o.Refusal != nil {
					t.Errorf("pending %t, refused %v", o.Pending, o.Refusal)
				}
				if got := kept.results(t); !tt.pending && got != tt.results {
					t.Errorf("delivered with %d results, expected %d", got, tt.results)
				}
				if err := f.Executor.Kernel.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := kept.results(t); got != tt.results {
					t.Errorf("%d results, expected %d", got, tt.results)
				}
				var turns []uint64
				for _, r := range f.Journal.Records() {
					if r.Event == audit.Ending {
						turns = append(turns, r.Turn)
					}
				}
				if tt.other != (len(turns) == 0) || !tt.other && (len(turns) != 1 || turns[0] == 0) {
					t.Errorf("the turns of outcomes are %d", turns)
				}
			})
		})
	}
}

// TestClosingIsRecorded: a thread is closed once that is in the log, by each closing, also of a thread that has done nothing. Where the
// log cannot be written it is not closed; one that was closed before stays so.
func TestClosingIsRecorded(t *testing.T) {
	f, _ := openFaulty(t)
	code := func(err error) refusal.Code {
		if err == nil {
			return ""
		}
		return refusal.From(refusal.Request, err).Code
	}
	of := func(thread string) gateway.Request {
		r := readsFile()
		r.Thread = thread
		return r
	}
	call := func(thread string) refusal.Code {
		if o := f.Executor.Handle(t.Context(), of(thread), ""); o.Refusal != nil {
			return o.Refusal.Code
		}
		return ""
	}
	closings := func(thread string) (n int) {
		turn := uint64(0)
		for _, r := range f.Journal.Records() {
			if r.Event != audit.Thread || r.Thread != thread {
				continue
			}
			if n++; r.Code != audit.Closed || r.Turn <= turn || r.Ledger != store.KeysOf(store.Scope{Workspace: "acme", Project: "alpha"}, "thread "+thread).Thread {
				t.Errorf("%+v", r)
			}
			turn = r.Turn
		}
		return n
	}
	expect := func(got, want refusal.Code) {
		t.Helper()
		if got != want {
			t.Errorf("found %q, expected %q", got, want)
		}
	}
	for _, thread := range []string{"used", "new"} {
		if thread == "used" {
			expect(call(thread), "")
		}
		f.Journal.SetFailing(true)
		expect(code(f.Executor.CloseThread(t.Context(), of(thread))), refusal.AuditUnavailable)
		f.Journal.SetFailing(false)
		expect(call(thread), "")
		expect(code(f.Executor.CloseThread(t.Context(), of(thread))), "")
		if n := closings(thread); n != 1 {
			t.Errorf("%s: %d records", thread, n)
		}
		f.Journal.SetFailing(true)
		expect(code(f.Executor.CloseThread(t.Context(), of(thread))), refusal.AuditUnavailable)
		f.Journal.SetFailing(false)
		expect(call(thread), refusal.ThreadClosed)
		expect(code(f.Executor.CloseThread(t.Context(), of(thread))), "")
		if n := closings(thread); n != 2 {
			t.Errorf("%s: %d records", thread, n)
		}
	}
	if err := f.Executor.Kernel.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestLedgerThatFails: without what keeps threads, or where it panics or does not answer, at the view or at the reservation, calls of
// tools that use threads are refused and add nothing; others go on. So are those of a thread that is closed between the two.
func TestLedgerThatFails(t *testing.T) {
	panics := func(where string) func(*faulty, context.Context, string) {
		return func(_ *faulty, _ context.Context, at string) {
			if at == where {
				panic("the ledger")
			}
		}
	}
	hangs := func(where string) func(*faulty, context.Context, string) {
		return func(_ *faulty, ctx context.Context, at string) {
			if at == where {
				<-ctx.Done()
			}
		}
	}
	for name, tt := range map[string]struct {
		before func(*faulty, context.Context, string)
		none   bool
		code   refusal.Code
	}{
		"none":                      {none: true, code: refusal.ThreadsUnavailable},
		"panics":                    {before: panics("past"), code: refusal.ThreadsUnavailable},
		"panics at the reservation": {before: panics("reserve"), code: refusal.ThreadsUnavailable},
		"hangs":                     {before: hangs("past"), code: refusal.ThreadsUnavailable},
		"hangs at the reservation":  {before: hangs("reserve"), code: refusal.ThreadsUnavailable},
		"closes it before the reservation": {before: func(f *faulty, ctx context.Context, at string) {
			if at == "reserve" {
				_, _ = f.CloseThread(ctx, store.KeysOf(store.Scope{Workspace: "acme", Project: "alpha"}, "thread t"))
			}
		}, code: refusal.ThreadClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, kept := openFaulty(t, func(d *calls.Deps) {
					if tt.none {
						d.Ledger = nil
					}
				})
				if tt.before != nil {
					kept.before = func(ctx context.Context, at string) { tt.before(kept, ctx, at) }
				}
				o := f.Executor.Handle(t.Context(), readsFile(), "")
				if o.Refusal == nil || o.Refusal.Code != tt.code {
					t.Errorf("refused %v, expected %s", o.Refusal, tt.code)
				}
				other := readsFile()
				other.Inputs = []gateway.Input{{Native: &gateway.NativeCall{Name: "clock.now", Arguments: []byte("{}")}}}
				if o := f.Executor.Handle(t.Context(), other, ""); o.Refusal != nil {
					t.Errorf("a tool that uses no threads is refused: %v", o.Refusal)
				}
				if kept.before = nil; kept.results(t) != 0 {
					t.Error("a refused call has a result")
				}
				for _, r := range f.Journal.Records() {
					if r.Turn > 0 {
						t.Errorf("a refused call has the turn %d", r.Turn)
					}
				}
			})
		})
	}
}
