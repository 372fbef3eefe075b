package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

// threaded is a gateway that uses threads, as far as its threads are concerned.
type threaded struct {
	*threads
	kept   *history.Terms
	dir    string
	logger *slog.Logger
	said   *bytes.Buffer
}

var threadScope = store.Scope{Principal: "p", Workspace: "w", Project: "q"}

// startThreaded starts it in a folder.
func startThreaded(t *testing.T, dir string, used bool, ended ...store.ThreadFact) *threaded {
	t.Helper()
	terms, err := history.NewTerms([]history.Term{{Tool: "pay"}, {Caller: true, Tool: "pay", Window: time.Hour}}, func(pattern, tool string) bool { return pattern == tool })
	if err != nil {
		t.Fatal(err)
	}
	terms.Labels = true
	said := &bytes.Buffer{}
	g := &threaded{dir: dir, said: said, kept: terms, logger: slog.New(slog.NewTextHandler(said, nil))}
	log, err := audit.Open(dir, audit.Options{Wait: time.Minute, RotateBytes: 4000})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	if _, err := log.OpenCalls(); err != nil {
		t.Fatal(err)
	}
	if !used {
		terms = nil
	}
	if g.threads, err = openThreads(context.Background(), dir, log, ended, terms, used, false, store.ThreadBounds{}, g.logger); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.stop)
	return g
}

// crash ends it without a snapshot.
func (g *threaded) crash(t *testing.T) {
	t.Helper()
	if g.stop(); g.log.Close() != nil {
		t.Fatal("the log cannot be closed")
	}
}

