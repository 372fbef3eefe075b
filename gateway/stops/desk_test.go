package stops_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/stops"
	"github.com/callgate/callgate/internal/redisconn"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/redistest"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/redisstore"
)

func TestMain(m *testing.M) {
	gin.SetMode(gin.ReleaseMode)
	redistest.Main(m)
}

// gate is a gateway with a desk.
type gate struct {
	*stops.Desk
	*facetest.Fixture
	file string
}

// gateIn opens a gateway whose stops are kept in a folder.
func gateIn(t testing.TB, dir string, o stops.Options) *gate {
	t.Helper()
	g, err := tryGateIn(t, dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func tryGateIn(t testing.TB, dir string, o stops.Options) (*gate, error) {
	t.Helper()
	g := &gate{Fixture: facetest.New(t, facetest.Options{Config: facetest.Vectors(t), Change: func(_ *gateway.Config, d *calls.Deps) { d.Replica = "here" }}), file: filepath.Join(dir, stops.FileName)}
	o.Kernel, o.File.Path, o.Replica = g.Executor.Kernel, g.file, "here"
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var err error
	if g.Desk, err = stops.Open(t.Context(), o); err == nil {
		t.Cleanup(g.Desk.Close)
	}
	return g, err
}

// judges tells as what a call is refused; empty: it passes.
func (g *gate) judges(t testing.TB) refusal.Code {
	t.Helper()
	report := g.Executor.Kernel.Check(t.Context(), gateway.Request{
		Subject: gateway.Subject{Agent: "Analyst"}, Inputs: []gateway.Input{{Completion: []byte(`{"tool":{"name":"time.now","arguments":{}}}`)}},
	})
	if report.Refusal != nil {
		return report.Refusal.Code
	}
	return ""
}

func codeOf(err error) refusal.Code {
	var refused *refusal.Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

func within(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// A stop is in force when Stop returns, over restarts, and until it is resumed; the log has both.
func TestStopAndResume(t *testing.T) {
	dir := t.TempDir()
	g := gateIn(t, dir, stops.Options{})
	if g.judges(t) != "" || !g.Alone() || len(g.Active()) != 0 {
		t.Fatal("something is stopped at first")
	}
	act, err := g.Stop(t.Context(), store.Stop{Agent: "Analyst", Principal: "bot", Reason: "why", By: "op"})
	if err != nil || len(act.Problems)+len(act.Confirmed)+len(act.Missing) != 0 || !strings.HasPrefix(act.Stop.ID, "stop_") {
		t.Fatalf("%+v, %v", act, err)
	}
	if g.judges(t) != "" {
		t.Error("it stops another principal")
	}
	all, err := g.Stop(t.Context(), store.Stop{Reason: "all", Until: time.Now().Add(time.Hour)})
	if err != nil || g.judges(t) != refusal.Stopped {
		t.Fatalf("everything: %v", err)
	}
	again := gateIn(t, dir, stops.Options{})
	if again.judges(t) != refusal.Stopped || len(again.Active()) != 2 {
		t.Errorf("after a restart: %v", again.Active())
	}
	if _, err := g.Resume(t.Context(), "stop_none", "op"); codeOf(err) != refusal.NotFound {
		t.Errorf("no such stop: %v", err)
	}
	if _, err := g.Resume(t.Context(), all.Stop.ID, "other"); err != nil || g.judges(t) != "" {
		t.Errorf("resumed: %v", err)
	}
	if _, err := g.Resume(t.Context(), all.Stop.ID, "other"); codeOf(err) != refusal.NotFound {
		t.Errorf("resumed twice: %v", err)
	}
	if again := gateIn(t, dir, stops.Options{}); again.judges(t) != "" || len(again.Active()) != 1 {
		t.Errorf("after another restart: %v", again.Active())
	}
	var got []audit.Record
	for _, r := range g.Journal.Records() {
		if r.Event == audit.Stop {
			got = append(got, r)
		}
	}
	if len(got) != 3 || got[0].Code != audit.Stopped || got[0].Principal != "op" || got[0].OfPrincipal != "bot" || got[0].Agent != "Analyst" || got[0].Reason != "why" || got[0].CallID != act.Stop.ID ||
		got[1].Until.IsZero() || got[2].Code != audit.Resumed || got[2].Principal != "other" || got[2].CallID != all.Stop.ID {
		t.Errorf("recorded: %+v", got)
	}
}

// A stop that cannot be written down is in force all the same, and says so; nothing is resumed that cannot be.
func TestStopsThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	g := gateIn(t, dir, stops.Options{})
	if err := os.Mkdir(g.file, 0o700); err != nil { // in the place of the file
		t.Fatal(err)
	}
	g.Journal.SetFailing(true)
	act, err := g.Stop(t.Context(), store.Stop{Reason: "r"})
	if err != nil || len(act.Problems) != 2 || g.judges(t) != refusal.Stopped {
		t.Fatalf("%+v, %v", act, err)
	}
	if _, err := g.Resume(t.Context(), act.Stop.ID, "op"); codeOf(err) != refusal.AuditUnavailable || g.judges(t) != refusal.Stopped {
		t.Errorf("without a log: %v", err)
	}
	g.Journal.SetFailing(false)
	if _, err := g.Resume(t.Context(), act.Stop.ID, "op"); codeOf(err) != refusal.StoreUnavailable || g.judges(t) != refusal.Stopped {
		t.Errorf("without a disk: %v", err)
	}
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	within(t, "the file is written", func() bool {
		text, err := os.ReadFile(g.file)
		return err == nil && strings.Contains(string(text), act.Stop.ID)
	})
	if _, err := g.Resume(t.Context(), act.Stop.ID, "op"); err != nil || g.judges(t) != "" {
		t.Errorf("with both: %v", err)
	}
}

// A file that does not say what is stopped keeps a gateway from starting.
func TestUnreadableStops(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "cut": `{"stops":[{"id":"a"`, "no list": `{"shared":true}`, "null": "null", "more": `{"stops":[]} {}`, "a later version": `{"stops":[],"more":1}`,
		"a stop of a later version": `{"stops":[{"id":"a","since":"2026-01-01T00:00:00Z","reason":"","by":"","region":"eu"}]}`, "without an id": `{"stops":[{"since":"2026-01-01T00:00:00Z"}]}`,
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, stops.FileName)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := tryGateIn(t, dir, stops.Options{}); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "remove it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A stop that says too little, or too much, is none.
func TestStopsThatAreNone(t *testing.T) {
	g := gateIn(t, t.TempDir(), stops.Options{})
	for name, s := range map[string]store.Stop{
		"no reason": {Agent: "a"}, "a long reason": {Reason: strings.Repeat("é", audit.MaxReason+1)}, "a long name": {Agent: strings.Repeat("a", 1025), Reason: "r"},
		"no UTF-8": {Tool: "\xff", Reason: "r"}, "a project alone": {Project: "alpha", Reason: "r"}, "over": {Reason: "r", Until: time.Now().Add(-time.Minute)},
	} {
		if _, err := g.Stop(t.Context(), s); codeOf(err) != refusal.BadRequest || len(g.Active()) != 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for range store.MaxActiveStops {
		if _, err := g.Stop(t.Context(), store.Stop{Agent: "x", Reason: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.Stop(t.Context(), store.Stop{Agent: "x", Reason: "r"}); codeOf(err) != refusal.Overloaded {
		t.Errorf("one too many: %v", err)
	}
}

// A process of an editor follows the file of the gateway beside it, and does not write it.
func TestForeignFile(t *testing.T) {
	dir := t.TempDir()
	g := gateIn(t, dir, stops.Options{})
	beside := gateIn(t, dir, stops.Options{File: stops.File{Foreign: true}})
	act, err := g.Stop(t.Context(), store.Stop{Reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	within(t, "it is stopped beside", func() bool { return beside.judges(t) == refusal.Stopped })
	if _, err := g.Resume(t.Context(), act.Stop.ID, ""); err != nil {
		t.Fatal(err)
	}
	within(t, "it is resumed beside", func() bool { return beside.judges(t) == "" })
}

// sharing is a store on Redis, as the one of a gateway of its own.
func sharing(t testing.TB, address, node string) *redisstore.Store {
	t.Helper()
	r, err := redisstore.New(context.Background(), redisstore.Options{
		Options: redisconn.Options{URL: func() string { return "redis://" + address }, Prefix: "x:"}, Node: node, Replica: "host-" + node, Wait: 10 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// Gateways on one Redis have the same stops, also those that were stopped while Redis was away, or that Redis has lost.
func TestStopsOfSeveralGateways(t *testing.T) {
	s := redistest.Start(t)
	shared := sharing(t, s.Address(), "a")
	a := gateIn(t, t.TempDir(), stops.Options{Shared: shared, UnreadRefuses: true})
	b := gateIn(t, t.TempDir(), stops.Options{Shared: sharing(t, s.Address(), "b"), UnreadRefuses: true})
	for _, g := range []*gate{a, b} {
		within(t, "the list is read", func() bool { return g.judges(t) == "" && g.Problem() == "" })
	}
	var act stops.Act
	// stop stops the agent at a gateway. On a busy machine another may be late, and is missing.
	stop := func(at *gate) {
		t.Helper()
		var err error
		if act, err = at.Stop(t.Context(), store.Stop{Agent: "Analyst", Reason: "r"}); err != nil {
			t.Fatal(err)
		}
	}
	resume := func(at *gate) {
		t.Helper()
		var err error
		if act, err = at.Resume(t.Context(), act.Stop.ID, "op"); err != nil {
			t.Fatal(err)
		}
	}
	within(t, "both confirm a stop", func() bool {
		if stop(a); len(act.Confirmed) == 2 && len(act.Missing) == 0 && len(act.Problems) == 0 {
			return true
		}
		resume(a)
		return false
	})
	if b.judges(t) != refusal.Stopped { // it has confirmed
		t.Error("it is not stopped at the other gateway")
	}
	if !slices.ContainsFunc(act.Confirmed, func(g stops.Gateway) bool { return g == stops.Gateway{Node: "b", Replica: "host-b"} }) {
		t.Errorf("confirmed: %v", act.Confirmed)
	}
	c := s.Client()
	defer c.Close()
	if err := c.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	fresh := gateIn(t, t.TempDir(), stops.Options{Shared: sharing(t, s.Address(), "c"), UnreadRefuses: true})
	within(t, "Redis has it back", func() bool { return fresh.judges(t) == refusal.Stopped })
	within(t, "all confirm that it is resumed", func() bool {
		// A lease that does not say yet what is in force looks as if it was resumed.
		leases, err := shared.Leases(context.Background())
		if err != nil || len(leases) != 3 || slices.ContainsFunc(leases, func(l store.Lease) bool { return !slices.Contains(l.Stops, act.Stop.ID) }) {
			return false
		}
		if resume(b); len(act.Confirmed) == 3 && len(act.Missing) == 0 {
			return true
		}
		stop(b)
		return false
	})
	for _, g := range []*gate{a, b, fresh} {
		if code := g.judges(t); code != "" {
			t.Errorf("resumed: %s", code)
		}
	}
}

// away is a Redis that does not answer while it is away.
type away struct {
	stops.Shared
	mu   sync.Mutex
	gone bool
}

var errAway = errors.New("Redis is away")

func (a *away) set(gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gone = gone
}

func (a *away) ShareStops(ctx context.Context, own []store.Stop) ([]store.Stop, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.gone {
		return nil, errAway
	}
	return a.Shared.ShareStops(ctx, own)
}

// Before the list was read nothing passes; where it was read once, it stays in force while Redis is away, and
// what is stopped then holds here at once, and elsewhere as soon as it is back.
func TestRedisIsAwayFromStops(t *testing.T) {
	s := redistest.Start(t)
	to := &away{Shared: sharing(t, s.Address(), "a"), gone: true}
	dir := t.TempDir()
	strict := stops.Options{Shared: to, UnreadRefuses: true}
	a := gateIn(t, dir, strict)
	if a.judges(t) != refusal.StoreUnavailable || !strings.Contains(a.Problem(), "nothing begins") {
		t.Errorf("unread: %s, %q", a.judges(t), a.Problem())
	}
	lenient := gateIn(t, t.TempDir(), stops.Options{Shared: to})
	if lenient.judges(t) != "" {
		t.Errorf("unread, and that is no reason: %s", lenient.judges(t))
	}
	to.set(false)
	within(t, "the list is read", func() bool { return a.judges(t) == "" })
	within(t, "that is written down", func() bool {
		text, err := os.ReadFile(a.file)
		return err == nil && strings.Contains(string(text), `"shared": true`)
	})
	b := gateIn(t, t.TempDir(), stops.Options{Shared: sharing(t, s.Address(), "b"), UnreadRefuses: true})
	within(t, "the other gateway has read the list", func() bool { return b.judges(t) == "" })
	to.set(true)
	if again := gateIn(t, dir, strict); again.judges(t) != "" {
		t.Errorf("it was read before a restart: %s", again.judges(t))
	}
	act, err := a.Stop(t.Context(), store.Stop{Reason: "r"})
	if err != nil || len(act.Confirmed) != 0 || len(act.Problems) != 1 || a.judges(t) != refusal.Stopped {
		t.Fatalf("stopped while it is away: %+v, %v", act, err)
	}
	if b.judges(t) != "" {
		t.Error("the other gateway knows of it")
	}
	to.set(false)
	within(t, "the other gateway is told", func() bool { return b.judges(t) == refusal.Stopped })
}

// An operator reads why the stops of others are not known, once that lasts.
func TestUnreadStopsAreTold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	to := &away{Shared: sharing(t, s.Address(), "a")}
	log := &lines{}
	a := gateIn(t, t.TempDir(), stops.Options{Shared: to, Log: slog.New(slog.NewTextHandler(log, nil))})
	within(t, "the list is read", func() bool { return a.Problem() == "" })
	to.set(true)
	within(t, "that is told", func() bool {
		return strings.Contains(a.Problem(), errAway.Error()) && strings.Contains(log.String(), "cannot be read")
	})
	to.set(false)
	within(t, "that is over", func() bool { return a.Problem() == "" && strings.Contains(log.String(), "known again") })
}

// lines are of a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var _ io.Writer = (*lines)(nil)
