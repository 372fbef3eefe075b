package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

func TestTheChainGoesOnAcrossRestarts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	names := ids(9)
	for i := 0; i < len(names); i += 3 {
		l := open(t, dir, Options{})
		mustAppend(t, l, names[i:i+3]...)
		mustClose(t, l)
	}
	if got := calls(t, logFile(dir)); !slices.Equal(got, names) {
		t.Errorf("got %q", got)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, logFile(dir): 0o600, filepath.Join(dir, lockName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: mode %v, want %v (%v)", path, info.Mode().Perm(), want, err)
		}
	}
}

func TestANewFileContinuesTheRotatedOne(t *testing.T) {
	dir := t.TempDir()
	moved := []string{filepath.Join(dir, "audit-1.jsonl"), filepath.Join(dir, "audit-2.jsonl")}
	for i, to := range moved {
		l := open(t, dir, Options{})
		mustAppend(t, l, fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
		mustClose(t, l)
		if err := os.Rename(logFile(dir), to); err != nil {
			t.Fatal(err)
		}
	}
	l := open(t, dir, Options{})
	mustAppend(t, l, "last")
	mustClose(t, l)
	files := append(slices.Clone(moved), logFile(dir))
	if got := calls(t, files...); !slices.Equal(got, []string{"0a", "0b", "1a", "1b", "last"}) {
		t.Errorf("got %q", got)
	}
	report, err := Verify(files...)
	if err != nil || report.Records != 5 || report.FirstSeq != 1 || report.LastSeq != 5 || len(report.LastHash) != logfile.HexLen {
		t.Errorf("%+v, %v", report, err)
	}

	if err := os.Remove(logFile(dir)); err != nil {
		t.Fatal(err)
	}
	put(t, moved[1], append(contents(t, moved[1]), `{"seq":`...))
	if l, err := Open(dir, Options{}); err == nil {
		l.Close()
		t.Error("a new file went on from one that ends in an incomplete line")
	}
}

func TestASecondOpenNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Now: func() time.Time { return noon }})
	_, err := Open(dir, Options{})
	var held *LockedError
	if !errors.As(err, &held) || held.PID != os.Getpid() || held.Host == "" || !held.Started.Equal(noon) {
		t.Fatalf("got %v (%+v)", err, held)
	}
	for _, part := range []string{dir, fmt.Sprint(os.Getpid()), held.Host, "2026-11-20T12:00:00Z"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	put(t, filepath.Join(dir, lockName), []byte("no holder"))
	if _, err := Open(dir, Options{}); !errors.As(err, &held) || held.PID != 0 {
		t.Errorf("with an unreadable name: %v", err)
	}
	mustAppend(t, l, "a")
	mustClose(t, l)
	second := open(t, dir, Options{})
	mustAppend(t, second, "b")
}

// TestAwait: a folder is waited for while its holder says that it is ending, and not
// otherwise.
func TestAwait(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{Now: func() time.Time { return noon }})
	var held *LockedError
	if err := AwaitUnlock(context.Background(), dir); !errors.As(err, &held) || held.ShuttingDown || held.PID != os.Getpid() {
		t.Fatalf("of a holder that stays: %v", err)
	}
	if err := l.AnnounceShutdown(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, Options{}); !errors.As(err, &held) || !held.ShuttingDown || held.PID != os.Getpid() || !held.Started.Equal(noon) {
		t.Errorf("of a holder that is ending: %v (%+v)", err, held)
	}
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if err := AwaitUnlock(gone, dir); !errors.As(err, &held) || !held.ShuttingDown {
		t.Errorf("without patience: %v", err)
	}
	free := make(chan error, 1)
	go func() { free <- AwaitUnlock(context.Background(), dir) }()
	mustAppend(t, l, "a") // it serves until it is closed
	select {
	case err := <-free:
		t.Fatalf("before it has ended: %v", err)
	default:
	}
	mustClose(t, l)
	if err := <-free; err != nil {
		t.Errorf("after it has ended: %v", err)
	}
	if err := l.AnnounceShutdown(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("leaving twice: %v", err)
	}
	mustAppend(t, open(t, dir, Options{}), "b")
	if _, err := Open(dir, Options{}); !errors.As(err, &held) || held.ShuttingDown {
		t.Errorf("of the next holder: %v (%+v)", err, held)
	}
	if err := (*Log)(nil).AnnounceShutdown(); err != nil {
		t.Error(err)
	}
}

