package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// A machine can stop at any byte, and a backup can bring back any snapshot beside any
// beginning of the log, or without the files before it: a start finds the calls that a
// reading of the whole log finds.
func TestAnySnapshotBesideAnyCut(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		opts := Options{RotateBytes: rapid.Int64Range(0, 4000).Draw(rt, "rotate"), snapshotEvery: 1}
		if rapid.Bool().Draw(rt, "signed") {
			opts.SignKey = testKey(1)
		}
		l := open(t, dir, opts)
		if _, err := l.OpenCalls(); err != nil {
			rt.Fatal(err)
		}
		snapshots := [][]byte{nil}
		for range rapid.IntRange(1, 20).Draw(rt, "records") {
			r := sample(fmt.Sprint(rapid.IntRange(0, 8).Draw(rt, "call")))
			if rapid.Bool().Draw(rt, "ends") {
				r = ended(r.CallID)
			}
			if err := l.Append(context.Background(), r); err != nil {
				rt.Fatal(err)
			}
			l.saves.Wait()
			if saved, err := os.ReadFile(filepath.Join(dir, snapshotName)); err == nil {
				snapshots = append(snapshots, saved)
			}
		}
		mustClose(t, l)
		names, err := Files(dir)
		if err != nil {
			rt.Fatal(err)
		}
		var files [][]byte
		for _, name := range names {
			files = append(files, contents(t, name))
		}
		// The cut: in the last of the first n files.
		n := rapid.IntRange(1, len(files)).Draw(rt, "files")
		from := 0
		if rapid.IntRange(0, 3).Draw(rt, "archived") == 0 {
			from = rapid.IntRange(0, n-1).Draw(rt, "first")
		}
		last := files[n-1]
		last = last[:rapid.IntRange(0, len(last)).Draw(rt, "cut")]
		beside := rapid.SampledFrom(snapshots).Draw(rt, "snapshot")
		restored := t.TempDir()
		for j := from; j < n-1; j++ {
			put(t, filepath.Join(restored, fmt.Sprintf("audit-%03d.jsonl", j)), files[j])
		}
		put(t, logFile(restored), last)
		if beside != nil {
			put(t, filepath.Join(restored, snapshotName), beside)
		}
		// Open truncates what is incomplete. Without checkpoints: it refuses a log with
		// some that was cut.
		l, err = Open(restored, Options{Wait: patient, RotateBytes: opts.RotateBytes, snapshotEvery: 1 << 62})
		if err != nil {
			rt.Fatal(err)
		}
		got, err := l.OpenCalls()
		if err != nil {
			rt.Fatal(err)
		}
		want := openIDs(t, restored)
		if !slices.Equal(idsOf(got), want) {
			rt.Fatalf("open: %v, want %v, from a snapshot: %v", idsOf(got), want, l.readFrom)
		}
		// The log continues, and its next snapshot is as good.
		l.opts.snapshotEvery = 0
		mustAppend(t, l, "new")
		appendAll(t, l, ended("1"))
		mustClose(t, l)
		l, again, cause := reopened(t, restored, Options{RotateBytes: opts.RotateBytes})
		if want := openIDs(t, restored); cause != nil || !slices.Equal(again, want) || l.readFrom == 0 {
			rt.Fatalf("second start: open: %v, want %v; everything was read because: %v", again, want, cause)
		}
		mustClose(t, l)
	})
}

// unsteady is a file on a disk that fails, and blocks, at times.
type unsteady struct {
	logfile.File
	calls *atomic.Int64
}

func (f unsteady) Sync() error {
	switch n := f.calls.Add(1); {
	case n%23 == 0:
		return errors.New("the disk fails")
	case n%7 == 0:
		time.Sleep(4 * time.Millisecond)
	}
	return f.File.Sync()
}

func (f unsteady) Write(p []byte) (int, error) {
	if f.calls.Add(1)%31 == 0 {
		n, _ := f.File.Write(p[:len(p)/2])
		return n, errors.New("the disk is full")
	}
	return f.File.Write(p)
}

