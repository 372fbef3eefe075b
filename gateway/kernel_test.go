package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// clock is a clock that stands still.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Unix(1_700_000_000, 0)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// journal keeps records in memory, and fails while it is told to.
type journal struct {
	mu      sync.Mutex
	records []audit.Record
	failing bool
}

func (j *journal) Append(_ context.Context, r audit.Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failing {
		return refusal.New(refusal.AuditUnavailable, "m")
	}
	j.records = append(j.records, r)
	return nil
}

func (j *journal) fail(failing bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failing = failing
}

func (j *journal) all() []audit.Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.records)
}

func kernelWith(t testing.TB, s *gateway.Config, l ratelimit.Limiter) *calls.Executor {
	t.Helper()
	return kernelOf(t, s, calls.Deps{Deps: gateway.Deps{Limiter: l, Journal: &journal{}}})
}

func kernelOf(t testing.TB, s *gateway.Config, parts calls.Deps) *calls.Executor {
	t.Helper()
	k, err := calls.New(s, parts)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func completion(s string) gateway.Request {
	return gateway.Request{Inputs: []gateway.Input{{Completion: []byte(s)}}}
}

const search = `{"tool":{"name":"web.search","arguments":{"query":"x"}}}`

func codeOf(d *gateway.Decision) refusal.Code {
	if r := d.Refusal(); r != nil {
		return r.Code
	}
	return ""
}

func TestRetryAfterIsTrue(t *testing.T) {
	c := newClock()
	written := &journal{}
	k := kernelOf(t, state(t, vectorConfig), calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(c.now), Journal: written}})
	for i := range 3 { // the burst of web.search for Analyst
		d := k.Kernel.Judge(context.Background(), completion(search))
		if code := codeOf(d); code != "" {
			t.Fatalf("call %d: %s", i, code)
		}
		d.Release()
	}
	d := k.Kernel.Judge(context.Background(), completion(search))
	r := d.Refusal()
	if r == nil || r.Code != refusal.RateLimited || r.Stage != refusal.Rate || r.RetryAfterMS != 1000 || !r.Retryable() {
		t.Fatalf("got %+v", r)
	}
	// The log says which limit it was; the message does not.
	if records := written.all(); records[len(records)-1].Limit != "agents.Analyst.tools.web.search (60/m, burst 3)" {
		t.Errorf("the record says %q", records[len(records)-1].Limit)
	}
	c.advance(time.Duration(r.RetryAfterMS)*time.Millisecond - time.Millisecond)
	if code := codeOf(k.Kernel.Judge(context.Background(), completion(search))); code != refusal.RateLimited {
		t.Errorf("a millisecond early: %s", code)
	}
	c.advance(time.Millisecond)
	if code := codeOf(k.Kernel.Judge(context.Background(), completion(search))); code != "" {
		t.Errorf("after exactly that long: %s", code)
	}
}

func TestSlots(t *testing.T) {
	k := kernelWith(t, state(t, vectorConfig), ratelimit.NewLocal(newClock().now))
	const now = `{"tool":{"name":"time.now","arguments":{}}}`
	var held []*gateway.Decision
	for range 4 { // the concurrency of Analyst
		d := k.Kernel.Judge(context.Background(), completion(now))
		if code := codeOf(d); code != "" {
			t.Fatal(code)
		}
		held = append(held, d)
	}
	if code := codeOf(k.Kernel.Judge(context.Background(), completion(now))); code != refusal.ConcurrencyLimited {
		t.Fatalf("a fifth at the same time: %s", code)
	}
	// A call refused after it took a slot gives the slot back.
	held[0].Release()
	held[0].Release()
	for range 8 {
		outside := completion(`{"tool":{"name":"files.read","arguments":{"path":"/etc/passwd"}}}`)
		if code := codeOf(k.Kernel.Judge(context.Background(), outside)); code != refusal.BoundaryViolation {
			t.Fatalf("got %s", code)
		}
	}
	if code := codeOf(k.Kernel.Judge(context.Background(), completion(now))); code != "" {
		t.Errorf("the slot was not given back: %s", code)
	}
}

// TestCheckTakesNothing judges more often than any limit allows.
func TestCheckTakesNothing(t *testing.T) {
	k := kernelWith(t, state(t, vectorConfig), ratelimit.NewLocal(newClock().now))
	for range 500 {
		if r := k.Kernel.Check(context.Background(), completion(search)); r.Verdict != gateway.VerdictCall {
			t.Fatal(r.Refusal)
		}
	}
	r := k.Kernel.Check(context.Background(), completion(search))
	var got []refusal.Stage
	for _, s := range r.Stages {
		got = append(got, s.Stage)
	}
	if want := fmt.Sprint([]refusal.Stage{"identity", "parse", "schema", "permission", "workspace", "project"}); fmt.Sprint(got) != want {
		t.Errorf("stages %v, want %v", got, want)
	}
}

