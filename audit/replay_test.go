package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/audit/internal/logfile"
	"github.com/callgate/callgate/refusal"
)

// keyed is the decision of an executed call that holds a key.
func keyed(call string) Record {
	r := sample(call)
	r.KeySHA256, r.RequestSHA256 = "key of "+call, "q"
	return r
}

func changed(r Record, change func(*Record)) Record {
	change(&r)
	return r
}

func event(call string, code refusal.Code) Record {
	return Record{Time: noon, Event: Approval, Mode: Call, CallID: call, Code: code, Approvals: []string{"digest"}}
}

// replayed opens a log that has been read, with some records.
func replayed(t testing.TB, dir string, opts Options, records ...Record) *Log {
	t.Helper()
	l := open(t, dir, opts)
	if _, err := l.OpenCalls(); err != nil {
		t.Fatal(err)
	}
	appendAll(t, l, records...)
	return l
}

// passes returns the records that Replay passes, as seq, event and call.
func passes(t testing.TB, l *Log, from uint64, since time.Time) (list []string, reach Reach) {
	t.Helper()
	reach, err := l.Replay(context.Background(), from, since, func(r *Record) error {
		list = append(list, fmt.Sprint(r.Seq, " ", r.Event, " ", r.CallID))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list, reach
}

func TestReplay(t *testing.T) {
	takesUp := changed(sample("takes up"), func(r *Record) { r.Spends = []string{"call_B"} })
	handed := changed(sample("handed"), func(r *Record) { r.Mode, r.Approvals = Enforce, []string{"call_A"} })
	records := []Record{
		1: keyed("key"),
		2: sample("none"),
		3: changed(sample("uses"), func(r *Record) { r.Approvals, r.Spends = []string{"grant_1"}, []string{"call_A"} }),
		4: changed(sample("refused"), func(r *Record) { r.Verdict, r.Code = Refused, refusal.RateLimited }),
		5: changed(sample("quotes"), func(r *Record) {
			r.Arguments = []byte(`{"a":{"key_sha256":"x","event":"outcome","mode":"call","call_id":"key"},"approval":["x"]}`)
		}),
		6: changed(sample("passed on"), func(r *Record) { r.Mode = Enforce }), 7: handed,
		8: changed(ended("passed on"), func(r *Record) { r.Mode, r.Outcome = Enforce, HandedOver }),
		9: ended("none"), 10: ended("uses"), 11: ended("quotes"),
		12: changed(ended("handed"), func(r *Record) { r.Mode, r.Outcome = Enforce, HandedOver }),
		13: event("a", Requested), 14: event("a", Yes), 15: event("a", No), 16: event("b", Withdrawn), 17: event("c", Revoked), 18: event("d", Lapsed), 19: event("e", Granted),
		20: ended("key"), 21: keyed("open"), 22: sample("not run"),
		24: takesUp,
		23: changed(ended("not run"), func(r *Record) { r.Verdict, r.Outcome = Refused, Failed }),
	}
	all := []string{
		"1 decision key", "3 decision uses", "7 decision handed", "10 outcome uses", "12 outcome handed",
		"15 approval a", "16 approval b", "17 approval c", "18 approval d", "20 outcome key", "21 decision open", "24 decision takes up",
	}
	for _, rotate := range []int64{0, 1, 2000} {
		l := replayed(t, t.TempDir(), Options{RotateBytes: rotate, Record: Arguments}, records[1:]...)
		for from := range uint64(len(records)) + 1 {
			var want []string
			for _, line := range all {
				var seq uint64
				if _, err := fmt.Sscan(line, &seq); err != nil {
					t.Fatal(err)
				}
				if seq >= from {
					want = append(want, line)
				}
			}
			// An old state of the store may have any call.
			for seq, call := range map[uint64]string{9: "none", 11: "quotes", 23: "not run"} {
				if from > 0 && seq >= from {
					want = append(want, fmt.Sprint(seq, " outcome ", call))
				}
			}
			if from > 7 { // who is handed over does not end
				want = slices.DeleteFunc(want, func(line string) bool { return strings.HasSuffix(line, "outcome handed") })
			}
			got, reach := passes(t, l, from, noon)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("rotated at %d, from %d: %q, want %q", rotate, from, got, want)
			}
			wantReach := Reach{First: max(from, 1), Time: noon}
			if from == uint64(len(records)) {
				wantReach = Reach{}
			}
			if reach != wantReach {
				t.Errorf("rotated at %d, from %d: %+v, want %+v", rotate, from, reach, wantReach)
			}
		}
		if _, err := l.Replay(t.Context(), uint64(len(records))+1, noon, nil); err == nil || !strings.Contains(err.Error(), "ends at seq 24 and was to be read from seq 26 on") {
			t.Errorf("from behind the end: %v", err)
		}
		if seq, _ := l.Last(); seq != 24 {
			t.Errorf("the last record is %d", seq)
		}
	}
}

// With a time the log is read from there. Calls that are open are older, and belong to it.
func TestReplaySince(t *testing.T) {
	at := func(r Record, hours int) Record {
		r.Time = noon.Add(time.Duration(hours) * time.Hour)
		return r
	}
	l := replayed(t, t.TempDir(), Options{RotateBytes: 1},
		at(keyed("waits"), 0), at(sample("waits without a key"), 0), at(keyed("over"), 1), at(ended("over"), 2), at(keyed("late"), 3), at(event("a", No), 3),
		at(keyed("new"), 26), at(ended("late"), 27))
	got, reach := passes(t, l, 0, noon.Add(25*time.Hour))
	if want := []string{"1 decision waits", "7 decision new", "8 outcome late"}; !slices.Equal(got, want) || reach != (Reach{First: 6, Time: noon.Add(3 * time.Hour)}) {
		t.Errorf("%q, %+v; want %q", got, reach, want)
	}
	if got, reach = passes(t, l, 0, noon.Add(-time.Hour)); len(got) != 7 || reach != (Reach{First: 1, Time: noon}) {
		t.Errorf("of all: %q, %+v", got, reach)
	}
	// The file of a call that is open is gone, and no other that is asked for.
	if err := os.Remove(filepath.Join(filepath.Dir(l.path), fmt.Sprintf(rotatedName, 1))); err != nil {
		t.Fatal(err)
	}
	if got, reach = passes(t, l, 0, noon.Add(25*time.Hour)); len(got) != 2 || reach.Missing != 1 {
		t.Errorf("without the first file: %q, %+v", got, reach)
	}
}

// What is not there is told, and what is there is passed.
func TestReplayWithoutAFile(t *testing.T) {
	var records []Record
	for i := range 6 {
		records = append(records, changed(event(fmt.Sprint("call_", i+1), No), func(r *Record) { r.Time = noon.Add(time.Duration(i) * time.Hour) }))
	}
	rotated := func(seq int) string { return fmt.Sprintf(rotatedName, seq) }
	remove := func(seqs ...int) func(*testing.T, string) {
		return func(t *testing.T, dir string) {
			for _, seq := range seqs {
				if err := os.Remove(filepath.Join(dir, rotated(seq))); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		spoil   func(*testing.T, string)
		from    uint64
		since   time.Duration
		passed  int
		first   uint64
		missing uint64
	}{
		"nothing":                              {remove(), 2, 0, 5, 2, 0},
		"the oldest":                           {remove(1, 2), 1, 0, 4, 3, 2},
		"the oldest, by time":                  {remove(1, 2), 0, 0, 4, 3, 2},
		"older ones":                           {remove(1, 2), 3, 0, 4, 3, 0},
		"older ones, by time":                  {remove(1, 2), 0, 2 * time.Hour, 4, 3, 0},
		"older ones, by a time between":        {remove(1, 2), 0, 90 * time.Minute, 4, 3, 2},
		"one between":                          {remove(4), 3, 0, 3, 3, 1},
		"one between, by time":                 {remove(4), 0, 2 * time.Hour, 3, 2, 1},
		"some between":                         {remove(2, 4, 5), 1, 0, 3, 1, 3},
		"all that are asked for, but the last": {remove(1, 2, 3, 4, 5), 4, 0, 1, 6, 2},
		"a line": {func(t *testing.T, dir string) {
			name := filepath.Join(dir, rotated(3))
			put(t, name, slices.Concat(contents(t, name), []byte("#\n"), contents(t, filepath.Join(dir, rotated(5)))))
			remove(4, 5)(t, dir)
		}, 1, 0, 5, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			l := replayed(t, dir, Options{RotateBytes: 1}, records...)
			c.spoil(t, dir)
			var got int
			reach, err := l.Replay(t.Context(), c.from, noon.Add(c.since), func(*Record) error { got++; return nil })
			if err != nil || got != c.passed || reach.First != c.first || reach.Missing != c.missing || !reach.Time.Equal(noon.Add(time.Duration(c.first-1)*time.Hour)) {
				t.Errorf("passed %d, %+v, %v; want %d from %d on, and %d missing", got, reach, err, c.passed, c.first, c.missing)
			}
		})
	}
}

// The log goes on, and is rotated, while it is read: each record is passed once, and none that was
// not on disk when it began.
func TestReplayBesideTheWriter(t *testing.T) {
	dir := t.TempDir()
	var records []Record
	for _, id := range ids(40) {
		records = append(records, keyed(id))
	}
	l := replayed(t, dir, Options{RotateBytes: 3000}, records...)
	for _, from := range []uint64{0, 1, 7} {
		last, _ := l.Last()
		next := max(from, 1)
		reach, err := l.Replay(t.Context(), from, noon, func(r *Record) error {
			if r.Seq != next {
				t.Fatalf("from %d: seq %d, want %d", from, r.Seq, next)
			}
			next++
			appendAll(t, l, keyed("later"), ended("later"))
			return nil
		})
		if err != nil || next != last+1 || reach.Missing > 0 {
			t.Errorf("from %d: up to %d of %d, %+v, %v", from, next, last, reach, err)
		}
	}
	// What is in the file and not confirmed is not passed.
	last, _ := l.Last()
	body, err := encode(keyed("not durable"), Digest)
	if err != nil {
		t.Fatal(err)
	}
	line, _ := logfile.Link{Seq: last, Hash: l.durable.Hash}.Seal(nil, body)
	f, err := os.OpenFile(logFile(dir), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(line)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if got, reach := passes(t, l, last+1, noon); got != nil || reach != (Reach{}) {
		t.Errorf("passed %q, %+v", got, reach)
	}
}

func TestReplayEnds(t *testing.T) {
	l := open(t, t.TempDir(), Options{})
	if _, err := l.Replay(t.Context(), 0, noon, nil); err == nil {
		t.Error("a log was replayed whose open calls were not read")
	}
	l = replayed(t, t.TempDir(), Options{})
	if got, reach := passes(t, l, 0, noon); got != nil || reach != (Reach{}) {
		t.Errorf("of an empty log %q, %+v", got, reach)
	}
	appendAll(t, l, keyed("a"), keyed("b"))
	full := errors.New("the store is full")
	passed := 0
	if _, err := l.Replay(t.Context(), 1, noon, func(*Record) error { passed++; return full }); err != full || passed != 1 {
		t.Errorf("%v after %d records", err, passed)
	}
	for range 1024 {
		appendAll(t, l, sample("c"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Replay(ctx, 1, noon, func(*Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// A line that is read as the log writes it is what Decode reads, but for the content.
func TestDecodeOwn(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, r Record, always bool) {
		body, err := encode(r, Completion)
		if err != nil {
			return
		}
		line, _ := logfile.Link{Seq: 41, Hash: logfile.Genesis}.Seal(nil, body)
		line = line[:len(line)-1]
		want, err := Decode(line)
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		want.Arguments, want.Completion = nil, ""
		got, ok := decodeOwn(line)
		if ok && !reflect.DeepEqual(got, want) || always && !ok {
			t.Fatalf("read %v: %+v\nwant %+v\nof %s", ok, got, want, line)
		}
		for i := range line {
			if r, ok := decodeOwn(line[:i]); ok {
				t.Fatalf("the beginning of a line was read as %+v: %s", r, line[:i])
			}
		}
	}
	hooked := changed(vote(), func(r *Record) {
		r.Reason, r.Approvals, r.Rules, r.Hooks = "said", []string{"a", "b"}, []string{"refunds=1"}, []string{"x"}
		r.Adds, r.Undo = nil, []string{"at:2026-11-20T12:00:00Z", "thread.calls('pay')=1"}
	})
	content := changed(keyed("a"), func(r *Record) {
		r.Arguments, r.Completion = []byte(`{"a":[{"b":"},\\\"]"}],"c":1}`), `{"tool":"é, \"x\""}`
	})
	for _, r := range []Record{full(), sample("a"), keyed("a"), ended("a"), hooked, content, changed(content, func(r *Record) { r.Arguments = []byte(`null`) })} {
		check(t, r, true)
	}
	rapid.Check(t, func(t *rapid.T) { check(t, drawnRecord(t), false) })
}

// TestReplayTurns: of threads a start reads what names one, behind the record that it knows.
func TestReplayTurns(t *testing.T) {
	dir := t.TempDir()
	adds := changed(sample("adds"), func(r *Record) { r.Ledger, r.Turn, r.Adds = "0f", 1, []string{"label:a"} })
	saw := changed(sample("saw"), func(r *Record) { r.Ledger, r.Saw = "0f", []string{"thread.labels=a"} })
	quotes := changed(sample("quotes"), func(r *Record) { r.Arguments = []byte(`{"ledger":"0f","caller_turn":7}`) })
	caller := changed(ended("adds"), func(r *Record) { r.CallerTurn, r.Undo = 2, []string{"caller.calls('pay','1h')=1"} })
	l := open(t, dir, Options{Record: Arguments, RotateBytes: 1500})
	appendAll(t, l, sample("none"), adds, quotes, saw, caller, sample("last"))
	read := func(seq uint64, hash string) (list []string, reach Reach, err error) {
		reach, err = l.ReplayTurns(context.Background(), seq, hash, func(r *Record) error {
			list = append(list, fmt.Sprint(r.Seq, " ", r.CallID, " ", len(r.Adds)+len(r.Undo)+len(r.Saw)))
			return nil
		})
		return list, reach, err
	}
	all := []string{"2 adds 1", "4 saw 1", "5 adds 1"}
	list, reach, err := read(0, "")
	if err != nil || !slices.Equal(list, all) || reach.First != 1 || reach.Missing != 0 {
		t.Errorf("%q, %+v, %v", list, reach, err)
	}
	hashes := map[uint64]string{}
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(func(r Record) error { hashes[r.Seq] = r.Hash; return nil }, files...); err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= 6; seq++ {
		want := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s[:1] <= fmt.Sprint(seq) })
		if list, reach, err := read(seq, hashes[seq]); err != nil || !slices.Equal(list, want) || reach.Missing != 0 {
			t.Errorf("behind %d: %q, %+v, %v", seq, list, reach, err)
		}
		if list, reach, err := read(seq, ""); err != nil || !slices.Equal(list, want) || reach.Missing != 0 {
			t.Errorf("behind %d, whatever its hash is: %q, %+v, %v", seq, list, reach, err)
		}
		if list, _, err := read(seq, strings.Repeat("0", 64)); !errors.Is(err, ErrOtherLog) || list != nil {
			t.Errorf("behind %d of another log: %q, %v", seq, list, err)
		}
	}
	if _, _, err := read(7, hashes[6]); !errors.Is(err, ErrOtherLog) {
		t.Errorf("behind a record that is not there: %v", err)
	}
	if len(files) < 2 {
		t.Fatal("the log was not rotated")
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if _, reach, err := read(0, ""); err != nil || reach.Missing == 0 || reach.Time.IsZero() {
		t.Errorf("without its first file: %+v, %v", reach, err)
	}
	mustClose(t, l)
}

// The bytes of a log that are read in a second: where each call holds a key, one of eight, and none.
func BenchmarkReplay(b *testing.B) {
	for _, every := range []int{1, 8, 0} {
		b.Run(fmt.Sprint("keys=", every), func(b *testing.B) {
			dir := b.TempDir()
			l := replayed(b, dir, Options{})
			var content []byte
			at := logfile.Link{Hash: logfile.Genesis}
			for i := range 50_000 {
				r := sample(fmt.Sprintf("call_%022d", i))
				if every > 0 && i%every == 0 {
					r.KeySHA256, r.RequestSHA256 = strings.Repeat("a", 64), strings.Repeat("b", 64)
				}
				r.RequestID, r.TraceID, r.InputSHA256, r.ArgumentsSHA256, r.ConfigDigest = strings.Repeat("r", 26), strings.Repeat("t", 32), strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
				for _, r := range []Record{r, changed(r, func(r *Record) { r.Event, r.Outcome = Ending, Result })} {
					body, err := encode(r, Digest)
					if err != nil {
						b.Fatal(err)
					}
					content, at = at.Seal(content, body)
				}
			}
			put(b, logFile(dir), content)
			l.durable = at
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				if reach, err := l.Replay(context.Background(), 1, noon, func(*Record) error { return nil }); err != nil || reach.Missing > 0 {
					b.Fatal(reach, err)
				}
			}
			b.ReportMetric(float64(2*50_000*b.N)/b.Elapsed().Seconds(), "lines/s")
		})
	}
}
