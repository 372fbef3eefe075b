package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/refusal"
)

// ways are how an attempt comes to the kernel.
type ways int

const (
	judged       ways = 1 << iota // Judge, then Execute
	admitted                      // Admit, then Judge under terms, then Execute
	streamed                      // Admit, then a Stream under terms, cut everywhere, then Execute
	checked                       // Check, which takes nothing
	byNativeFace                  // POST /v1/calls
	anyWay       = judged | admitted | streamed | checked | byNativeFace
)

// fault makes an attempt fail at one row of the pipeline, and nowhere else.
type fault struct {
	row   string
	name  string
	stage refusal.Stage
	code  refusal.Code
	text  string // part of the message, where rows have a code in common
	make  func(*attempt)
	ways  ways
}

// faults are in the order of the contract. The row request is the native face's own;
// execute and wrap stand behind the pipeline.
var faults = []fault{
	{"identifyCaller", "no credential", refusal.Identity, refusal.Unauthenticated, "", func(a *attempt) { a.badCredential = true }, anyWay},
	{"identifyCaller", "caller's rate", refusal.Identity, refusal.CallerRateLimited, "", func(a *attempt) { a.callerSpent = true }, anyWay},
	{"request", "a member more", refusal.Request, refusal.BadRequest, "", func(a *attempt) { a.badRequest = true }, byNativeFace},
	{"identifyCaller", "unknown agent", refusal.Identity, refusal.AgentUnknown, "", func(a *attempt) { a.agent = "Nobody" }, anyWay},
	{"identifyCaller", "another's agent", refusal.Identity, refusal.AgentMismatch, "", func(a *attempt) { a.agent = "Intern" }, anyWay},
	{"readInput", "text behind", refusal.Parse, refusal.MixedOutput, "", func(a *attempt) { a.trailing = " done" }, anyWay},
	{"readInput", "no end", refusal.Parse, refusal.MalformedJSON, "", func(a *attempt) { a.ending = "," }, anyWay},
	{"readInput", "the answer", refusal.Parse, refusal.ForeignCallSyntax, "", func(a *attempt) { a.fault = refusal.New(refusal.ForeignCallSyntax, "m") }, admitted | streamed},
	{"checkAgentClaim", "another agent", refusal.Identity, refusal.AgentMismatch, "", func(a *attempt) { a.claim = "Intern" }, anyWay},
	{"checkAgentClaim", "no agent", refusal.Identity, refusal.AgentRequired, "", func(a *attempt) { a.agentRequired = true }, anyWay},
	{"checkEnvelope", "a member more", refusal.Parse, refusal.UnexpectedField, "", func(a *attempt) { a.surplus = true }, anyWay},
	{"checkEnvelope", "no arguments", refusal.Parse, refusal.MissingField, "", func(a *attempt) { a.noArguments = true }, anyWay},
	{"checkConstraints", "another tool is named", refusal.Any, refusal.ToolChoiceViolated, "", func(a *attempt) { a.otherNamed = true }, admitted | streamed},
	{"checkConstraints", "no call is allowed", refusal.Parse, refusal.MixedOutput, "beside", func(a *attempt) { a.callsRuledOut = true }, admitted | streamed},
	{"checkStops", "stopped", refusal.Permission, refusal.Stopped, "", func(a *attempt) { a.stopped = true }, anyWay},
	{"findTool", "no such tool", refusal.Schema, refusal.UnknownTool, "", func(a *attempt) { a.tool = "act" }, anyWay},
	{"checkProjectNamed", "no project", refusal.Workspace, refusal.ProjectRequired, "", func(a *attempt) { a.unnamedProject = true }, anyWay},
	{"checkReach", "denied", refusal.Permission, refusal.PermissionDenied, "You may not use", func(a *attempt) { a.denied = true }, anyWay},
	{"checkReach", "quarantined", refusal.Permission, refusal.ToolQuarantined, "", func(a *attempt) { a.quarantined = true }, anyWay},
	{"checkStarted", "a server that is starting", refusal.Schema, refusal.ToolStarting, "", func(a *attempt) { a.starting = true }, anyWay},
	{"validateArguments", "an argument more", refusal.Schema, refusal.UnexpectedArgument, "", func(a *attempt) { a.unexpected = true }, anyWay},
	{"validateArguments", "an argument's type", refusal.Schema, refusal.WrongType, "", func(a *attempt) { a.wrongType = true }, anyWay},
	{"checkAnswers", "an answer to nothing", refusal.Schema, refusal.InvalidValue, "", func(a *attempt) { a.state = "call_none" }, judged | admitted | checked},
	{"checkPermission", "a condition", refusal.Permission, refusal.PermissionDenied, "not with these arguments", func(a *attempt) { a.amount = 1000 }, anyWay},
	{"checkPermission", "no thread", refusal.Permission, refusal.ThreadRequired, "", func(a *attempt) { a.threadless = true }, anyWay &^ checked},
	{"checkPermission", "the past is away", refusal.Permission, refusal.ThreadsUnavailable, "", func(a *attempt) { a.pastAway = true }, anyWay &^ checked},
	{"charge", "rate", refusal.Rate, refusal.RateLimited, "", func(a *attempt) { a.spent = true }, anyWay &^ checked},
	{"charge", "slots", refusal.Rate, refusal.ConcurrencyLimited, "", func(a *attempt) { a.held = true }, anyWay &^ checked},
	{"charge", "no limiter", refusal.Rate, refusal.LimiterUnavailable, "", func(a *attempt) { a.away = true }, anyWay &^ checked},
	{"checkWorkspace", "another's", refusal.Workspace, refusal.WorkspaceMismatch, "", func(a *attempt) { a.foreignWorkspace = true }, anyWay},
	{"checkWorkspace", "not in the file", refusal.Workspace, refusal.WorkspaceMismatch, "", func(a *attempt) { a.nowhere = true }, anyWay},
	{"checkProject", "another's", refusal.Project, refusal.ProjectMismatch, "", func(a *attempt) { a.foreignProject = true }, anyWay},
	{"checkProject", "not in the workspace", refusal.Project, refusal.ProjectMismatch, "", func(a *attempt) { a.noProject = true }, anyWay},
	{"checkProject", "not for the agent", refusal.Project, refusal.ProjectMismatch, "", func(a *attempt) { a.closedProject = true }, anyWay},
	{"checkBoundary", "a path outside", refusal.Project, refusal.BoundaryViolation, "", func(a *attempt) { a.outside = true }, anyWay},
	{"checkLatest", "another gateway's call", refusal.Permission, refusal.PermissionDenied, "", func(a *attempt) { a.deniedSince = true }, anyWay &^ checked},
	{"checkHooks", "a hook denies", refusal.Approval, refusal.HookDenied, "quiet", func(a *attempt) { a.hooked = true }, anyWay &^ checked},
	{"checkApproval", "nobody has approved it", refusal.Approval, refusal.ApprovalRequired, "", func(a *attempt) { a.asked = true }, anyWay &^ checked},
	{"reserve", "no room for the thread", refusal.Permission, refusal.ThreadsFull, "", func(a *attempt) { a.threadsFull = true }, anyWay &^ checked},
	{"recordDecision", "no log", refusal.Log, refusal.AuditUnavailable, "", func(a *attempt) { a.silent = true }, anyWay &^ checked},
	{"execute", "no store", refusal.Execute, refusal.StoreUnavailable, "", func(a *attempt) { a.storeAway = true }, anyWay &^ checked},
	{"execute", "the tool fails", refusal.Execute, refusal.ToolFailed, "", func(a *attempt) { a.fails = true }, anyWay &^ checked},
	{"wrap", "no JSON", refusal.Wrap, refusal.InvalidResult, "", func(a *attempt) { a.garbled = true }, anyWay &^ checked},
}

