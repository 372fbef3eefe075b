package lab_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/policy/lab"
	"github.com/callgate/callgate/refusal"
)

// threadLog writes the records of calls in one thread, as a gateway does whose policy reads what was done before.
type threadLog struct {
	records []*audit.Record
	now     time.Time
	turn    uint64
	bare    bool // its policy does not: records name no thread
}

// call adds the decision on a call, and its outcome, if it has one.
func (l *threadLog) call(tool, arguments, outcome string) *audit.Record {
	l.now = l.now.Add(time.Minute)
	r := &audit.Record{
		Seq: uint64(len(l.records) + 1), Time: l.now, Event: audit.Decision, Mode: audit.Call, CallID: fmt.Sprint("call_", len(l.records)), Principal: "ada",
		Agent: "Analyst", Workspace: "acme", Project: "alpha", Tool: tool, ToolVersion: "1.0.0", Verdict: audit.ToolCall, Arguments: json.RawMessage(arguments),
	}
	l.records = append(l.records, r)
	if outcome == "refused" {
		r.Verdict, r.Stage, r.Code = audit.Refused, refusal.Permission, refusal.PermissionDenied
	}
	if r.Verdict == audit.ToolCall && !l.bare {
		if l.turn++; l.turn == 1 {
			l.turn = uint64(l.now.UnixMicro())
		}
		r.Ledger, r.Turn, r.Adds = "t", l.turn, []string{"at:" + l.now.Format(time.RFC3339Nano), "thread.calls('other')=1"}
	}
	if r.Ledger = "t"; l.bare {
		r.Ledger = ""
	}
	if outcome != "" && outcome != "refused" {
		end := *r
		end.Seq, end.Time, end.Event, end.Outcome, end.Adds, end.Turn, end.Ledger = r.Seq+1, l.now.Add(time.Second), audit.Ending, audit.Outcome(outcome), nil, 0, ""
		if outcome == "not run" {
			end.Verdict, end.Outcome = audit.Refused, audit.Failed
			if l.turn++; !l.bare {
				end.Ledger, end.Turn, end.Undo = "t", l.turn, r.Adds
			}
		}
		l.records = append(l.records, &end)
	}
	return r
}

