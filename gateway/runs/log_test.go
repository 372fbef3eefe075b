package runs_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/refusal"
)

var head = runs.Head{Face: "chat", Mode: gateway.ModeEnforce, Model: "m", Upstream: "sample", Agent: "Analyst", Workspace: "acme", Project: "alpha"}

// clock is a clock that a test sets.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)} }

func (c *clock) read() time.Time { return c.now }

func turnOf(n int) runs.Turn {
	t := runs.Turn{Usage: json.RawMessage(`{"total_tokens":7}`)}
	for i := range n {
		t.Calls = append(t.Calls, runs.Call{CallID: fmt.Sprintf("call_%d", i), Verdict: gateway.VerdictCall, Tool: "web.search"})
	}
	return t
}

// A run has its turns in their order, with what became of each call, and ends once.
func TestRun(t *testing.T) {
	at := newClock()
	log := runs.New(runs.Options{Now: at.read})
	r := log.Begin("p", head)
	refused := turnOf(2)
	refused.Calls[1].Verdict, refused.Calls[1].Error = gateway.VerdictRefused, runs.ErrorOf(refusal.New(refusal.UnknownTool, "There is no tool x."))
	if n := r.Add(refused); n != 0 {
		t.Errorf("the first turn has the number %d", n)
	}
	repaired := turnOf(1)
	repaired.Repair = 1
	r.SetOutcome(r.Add(repaired), 0, runs.ErrorEnd, refusal.ToolTimeout)
	r.SetOutcome(-1, 0, runs.Result, "")
	r.SetOutcome(1, 7, runs.Result, "")
	running := log.Find("p", r.ID())
	at.now = at.now.Add(time.Second)
	r.End(nil)
	r.End(&runs.Error{Code: "late"})
	got := log.Find("p", r.ID())
	if running.State != runs.Running || running.Ended != nil || got.State != runs.Answered || got.Error != nil || !got.Ended.Equal(at.now) {
		t.Errorf("found %+v, then %+v", running, got)
	}
	if len(got.Turns) != 2 || got.Turns[0].Calls[1].Error.Code != refusal.UnknownTool || got.Turns[1].Repair != 1 || got.Turns[1].Calls[0].OutcomeCode != refusal.ToolTimeout {
		t.Errorf("found %+v", got.Turns)
	}
	if !strings.HasPrefix(r.ID(), "run_") || len(r.ID()) < 30 {
		t.Errorf("the id is %q", r.ID())
	}
	// The run that was found is a copy: it does not change, and changes nothing.
	got.Turns[0].Calls[0].Tool = "changed"
	if log.Find("p", r.ID()).Turns[0].Calls[0].Tool != "web.search" || running.Turns[1].Calls[0].Outcome != runs.ErrorEnd {
		t.Error("a found run is shared with the log")
	}
	for _, other := range []string{"", "q", "P", "p "} {
		if log.Find(other, r.ID()) != nil {
			t.Errorf("%q found the run of another principal", other)
		}
	}
	// Nothing is recorded where nothing records.
	var none *runs.Recording
	none.SetOutcome(none.Add(turnOf(1)), 0, runs.Result, "")
	none.End(nil)
	if none.ID() != "" {
		t.Error("nil has an id")
	}
}

// A run is as long as its bound allows: texts are cut, and what does not fit is counted.
func TestRunIsBounded(t *testing.T) {
	log := runs.New(runs.Options{})
	long := head
	long.Model, long.RequestID = strings.Repeat("ä", 5000), strings.Repeat("x", 1<<20)
	r := log.Begin("p", long)
	big := turnOf(3000)
	big.Usage = json.RawMessage(`{"x":"` + strings.Repeat("y", 2000) + `"}`)
	broken := turnOf(1)
	broken.Usage = json.RawMessage(`{"x":`)
	r.Add(broken)
	r.Add(big)
	for range 5000 {
		if r.Add(turnOf(1)) >= 1000 {
			t.Fatal("no turn is left out")
		}
	}
	r.End(runs.ErrorOf(refusal.New(refusal.Internal, strings.Repeat("m", 1<<20))))
	got := log.Find("p", r.ID())
	body, err := json.Marshal(got)
	if err != nil || len(body) > 128<<10 {
		t.Errorf("a run has %d bytes, %v", len(body), err)
	}
	kept := 0
	for i := range got.Turns {
		kept += len(got.Turns[i].Calls)
	}
	if got.Turns[0].Usage != nil || got.LeftOut+kept < 8000 || len(got.Model) > 256 || got.Model != strings.Repeat("ä", 128) || len(got.Error.Message) > 1<<10 {
		t.Errorf("%d calls were kept, %d left out, usage %s, model %q", kept, got.LeftOut, got.Turns[0].Usage, got.Model)
	}
}