// at is where a row stands among the faults.
func at(row string) int {
	return slices.IndexFunc(faults, func(f fault) bool { return f.row == row })
}

// TestFaultsCoverThePipeline: every row of the pipeline has a fault, so that a row that
// is added is put to the test of order.
func TestFaultsCoverThePipeline(t *testing.T) {
	for _, row := range gateway.Rows() {
		if at(row) < 0 && row != "checkText" && row != "checkOutput" { // which no call comes to: TestSN56Texts and TestSN60StructuredOutput have them
			t.Errorf("no fault is at %s", row)
		}
	}
	for _, f := range faults {
		if !slices.Contains([]string{"request", "execute", "wrap"}, f.row) && !slices.Contains(gateway.Rows(), f.row) {
			t.Errorf("%s is no row of the pipeline", f.row)
		}
	}
}

// TestSN60Order is every fault alone, and every two faults of two rows: the earlier row
// is reported, and nothing of a later one was done. Two rows of one stage count too.
func TestSN60Order(t *testing.T) {
	gin.SetMode(gin.ReleaseMode)
	of := orderConfigs(t)
	for way, name := range map[ways]string{judged: "judged", admitted: "admitted", streamed: "streamed", checked: "checked", byNativeFace: "native face"} {
		t.Run(name, func(t *testing.T) {
			together := 0
			for i := range faults {
				if faults[i].ways&way == 0 {
					continue
				}
				meets(t, of, way, i)
				for j := i + 1; j < len(faults); j++ {
					// Where people are asked, checkPermission reads the latest past.
					if faults[j].ways&way == 0 || faults[j].row == faults[i].row || faults[i].row == "checkLatest" && faults[j].row == "checkApproval" {
						continue
					}
					meets(t, of, way, i, j)
					together++
				}
			}
			if least := map[bool]int{true: 150, false: 350}[way == checked]; together < least {
				t.Errorf("only %d pairs were tried, want at least %d", together, least)
			}
		})
	}
}