func (g *threaded) call(t *testing.T, thread string, labels ...string) store.Reserved {
	t.Helper()
	a, err := g.kept.Adds("pay", nil, nil, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	a.Labels, a.Call = labels, "call_"+thread
	of := store.KeysOf(threadScope, thread)
	r, err := g.Reserve(context.Background(), of, func(history.Past) ([]history.Adds, error) { return []history.Adds{a}, nil })
	if err != nil {
		t.Fatal(err)
	}
	g.write(t, audit.Record{Event: audit.Decision, Verdict: audit.ToolCall, Ledger: of.Thread, Turn: r[0].Turn, CallerTurn: r[0].Caller, Adds: r[0].Adds.Texts()})
	return r[0]
}

func (g *threaded) write(t *testing.T, r audit.Record) {
	t.Helper()
	r.Time, r.Mode, r.CallID, r.Principal, r.Workspace, r.Project = time.Now(), audit.Enforce, "call", threadScope.Principal, threadScope.Workspace, threadScope.Project
	if err := g.log.Append(context.Background(), r); err != nil {
		t.Fatal(err)
	}
}

// values are what can be asked of a thread.
func (g *threaded) values(t *testing.T, thread string) string {
	t.Helper()
	past, err := g.Past(context.Background(), store.KeysOf(threadScope, thread), true)
	if err != nil {
		t.Fatal(err)
	}
	v := history.NewView(g.kept, nil, past, nil, history.Adds{})
	_, _ = v.Value(history.Term{Tool: "pay"}.ID())
	_, _ = v.Value(history.Term{Caller: true, Tool: "pay", Window: time.Hour}.ID())
	_, _ = v.Labels()
	return strings.Join(v.Saw(), " ")
}

// TestThreadsSurvive: what was in the log before a crash or a stop is there after the next start.
func TestThreadsSurvive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	dir := t.TempDir()
	g := startThreaded(t, dir, true)
	for range 30 {
		for range r.IntN(6) {
			thread := fmt.Sprint("t", r.IntN(4))
			switch r.IntN(4) {
			case 0:
				g.call(t, thread, "untrusted")
			case 1:
				added := g.call(t, thread)
				undone, err := g.Release(context.Background(), store.KeysOf(threadScope, thread), added.Adds)
				if err != nil {
					t.Fatal(err)
				}
				g.write(t, audit.Record{Event: audit.Ending, Outcome: audit.Failed, Ledger: store.KeysOf(threadScope, thread).Thread, Turn: undone.Turn, CallerTurn: undone.Caller, Undo: added.Adds.Texts()})
			case 2:
				g.mu.Lock()
				err := g.save(context.Background())
				g.mu.Unlock()
				if err != nil {
					t.Fatal(err)
				}
			default:
				g.call(t, thread)
			}
		}
		want := make([]string, 5)
		for i := range want {
			want[i] = g.values(t, fmt.Sprint("t", i))
		}
		if r.IntN(2) == 0 {
			if err := g.close(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		g.crash(t)
		g = startThreaded(t, dir, true)
		for i := range want {
			if got := g.values(t, fmt.Sprint("t", i)); got != want[i] {
				t.Fatalf("t%d: found %q, expected %q", i, got, want[i])
			}
		}
		if g.said.Len() > 0 {
			t.Fatal(g.said)
		}
	}
}

// TestClosedThreadsSurvive: the record of a closing closes the thread behind a restart, with the snapshot and without one; also one
// that has done nothing, and one that was closed twice. A closing that could not be recorded is none.
func TestClosedThreadsSurvive(t *testing.T) {
	for _, spoiled := range []bool{false, true} {
		dir := t.TempDir()
		g := startThreaded(t, dir, true)
		g.call(t, "used", "untrusted")
		g.call(t, "open")
		for _, thread := range []string{"used", "new", "used"} {
			closing, err := g.CloseThread(t.Context(), store.KeysOf(threadScope, thread))
			if err != nil {
				t.Fatal(err)
			}
			if err := g.log.Append(t.Context(), audit.Record{
				Time: closing.At, Event: audit.Thread, Mode: audit.Call, Code: audit.Closed, Principal: "ops", OfPrincipal: threadScope.Principal,
				Ledger: store.KeysOf(threadScope, thread).Thread, Turn: closing.Turn,
			}); err != nil {
				t.Fatal(err)
			}
		}
		closing, err := g.CloseThread(t.Context(), store.KeysOf(threadScope, "open"))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.ReopenThread(t.Context(), store.KeysOf(threadScope, "open"), closing.Turn); err != nil {
			t.Fatal(err)
		}
		g.call(t, "open")
		g.crash(t)
		if spoiled {
			remove(t, filepath.Join(dir, threadsFile))
		}
		g = startThreaded(t, dir, true)
		for thread, want := range map[string]bool{"used": true, "new": true, "open": false, "another": false} {
			kept, err := g.Thread(t.Context(), store.KeysOf(threadScope, thread).Thread)
			if err != nil || (kept != nil && kept.Closed) != want || want && kept.Principal != threadScope.Principal {
				t.Errorf("spoiled %t, %s: %+v, %v", spoiled, thread, kept, err)
			}
		}
		if got := g.values(t, "open"); !spoiled && !strings.Contains(got, "thread.calls('pay')=2") {
			t.Errorf("open: %s", got)
		}
		g.crash(t)
	}
}

// TestResultsWithoutARecord: what the result of a call has added counts once behind a crash before its record, also where the
// snapshot has it, and another call has come after it.
func TestResultsWithoutARecord(t *testing.T) {
	for _, saved := range []bool{false, true} {
		for _, last := range []bool{false, true} {
			dir := t.TempDir()
			g := startThreaded(t, dir, true)
			g.call(t, "t")
			of := store.KeysOf(threadScope, "t")
			kept := store.NewMemory(time.Now)
			call := store.Call{ID: "1", Scope: threadScope}
			if _, err := kept.Open(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			if err := kept.Dispatch(t.Context(), call.ID, store.Task{Tool: "pay", Version: "1", Agent: "a", Effect: "read", Ledger: of.Thread}); err != nil {
				t.Fatal(err)
			}
			added, err := g.EndResult(t.Context(), of, history.Adds{Labels: []string{"late"}, Call: call.ID})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kept.Finish(t.Context(), call.ID, store.Ending{State: store.Done, Attempt: "a", Counted: store.Counted{Turn: added.Turn, Adds: added.Adds.Texts()}}); err != nil {
				t.Fatal(err)
			}
			if saved {
				g.mu.Lock()
				err := g.save(t.Context())
				if g.mu.Unlock(); err != nil {
					t.Fatal(err)
				}
			}
			if !last {
				g.call(t, "t")
			}
			want := g.values(t, "t")
			g.crash(t)
			facts, err := unrecorded(t.Context(), kept, []audit.Record{{CallID: "1", Ledger: of.Thread}, {CallID: "2", Ledger: of.Thread}, {CallID: "1"}})
			if err != nil || len(facts) != 1 {
				t.Fatal(facts, err)
			}
			g = startThreaded(t, dir, true, facts...)
			if got := g.values(t, "t"); got != want {
				t.Errorf("saved %t, last %t: found %q, expected %q", saved, last, got, want)
			}
			if _, err := g.Release(t.Context(), of, added.Adds); err != nil {
				t.Fatal(err)
			}
			if got := g.values(t, "t"); strings.Contains(got, "late") {
				t.Errorf("saved %t, last %t: it has counted twice", saved, last)
			}
			g.crash(t)
		}
	}
}

// TestThreadsWithoutTheirSnapshot: the log says what was added, and not since when terms were kept.
func TestThreadsWithoutTheirSnapshot(t *testing.T) {
	const nothing, labels, counted = "caller.calls('pay','1h')=? thread.calls('pay')=? thread.labels=?",
		"caller.calls('pay','1h')=? thread.calls('pay')=? thread.labels=?", "caller.calls('pay','1h')=1 thread.calls('pay')=1 thread.labels=untrusted"
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, dir string, files []string)
		old   string // of the thread that was there
		other string // and of one that was not
		said  string
	}{
		{"as it was", func(*testing.T, string, []string) {}, counted, "caller.calls('pay','1h')=1 thread.calls('pay')=0 thread.labels=", ""},
		{"no snapshot", func(t *testing.T, dir string, _ []string) { remove(t, filepath.Join(dir, threadsFile)) }, labels, "caller.calls('pay','1h')=? thread.calls('pay')=0 thread.labels=", "there is no snapshot"},
		{"a damaged one", func(t *testing.T, dir string, _ []string) {
			put(t, filepath.Join(dir, threadsFile), "callgate threads 1\n")
		}, labels, "caller.calls('pay','1h')=? thread.calls('pay')=0 thread.labels=", "cannot be used"},
		{"a damaged one, and no first file", func(t *testing.T, dir string, files []string) {
			put(t, filepath.Join(dir, threadsFile), "")
			remove(t, files[0])
		}, nothing, nothing, "accept-loss"},
		{"the same, accepted", func(t *testing.T, dir string, files []string) {
			put(t, filepath.Join(dir, threadsFile), "")
			remove(t, files[0])
			if err := AcceptLoss(dir, time.Now()); err != nil {
				t.Fatal(err)
			}
		}, "caller.calls('pay','1h')=0 thread.calls('pay')=0 thread.labels=", "caller.calls('pay','1h')=0 thread.calls('pay')=0 thread.labels=", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			g := startThreaded(t, dir, true)
			g.call(t, "old", "untrusted")
			saw := audit.Record{Event: audit.Decision, Verdict: audit.Refused, Code: "permission_denied", Ledger: store.KeysOf(threadScope, "last").Thread, Saw: []string{"thread.labels="}}
			for range 30 {
				g.write(t, saw)
			}
			g.crash(t)
			files, err := audit.Files(dir)
			if err != nil || len(files) < 2 {
				t.Fatal(files, err)
			}
			tt.spoil(t, dir, files)
			g = startThreaded(t, dir, true)
			if got := g.values(t, "old"); got != tt.old {
				t.Errorf("found %q, expected %q", got, tt.old)
			}
			if got := g.values(t, "other"); got != tt.other {
				t.Errorf("of another thread: found %q, expected %q", got, tt.other)
			}
			if !strings.Contains(g.said.String(), tt.said) {
				t.Errorf("said %s", g.said)
			}
		})
	}
}

