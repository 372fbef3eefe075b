package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/refusal"
)

// full has a value in every member, so that a member that is lost shows.
func full() Record {
	return Record{
		Time: noon.Add(123456789), Event: Ending, Mode: Enforce, CallID: "c", RequestID: "r", TraceID: "t", Attempt: 2,
		Principal: "p", Agent: "a", Workspace: "w", Project: "j", Thread: "h", Tool: "web.search", ToolVersion: "1.0.0",
		Verdict: ToolCall, Stage: refusal.Execute, Code: refusal.ToolFailed, Outcome: Failed,
		InputSHA256: "i", ArgumentsSHA256: "s", ConfigDigest: "d", Replica: "x", Micros: 77,
		Arguments: json.RawMessage(`{"q":1}`), Completion: "done",
	}
}

// vote is an event about an approval, with every member that only such a record has.
func vote() Record {
	r := full()
	r.Event, r.Verdict, r.Outcome, r.Stage, r.Code = Approval, "", "", refusal.Permission, Yes
	r.Arguments, r.Completion = nil, ""
	r.Approvals, r.Rules, r.Rows = []string{"5e1f", "hash"}, []string{"refunds", "hash"}, []string{"policy.csv:4"}
	r.Hooks, r.Limit = []string{"secrets", "hash"}, "agents.a (5/s, burst 10)"
	r.Spends, r.KeySHA256, r.RequestSHA256 = []string{"call_B"}, "k", "q"
	r.OfPrincipal = "o"
	r.Ledger, r.Turn, r.CallerTurn, r.Adds, r.Saw = "0f", 7, 9, []string{"label:a", "hash"}, []string{"thread.labels="}
	r.AgentHook = &AgentHook{HookAgent: "claude-code", HookEvent: "PreToolUse", Session: "s", Prompt: "hash", PermissionMode: "plan", ChangedAfterVerdict: "call_A"}
	r.Until, r.Reason = noon.Add(time.Hour).In(time.FixedZone("east", 3600)), `"looked up", é`
	return r
}

