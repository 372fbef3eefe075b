package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// A fault is refused, leaves nothing behind, and is over when it is over.
func TestOneFault(t *testing.T) {
	half := func(m *memory, err error) {
		m.onWrite = func(p []byte) (int, error) { m.onWrite = nil; return len(p) / 2, err }
	}
	once := func(hook *func() error, err error) {
		*hook = func() error { *hook = nil; return err }
	}
	panics := func(hook *func() error) {
		*hook = func() error { *hook = nil; panic("disk driver") }
	}
	for name, c := range map[string]struct {
		inject  func(m *memory)
		reopens int
	}{
		"no space":    {func(m *memory) { half(m, syscall.ENOSPC) }, 1},
		"short write": {func(m *memory) { half(m, nil) }, 1},
		"write error": {func(m *memory) { m.onWrite = func([]byte) (int, error) { m.onWrite = nil; return 0, syscall.EIO } }, 1},
		"whole write, error": {func(m *memory) {
			m.onWrite = func(p []byte) (int, error) { m.onWrite = nil; return len(p), syscall.EIO }
		}, 1},
		"write panics": {func(m *memory) { m.onWrite = func([]byte) (int, error) { m.onWrite = nil; panic("disk driver") } }, 1},
		"sync error":   {func(m *memory) { once(&m.onSync, syscall.EIO) }, 1},
		"sync panics":  {func(m *memory) { panics(&m.onSync) }, 1},
		"another's bytes among them": {func(m *memory) {
			m.onWrite = func(p []byte) (int, error) {
				m.onWrite = nil
				m.content = append(m.content, "{}\n"...)
				return len(p), nil
			}
		}, 1},
		"size error":           {func(m *memory) { once(&m.onSize, syscall.EIO) }, 0},
		"size panics":          {func(m *memory) { panics(&m.onSize) }, 0},
		"sync, then cut fails": {func(m *memory) { once(&m.onSync, syscall.EIO); once(&m.onCut, syscall.EIO) }, 2},
		"sync, then open fails": {func(m *memory) {
			once(&m.onSync, syscall.EIO)
			m.onOpen = func() error { m.onOpen = nil; return syscall.EMFILE }
		}, 2},
		"sync, then open panics": {func(m *memory) {
			once(&m.onSync, syscall.EIO)
			panics(&m.onOpen)
		}, 2},
		"sync, then reading back fails": {func(m *memory) { once(&m.onSync, syscall.EIO); once(&m.onReadAt, syscall.EIO) }, 2},
		"sync, twice": {func(m *memory) {
			m.onSync = func() error { once(&m.onSync, syscall.EIO); return syscall.EIO }
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			m, clock := &memory{}, noon
			l := open(t, t.TempDir(), Options{open: m.open, Now: func() time.Time { return clock }})
			mustAppend(t, l, "before")
			c.inject(m)
			opens := m.opens
			err := l.Append(context.Background(), sample("refused"))
			wantUnavailable(t, err)
			if strings.Contains(err.Error(), "goroutine") {
				t.Errorf("a stack trace: %v", err)
			}
			clock = clock.Add(time.Minute)
			mustAppend(t, l, "after")
			if got := m.opens - opens; got != c.reopens {
				t.Errorf("opened %d times, want %d", got, c.reopens)
			}
			mustClose(t, l)
			if got := calls(t, m.saved(t)); !slices.Equal(got, []string{"before", "after"}) {
				t.Errorf("the log holds %q", got)
			}
		})
	}
}