// Old runs go, and one principal's runs never push out those of another beyond its half.
func TestLogIsBounded(t *testing.T) {
	at := newClock()
	log := runs.New(runs.Options{MaxRuns: 10, MaxAge: time.Minute, Now: at.read})
	quiet := log.Begin("quiet", head)
	var noisy []*runs.Recording
	for range 100 {
		noisy = append(noisy, log.Begin("noisy", head))
	}
	if log.Find("quiet", quiet.ID()) == nil {
		t.Error("one principal pushed out the run of another")
	}
	for i, r := range noisy {
		if found := log.Find("noisy", r.ID()) != nil; found != (i >= 95) {
			t.Errorf("run %d of 100: kept %v", i, found)
		}
	}
	for i := range 9 {
		log.Begin(fmt.Sprint("other", i), head)
	}
	if log.Find("quiet", quiet.ID()) != nil {
		t.Error("the oldest of all stayed beyond the bound")
	}
	// One that was dropped continues, and is not kept.
	quiet.SetOutcome(quiet.Add(turnOf(1)), 0, runs.Result, "")
	quiet.End(nil)
	last := log.Begin("quiet", head)
	at.now = at.now.Add(time.Minute - 1)
	if log.Find("quiet", last.ID()) == nil {
		t.Error("a run went before its time")
	}
	at.now = at.now.Add(1)
	if log.Find("quiet", last.ID()) != nil || log.Held() != (runs.Held{}) {
		t.Errorf("after its time the log holds %+v", log.Held())
	}
}

// The bounds hold after each step, whatever runs begin, grow and end, and what is counted is
// what is there.
func TestLogBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := newClock()
		o := runs.Options{MaxRuns: rapid.IntRange(1, 12).Draw(t, "runs"), MaxBytes: rapid.IntRange(2000, 40_000).Draw(t, "bytes"), MaxAge: time.Minute, Now: at.read}
		log := runs.New(o)
		var all []*runs.Recording
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			var r *runs.Recording
			if len(all) == 0 || rapid.Bool().Draw(t, "begins") {
				r = log.Begin(rapid.SampledFrom([]string{"", "p", "q"}).Draw(t, "principal"), head)
				all = append(all, r)
			} else {
				r = rapid.SampledFrom(all).Draw(t, "run")
				switch rapid.IntRange(0, 3).Draw(t, "step") {
				case 0:
					r.End(runs.ErrorOf(refusal.New(refusal.Internal, strings.Repeat("m", rapid.IntRange(0, 2000).Draw(t, "message")))))
				case 1:
					at.now = at.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
				default:
					r.Add(turnOf(rapid.IntRange(0, 20).Draw(t, "calls")))
				}
			}
			held := log.Held()
			if held.Runs > o.MaxRuns || held.Runs > 1 && held.Bytes > o.MaxBytes || held.Counted != held.Bytes || held.Listed != held.Runs {
				t.Fatalf("with %+v it holds %+v", o, held)
			}
		}
	})
}

func TestLogIsSafe(t *testing.T) {
	log := runs.New(runs.Options{MaxRuns: 20, MaxBytes: 64 << 10})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 200 {
				r := log.Begin(fmt.Sprint(i%3), head)
				r.SetOutcome(r.Add(turnOf(3)), 1, runs.Result, "")
				log.Find(fmt.Sprint(i%3), r.ID())
				r.End(nil)
			}
		})
	}
	wg.Wait()
}
