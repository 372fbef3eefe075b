package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/refusal"
)

func encode(r Record, content Content) ([]byte, error) { return appendRecord(nil, &r, content) }

// encodeByReflection is the encoding of a record by encoding/json and its struct tags,
// which appendRecord must equal byte for byte.
func encodeByReflection(r Record, content Content) ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	w := wire{Record: r}
	w.Seq, w.Time = 0, r.Time.UTC()
	if !r.Until.IsZero() {
		w.Until = r.Until.UTC()
	}
	if content != Arguments && content != Completion {
		w.Arguments = nil
	}
	if content != Completion {
		w.Completion = ""
	}
	if !utf8.ValidString(w.Completion) {
		w.CompletionB64, w.Completion = []byte(w.Completion), ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(&w); err != nil {
		return nil, err
	}
	body, begins := bytes.CutPrefix(b.Bytes(), []byte(`{"seq":0,`))
	body, ends := bytes.CutSuffix(body, []byte(`,"prev":"","hash":""}`+"\n"))
	if !begins || !ends {
		return nil, errors.New("seq is not the first member, or prev and hash are not the last")
	}
	body = bytes.ReplaceAll(body, []byte(`,"hash"`), []byte(`,"\u0068ash"`))
	var ascii []byte
	for _, r := range string(body) {
		switch {
		case r >= ' ' && r <= '~':
			ascii = append(ascii, byte(r))
		case r > 0xffff:
			ascii = fmt.Appendf(ascii, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		default:
			ascii = fmt.Appendf(ascii, `\u%04x`, r)
		}
	}
	return ascii, nil
}

// checkEncoding requires what reflection writes, for each level of content.
func checkEncoding(t interface {
	Helper()
	Fatalf(string, ...any)
}, r Record) {
	t.Helper()
	for _, content := range []Content{Digest, Arguments, Completion} {
		got, err := encode(r, content)
		want, wantErr := encodeByReflection(r, content)
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) {
			t.Fatalf("%s, of %+v\n got %s, %v\nwant %s, %v", content, r, got, err, want, wantErr)
		}
	}
}

// drawnRecord draws every member: valid ones, and at times impossible ones.
func drawnRecord(t *rapid.T) Record {
	text := func(name string) string {
		return rapid.OneOf(rapid.StringN(0, 20, -1), rapid.SampledFrom(hostile), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, name)
	}
	list := func(name string) []string {
		return rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(append(hostile, "hash", "refunds=1", "policy.csv:4")), rapid.StringN(0, 20, -1)), 0, 4).Draw(t, name)
	}
	arguments := rapid.OneOf(
		rapid.Map(rapid.String(), func(s string) json.RawMessage { b, _ := json.Marshal(s); return b }),
		rapid.Map(rapid.SampledFrom(hostile), func(s string) json.RawMessage {
			b, _ := json.MarshalIndent(map[string]any{"hash": s, "a": []any{s, "hash"}, s: s}, " ", "\t")
			return b
		}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) json.RawMessage { return b }),
		rapid.SampledFrom([]json.RawMessage{nil, {}, json.RawMessage(` {"a" : 1.50e3 , "hash" : [ ] } `), json.RawMessage("\"\x7f\u2028<&>\xff\""), json.RawMessage(`[",","hash"]`), json.RawMessage(`null`)}),
	)
	zone := time.FixedZone("east", rapid.IntRange(-50000, 50000).Draw(t, "zone"))
	r := Record{
		Seq: rapid.Uint64().Draw(t, "seq"), Prev: text("prev"), Hash: text("hash"),
		Time:  time.Unix(rapid.Int64Range(-80_000_000_000, 280_000_000_000).Draw(t, "time"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).In(zone),
		Event: rapid.SampledFrom([]Event{Decision, Decision, Ending, Approval, "other"}).Draw(t, "event"),
		Mode:  rapid.SampledFrom([]Mode{Call, Enforce}).Draw(t, "mode"), CallID: text("call_id"), RequestID: text("request_id"), TraceID: text("trace_id"),
		Attempt: rapid.Int().Draw(t, "attempt"), Principal: text("principal"), Agent: text("agent"), Workspace: text("workspace"), Project: text("project"),
		Thread: text("thread"), Tool: text("tool"), ToolVersion: text("tool_version"), Verdict: rapid.SampledFrom([]Verdict{ToolCall, Text, Refused}).Draw(t, "verdict"),
		Stage: refusal.Stage(text("stage")), Code: refusal.Code(text("code")), Outcome: rapid.SampledFrom([]Outcome{Result, Failed, Unknown}).Draw(t, "outcome"),
		InputSHA256: text("input"), ArgumentsSHA256: text("arguments"), ConfigDigest: text("config"), Replica: text("replica"), Micros: rapid.Int64().Draw(t, "micros"),
		Arguments: arguments.Draw(t, "raw"), Completion: text("completion"),
		Approvals: list("approval"), Spends: list("spends"), KeySHA256: text("key"), RequestSHA256: text("request"), Rules: list("rules"), Reason: text("reason"), Rows: list("rows"),
		Until:  rapid.SampledFrom([]time.Time{{}, noon.In(zone), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}).Draw(t, "until"),
		Ledger: text("ledger"), Saw: list("saw"), Adds: list("adds"),
	}
	if len(r.Adds) > 0 {
		r.CallerTurn = rapid.Uint64Range(1, 1<<53).Draw(t, "caller_turn")
	}
	return r
}