// A file that is not regular is refused at once, so that nothing hangs.
func TestOpenRefusesWhatIsNotAFile(t *testing.T) {
	for name, make := range map[string]func(path string) error{
		"pipe":              func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"folder":            func(p string) error { return os.Mkdir(p, 0o700) },
		"link to /dev/full": func(p string) error { return os.Symlink("/dev/full", p) },
		"link to a file": func(p string) error {
			return errors.Join(os.WriteFile(p+".target", nil, 0o600), os.Symlink(p+".target", p))
		},
		"dangling link": func(p string) error { return os.Symlink(p+".nowhere", p) },
	} {
		for _, file := range []string{fileName, lockName} {
			t.Run(name+" as "+file, func(t *testing.T) {
				dir := t.TempDir()
				if err := make(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
				l, err := Open(dir, Options{})
				if err == nil {
					l.Close()
					t.Fatal("opened")
				}
				if !strings.Contains(err.Error(), filepath.Join(dir, file)) || !strings.Contains(err.Error(), "expected a regular file") {
					t.Errorf("the error does not help: %v", err)
				}
				if err := os.RemoveAll(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
				open(t, dir, Options{})
			})
		}
	}
	dir := t.TempDir()
	put(t, filepath.Join(dir, "data"), nil)
	if _, err := Open(filepath.Join(dir, "data"), Options{}); err == nil {
		t.Error("a file was taken for data_dir")
	}
}

func TestWithoutALogEverythingIsRefused(t *testing.T) {
	var none *Log
	wantUnavailable(t, none.Append(context.Background(), sample("a")))
	wantUnavailable(t, new(Log).Append(context.Background(), sample("a")))
	if err := errors.Join(none.Close(), new(Log).Close()); err != nil {
		t.Error(err)
	}
	dir := t.TempDir()
	l := open(t, dir, Options{})
	mustAppend(t, l, "a")
	mustClose(t, l)
	mustClose(t, l)
	wantUnavailable(t, l.Append(context.Background(), sample("late")))
	if got := calls(t, logFile(dir)); len(got) != 1 {
		t.Errorf("the log holds %q", got)
	}
}

func TestACallerThatHasLeftWritesNothing(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir, Options{})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 500 {
		wantUnavailable(t, l.Append(ctx, sample("a")))
	}
	mustClose(t, l)
	if got := contents(t, logFile(dir)); len(got) != 0 {
		t.Errorf("the log holds %q", got)
	}
}

func TestConcurrentWriters(t *testing.T) {
	const writers, each = 32, 25
	dir := t.TempDir()
	l := open(t, dir, Options{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := l.Append(context.Background(), sample(fmt.Sprintf("%d/%d", w, i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mustClose(t, l)
	got := calls(t, logFile(dir))
	next := make([]int, writers)
	for _, id := range got {
		var w, i int
		if _, err := fmt.Sscanf(id, "%d/%d", &w, &i); err != nil || next[w] != i {
			t.Fatalf("record %s: %v, want number %d of its writer", id, err, next[w])
		}
		next[w]++
	}
	if len(got) != writers*each {
		t.Errorf("%d records, want %d", len(got), writers*each)
	}
}

func TestConcurrentRecordsShareASync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers = 32
		m := &memory{}
		l := open(t, t.TempDir(), Options{open: m.open})
		atOpen := m.syncs
		goOn := make(chan struct{})
		m.onSync = func() error { <-goOn; return nil }
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				if err := l.Append(t.Context(), sample(fmt.Sprint(i))); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait() // the first is with the disk, the rest queue up behind it
		}
		close(goOn)
		wg.Wait()
		if got := m.syncs - atOpen; got != 2 || m.writes != 2 {
			t.Errorf("%d records took %d writes and %d syncs, want 2 of each", writers, m.writes, got)
		}
		mustClose(t, l)
		if got := calls(t, m.saved(t)); len(got) != writers {
			t.Errorf("%d records, want %d", len(got), writers)
		}
	})
}

func TestABatchIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		l := open(t, t.TempDir(), Options{open: m.open, Record: Completion})
		goOn := make(chan struct{})
		m.onSync = func() error { <-goOn; return nil }
		longest := 0
		m.onWrite = func(p []byte) (int, error) {
			if strings.Count(string(p), "\n") > 1 {
				longest = max(longest, len(p))
			}
			return len(p), nil
		}
		var wg sync.WaitGroup
		for range 40 {
			wg.Go(func() {
				r := sample("big")
				r.Completion = strings.Repeat("x", batchBytes/10)
				if err := l.Append(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			r := sample("biggest")
			r.Completion = strings.Repeat("x", 2*batchBytes)
			if err := l.Append(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(goOn)
		wg.Wait()
		if longest == 0 || longest > batchBytes {
			t.Errorf("the longest batch has %d bytes, want at most %d", longest, batchBytes)
		}
		mustClose(t, l)
		if got := calls(t, m.saved(t)); len(got) != 41 {
			t.Errorf("%d records", len(got))
		}
	})
}

func TestALineHasABound(t *testing.T) {
	if testing.Short() {
		t.Skip("a line of 64 MiB")
	}
	dir := t.TempDir()
	l := open(t, dir, Options{Record: Completion})
	r := sample("too long")
	r.Completion = strings.Repeat("x", logfile.MaxLine)
	if err := l.Append(context.Background(), r); err == nil {
		t.Error("a line was written that no reader takes")
	}
	r.CallID, r.Completion = "longest", strings.Repeat("x", logfile.MaxLine-2000)
	if err := l.Append(context.Background(), r); err != nil {
		t.Error(err)
	}
	mustClose(t, l)
	l = open(t, dir, Options{})
	mustAppend(t, l, "b")
	mustClose(t, l)
	if got := calls(t, logFile(dir)); !slices.Equal(got, []string{"longest", "b"}) {
		t.Errorf("the log holds %q", got)
	}
}
