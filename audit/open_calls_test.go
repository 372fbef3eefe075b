package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/callgate/callgate/audit/internal/logfile"
)

func appendAll(t testing.TB, l *Log, records ...Record) {
	t.Helper()
	for _, r := range records {
		if err := l.Append(context.Background(), r); err != nil {
			t.Fatal(err)
		}
	}
}

func ended(call string) Record {
	r := sample(call)
	r.Event, r.Verdict, r.Outcome = Ending, "", Result
	return r
}

func openIDs(t *testing.T, dir string) []string {
	t.Helper()
	records, err := readOpenCalls(dir)
	if err != nil {
		t.Fatal(err)
	}
	return idsOf(records)
}

func idsOf(records []Record) (ids []string) {
	for _, r := range records {
		ids = append(ids, r.CallID)
	}
	return ids
}

// readOpenCalls reads the whole log, as OpenCalls does without a snapshot.
func readOpenCalls(dir string) ([]Record, error) {
	var c openCalls
	if err := c.readAll(dir, func(int64) {}); err != nil {
		return nil, err
	}
	return c.decisions(dir, false)
}

func readEnded(dir string, ids ...string) (map[string]Outcome, error) {
	wanted, ended := map[string]bool{}, map[string]Outcome{}
	for _, id := range ids {
		wanted[id] = true
	}
	return ended, addEnded(dir, 1, wanted, ended)
}

func TestOpenCalls(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{RotateBytes: 2000}) // over several files
	enforced, turned, refused, text := sample("enforced"), sample("turned"), sample("refused"), sample("text")
	enforced.Mode, turned.Mode, turned.Verdict, refused.Verdict, text.Verdict = Enforce, Enforce, Refused, Refused, Text
	handed, failed := ended("handed"), ended("d")
	handed.Mode, handed.Outcome, failed.Outcome, failed.Tool = Enforce, HandedOver, Failed, `,"outcome":"unknown"`
	appendAll(t, l, sample("a"), sample("b"), enforced, turned, refused, text, ended("a"), sample("c"), sample("d"), failed, handed)
	mustClose(t, l)
	if files, err := Files(dir); err != nil || len(files) < 2 {
		t.Fatalf("%v, %v: expected several files", files, err)
	}
	if got := openIDs(t, dir); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("open: %v, expected b and c", got)
	}
	got, err := readEnded(dir, "a", "b", "d", "enforced", "handed", "turned", "refused", "never")
	if want := map[string]Outcome{"a": Result, "d": Failed, "enforced": HandedOver, "handed": HandedOver}; err != nil || !maps.Equal(got, want) {
		t.Errorf("ended: %v, %v, expected %v", got, err, want)
	}
}

// A log that cannot be read to its end is an error: what was read of it does not say which
// calls have no outcome.
func TestEndedCallsOfAnUnreadableLog(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	appendAll(t, l, sample("a"), ended("a"))
	mustClose(t, l)
	files, err := Files(dir)
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v: expected one file", files, err)
	}
	if err := os.Truncate(files[0], 2*logfile.MaxLine); err != nil { // a line longer than any record
		t.Fatal(err)
	}
	if got, err := readEnded(dir, "a", "b"); !errors.Is(err, logfile.ErrLong) {
		t.Errorf("ended: %v, %v, expected %v", got, err, logfile.ErrLong)
	}
}

// Arguments of a caller are content, whatever they look like: it must neither end a call
// nor begin one, nor change a verdict.
func TestArgumentsAreNotRecords(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Record: Arguments})
	outcome := json.RawMessage(`{"x":1,"event":"outcome","mode":"call","call_id":"running"}`)
	decision := json.RawMessage(`{"x":1,"event":"decision","mode":"call","call_id":"invented","verdict":"tool_call","y":1}`)
	ends, begins, turns := sample("e1"), sample("e2"), sample("refused")
	ends.Mode, ends.Arguments = Enforce, outcome
	begins.Mode, begins.Arguments = Enforce, decision
	turns.Verdict, turns.Arguments = Refused, decision
	appendAll(t, l, sample("running"), ends, begins, turns)
	mustClose(t, l)
	if got := openIDs(t, dir); !slices.Equal(got, []string{"running"}) {
		t.Errorf("open: %v, expected running alone", got)
	}
	if got, err := readEnded(dir, "running", "invented"); err != nil || len(got) != 0 {
		t.Errorf("ended: %v, %v, expected none", got, err)
	}
}

// A decision that was damaged is an error while its call is open, and only then.
func TestOpenCallsOfADamagedLog(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	mustAppend(t, l, "a")
	mustClose(t, l)
	name := filepath.Join(dir, fileName)
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	line := whole[:len(whole)-1]
	damaged := fmt.Sprintf("%s,\n", line)
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// Files wants a record at the beginning.
	write(string(whole) + damaged)
	if got, err := readOpenCalls(dir); err == nil {
		t.Errorf("the damaged decision of an open call was accepted: %+v", got)
	}
	end, err := encode(ended("a"), Digest)
	if err != nil {
		t.Fatal(err)
	}
	write(string(whole) + damaged + `{"seq":3,` + string(end) + "}\n")
	if got := openIDs(t, dir); len(got) != 0 {
		t.Errorf("open: %v, expected none: the call has ended", got)
	}
	write(string(whole) + string(line[:len(line)/2]))
	if got := openIDs(t, dir); !slices.Equal(got, []string{"a"}) {
		t.Errorf("with an incomplete last line, open: %v, expected a", got)
	}
}