// Records that are refused, withdrawn, written twice or moved to the next file leave the
// snapshot with exactly the calls that are open in the log.
func TestSnapshotsOfAnUnsteadyDisk(t *testing.T) {
	dir := t.TempDir()
	var calls atomic.Int64
	opts := Options{RotateBytes: 8000, snapshotEvery: 1, Wait: 3 * time.Millisecond}
	opts.open = func(path string, flags int) (logfile.File, error) {
		f, err := logfile.OpenFile(path, flags)
		if err != nil {
			return nil, err
		}
		return unsteady{f, &calls}, nil
	}
	l := open(t, dir, opts)
	if _, err := l.OpenCalls(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var accepted atomic.Int64
	const least = 100 // however slow the disk is
	began := time.Now()
	for w := range 12 {
		wg.Go(func() {
			for i := 0; i < 120 || accepted.Load() < least && time.Since(began) < patient; i++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%5)*time.Millisecond)
				id := fmt.Sprintf("%d-%d", w, i)
				if l.Append(ctx, sample(id)) == nil {
					accepted.Add(1)
					if i%3 > 0 {
						_ = l.Append(ctx, ended(id))
					}
				}
				cancel()
			}
		})
	}
	wg.Wait()
	for l.Append(t.Context(), sample("last")) != nil {
	}
	l.opts.Wait = patient
	_ = l.Close()
	<-l.ended
	if accepted.Load() < least {
		t.Fatalf("only %d decisions were accepted", accepted.Load())
	}
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(files...); err != nil {
		t.Error(err)
	}
	want := openIDs(t, dir)
	if len(l.calls.Open) != len(want) {
		t.Errorf("the log counts %d open calls, its files %d", len(l.calls.Open), len(want))
	}
	second, got, cause := reopened(t, dir, Options{})
	if cause != nil || second.readFrom == 0 || !slices.Equal(got, want) {
		t.Errorf("a start found %d open calls, want %d; everything was read because: %v", len(got), len(want), cause)
	}
	if len(files) < 3 {
		t.Errorf("%d files", len(files))
	}
}

// Decisions of any length are read at a start, with a snapshot and without.
func TestOpenCallsOfAnyLength(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Record: Arguments, snapshotEvery: 1})
	if _, err := l.OpenCalls(); err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, n := range []int{0, 1, 1500, 1600, 2047, 2048, 4096, 1 << 20, 10} {
		for i := range 3 {
			r := sample(fmt.Sprintf("%d-%d", n, i))
			r.Arguments = json.RawMessage(`"` + strings.Repeat("a", n) + `"`)
			want = append(want, string(r.Arguments))
			appendAll(t, l, r)
		}
	}
	appendAll(t, l, ended("x"), ended("y"))
	mustClose(t, l)
	for _, snapshot := range []bool{true, false} {
		l := open(t, dir, Options{})
		records, err := l.OpenCalls()
		var got []string
		for _, r := range records {
			got = append(got, string(r.Arguments))
		}
		if err != nil || !slices.Equal(got, want) || (l.readFrom != 0) != snapshot {
			t.Errorf("with a snapshot %v: %d decisions, want %d: %v", snapshot, len(got), len(want), err)
		}
		mustClose(t, l)
		os.Remove(filepath.Join(dir, snapshotName))
	}

	read := &counted{}
	if _, err := logfile.ReadLine(read, 0, nil); !errors.Is(err, logfile.ErrLong) || read.n > 3*logfile.MaxLine {
		t.Errorf("%d bytes read of a line without an end: %v", read.n, err)
	}
	if _, err := logfile.ReadLine(strings.NewReader("partial"), 2, nil); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a partial line: %v", err)
	}
}

// counted is a file without a line end.
type counted struct{ n int }

func (c *counted) ReadAt(p []byte, _ int64) (int, error) {
	c.n += len(p)
	return len(p), nil
}
