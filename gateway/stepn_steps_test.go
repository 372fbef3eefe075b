package gateway_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// step puts every fault of some rows, alone, to the test on every way to the kernel: it
// is reported, nothing of a later step was done, and the refusal is written down.
func step(t *testing.T, rows ...string) {
	t.Helper()
	gin.SetMode(gin.ReleaseMode)
	of, tried := orderConfigs(t), 0
	for i, f := range faults {
		if !slices.Contains(rows, f.row) {
			continue
		}
		for _, way := range []ways{judged, admitted, streamed, checked, byNativeFace} {
			if f.ways&way != 0 {
				meets(t, of, way, i)
				tried++
			}
		}
	}
	if tried == 0 {
		t.Errorf("no fault is at %v", rows)
	}
}

func TestSN50JSON(t *testing.T) { step(t, "readInput") }

// TestSN51Schema is the envelope, the name and the arguments. Where the agent could never
// use the tool, that is said before anything of its schema is (see docs/conformance.md).
func TestSN51Schema(t *testing.T) {
	step(t, "checkEnvelope", "findTool", "checkStarted", "validateArguments")
	of := orderConfigs(t)
	meets(t, of, judged, at("checkEnvelope"), at("findTool"), at("checkReach"), at("checkStarted"), at("validateArguments"))
	meets(t, of, judged, at("findTool"), at("checkReach"), at("checkStarted"), at("validateArguments"))
	meets(t, of, judged, at("checkReach"), at("checkStarted"), at("validateArguments"))
}

func TestSN52Permission(t *testing.T) { step(t, "checkReach", "checkPermission") }

// TestSN53Rate: with the time after which the call may be sent again.
func TestSN53Rate(t *testing.T) {
	step(t, "charge")
	w := attempt{spent: true}.meet(t, orderConfigs(t))
	request := w.request()
	request.Inputs = []gateway.Input{w.input()}
	if r := w.kernel.Kernel.Judge(context.Background(), request).Refusal(); r == nil || r.RetryAfterMS != 3600_000 || r.Status() != http.StatusTooManyRequests || !r.Retryable() {
		t.Errorf("got %+v", r)
	}
}

func TestSN54Workspace(t *testing.T) { step(t, "checkProjectNamed", "checkWorkspace") }

func TestSN55Project(t *testing.T) { step(t, "checkProject", "checkBoundary") }

// TestApprovalIsRequired: on every way to the kernel; a check says who would be asked.
func TestApprovalIsRequired(t *testing.T) {
	step(t, "checkApproval")
	of := orderConfigs(t)
	for _, asked := range []bool{false, true} {
		w := attempt{asked: asked}.meet(t, of)
		request := w.request()
		request.Inputs = []gateway.Input{w.input()}
		r := w.kernel.Kernel.Check(context.Background(), request)
		if r.Verdict != gateway.VerdictCall || slices.Equal(r.Approval, []string{"board"}) != asked {
			t.Errorf("asked %v: a check says %s, approval %v", asked, r.Verdict, r.Approval)
		}
		if slices.ContainsFunc(r.Stages, func(s trace.StageReport) bool { return s.Stage == refusal.Approval }) {
			t.Errorf("a check lists %v", r.Stages)
		}
		d := w.kernel.Kernel.Judge(context.Background(), request)
		if refused := d.Refusal(); (refused != nil) != asked || refused != nil && (refused.Status() != http.StatusForbidden || refused.Retryable()) {
			t.Errorf("asked %v: %v", asked, refused)
		}
	}
	// A call that is handed over is asked for as well.
	w := attempt{asked: true}.meet(t, of)
	a, err := w.kernel.Kernel.Admit(context.Background(), w.request())
	if err != nil {
		t.Fatal(err)
	}
	if got := refusedBy(a.Judge(context.Background(), gateway.ModeEnforce, w.input())); got != "approval approval_required" {
		t.Error(got)
	}
}

func TestSN56Log(t *testing.T) { step(t, "recordDecision") }

func TestSN57Execute(t *testing.T) { step(t, "execute") }

func TestSN58Wrap(t *testing.T) { step(t, "wrap") }

// TestSN59Return: what passes every step is run once, and comes back.
func TestSN59Return(t *testing.T) {
	w := attempt{}.meet(t, orderConfigs(t))
	request := w.request()
	request.Inputs = []gateway.Input{w.input()}
	o := w.kernel.Execute(context.Background(), w.kernel.Kernel.Judge(context.Background(), request))[0]
	if o.Refusal != nil || string(o.Result) != `{"tool_result":{"tool":"acts","output":{"ok":true}}}` || o.Status != http.StatusOK || w.engine.runs.Load() != 1 {
		t.Errorf("%s (%v), and the tool ran %d times", o.Result, o.Refusal, w.engine.runs.Load())
	}
	if free, tokens := w.limits.left(); free != slots || tokens != burst-1 {
		t.Errorf("%d slots and %d tokens are left", free, tokens)
	}
}

