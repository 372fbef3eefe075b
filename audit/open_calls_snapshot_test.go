package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// reopened opens the log in dir, and returns the ids of its open calls and why the whole
// log was read; nil if it was not.
func reopened(t testing.TB, dir string, opts Options) (*Log, []string, error) {
	t.Helper()
	var cause error
	opts.OnReadAll = func(reason error, _, _ int64) { cause = reason }
	l := open(t, dir, opts)
	records, err := l.OpenCalls()
	if err != nil {
		t.Fatal(err)
	}
	return l, idsOf(records), cause
}

// makeSnapshot writes a log of several files with a snapshot in the middle of the last,
// and five records behind it. Its open calls are o-0 to o-4, and p.
func makeSnapshot(t testing.TB, dir string, opts Options) {
	t.Helper()
	opts.RotateBytes, opts.snapshotEvery = 4000, 1<<62
	l, _, _ := reopened(t, dir, opts)
	for i := range 30 {
		id := fmt.Sprintf("e-%d", i)
		appendAll(t, l, sample(id), ended(id))
		if i%7 == 0 {
			mustAppend(t, l, fmt.Sprintf("o-%d", i/7))
		}
	}
	l.opts.snapshotEvery = 0
	mustAppend(t, l, "z")
	l.saves.Wait()
	l.opts.snapshotEvery = 1 << 62
	appendAll(t, l, ended("z"), sample("p"), sample("q"), ended("q"), ended("unknown"))
	mustClose(t, l)
	if files, err := Files(dir); err != nil || len(files) < 3 {
		t.Fatalf("%v, %v: expected several files", files, err)
	}
}

var openInSnapshot = []string{"o-0", "o-1", "o-2", "o-3", "o-4", "p"}

func TestAStartReadsOnFromTheSnapshot(t *testing.T) {
	for name, opts := range map[string]Options{"unsigned": {}, "signed": {SignKey: testKey(1)}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			makeSnapshot(t, dir, opts)
			l, got, cause := reopened(t, dir, opts)
			if cause != nil || l.saved == 0 || !slices.Equal(got, openInSnapshot) {
				t.Errorf("open: %v, want %v; snapshot of seq %d; everything was read because: %v", got, openInSnapshot, l.saved, cause)
			}
			// z has ended behind the snapshot, e-1 before it.
			for ids, want := range map[string]int{"z": 1, "o-1 p": 0, "z e-1 never": 2} {
				if ended, err := l.EndedCalls(strings.Fields(ids)); err != nil || len(ended) != want {
					t.Errorf("of %s ended %v, %v", ids, ended, err)
				}
			}
			mustAppend(t, l, "next")
			if _, err := l.OpenCalls(); err == nil {
				t.Error("the open calls were read beside the writer")
			}
		})
	}
}

// Whatever is wrong with a snapshot, or with the log that it is of, the whole log is read,
// the open calls are found, and the reason is told.
func TestASnapshotThatDoesNotFit(t *testing.T) {
	last := func(dir string) []byte { return contents(t, logFile(dir)) }
	edit := func(name string, change func([]byte) []byte) func(string) {
		return func(dir string) {
			path := filepath.Join(dir, name)
			put(t, path, change(contents(t, path)))
		}
	}
	swap := func(old, replacement string) func([]byte) []byte {
		return func(b []byte) []byte { return bytes.Replace(b, []byte(old), []byte(replacement), 1) }
	}
	for name, test := range map[string]struct {
		spoil  func(dir string)
		signed bool
		want   string
		open   []string
	}{
		"missing":           {func(dir string) { os.Remove(filepath.Join(dir, snapshotName)) }, false, "no snapshot", openInSnapshot},
		"torn":              {edit(snapshotName, func(b []byte) []byte { return b[:len(b)/2] }), false, "damaged", openInSnapshot},
		"empty":             {edit(snapshotName, func([]byte) []byte { return nil }), false, "damaged", openInSnapshot},
		"a call taken out":  {edit(snapshotName, swap(`"o-1"`, `"x-1"`)), false, "damaged", openInSnapshot},
		"not signed":        {edit(snapshotName, swap(`"signature":"`, `"signature":"AA`)), true, "damaged", openInSnapshot},
		"signed by another": {func(dir string) { resign(t, dir, 2) }, true, "not signed", openInSnapshot},
		"of another log": {func(dir string) {
			other := t.TempDir()
			makeOther(t, other)
			put(t, filepath.Join(dir, snapshotName), contents(t, filepath.Join(other, snapshotName)))
		}, false, "", openInSnapshot},
		"a decision in file 0": {func(dir string) { forge(t, dir, place{}) }, false, "no file begins with seq 0", openInSnapshot},
		"a decision far off":   {func(dir string) { forge(t, dir, place{File: 1, Offset: 1 << 62}) }, false, "EOF", openInSnapshot},
		"a decision before it": {func(dir string) { forge(t, dir, place{File: 1, Offset: -1}) }, false, "negative", openInSnapshot},
		"a pipe's name":        {func(dir string) { p := filepath.Join(dir, snapshotName); os.Remove(p); os.Symlink("/etc/passwd", p) }, false, "", openInSnapshot},
		"log cut before it":    {func(dir string) { put(t, logFile(dir), firstLines(last(dir), 1)) }, false, "records are missing", nil},
		"log cut behind it":    {func(dir string) { put(t, logFile(dir), firstLines(last(dir), bytes.Count(last(dir), []byte("\n"))-4)) }, false, "-", []string{"o-0", "o-1", "o-2", "o-3", "o-4"}},
		"changed behind it":    {edit(fileName, swap(`"call_id":"p"`, `"call_id":"r"`)), false, "altered", []string{"o-0", "o-1", "o-2", "o-3", "o-4", "r"}},
		"an open one changed":  {func(dir string) { changeEverywhere(t, dir, `"call_id":"o-1"`, `"call_id":"x-1"`) }, false, "", []string{"o-0", "x-1", "o-2", "o-3", "o-4", "p"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, opts := t.TempDir(), Options{}
			if test.signed {
				opts.SignKey = testKey(1)
			}
			makeSnapshot(t, dir, opts)
			test.spoil(dir)
			var cause error
			opts.OnReadAll = func(reason error, _, _ int64) { cause = reason }
			l := &Log{path: logFile(dir), opts: opts, accepting: true}
			// The end is taken as it is: Open refuses some of these logs already.
			whole := &openCalls{}
			if err := whole.readAll(dir, func(int64) {}); err != nil {
				t.Fatal(err)
			}
			l.opened.Link = lastLink(logFile(dir))
			records, err := l.OpenCalls()
			if err != nil {
				t.Fatal(err)
			}
			if got := idsOf(records); test.open != nil && !slices.Equal(got, test.open) {
				t.Errorf("open: %v, want %v", got, test.open)
			}
			switch {
			case test.want == "-":
				if cause != nil {
					t.Errorf("everything was read because: %v", cause)
				}
			case test.want == "no snapshot": // a short log is read without a report
				if cause != nil || l.saved != 0 {
					t.Errorf("reported: %v", cause)
				}
			case cause == nil || !strings.Contains(cause.Error(), test.want) || l.saved != 0:
				t.Errorf("everything was read because: %v, want %q", cause, test.want)
			}
		})
	}
}