// TestPolicyThatDidNotAsk: calls that a policy in between let through were not counted, and gave no labels.
func TestPolicyThatDidNotAsk(t *testing.T) {
	dir := t.TempDir()
	g := startThreaded(t, dir, true)
	g.call(t, "t", "untrusted")
	g.crash(t)
	startThreaded(t, dir, false).crash(t)
	g = startThreaded(t, dir, true)
	if got := g.values(t, "t"); got != "caller.calls('pay','1h')=? thread.calls('pay')=? thread.labels=?" {
		t.Error(got)
	}
	if err := g.keep(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	g.crash(t)
	g = startThreaded(t, dir, true)
	g.call(t, "new")
	if err := g.keep(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if err := g.keep(context.Background(), g.kept); err != nil {
		t.Fatal(err)
	}
	if got := g.values(t, "new"); got != "caller.calls('pay','1h')=? thread.calls('pay')=? thread.labels=?" {
		t.Error(got)
	}
}

func TestThreadsThatNobodyUses(t *testing.T) {
	dir := t.TempDir()
	g := startThreaded(t, dir, false)
	if err := g.close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, threadsFile)); err == nil {
		t.Error("there is a snapshot")
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, file, content string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestThreadsThatRedisKeeps: a Redis that was emptied while no gateway ran is none that nobody has used.
func TestThreadsThatRedisKeeps(t *testing.T) {
	server := redistest.Start(t)
	dir := t.TempDir()
	terms, err := history.NewTerms([]history.Term{{Tool: "pay"}}, func(pattern, tool string) bool { return pattern == tool })
	if err != nil {
		t.Fatal(err)
	}
	terms.Labels = true
	values := func(used bool) string {
		t.Helper()
		shared, err := redisstore.New(t.Context(), redisstore.Options{Options: redisconn.Options{URL: func() string { return "redis://" + server.Address() }}, Node: "n", Wait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer shared.Close()
		for ready := false; !ready; time.Sleep(time.Millisecond) {
			ready, _ = shared.Ready()
		}
		k, err := openSharedThreads(t.Context(), dir, shared.Engine, terms, used, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer k.close(t.Context())
		past, err := k.Past(t.Context(), store.KeysOf(threadScope, "t"), true)
		if err != nil {
			return err.Error()
		}
		v := history.NewView(terms, nil, past, nil, history.Adds{})
		_, _ = v.Value(history.Term{Tool: "pay"}.ID())
		_, _ = v.Labels()
		return strings.Join(v.Saw(), " ")
	}
	is := func(used bool, want string) {
		t.Helper()
		if got := values(used); got != want {
			t.Errorf("found %q, expected %q", got, want)
		}
	}
	is(false, store.Unavailable(errors.New("nothing is kept of threads yet")).Error())
	is(true, "thread.calls('pay')=0 thread.labels=")
	is(true, "thread.calls('pay')=0 thread.labels=")
	c := server.Client()
	defer c.Close()
	if err := c.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	is(true, "thread.calls('pay')=? thread.labels=?")
	if err := AcceptLoss(dir, time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	is(true, "thread.calls('pay')=0 thread.labels=")
}