// TestSN61LogFirst: the decision is in the journal before the tool is called, and stays
// where the tool breaks off.
func TestSN61LogFirst(t *testing.T) {
	j, before := &journal{}, []audit.Record(nil)
	e := &engine{answer: func(context.Context, tool.Call) (tool.Result, error) {
		before = j.all()
		panic("broken")
	}}
	k := open(t, e, j)
	o := k.Execute(context.Background(), k.Kernel.Judge(context.Background(), completion(search)))[0]
	if o.Refusal == nil || e.runs.Load() != 1 {
		t.Fatalf("got %+v after %d runs", o.Refusal, e.runs.Load())
	}
	if len(before) != 1 || before[0].Event != audit.Decision || before[0].Verdict != audit.ToolCall || before[0].Tool != "web.search" {
		t.Errorf("when the tool was called, the journal had %+v", before)
	}
	if after := j.all(); len(after) != 2 || after[0].CallID != before[0].CallID || after[1].CallID != after[0].CallID || after[1].Event != audit.Ending {
		t.Errorf("in the end it has %+v", after)
	}
}

// TestSN62RefusalsAreWritten: those of every step, but for requests of nobody who was
// let in.
func TestSN62RefusalsAreWritten(t *testing.T) {
	of, written := orderConfigs(t), 0
	for i, f := range faults {
		if f.ways&judged == 0 || f.row == "recordDecision" || f.row == "execute" || f.row == "wrap" {
			continue
		}
		w := f.alone().meet(t, of)
		w.by(t, judged)
		w.written(t, f.name, judged, faults[i])
		written += len(w.journal.all())
	}
	if written < 20 {
		t.Errorf("only %d refusals were written", written)
	}
}

// alone is an attempt with this fault and no other.
func (f fault) alone() attempt {
	var a attempt
	f.make(&a)
	return a
}

// TestSN63DeniedTakesNothing: however often a call is answered 403 before the limits are
// asked, they are as they were. One that is refused behind them has taken a token, and
// has given its slot back.
func TestSN63DeniedTakesNothing(t *testing.T) {
	const times = 2*burst - 1
	of, before, behind := orderConfigs(t), 0, 0
	for i, f := range faults {
		if f.ways&judged == 0 || refusal.New(f.code, "").Status() != http.StatusForbidden {
			continue
		}
		w := f.alone().meet(t, of)
		w.limits.of.Caller = nil // it is asked before anything is known
		early := i < at("charge")
		for n := range times {
			stage, code, message := w.by(t, judged)
			if !early && n >= burst {
				if code != refusal.RateLimited {
					t.Errorf("%s (%s), time %d: %s", f.row, f.name, n+1, code)
				}
				continue
			}
			if code != f.code || stage != f.stage {
				t.Errorf("%s (%s), time %d: %s %s: %s", f.row, f.name, n+1, stage, code, message)
			}
		}
		free, tokens := w.limits.left()
		switch {
		case early:
			if before++; tokens != burst || free != slots || w.limits.takes != 0 {
				t.Errorf("%s (%s): %d tokens and %d slots are left, and the limiter was asked %d times", f.row, f.name, tokens, free, w.limits.takes)
			}
		default:
			if behind++; tokens != 0 {
				t.Errorf("%s (%s): %d tokens are left", f.row, f.name, tokens)
			}
		}
	}
	if before < 7 || behind < 5 {
		t.Errorf("only %d faults before the limits and %d behind them are 403", before, behind)
	}
}

// TestSN64NoLimiterNoAct: where the limits cannot be asked, the call is refused and no
// tool is run. TestSN64ReplicasAreStated in configs and the tests of loss in ratelimit say
// when that is so.
func TestSN64NoLimiterNoAct(t *testing.T) {
	w := attempt{away: true}.meet(t, orderConfigs(t))
	stage, code, message := w.by(t, judged)
	if stage != refusal.Rate || code != refusal.LimiterUnavailable || refusal.New(code, "").Status() != http.StatusServiceUnavailable || w.engine.runs.Load() != 0 {
		t.Errorf("%s %s, and the tool ran %d times", stage, code, w.engine.runs.Load())
	}
	k := kernelOf(t, state(t, vectorConfig), calls.Deps{Deps: gateway.Deps{Journal: &journal{}}})
	if got := refusedBy(k.Kernel.Judge(context.Background(), completion(search))); got != "rate limiter_unavailable" || strings.Contains(message, "panic") {
		t.Errorf("without a limiter: %q; %s", got, message)
	}
}