func firstLines(b []byte, n int) []byte {
	return bytes.Join(bytes.SplitAfter(b, []byte("\n"))[:n], nil)
}

// resign signs the snapshot in dir with another key.
func resign(t *testing.T, dir string, key byte) {
	c, err := readSnapshot(dir, testKey(1))
	if err == nil {
		err = c.save(dir, testKey(key))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// forge moves a decision in the snapshot in dir.
func forge(t *testing.T, dir string, to place) {
	c, err := readSnapshot(dir, nil)
	if err == nil {
		c.Open["o-1"] = to
		err = c.save(dir, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// makeOther makes a log whose snapshot is of as many records, all other ones.
func makeOther(t *testing.T, dir string) {
	makeSnapshot(t, dir, Options{Now: func() time.Time { return noon }})
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := readSnapshot(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Hash[0] ^= 1
	if err := c.save(dir, nil); err != nil || len(files) == 0 {
		t.Fatal(err)
	}
}

func changeEverywhere(t *testing.T, dir, old, replacement string) {
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		put(t, name, bytes.ReplaceAll(contents(t, name), []byte(old), []byte(replacement)))
	}
}

// A record that is changed before the snapshot is not read at the start. Verify finds it.
func TestAChangeBeforeTheSnapshotIsVerifysToFind(t *testing.T) {
	dir := t.TempDir()
	makeSnapshot(t, dir, Options{})
	changeEverywhere(t, dir, `"call_id":"e-1"`, `"call_id":"x-1"`)
	l, got, cause := reopened(t, dir, Options{})
	if cause != nil || !slices.Equal(got, openInSnapshot) {
		t.Errorf("open: %v; everything was read because: %v", got, cause)
	}
	mustClose(t, l)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	var broken *CorruptionError
	if _, err := Verify(files...); !errors.As(err, &broken) {
		t.Errorf("Verify: %v, want the changed record", err)
	}
}

// Over any history of calls, restarts, rotations and snapshots, a start finds the calls
// that a reading of the whole log finds.
func TestSnapshotsOfAnyHistory(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		for range rapid.IntRange(1, 5).Draw(rt, "starts") {
			opts := Options{RotateBytes: rapid.Int64Range(0, 5000).Draw(rt, "rotate"), snapshotEvery: rapid.Uint64Range(1, 30).Draw(rt, "every")}
			l, got, cause := reopened(t, dir, opts)
			want := openIDs(t, dir)
			if cause != nil || !slices.Equal(got, want) {
				rt.Fatalf("open: %v, want %v; everything was read because: %v", got, want, cause)
			}
			for range rapid.IntRange(0, 40).Draw(rt, "records") {
				r := sample(fmt.Sprint(rapid.IntRange(0, 12).Draw(rt, "call")))
				if rapid.Bool().Draw(rt, "ends") {
					r = ended(r.CallID)
				}
				if rapid.IntRange(0, 9).Draw(rt, "enforced") == 0 {
					r.Mode = Enforce
				}
				if err := l.Append(context.Background(), r); err != nil {
					rt.Fatal(err)
				}
			}
			mustClose(t, l)
		}
	})
}

// A snapshot that cannot be written is reported, and refuses no record.
func TestASnapshotThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	var reported []error
	l, _, _ := reopened(t, dir, Options{snapshotEvery: 1, OnDegraded: func(c Component, err error) {
		if c == Snapshots {
			reported = append(reported, err)
		}
	}})
	blocked := filepath.Join(dir, snapshotName+".new")
	if err := os.Mkdir(blocked, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids(3) {
		appendAll(t, l, ended(id))
		l.saves.Wait()
	}
	if err := os.Remove(blocked); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		appendAll(t, l, ended("more"))
		l.saves.Wait()
	}
	mustClose(t, l)
	if len(reported) != 2 || reported[0] == nil || reported[1] != nil {
		t.Errorf("reported %v, want a failure and its end", reported)
	}
}