// A call is judged again on what its thread had done by then, of terms that the configuration of that time did not keep; where
// the log does not have it all, it is not judged.
func TestReplayOfThreads(t *testing.T) {
	c := threaded(t)
	const refund, fetch, write, read = `{"amount":100,"currency":"EUR"}`, `{"url":"https://a.example/"}`, `{"path":"a"}`, `{"path":"a"}`
	for name, test := range map[string]struct {
		log     func(l *threadLog)
		judged  lab.Log
		missing int // records at the beginning
		want    map[lab.Change]int
		not     int
	}{
		"the fourth": {log: func(l *threadLog) {
			for range 4 {
				l.call("pay.refund", refund, "result")
			}
		}, want: map[lab.Change]int{lab.NewlyRefused: 1}},
		"a fourth that was refused, and one that was not run": {log: func(l *threadLog) {
			l.call("pay.refund", refund, "not run")
			l.call("pay.refund", refund, "error")
			l.call("pay.refund", `{"amount":1e9,"currency":"EUR"}`, "refused")
			l.call("pay.refund", refund, "result")
			l.call("pay.refund", refund, "unknown")
		}, want: map[lab.Change]int{}},
		"before those that are judged": {log: func(l *threadLog) {
			for range 5 {
				l.call("pay.refund", refund, "result")
			}
		}, judged: lab.Log{Since: start.Add(4*time.Minute + time.Second)}, want: map[lab.Change]int{lab.NewlyRefused: 1}},
		"a result, and a failure": {log: func(l *threadLog) {
			l.call("files.read", read, "error")
			l.call("files.write", write, "result")
			l.call("files.read", read, "result")
			l.call("files.write", write, "result")
		}, want: map[lab.Change]int{lab.NewlyRefused: 1}},
		"a label": {log: func(l *threadLog) {
			l.call("files.read", read, "result")
			l.call("files.write", write, "result")
			l.call("web.fetch", fetch, "timeout")
			l.call("files.write", write, "result")
		}, want: map[lab.Change]int{lab.NewlyAsks: 1}},
		"a label that the conversation has brought": {log: func(l *threadLog) {
			l.call("files.read", read, "result")
			r := l.call("files.write", write, "refused")
			l.turn++
			r.Turn, r.Adds = l.turn, []string{"at:" + l.now.Format(time.RFC3339Nano), "label:untrusted"}
		}, want: map[lab.Change]int{lab.NewlyAsks: 1}},
		"labels of the calls of one answer": {log: func(l *threadLog) {
			l.call("files.read", read, "result")
			fetched := l.call("web.fetch", fetch, "")
			written := l.call("files.write", write, "")
			fetched.TraceID, written.TraceID = "one", "one"
			later := l.call("files.write", write, "result")
			later.TraceID = "two"
		}, want: map[lab.Change]int{lab.NewlyAsks: 1}},
		"without names of threads": {log: func(l *threadLog) {
			l.bare = true
			l.call("files.write", write, "result")
			l.call("mail.send", `{"to":"bob@acme.example"}`, "result")
			l.call("mail.send", `{"to":"eve@evil.example"}`, "result")
			l.call("tests.run", `{}`, "result")
		}, want: map[lab.Change]int{}, not: 3},
		"the caller, without names of threads": {log: func(l *threadLog) {
			l.bare = true
			l.call("pay.refund", `{"amount":5001,"currency":"EUR"}`, "result")
		}, want: map[lab.Change]int{}, not: 1},
		"calls of which nobody knows the thread": {log: func(l *threadLog) {
			l.call("pay.refund", refund, "result")
			l.bare = true
			l.call("pay.refund", refund, "result")
			l.bare = false
			l.call("pay.refund", refund, "result")
		}, want: map[lab.Change]int{}, not: 2},
		"without the beginning": {log: func(l *threadLog) {
			l.call("pay.refund", refund, "result")
			l.call("pay.refund", refund, "result")
		}, missing: 2, want: map[lab.Change]int{}, not: 1},
		"a window, without the beginning": {log: func(l *threadLog) {
			l.call("tests.run", `{}`, "result")
			l.call("deploy.run", `{}`, "result")
			l.call("tests.run", `{}`, "result")
			l.now = l.now.Add(40 * time.Minute)
			l.call("deploy.run", `{}`, "result")
		}, missing: 2, want: map[lab.Change]int{lab.NewlyRefused: 1}, not: 1},
		"a call whose arguments are hidden": {log: func(l *threadLog) {
			l.call("pay.refund", refund, "result").Arguments = nil
			l.call("pay.refund", refund, "result")
		}, want: map[lab.Change]int{}, not: 2},
		"another order": {log: func(l *threadLog) {
			l.call("pay.refund", refund, "")
			l.call("pay.refund", refund, "")
			l.call("pay.refund", refund, "")
			l.records[1], l.records[2] = l.records[2], l.records[1]
		}, want: map[lab.Change]int{}, not: 2},
		"counts that are over": {log: func(l *threadLog) {
			for range 3 {
				l.call("pay.refund", refund, "result")
			}
			l.now = l.now.Add(8 * 24 * time.Hour)
			l.call("pay.refund", refund, "result")
		}, judged: lab.Log{Idle: 7 * 24 * time.Hour, KeepLabels: 30 * 24 * time.Hour}, want: map[lab.Change]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			l := threadLog{now: start}
			test.log(&l)
			r, err := lab.NewReplay(c.Rules(), nil, nil, test.judged)
			if err != nil {
				t.Fatal(err)
			}
			l.records = l.records[test.missing:]
			if test.missing > 0 {
				r.Lose(l.records[0].Time)
			}
			for _, record := range l.records {
				if err := r.Add(t.Context(), record); err != nil {
					t.Fatal(err)
				}
			}
			s, found := r.Summary(), map[lab.Change]int{}
			for _, g := range r.Groups() {
				if !slices.Contains([]string{"files.read", "web.fetch", "tests.run"}, g.Tool) { // which no row allows
					found[g.Change] += g.Calls
				}
			}
			not := 0
			for reason, n := range s.Undecided {
				if not += n; !strings.Contains(reason, "log") {
					t.Errorf("not judged %d: %s", n, reason)
				}
			}
			if !s.OnThreads || !maps.Equal(found, test.want) || not != test.not {
				t.Errorf("found %v, not judged %v; want %v, not judged %d\n%+v", found, s.Undecided, test.want, test.not, r.Groups())
			}
		})
	}
}

var start = time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