func TestRepairsAreSpacedOut(t *testing.T) {
	m, clock := &memory{}, noon
	l := open(t, t.TempDir(), Options{open: m.open, Now: func() time.Time { return clock }})
	m.onSync = func() error { return syscall.EIO }
	m.onOpen = func() error { return syscall.EIO }
	opens := m.opens
	for range 1000 {
		err := l.Append(context.Background(), sample("refused"))
		wantUnavailable(t, err)
		if !errors.Is(err, syscall.EIO) {
			t.Fatalf("the operator does not learn why: %v", err)
		}
		clock = clock.Add(10 * time.Millisecond)
	}
	// 10 s with a pause of at most 1 s, after 10, 20, 40, … ms.
	if got := m.opens - opens; got < 10 || got > 17 {
		t.Errorf("%d repairs in 10 s", got)
	}
	m.onSync, m.onOpen = nil, nil
	clock = clock.Add(time.Second)
	mustAppend(t, l, "resumed")
	mustClose(t, l)
	if got := calls(t, m.saved(t)); !slices.Equal(got, []string{"resumed"}) {
		t.Errorf("the log holds %q", got)
	}
}

func TestCloseSaysWhereRefusedBytesMayStay(t *testing.T) {
	m := &memory{}
	l := open(t, t.TempDir(), Options{open: m.open})
	mustAppend(t, l, "a")
	m.onSync = func() error { return syscall.EIO }
	wantUnavailable(t, l.Append(context.Background(), sample("refused")))
	if err := l.Close(); err == nil || !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
}

// The file under a running log is changed by another: nothing is accepted, and
// nothing is repaired, until it is as it was.
func TestAFileThatAnotherChanged(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"moved":    func(p string) error { return os.Rename(p, p+".moved") },
		"replaced": func(p string) error { return errors.Join(os.Rename(p, p+".moved"), os.WriteFile(p, nil, 0o600)) },
		"appended": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("{}\n")
			return errors.Join(err, f.Close())
		},
		"emptied": func(p string) error { return os.Truncate(p, 0) },
		"pipe":    func(p string) error { return errors.Join(os.Rename(p, p+".moved"), syscall.Mkfifo(p, 0o600)) },
	} {
		for _, ahead := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, zeros ahead %v", name, ahead), func(t *testing.T) {
				dir := t.TempDir()
				l := open(t, dir, Options{Preallocate: ahead})
				mustAppend(t, l, "a", "b")
				before := contents(t, logFile(dir))
				if err := change(logFile(dir)); err != nil {
					t.Fatal(err)
				}
				var changed []byte
				if name != "moved" && name != "pipe" {
					changed = contents(t, logFile(dir))
				}
				for range 3 {
					wantUnavailable(t, l.Append(context.Background(), sample("refused")))
				}
				if changed != nil && string(contents(t, logFile(dir))) != string(changed) {
					t.Error("the log wrote to a file that is not its own any more")
				}
				if moved := logFile(dir) + ".moved"; name != "appended" && name != "emptied" {
					if err := os.Rename(moved, logFile(dir)); err != nil {
						t.Fatal(err)
					}
				} else if err := os.WriteFile(logFile(dir), before, 0o600); err != nil {
					t.Fatal(err)
				}
				mustAppend(t, l, "c")
				mustClose(t, l)
				if got := calls(t, logFile(dir)); !slices.Equal(got, []string{"a", "b", "c"}) {
					t.Errorf("the log holds %q", got)
				}
			})
		}
	}
}

// A last confirmed record that is not there any more is never built upon.
func TestARepairDoesNotTrustTheFile(t *testing.T) {
	for name, spoil := range map[string]func(m *memory){
		"altered":  func(m *memory) { m.content[50] ^= 1 },
		"replaced": func(m *memory) { m.content = []byte(strings.ReplaceAll(string(m.content), "Analyst", "Intern!")) },
		"shorter":  func(m *memory) { m.content = m.content[:10] },
		"another's record": func(m *memory) {
			body, _ := encode(sample("c"), Digest)
			m.content, _ = logfile.Link{Hash: logfile.Genesis}.Seal(nil, body)
		},
	} {
		t.Run(name, func(t *testing.T) {
			m, clock := &memory{}, noon
			l := open(t, t.TempDir(), Options{open: m.open, Now: func() time.Time { return clock }})
			mustAppend(t, l, "a")
			whole := slices.Clone(m.content)
			m.onSync = func() error { m.onSync = nil; spoil(m); return syscall.EIO }
			for range 3 {
				err := l.Append(context.Background(), sample("refused"))
				wantUnavailable(t, err)
				if name == "shorter" && !strings.Contains(err.Error(), "has 10 bytes, expected at least") {
					t.Errorf("the operator does not learn why: %v", err)
				}
				clock = clock.Add(time.Minute)
			}
			m.content = whole
			mustAppend(t, l, "b")
			mustClose(t, l)
			if got := calls(t, m.saved(t)); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("the log holds %q", got)
			}
		})
	}
}