func TestRecordsAreEncodedAsByReflection(t *testing.T) {
	checkEncoding(t, full())
	checkEncoding(t, sample(""))
	checkEncoding(t, vote())
	for _, s := range hostile {
		r := full()
		r.CallID, r.Replica, r.Completion = s, s, s
		checkEncoding(t, r)
	}
	rapid.Check(t, func(t *rapid.T) { checkEncoding(t, drawnRecord(t)) })
}

func FuzzEncode(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, []byte(`{"a":"`+s+`"}`), int64(7))
	}
	f.Fuzz(func(t *testing.T, text string, arguments []byte, n int64) {
		r := full()
		r.Time, r.Attempt, r.Micros, r.Arguments = time.Unix(n, n), int(n), n, arguments
		r.CallID, r.RequestID, r.Thread, r.Tool, r.Principal, r.Completion = text, text, text, text, text, text
		checkEncoding(t, r)
	})
}

// Encoding and sealing a record without content allocates nothing.
func TestAllocationsOfARecord(t *testing.T) {
	r, at := full(), logfile.Link{Hash: logfile.Genesis}
	r.Approvals, r.Rules, r.Rows = []string{"call_A"}, []string{"refunds=1"}, []string{"policy.csv:4"}
	r.Hooks, r.Spends, r.KeySHA256, r.RequestSHA256 = []string{"secrets"}, []string{"call_B"}, "k", "q"
	body, line := make([]byte, 0, 4096), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() {
		var err error
		if body, err = appendRecord(body[:0], &r, Digest); err != nil {
			t.Fatal(err)
		}
		line, at = at.Seal(line[:0], body)
	}); n > 0 {
		t.Errorf("a record takes %v allocations, want none", n)
	}
}

// The log reuses the memory of records. The allocations that are left are per batch.
func TestAllocationsOfAppend(t *testing.T) {
	m := &memory{content: make([]byte, 0, 1<<20), durable: make([]byte, 0, 1<<20)}
	l := open(t, t.TempDir(), Options{open: m.open})
	r := full()
	if n := testing.AllocsPerRun(100, func() {
		if err := l.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}); n > 4 {
		t.Errorf("an appended record alone in its batch takes %v allocations, want at most 4", n)
	}
}

// Callers that leave, and callers whose disk fails, share the pool with all others: no line
// may hold the bytes of two of them.
func TestReusedEntriesAreNotShared(t *testing.T) {
	m := &memory{}
	l := open(t, t.TempDir(), Options{open: m.open, Wait: 2 * time.Millisecond})
	syncs := 0
	var repaired atomic.Bool
	m.onSync = func() error {
		switch syncs++; {
		case repaired.Load():
		case syncs%17 == 0:
			return errors.New("the disk fails")
		case syncs%5 == 0:
			time.Sleep(3 * time.Millisecond)
		}
		return nil
	}
	var mu sync.Mutex
	accepted := map[string]bool{}
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := range 200 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*time.Millisecond)
				r := sample(fmt.Sprintf("%d-%d", w, i))
				r.Thread = strings.Repeat(r.CallID+" ", i%40)
				if l.Append(ctx, r) == nil {
					mu.Lock()
					accepted[r.CallID] = true
					mu.Unlock()
				}
				cancel()
			}
		})
	}
	wg.Wait()
	repaired.Store(true)
	for r := sample("last"); l.Append(t.Context(), r) != nil; {
		time.Sleep(time.Millisecond) // the log still repairs a sync that was late
	}
	accepted["last"] = true
	// A busy machine may take longer than Wait for the last batch too: Close says so, and
	// the writer ends by itself.
	if err := l.Close(); errors.Is(err, logfile.ErrBlocked) {
		<-l.ended
	} else if err != nil {
		t.Fatalf("Close: %v", err)
	}
	_, err := Read(func(r Record) error {
		if !accepted[r.CallID] || r.CallID != "last" && strings.ReplaceAll(r.Thread, r.CallID+" ", "") != "" {
			t.Errorf("the log holds call %s, accepted %v, with the thread %q", r.CallID, accepted[r.CallID], r.Thread)
		}
		delete(accepted, r.CallID)
		return nil
	}, m.saved(t))
	if err != nil || len(accepted) > 0 {
		t.Errorf("%d accepted records are missing: %v", len(accepted), err)
	}
}
