package search

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/internal/testkit/leaks"
	"github.com/callgate/callgate/refusal"
)

func TestMain(m *testing.M) { leaks.Main(m) }

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// patient is a bound that only a hang reaches.
const patient = 5 * time.Minute

func open(t testing.TB, dir string) *audit.Log {
	t.Helper()
	l, err := audit.Open(dir, audit.Options{Wait: patient, Record: audit.Arguments})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// write appends records to the log in dir.
func write(t testing.TB, dir string, records ...audit.Record) {
	t.Helper()
	l := open(t, dir)
	for _, r := range records {
		if err := l.Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// rotate gives the newest file another name, as an operator may.
func rotate(t testing.TB, dir, name string) {
	t.Helper()
	if err := os.Rename(filepath.Join(dir, "audit.jsonl"), filepath.Join(dir, "audit-"+name+".jsonl")); err != nil {
		t.Fatal(err)
	}
}

func refused(call string, at time.Time) audit.Record {
	return audit.Record{
		Time: at, Event: audit.Decision, Mode: audit.Call, CallID: call, Principal: "team-a", Agent: "Intern", Workspace: "acme", Project: "alpha",
		Tool: "payments.refund", Verdict: audit.Refused, Stage: refusal.Permission, Code: refusal.PermissionDenied,
	}
}

// find returns what a search finds, and the faults.
func find(t testing.TB, places []string, q Query, opts Options) ([]Found, []string) {
	t.Helper()
	logs, err := Open(places...)
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	var found []Found
	var faults []string
	for f, err := range logs.Records(t.Context(), q, opts) {
		if err != nil && !isFault(err) {
			t.Fatal(err)
		}
		if err != nil {
			faults = append(faults, err.Error())
			continue
		}
		found = append(found, f)
	}
	return found, faults
}

func callsOf(found []Found) []string {
	var ids []string
	for _, f := range found {
		ids = append(ids, f.CallID)
	}
	return ids
}

// The records of several logs are merged by time.
func TestLogsAreMergedByTime(t *testing.T) {
	root := t.TempDir()
	var dirs []string
	for i := range 3 {
		dir := filepath.Join(root, fmt.Sprint(i))
		dirs = append(dirs, dir)
		write(t, dir, refused(fmt.Sprint("a", i), noon.Add(time.Duration(i)*time.Second)), refused(fmt.Sprint("b", i), noon.Add(time.Duration(10-i)*time.Second)))
	}
	found, _ := find(t, dirs, Query{}, Options{})
	if got, want := callsOf(found), []string{"a0", "a1", "a2", "b2", "b1", "b0"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	found, _ = find(t, dirs, Query{}, Options{NewestFirst: true})
	if got, want := callsOf(found), []string{"b0", "b1", "b2", "a2", "a1", "a0"}; !slices.Equal(got, want) {
		t.Errorf("newest first: found %q, want %q", got, want)
	}
}

// A line that may match and was altered is named, and the search continues.
func TestAlteredLinesAreNamed(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		write(t, dir, refused(fmt.Sprint("call_", i), noon))
	}
	rotate(t, dir, "1")
	write(t, dir, refused("call_5", noon))
	first := filepath.Join(dir, "audit-1.jsonl")
	content, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(content), "\n")
	alter := func(changed ...string) {
		t.Helper()
		if err := os.WriteFile(first, []byte(strings.Join(changed, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		lines  []string
		query  Query
		found  []string
		faults []string
	}{
		"altered": {
			[]string{lines[0], strings.Replace(lines[1], `"Intern"`, `"Inter"`, 1), lines[2], strings.Replace(lines[3], "call_3", "call_7", 1), lines[4]},
			Query{Agent: "Intern"}, []string{"call_0", "call_2", "call_4", "call_5"}, []string{":4: the line was altered: its bytes do not have the hash that it names"},
		},
		"no record": {
			[]string{lines[0], "\n", "x\n", `{"agent":"Intern"}` + "\n", lines[4]},
			Query{}, []string{"call_0", "call_4", "call_5"}, []string{":2: the line is not a record", ":3: the line is not a record", ":4: the line is not a record"},
		},
		"since, no record": {
			[]string{"x\n", lines[0], "\n", "x\n", "\n", lines[4], "x\n"},
			Query{Since: noon, Until: noon.Add(1)}, []string{"call_0", "call_4", "call_5"},
			[]string{":1: the line is not a record", ":3: the line is not a record", ":4: the line is not a record", ":5: the line is not a record", ":7: the line is not a record"},
		},
		"incomplete": {
			[]string{lines[0], lines[1][:len(lines[1])-1]},
			Query{}, []string{"call_0", "call_5"}, []string{":2: the line is incomplete, and another file follows"},
		},
	} {
		alter(c.lines...)
		for _, piece := range []int64{1, 50, 700, 0} {
			found, faults := find(t, []string{dir}, c.query, Options{piece: piece})
			matches := len(faults) == len(c.faults)
			for i := range min(len(faults), len(c.faults)) {
				matches = matches && strings.HasPrefix(faults[i], first+c.faults[i])
			}
			if got := callsOf(found); !slices.Equal(got, c.found) || !matches {
				t.Errorf("%s, pieces of %d: found %q, want %q\nfaults %q\nwant   %q", name, piece, got, c.found, faults, c.faults)
			}
		}
	}
}

// An incomplete line at the very end is being written; too many faults end a search.
func TestEndsOfALog(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, refused("call_0", noon))
	name := filepath.Join(dir, "audit.jsonl")
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, append(content, content[:len(content)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, faults := find(t, []string{dir}, Query{}, Options{}); len(found) != 1 || len(faults) != 0 {
		t.Errorf("found %d, faults %q", len(found), faults)
	}
	if err := os.WriteFile(name, append(content, []byte(strings.Repeat("x\n", 3*maxFaults))...), 0o600); err != nil {
		t.Fatal(err)
	}
	logs, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	faults, ended := 0, error(nil)
	for _, err := range logs.Records(t.Context(), Query{}, Options{}) {
		if isFault(err) {
			faults++
		} else if err != nil {
			ended = err
		}
	}
	if faults != maxFaults || ended == nil {
		t.Errorf("%d faults, then %v", faults, ended)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no audit log") {
		t.Errorf("a folder without a log: %v", err)
	}
	if _, err := Open(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// A record that was written an hour late is found by its time.
func TestRecordsOutOfOrder(t *testing.T) {
	dir := t.TempDir()
	for i := range 200 {
		at := noon.Add(time.Duration(i) * time.Minute)
		if i%7 == 3 {
			at = at.Add(-55 * time.Minute)
		}
		write(t, dir, refused(fmt.Sprint(i), at))
		if i%50 == 49 {
			rotate(t, dir, fmt.Sprintf("%03d", i))
		}
	}
	write(t, dir)
	for since := range 300 {
		q := Query{Since: noon.Add(time.Duration(since-60) * time.Minute)}
		q.Until = q.Since.Add(20 * time.Minute)
		want := 0
		for i := range 200 {
			at := noon.Add(time.Duration(i) * time.Minute)
			if i%7 == 3 {
				at = at.Add(-55 * time.Minute)
			}
			if !at.Before(q.Since) && at.Before(q.Until) {
				want++
			}
		}
		if found, _ := find(t, []string{dir}, q, Options{piece: 2000}); len(found) != want {
			t.Errorf("since %v: found %d, want %d", q.Since, len(found), want)
		}
	}
}

// A log that is written and moved aside meanwhile is searched up to where it was: every record
// that was there once, and none in part.
func TestSearchOfALogThatIsWritten(t *testing.T) {
	t.Run("plain", func(t *testing.T) {
		searchWritten(t, audit.Options{Wait: patient, RotateBytes: 3000})
	})
	t.Run("zeros ahead", func(t *testing.T) {
		searchWritten(t, audit.Options{Wait: patient, RotateBytes: 30_000, Preallocate: true})
	})
}

func searchWritten(t *testing.T, opts audit.Options) {
	dir := t.TempDir()
	l, err := audit.Open(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	written := 0
	// Some files for each search: a writer without a bound outruns searches that take longer the more
	// it writes.
	searches, each := 100, 30
	if testing.Short() {
		searches = 20
	}
	more := make(chan struct{}, searches*each)
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			if _, ok := <-more; !ok {
				return
			}
			if err := l.Append(t.Context(), refused(fmt.Sprint(i), noon)); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			written++
			mu.Unlock()
		}
	})
	wait := sync.OnceFunc(func() {
		close(more)
		writer.Wait()
	})
	defer wait()
	for i := range searches {
		mu.Lock()
		least := written
		mu.Unlock()
		for range each {
			more <- struct{}{}
		}
		found, faults := find(t, []string{dir}, Query{Agent: "Intern"}, Options{NewestFirst: i%2 == 0, piece: 1500})
		if len(faults) > 0 || len(found) < least {
			t.Fatalf("found %d of %d; faults %q", len(found), least, faults)
		}
		if i%2 == 0 {
			slices.Reverse(found)
		}
		for n, f := range found {
			if f.Seq != uint64(n)+1 {
				t.Fatalf("record %d has seq %d", n, f.Seq)
			}
		}
	}
	wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// A search that is left early leaves nothing running, and nothing open.
func TestSearchIsLeft(t *testing.T) {
	dir := t.TempDir()
	for i := range 20 {
		write(t, dir, refused(fmt.Sprint(i), noon))
	}
	logs, err := Open(dir, filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for range logs.Records(t.Context(), Query{}, Options{piece: 10}) {
		break
	}
	if err := logs.Close(); err != nil {
		t.Error(err)
	}
}

func TestParseTime(t *testing.T) {
	now := noon
	for text, want := range map[string]time.Time{
		"1h": noon.Add(-time.Hour), "2d": noon.Add(-48 * time.Hour), "1h30m": noon.Add(-90 * time.Minute), "0s": noon,
		"2026-11-19T10:00:00Z": time.Date(2026, 11, 19, 10, 0, 0, 0, time.UTC), "2026-11-19T10:00:00.5+01:00": time.Date(2026, 11, 19, 9, 0, 0, 5e8, time.UTC),
	} {
		if got, err := ParseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-1h", "-2d", "1.5d", "2026-11-19", "yesterday", "1w", "99999999d", "5"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q is taken as %v", text, got)
		}
	}
}

// TestStoryOfAThread: what conditions read and what a call added stand in its story.
func TestStoryOfAThread(t *testing.T) {
	var b strings.Builder
	WriteStory(&b, "call_a", []Found{
		{Record: audit.Record{Event: audit.Decision, Verdict: audit.ToolCall, CallID: "call_a", Saw: []string{"thread.calls('pay')=3", "thread.labels="}, Adds: []string{"label:untrusted"}}},
		{Record: audit.Record{Event: audit.Ending, Outcome: audit.Failed, CallID: "call_a", Undo: []string{"label:\x1b[2J"}}},
	}, nil, nil)
	for _, want := range []string{`saw +thread\.calls\('pay'\)=3\n +thread\.labels=\n`, `adds +label:untrusted\n`, `undone +label:\\u001b\[2J\n`} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("expected %s in\n%s", want, b.String())
		}
	}
}