// Any mixture of faults, and then a crash that keeps what was synced and any
// part of the rest: the log opens, verifies, and has every accepted record, in
// order. Without the crash it has the accepted ones only.
func TestAnyFaultsThenACrash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		m, clock := &memory{}, noon
		folder := filepath.Join(dir, fmt.Sprint(run))
		l, err := Open(folder, Options{open: m.open, Now: func() time.Time { return clock }, Wait: patient})
		if err != nil {
			t.Fatal(err)
		}
		faulty := func() bool { return rapid.IntRange(0, 3).Draw(t, "fault") == 0 }
		fault := func() error {
			if !faulty() {
				return nil
			}
			if rapid.Bool().Draw(t, "panic") {
				panic("disk driver")
			}
			return syscall.EIO
		}
		m.onSync, m.onCut, m.onOpen, m.onSize, m.onReadAt = fault, fault, fault, fault, fault
		m.onWrite = func(p []byte) (int, error) {
			if !faulty() {
				return len(p), nil
			}
			n := rapid.IntRange(0, len(p)).Draw(t, "written")
			if rapid.Bool().Draw(t, "with error") {
				return n, syscall.ENOSPC
			}
			return n, nil
		}
		var accepted []string
		for _, id := range ids(rapid.IntRange(1, 12).Draw(t, "records")) {
			if l.Append(context.Background(), sample(id)) == nil {
				accepted = append(accepted, id)
			}
			clock = clock.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "ms")) * time.Millisecond)
		}
		durable, now := slices.Clone(m.durable), slices.Clone(m.content)
		common := 0
		for common < len(durable) && common < len(now) && durable[common] == now[common] {
			common++
		}
		crashed := now[:rapid.IntRange(min(common, len(now)), len(now)).Draw(t, "kept")]
		if rapid.Bool().Draw(t, "nothing but the synced") {
			crashed = durable
		}

		m.onSync, m.onCut, m.onOpen, m.onSize, m.onReadAt, m.onWrite = nil, nil, nil, nil, nil, nil
		if err := l.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		whole := filepath.Join(folder, "whole.jsonl")
		if err := os.WriteFile(whole, m.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := callsOf(t, whole); !slices.Equal(got, accepted) {
			t.Fatalf("the log holds %q, accepted were %q", got, accepted)
		}

		if err := os.WriteFile(logFile(folder), crashed, 0o600); err != nil {
			t.Fatal(err)
		}
		second, err := Open(folder, Options{Wait: patient})
		if err != nil {
			t.Fatalf("after the crash: %v", err)
		}
		if err := errors.Join(second.Append(context.Background(), sample("new")), second.Close()); err != nil {
			t.Fatalf("after the crash: %v", err)
		}
		got := callsOf(t, logFile(folder))
		kept := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return !slices.Contains(accepted, id) })
		if !slices.Equal(kept, accepted) || got[len(got)-1] != "new" || len(got) > len(accepted)+2 {
			t.Fatalf("after the crash: %q, accepted were %q", got, accepted)
		}
	})
}

func callsOf(t *rapid.T, file string) []string {
	var ids []string
	if _, err := Read(func(r Record) error { ids = append(ids, r.CallID); return nil }, file); err != nil {
		t.Fatalf("%v", err)
	}
	return ids
}