// TestOthersBudget: an agent that is not of a project cannot spend its limit.
func TestOthersBudget(t *testing.T) {
	s := state(t, vectorConfig)
	rate, _ := ratelimit.ParseRate("1/h")
	s.Limits = &ratelimit.Limits{Replicas: 1, Projects: map[ratelimit.Project]ratelimit.Budget{{Workspace: "acme", Name: "beta"}: {Rate: rate, Burst: 1}}}
	k := kernelWith(t, s, ratelimit.NewLocal(newClock().now))
	request := completion(`{"tool":{"name":"time.now","arguments":{}}}`)
	request.Subject = gateway.Subject{Agent: "Intern", Workspace: "acme", Project: "beta"}
	for range 3 {
		if code := codeOf(k.Kernel.Judge(context.Background(), request)); code != refusal.ProjectMismatch {
			t.Fatalf("got %s", code)
		}
	}
	request.Agent = "Analyst"
	if code := codeOf(k.Kernel.Judge(context.Background(), request)); code != "" {
		t.Errorf("the project's own agent: %s", code)
	}
	if code := codeOf(k.Kernel.Judge(context.Background(), request)); code != refusal.RateLimited {
		t.Errorf("the second call of the hour: %s", code)
	}
}

// TestSeveralCalls are judged all or none.
func TestSeveralCalls(t *testing.T) {
	c := newClock()
	k := kernelWith(t, state(t, vectorConfig), ratelimit.NewLocal(c.now))
	native := func(name, arguments string) gateway.Input {
		return gateway.Input{Native: &gateway.NativeCall{Name: name, Arguments: []byte(arguments)}}
	}
	good, bad := native("web.search", `{"query":"x"}`), native("web.search", `{"query":1}`)
	for range 10 {
		d := k.Kernel.Judge(context.Background(), gateway.Request{Inputs: []gateway.Input{good, bad}})
		if codeOf(d) != refusal.WrongType || d.Reports[0].Refusal != nil || d.Reports[1].Refusal == nil {
			t.Fatalf("got %+v", d.Reports)
		}
	}
	// The ten refused pairs took nothing: the burst is whole.
	d := k.Kernel.Judge(context.Background(), gateway.Request{Inputs: []gateway.Input{good, good, good}})
	if code := codeOf(d); code != "" || len(d.Reports) != 3 {
		t.Fatalf("three calls: %s", code)
	}
	if code := codeOf(k.Kernel.Judge(context.Background(), gateway.Request{Inputs: []gateway.Input{good}})); code != refusal.RateLimited {
		t.Errorf("a fourth: %s", code)
	}
	d.Release()
	for name, want := range map[string]refusal.Code{
		``: "empty_output", `{`: "malformed_json", `[]`: "wrong_type", `{"query":"x"} {}`: "malformed_json", `{"query":"x","query":"y"}`: "duplicate_key",
		"{\"query\":\"\xff\"}": "invalid_utf8", `{"query":1e999}`: "invalid_number",
	} {
		r := k.Kernel.Check(context.Background(), gateway.Request{Inputs: []gateway.Input{native("web.search", name)}})
		if r.Refusal == nil || r.Refusal.Code != want || r.Refusal.Violations[0].Path != "/tool/arguments" {
			t.Errorf("%q: %+v, want %s", name, r.Refusal, want)
		}
	}
}

func TestCallerLimitComesFirst(t *testing.T) {
	s := state(t, vectorConfig)
	rate, _ := ratelimit.ParseRate("1/s")
	s.Limits = &ratelimit.Limits{Replicas: 1, Caller: &ratelimit.Budget{Rate: rate, Burst: 1}}
	k := kernelWith(t, s, ratelimit.NewLocal(newClock().now))
	request := completion("{")
	request.CallerAddress = "127.0.0.1"
	if code := codeOf(k.Kernel.Judge(context.Background(), request)); code != refusal.MalformedJSON {
		t.Errorf("the first: %s", code)
	}
	d := k.Kernel.Judge(context.Background(), request)
	if code := codeOf(d); code != refusal.CallerRateLimited || d.Refusal().Stage != refusal.Identity {
		t.Errorf("the second: %s", code)
	}
	request.CallerAddress = "127.0.0.2"
	if code := codeOf(k.Kernel.Judge(context.Background(), request)); code != refusal.MalformedJSON {
		t.Errorf("another caller: %s", code)
	}
}