func TestLineOfAnApproval(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	if err := l.Append(context.Background(), vote()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	const want = `"micros":77,"approval":["5e1f","\u0068ash"],"spends":["call_B"],"rules":["refunds","\u0068ash"],"until":"2026-11-20T13:00:00Z",` +
		`"reason":"\"looked up\", \u00e9","rows":["policy.csv:4"],"hooks":["secrets","\u0068ash"],"limit":"agents.a (5/s, burst 10)","key_sha256":"k","request_sha256":"q","of_principal":"o",` +
		`"ledger":"0f","turn":7,"caller_turn":9,"adds":["label:a","\u0068ash"],"saw":["thread.labels="],` +
		`"hook_agent":"claude-code","hook_event":"PreToolUse","session":"s","prompt":"hash","permission_mode":"plan","changed_after_verdict":"call_A","prev":"`
	if got := string(contents(t, logFile(dir))); !strings.Contains(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back Record
	if _, err := Read(func(r Record) error { back = r; return nil }, logFile(dir)); err != nil {
		t.Fatal(err)
	}
	back.Seq, back.Prev, back.Hash = 0, "", ""
	want2 := vote()
	want2.Until = want2.Until.UTC()
	if a, b := asJSON(t, back), asJSON(t, want2); a != b {
		t.Errorf("read back %s\nwritten   %s", a, b)
	}
}

// An approval event has the id of a call, and says neither that the call is open nor that it
// has ended.
func TestApprovalEventsLeaveOpenCallsAsTheyAre(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{snapshotEvery: 1})
	if _, err := l.OpenCalls(); err != nil {
		t.Fatal(err)
	}
	asked := vote()
	asked.Mode, asked.CallID = Call, "a"
	for _, r := range []Record{asked, sample("a"), asked} {
		if err := l.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
	asked.CallID = "never run"
	if err := l.Append(context.Background(), asked); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	for _, withSnapshot := range []bool{true, false} {
		if !withSnapshot {
			_ = os.Remove(filepath.Join(dir, snapshotName))
		}
		again := open(t, dir, Options{})
		calls, err := again.OpenCalls()
		if err != nil || len(calls) != 1 || calls[0].CallID != "a" || calls[0].Event != Decision {
			t.Errorf("with a snapshot %v: %+v, %v; want the decision of a alone", withSnapshot, calls, err)
		}
		mustClose(t, again)
	}
}

// A log of a later version may have events and members that this one does not know: its
// readers pass over them.
func TestReadersPassOverWhatTheyDoNotKnow(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	mustAppend(t, l, "a")
	mustClose(t, l)
	at := l.writer.Link
	body, err := encode(sample("b"), Digest)
	if err != nil {
		t.Fatal(err)
	}
	line, at := at.Seal(nil, bytes.Replace(body, []byte(`"decision"`), []byte(`"sighting"`), 1))
	line, _ = at.Seal(line, append(body, `,"mood":{"of":["the","day"]}`...))
	f, err := os.OpenFile(logFile(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(line)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	var events []Event
	if _, err := Read(func(r Record) error { events = append(events, r.Event); return nil }, logFile(dir)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(events, []Event{Decision, "sighting", Decision}) {
		t.Errorf("read %q", events)
	}
	again := open(t, dir, Options{})
	open, err := again.OpenCalls()
	if err != nil || len(open) != 2 {
		t.Errorf("open calls %+v, %v; want those of a and b", open, err)
	}
}

func TestLineIsTheContract(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Record: Completion})
	if err := l.Append(context.Background(), full()); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	const want = `{"seq":1,"time":"2026-11-20T12:00:00.123456789Z","event":"outcome","mode":"enforce","call_id":"c","request_id":"r",` +
		`"trace_id":"t","attempt":2,"principal":"p","agent":"a","workspace":"w","project":"j","thread":"h","tool":"web.search",` +
		`"tool_version":"1.0.0","verdict":"tool_call","stage":"execute","code":"tool_failed","outcome":"error","input_sha256":"i",` +
		`"arguments_sha256":"s","config_digest":"d","replica":"x","micros":77,"arguments":{"q":1},"completion":"done",` +
		`"prev":"0000000000000000000000000000000000000000000000000000000000000000",` +
		`"hash":"HASH"}` + "\n"
	got := string(contents(t, logFile(dir)))
	i := strings.LastIndex(got, `"hash":"`) + len(`"hash":"`)
	if i < 64 || strings.ReplaceAll(got, got[i:i+64], "HASH") != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back Record
	if _, err := Read(func(r Record) error { back = r; return nil }, logFile(dir)); err != nil {
		t.Fatal(err)
	}
	if back.Seq != 1 || back.Prev != logfile.Genesis.String() || back.Hash != got[i:i+64] {
		t.Errorf("read back seq %d, prev %s, hash %s", back.Seq, back.Prev, back.Hash)
	}
	back.Seq, back.Prev, back.Hash = 0, "", ""
	if a, b := asJSON(t, back), asJSON(t, full()); a != b || back.Completion != "done" {
		t.Errorf("read back %s\nwritten   %s", a, b)
	}
}

func asJSON(t *testing.T, r Record) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheLogOwnsSeqPrevAndHash(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	r := sample("a")
	r.Seq, r.Prev, r.Hash = 900, "forged", "forged"
	if err := l.Append(context.Background(), r); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	if got := calls(t, logFile(dir)); len(got) != 1 {
		t.Errorf("got %q", got)
	}
}

func TestContentIsWrittenOnlyWhereConfigured(t *testing.T) {
	const canary = "canary-7"
	for content, want := range map[Content][2]bool{
		"": {false, false}, Digest: {false, false}, Arguments: {true, false}, Completion: {true, true},
	} {
		r := sample("a")
		r.Arguments, r.Completion = json.RawMessage(`{"a":"`+canary+`-arguments"}`), canary+"-completion"
		body, err := encode(r, content)
		if err != nil {
			t.Fatal(err)
		}
		got := [2]bool{strings.Contains(string(body), canary+"-arguments"), strings.Contains(string(body), canary+"-completion")}
		if got != want {
			t.Errorf("%q: arguments and completion written: %v, want %v", content, got, want)
		}
	}
	if l, err := Open(t.TempDir(), Options{Record: "everything"}); err == nil {
		l.Close()
		t.Error("an unknown level was taken")
	}
}

func TestAnImpossibleRecordIsRefused(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Record: Completion})
	for name, spoil := range map[string]func(*Record){
		"no event":          func(r *Record) { r.Event = "" },
		"other event":       func(r *Record) { r.Event = "Decision" },
		"no mode":           func(r *Record) { r.Mode = "" },
		"no time":           func(r *Record) { r.Time = time.Time{} },
		"year 10000":        func(r *Record) { r.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"no verdict":        func(r *Record) { r.Verdict = "" },
		"other verdict":     func(r *Record) { r.Verdict = "maybe" },
		"no outcome":        func(r *Record) { r.Event = Ending },
		"other outcome":     func(r *Record) { r.Outcome = "fine" },
		"arguments no JSON": func(r *Record) { r.Arguments = json.RawMessage(`{"secret-canary"`) },
		"two objects":       func(r *Record) { r.Arguments = json.RawMessage("{}\n{}") },
		"turn of nothing":   func(r *Record) { r.Ledger, r.Turn = "0f", 1 },
		"adds and no turn":  func(r *Record) { r.Adds = []string{"label:a"} },
		"adds and undoes":   func(r *Record) { r.CallerTurn, r.Adds, r.Undo = 1, []string{"a"}, []string{"a"} },
		"turn of no thread": func(r *Record) { r.Turn, r.Adds = 1, []string{"label:a"} },
		"long reason":       func(r *Record) { r.Reason = strings.Repeat("é", MaxReason+1) },
		"until year 10000":  func(r *Record) { r.Until = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"approval, no code": func(r *Record) { *r = vote(); r.Code = "" },
		"approval, no vote": func(r *Record) { *r = vote(); r.Code = refusal.PermissionDenied },
		"approval, verdict": func(r *Record) { *r = vote(); r.Verdict = ToolCall },
		"approval, outcome": func(r *Record) { *r = vote(); r.Outcome = Result },
	} {
		r := sample("a")
		spoil(&r)
		err := l.Append(context.Background(), r)
		var refused *refusal.Error
		if !errors.As(err, &refused) || refused.Code != refusal.Internal || refused.Stage != refusal.Log {
			t.Errorf("%s: got %v", name, err)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the operator reads a value of the model: %v", name, err)
		}
	}
	mustAppend(t, l, "good")
	mustClose(t, l)
	if got := calls(t, logFile(dir)); len(got) != 1 || got[0] != "good" {
		t.Errorf("the log holds %q", got)
	}
}

// hostile are strings that try to leave their place in a line or to trick a
// terminal that shows it.
var hostile = []string{
	"a\nb", "a\r\nb", `a"}` + "\n" + `{"seq":2`, "\x1b[2J\x1b]0;x\a", "\u009b31m", "\x7f", "\x00", "\u2028\u2029", "\u202eabc\u2066",
	"\u200b\u200d\u2060\ufeff", "\U000e0041\U000e007f", "\ufe0f\U000e0100", "we\u0431.search", "é", "\U0001f600", "a\xffb\xc3", "\u00ad\u034f\u115f\u3164\u2800",
	`,"hash":"`, `","prev":"`, `\`, `\u0000`, "<&>",
}

func TestNothingHidesInALine(t *testing.T) {
	for _, s := range hostile {
		checkLine(t, s)
	}
	rapid.Check(t, func(t *rapid.T) { checkLine(t, rapid.String().Draw(t, "s")) })
	rapid.Check(t, func(t *rapid.T) { checkLine(t, string(rapid.SliceOf(rapid.Byte()).Draw(t, "s"))) })
}

// checkLine writes s wherever a record takes text and requires one line of
// printable ASCII from which the same text comes back.
func checkLine(t interface {
	Helper()
	Fatalf(string, ...any)
}, s string) {
	t.Helper()
	r := full()
	r.CallID, r.RequestID, r.Thread, r.Tool, r.Principal, r.Completion = s, s, s, s, s, s
	args, err := json.Marshal(map[string]any{s: s, "hash": []any{s, "hash", map[string]any{"a": 1, "hash": s}}, "prev": s})
	if err != nil {
		t.Fatalf("%v", err)
	}
	r.Arguments = args
	body, err := encode(r, Completion)
	if err != nil {
		t.Fatalf("encode %q: %v", s, err)
	}
	line, at := logfile.Link{Hash: logfile.Genesis}.Seal(nil, body)
	for _, c := range line[:len(line)-1] {
		if c < ' ' || c > '~' {
			t.Fatalf("%q: byte %#x in %q", s, c, line)
		}
	}
	if line[len(line)-1] != '\n' || strings.Count(string(line), `,"hash"`) != 1 {
		t.Fatalf("%q: not one line with one hash: %q", s, line)
	}
	if next, err := (logfile.Link{Hash: logfile.Genesis}).Next(line[:len(line)-1]); err != nil || next != at {
		t.Fatalf("%q: the line does not check out: %v", s, err)
	}
	back, err := Decode(line)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	if back.Completion != s {
		t.Fatalf("completion %q came back as %q", s, back.Completion)
	}
	if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && back.Tool != want {
		t.Fatalf("tool %q came back as %q", s, back.Tool)
	}
	var was, is any
	if json.Unmarshal(args, &was) != nil || json.Unmarshal(back.Arguments, &is) != nil || asValue(was) != asValue(is) {
		t.Fatalf("arguments %s came back as %s", args, back.Arguments)
	}
}

func asValue(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// Attack strings seen in the field must not get through raw either.
func TestCorpusStaysInItsLine(t *testing.T) {
	t.Parallel()
	most := 3000
	if testing.Short() {
		most = 500
	}
	for _, corpus := range []string{"injections", "malformed_llm_json", "confusables"} {
		t.Run(corpus, func(t *testing.T) {
			files, err := filepath.Glob(filepath.Join(corpora.Path(t, corpus), "*"))
			if err != nil {
				t.Fatal(err)
			}
			lines := 0
			for _, f := range files {
				if info, err := os.Stat(f); err != nil || info.IsDir() {
					continue
				}
				for _, s := range strings.Split(string(contents(t, f)), "\n") {
					if s = strings.TrimSpace(s); s != "" && lines < most {
						checkLine(t, s)
						lines++
					}
				}
			}
			if lines == 0 {
				t.Errorf("nothing was read from %q", files)
			}
		})
	}
}