// meets puts an attempt with faults, the earliest first, to the test.
func meets(t *testing.T, of map[bool]*configs.Config, way ways, which ...int) {
	t.Helper()
	var a attempt
	var names []string
	for _, i := range which {
		before := a
		faults[i].make(&a)
		if reflect.DeepEqual(a, before) {
			t.Fatalf("%s: %s changes nothing", faults[i].row, faults[i].name)
		}
		names = append(names, faults[i].row+" ("+faults[i].name+")")
	}
	name, first := strings.Join(names, " before "), faults[which[0]]
	w := a.meet(t, of)
	stage, code, message := w.by(t, way)
	if stage != first.stage || code != first.code || !strings.Contains(message, first.text) {
		t.Errorf("%s: %s %s: %s", name, stage, code, message)
	}
	w.untouched(t, name, way, first, which[0])
}

// by brings the attempt to the kernel, and tells what refused it.
func (w *world) by(t *testing.T, way ways) (refusal.Stage, refusal.Code, string) {
	t.Helper()
	ctx, request, in := context.Background(), w.request(), w.input()
	var refused *refusal.Error
	switch way {
	case judged:
		request.Inputs = []gateway.Input{in}
		refused = w.kernel.Execute(ctx, w.kernel.Kernel.Judge(ctx, request))[0].Refusal
	case checked:
		request.Inputs = []gateway.Input{in}
		refused = w.kernel.Kernel.Check(ctx, request).Refusal
	case admitted, streamed:
		a, err := w.kernel.Kernel.Admit(ctx, request)
		if err != nil {
			refused = refusal.From(refusal.Identity, err)
			break
		}
		if a = a.WithConstraints(w.terms()); way == admitted {
			refused = w.kernel.Execute(ctx, a.Judge(ctx, gateway.ModeCall, in))[0].Refusal
			break
		}
		s, err := a.Stream(ctx, gateway.ModeCall, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range in.Completion {
			s.Write([]byte{b})
		}
		refused = w.kernel.Execute(ctx, s.Close(ctx, false))[0].Refusal
	case byNativeFace:
		return w.byNativeFace(t)
	}
	if refused == nil {
		return "", "", "it passed"
	}
	return refused.Stage, refused.Code, refused.Message
}

// byNativeFace brings the attempt to the native face.
func (w *world) byNativeFace(t *testing.T) (refusal.Stage, refusal.Code, string) {
	t.Helper()
	d := facetest.NewServer(w.kernel)
	native.New(native.Options{Executor: w.kernel}).Mount(d)
	request := w.request()
	members := map[string]string{"completion": w.completion(), "agent": request.Agent, "workspace": request.Workspace, "project": request.Project}
	if w.badRequest {
		members["more"] = "1"
	}
	if request.Thread != "" {
		members["thread"] = request.Thread
	}
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/calls", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+request.Credential)
	answer := httptest.NewRecorder()
	d.ServeHTTP(answer, r)
	var response struct {
		Result struct {
			Output struct {
				Error struct {
					Stage   refusal.Stage
					Code    refusal.Code
					Message string
				}
			}
		} `json:"tool_result"`
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &response); err != nil {
		t.Fatalf("%s: %v", answer.Body, err)
	}
	e := response.Result.Output.Error
	if e.Code != "" && answer.Code != refusal.New(e.Code, "").Status() {
		t.Errorf("%s has the status %d", e.Code, answer.Code)
	}
	return e.Stage, e.Code, e.Message
}

// untouched holds that nothing was done which stands behind the first fault.
func (w *world) untouched(t *testing.T, name string, way ways, first fault, index int) {
	t.Helper()
	w.journal.fail(false) // an outcome that is owed, and should not be, is written down then
	if err := w.kernel.Kernel.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	runs, writes, takes := int64(0), 0, 0
	if first.row == "wrap" || first.row == "execute" && !w.storeAway {
		runs, writes = 1, 2 // opened, dispatched
	} else if first.row == "execute" {
		writes = 1
	}
	if index >= at("charge") && way != checked {
		takes = 1
	}
	if w.engine.runs.Load() != runs || w.store.writes != writes || w.limits.takes != takes {
		t.Errorf("%s: the tool ran %d times, the store was written to %d times and the limiter asked %d times; want %d, %d and %d",
			name, w.engine.runs.Load(), w.store.writes, w.limits.takes, runs, writes, takes)
	}
	if kept := w.ledger.kept; kept != 0 && runs == 0 {
		t.Errorf("%s: %d calls that did not run are counted", name, kept)
	}
	// A call that is refused behind the limits gives its slot back, not its tokens.
	for _, lease := range w.holds {
		lease.Release()
	}
	free, tokens := w.limits.left()
	wantTokens := burst
	switch {
	case w.spent:
		wantTokens = 0
	case w.held:
		wantTokens = burst - slots
	case index > at("charge") && first.row != "charge" && !w.away && way != checked:
		wantTokens--
	}
	if tokens != wantTokens || free != min(slots, wantTokens) {
		t.Errorf("%s: %d tokens and %d slots are left, want %d and %d", name, tokens, free, wantTokens, min(slots, wantTokens))
	}
	w.written(t, name, way, first)
}

// written holds that the refusal is in the journal, but for those of nobody who was let
// in and where there is none (SN-62).
func (w *world) written(t *testing.T, name string, way ways, first fault) {
	t.Helper()
	var got []string
	for _, r := range w.journal.all() {
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.Event, r.Verdict, r.Stage, r.Code)))
	}
	want := []string{fmt.Sprintf("decision refused %s %s", first.stage, first.code)}
	switch {
	case way == checked, w.silent, first.stage == refusal.Request, first.code == refusal.Unauthenticated, first.code == refusal.CallerRateLimited:
		want = nil
	case first.row == "execute" || first.row == "wrap":
		if len(got) == 2 && got[0] == "decision tool_call" && strings.HasSuffix(got[1], string(first.code)) {
			return
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: the journal has %q, want %q", name, got, want)
	}
}