// broken is a limiter that fails in the way it is told to.
type broken struct{ how string }

func (b broken) Take(context.Context, *ratelimit.Limits, ratelimit.Key) (ratelimit.Lease, error) {
	if b.how == "panic" {
		panic("secret of the limiter")
	}
	return ratelimit.Lease{}, errors.New("secret of the limiter")
}

func (b broken) Caller(context.Context, *ratelimit.Limits, string) error {
	_, err := b.Take(context.Background(), nil, ratelimit.Key{})
	return err
}

// TestBrokenGuards refuse, with a code, and tell nothing.
func TestBrokenGuards(t *testing.T) {
	for _, how := range []string{"panic", "error"} {
		k := kernelWith(t, state(t, vectorConfig), broken{how})
		for caller, stage := range map[string]refusal.Stage{"": refusal.Rate, "127.0.0.1": refusal.Identity} {
			request := completion(search)
			request.CallerAddress = caller
			r := k.Kernel.Judge(context.Background(), request).Refusal()
			if r == nil || r.Code != refusal.Internal || r.Stage != stage {
				t.Errorf("%s: got %+v, want internal at %s", how, r, stage)
				continue
			}
			if body, _ := r.MarshalJSON(); len(body) == 0 || bytes.Contains(body, []byte("secret")) {
				t.Errorf("%s: %s", how, body)
			}
		}
	}
	// A guard that is missing is no kernel.
	s := state(t, vectorConfig)
	for name, spoil := range map[string]func(*gateway.Config){
		"tools": func(s *gateway.Config) { s.Tools = nil }, "policy": func(s *gateway.Config) { s.Policy = nil }, "limits": func(s *gateway.Config) { s.Limits = nil },
	} {
		without := *s
		spoil(&without)
		if _, err := calls.New(&without, calls.Deps{}); err == nil {
			t.Errorf("a kernel without %s", name)
		}
	}
	if _, err := calls.New(nil, calls.Deps{}); err == nil {
		t.Error("a kernel without a configuration")
	}
	for want, parts := range map[refusal.Code]gateway.Deps{
		refusal.LimiterUnavailable: {Journal: &journal{}},
		refusal.AuditUnavailable:   {Limiter: ratelimit.NewLocal(time.Now)},
	} {
		k := kernelOf(t, s, calls.Deps{Deps: parts})
		d := k.Kernel.Judge(context.Background(), completion(search))
		if code := codeOf(d); code != want {
			t.Errorf("got %s, want %s", code, want)
		}
		if o := k.Execute(context.Background(), d)[0]; o.Refusal == nil || o.Refusal.Code != want {
			t.Errorf("executed: %+v", o)
		}
	}
	// Projects that are missing refuse everything.
	without := *s
	without.Workspaces, without.Limits = nil, &ratelimit.Limits{Replicas: 1}
	if code := codeOf(kernelWith(t, &without, ratelimit.NewLocal(time.Now)).Kernel.Judge(context.Background(), completion(search))); code != refusal.WorkspaceMismatch {
		t.Errorf("without workspaces: %s", code)
	}
}

// TestSwapUnderLoad swaps two configurations with opposite answers: each
// decision must be that of the configuration whose digest it bears.
func TestSwapUnderLoad(t *testing.T) {
	allows := state(t, vectorConfig)
	allows.Limits = &ratelimit.Limits{Replicas: 1}
	allows.Digest = "allows"
	denies := state(t, deniesAll(t))
	denies.Limits = &ratelimit.Limits{Replicas: 1}
	denies.Digest = "denies"
	k := kernelWith(t, allows, ratelimit.NewLocal(time.Now))
	ctx, stop := context.WithCancel(context.Background())
	var swaps sync.WaitGroup
	swaps.Go(func() {
		for ctx.Err() == nil {
			for _, s := range []*gateway.Config{denies, allows} {
				if err := k.Kernel.Swap(s); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var judges sync.WaitGroup
	for range 16 {
		judges.Go(func() {
			for range 200 {
				d := k.Kernel.Judge(context.Background(), completion(search))
				want := refusal.Code("")
				if d.Digest == "denies" {
					want = refusal.PermissionDenied
				}
				if code := codeOf(d); code != want {
					t.Errorf("%s by the configuration that %s", code, d.Digest)
				}
				d.Release()
			}
		})
	}
	judges.Wait()
	stop()
	swaps.Wait()
}

// deniesAll is the vectors' configuration with a policy that allows nothing.
func deniesAll(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(vectorConfig))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.csv"), []byte("# end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "callgate.yaml")
}
