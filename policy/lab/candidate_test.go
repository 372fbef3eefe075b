package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/leaks"

	"github.com/callgate/callgate/refusal"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// judgeFunc is a candidate.
type candidateFunc func(context.Context, Call) Judgement

func (f candidateFunc) Judge(ctx context.Context, c Call) Judgement { return f(ctx, c) }

func refusing(code refusal.Code) candidateFunc {
	return func(context.Context, Call) Judgement {
		return Judgement{Verdict: Refused, Code: code, Rows: []string{"policy.next.csv:3"}}
	}
}

func allowing(context.Context, Call) Judgement { return Judgement{Verdict: Allowed} }

func asking(context.Context, Call) Judgement {
	return Judgement{Verdict: Asks, Rules: []string{"refunds"}}
}

// running is a comparer with a candidate, whose worker runs until the test ends.
func running(t *testing.T, judge CandidateJudge) (*Comparer, func(want int) CandidateReport) {
	t.Helper()
	var mu sync.Mutex
	results := 0
	more := sync.NewCond(&mu)
	c := NewComparer(time.Now, func(string) {
		mu.Lock()
		results++
		more.Broadcast()
		mu.Unlock()
	})
	c.Set(judge, "served", "candidate", "")
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return c, func(want int) CandidateReport {
		mu.Lock()
		defer mu.Unlock()
		for results < want {
			more.Wait()
		}
		return c.Report()
	}
}

func call(id string, refused *refusal.Error, asks ...string) gateway.ShadowJudgement {
	return gateway.ShadowJudgement{
		CallID: id, Subject: gateway.Subject{Agent: "Analyst", Workspace: "acme", Project: "alpha"}, Tool: "web.search",
		Arguments: json.RawMessage(`{"query":"x"}`), Refusal: refused, Asks: asks, Digest: "served",
	}
}

func TestChanges(t *testing.T) {
	denied := refusal.New(refusal.PermissionDenied, "no")
	for name, c := range map[string]struct {
		served gateway.ShadowJudgement
		judge  candidateFunc
		want   string
	}{
		"both allow":            {call("1", nil), allowing, Same},
		"both refuse":           {call("1", denied), refusing(refusal.PermissionDenied), Same},
		"both ask":              {call("1", refusal.New(refusal.ApprovalRequired, "wait"), "refunds"), asking, Same},
		"asked and approved":    {call("1", nil, "refunds"), asking, Same},
		"newly refused":         {call("1", nil), refusing(refusal.PermissionDenied), "newly_refused"},
		"newly allowed":         {call("1", denied), allowing, "newly_allowed"},
		"newly asks":            {call("1", nil), asking, "newly_asks"},
		"asks no longer":        {call("1", nil, "refunds"), allowing, "newly_allowed"},
		"other code":            {call("1", denied), refusing(refusal.BoundaryViolation), "other_code"},
		"log away":              {call("1", refusal.New(refusal.AuditUnavailable, "later")), allowing, Same},
		"a panic":               {call("1", nil), func(context.Context, Call) Judgement { panic("candidate") }, Failed},
		"the past is needed":    {call("1", denied), func(context.Context, Call) Judgement { return Judgement{Verdict: Allowed, NeedsPast: true} }, Skipped},
		"a fault of the kernel": {call("1", nil), refusing(refusal.Internal), Failed},
	} {
		t.Run(name, func(t *testing.T) {
			comparer, after := running(t, c.judge)
			comparer.Judged(c.served)
			r := after(1)
			if !maps.Equal(r.Counts, map[string]int64{c.want: 1}) || !r.Active || r.Served != "served" || r.Candidate != "candidate" {
				t.Errorf("found %+v; expected one %s", r, c.want)
			}
			if differs := c.want != Same && c.want != Failed && c.want != Skipped; differs != (len(r.Groups) == 1) {
				t.Errorf("found the groups %+v", r.Groups)
			}
		})
	}
}

// Judgements that a candidate cannot make are not compared.
func TestNotCompared(t *testing.T) {
	comparer, after := running(t, candidateFunc(allowing))
	for _, code := range []refusal.Code{refusal.RateLimited, refusal.Unauthenticated, refusal.MixedOutput, refusal.ToolQuarantined, refusal.ToolStarting, refusal.Overloaded} {
		comparer.Judged(call("1", refusal.New(code, "no")))
	}
	other := call("1", nil)
	other.Digest = "another configuration"
	comparer.Judged(other)
	comparer.Judged(call("2", nil))
	if r := after(1); !maps.Equal(r.Counts, map[string]int64{Same: 1}) {
		t.Errorf("found %v", r.Counts)
	}
	comparer.Set(nil, "served", "", "")
	comparer.Judged(call("3", nil))
	if r := comparer.Report(); r.Active || len(r.Counts) != 0 {
		t.Errorf("found %+v without a candidate", r)
	}
}

// A candidate that does not answer holds nobody up: what finds no room is skipped, and the
// arguments that wait are bounded.
func TestFull(t *testing.T) {
	release := make(chan struct{})
	judging := make(chan struct{}, QueuedCalls+2)
	comparer, after := running(t, candidateFunc(func(context.Context, Call) Judgement {
		judging <- struct{}{}
		<-release
		return Judgement{Verdict: Allowed}
	}))
	comparer.Judged(call("1", nil))
	<-judging
	for range QueuedCalls + 100 {
		comparer.Judged(call("2", nil))
	}
	if r := after(100); r.Counts[Skipped] != 100 {
		t.Errorf("found %v; expected 100 skipped", r.Counts)
	}
	close(release)
	if r := after(100 + 1 + QueuedCalls); r.Counts[Same] != 1+QueuedCalls {
		t.Errorf("found %v; expected that all others were compared", r.Counts)
	}
}

func TestQueuedBytes(t *testing.T) {
	release := make(chan struct{})
	judging := make(chan struct{}, 100)
	comparer, after := running(t, candidateFunc(func(context.Context, Call) Judgement {
		judging <- struct{}{}
		<-release
		return Judgement{Verdict: Allowed}
	}))
	large := call("1", nil)
	large.Arguments, large.Tool = make(json.RawMessage, 1<<19), strings.Repeat("a", 1<<19) // an unknown tool has any name
	comparer.Judged(large)
	<-judging // that one no longer waits
	for range QueuedBytes>>20 + 5 {
		comparer.Judged(large)
	}
	if r := after(5); r.Counts[Skipped] != 5 {
		t.Errorf("found %v; expected 5 skipped", r.Counts)
	}
	close(release)
	after(5 + 1 + QueuedBytes>>20)
	comparer.Judged(large)
	if r := after(5 + 2 + QueuedBytes>>20); r.Counts[Skipped] != 5 {
		t.Errorf("found %v: the bytes that were judged still count", r.Counts)
	}
}

// The arguments are copied: the request's buffer is used again.
func TestArgumentsAreCopied(t *testing.T) {
	seen := make(chan string, 1)
	comparer, after := running(t, candidateFunc(func(_ context.Context, c Call) Judgement {
		seen <- string(c.Arguments)
		return Judgement{Verdict: Allowed}
	}))
	s := call("1", nil)
	comparer.Judged(s)
	copy(s.Arguments, "overwritten...")
	after(1)
	if got := <-seen; got != `{"query":"x"}` {
		t.Errorf("the candidate saw %s", got)
	}
}

func TestGroups(t *testing.T) {
	comparer, after := running(t, refusing(refusal.PermissionDenied))
	sent := 0
	send := func(id, tool string) {
		s := call(id, nil)
		s.Tool = tool
		comparer.Judged(s)
		sent++
		after(sent) // one after another: nothing is skipped
	}
	send("first", "web.search")
	send("last", "web.search")
	for i := range MaxCandidateGroups + 5 {
		send("x", fmt.Sprint("tool.", i))
	}
	r := comparer.Report()
	want := CandidateGroup{
		Change: NewlyRefused, Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: "web.search",
		Candidate: refusal.PermissionDenied, Rows: "policy.next.csv:3", Calls: 2, Last: "last",
	}
	if len(r.Groups) != MaxCandidateGroups || r.Groups[0] != want || r.MoreGroups != 6 {
		t.Errorf("found %d groups, %d calls more, the first %+v; expected %+v", len(r.Groups), r.MoreGroups, r.Groups[0], want)
	}
	comparer.Set(refusing(refusal.PermissionDenied), "served", "candidate", "")
	if again := comparer.Report(); again.Counts["newly_refused"] != int64(sent) {
		t.Errorf("the counts begin anew, though neither side changed: %v", again.Counts)
	}
	comparer.Set(candidateFunc(allowing), "served", "another", "")
	if again := comparer.Report(); len(again.Groups) != 0 || len(again.Counts) != 0 || again.Candidate != "another" {
		t.Errorf("found %+v of a new candidate", again)
	}
	comparer.Set(nil, "served", "", "policy.next.csv:1: wrong")
	if again := comparer.Report(); again.Active || again.Fault == "" {
		t.Errorf("found %+v of a candidate that does not load", again)
	}
}

func BenchmarkJudged(b *testing.B) {
	for name, judge := range map[string]CandidateJudge{"off": nil, "on": candidateFunc(allowing)} {
		b.Run(name, func(b *testing.B) {
			c := NewComparer(time.Now, nil)
			c.Set(judge, "served", "candidate", "")
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			go c.Run(ctx)
			s := call("1", nil)
			b.ReportAllocs()
			for b.Loop() {
				c.Judged(s)
			}
		})
	}
}
