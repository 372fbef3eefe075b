package audit

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/audit/checkpoint"
	"github.com/callgate/callgate/audit/internal/logfile"
)

// Eight writers, and a file that is moved aside again and again: every record exists once,
// the files sort by name, and each continues the one before.
func TestRotationUnderLoad(t *testing.T) {
	t.Parallel()
	const writers, each, size = 8, 150, 20_000
	dir := t.TempDir()
	l := open(t, dir, Options{RotateBytes: size, SignKey: testKey(1), checkpointEvery: 50, batch: 16})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := l.Append(context.Background(), sample(fmt.Sprint(w, "-", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	mustClose(t, l)
	files, err := filepath.Glob(filepath.Join(dir, logfile.Pattern))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	if ordered, err := Files(dir); err != nil || !slices.Equal(files, ordered) {
		t.Errorf("by name: %q\nby record: %q (%v)", files, ordered, err)
	}
	if c := mustHold(t, files...); c.Records != writers*each || c.SignedSeq != writers*each {
		t.Errorf("%+v", c)
	}
	got := calls(t, files...)
	slices.Sort(got)
	if n := len(slices.Compact(got)); n != writers*each {
		t.Errorf("%d different records, want %d", n, writers*each)
	}
	partial := checked(1)
	partial.Partial = true
	for i, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		if rotated := i < len(files)-1; rotated && info.Size() < size || info.Size() > 2*size {
			t.Errorf("%s has %d bytes", f, info.Size())
		}
		if chains, err := partial.Verify(files[i:]...); err != nil || chains[0].Corruption != nil {
			t.Errorf("from %s: %+v, %v", f, chains, err)
		}
	}
}

// Files that are missing are reported when the log is opened, signed or not, and it is continued.
func TestMissingFiles(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, files []string)
		want   string
		oldest bool
	}{
		"none":    {func(*testing.T, []string) {}, "", false},
		"oldest":  {func(t *testing.T, files []string) { remove(t, files[0]) }, "the records 1 to ", true},
		"middle":  {func(t *testing.T, files []string) { remove(t, files[2]) }, "put their file back", false},
		"damaged": {func(t *testing.T, files []string) { write(t, files[2], "x\n") }, "is not a record", false},
	} {
		for _, key := range []ed25519.PrivateKey{nil, testKey(1)} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				l := open(t, dir, Options{RotateBytes: 1000, SignKey: key})
				mustAppend(t, l, ids(40)...)
				mustClose(t, l)
				files, err := Files(dir)
				if err != nil || len(files) < 5 {
					t.Fatalf("%d files, %v", len(files), err)
				}
				c.change(t, files)
				var reported []string
				l, err = Open(dir, Options{Wait: patient, RotateBytes: 1 << 20, SignKey: key, OnMissing: func(cause error, oldest bool) {
					if reported = append(reported, cause.Error()); oldest != c.oldest {
						t.Errorf("%v: found oldest=%v", cause, oldest)
					}
				}})
				if err != nil {
					t.Fatal(err)
				}
				mustAppend(t, l, "next")
				mustClose(t, l)
				if len(reported) > 1 || (c.want != "") != (len(reported) == 1) || !strings.Contains(strings.Join(reported, ""), c.want) {
					t.Errorf("reported %q, expected %q", reported, c.want)
				}
			})
		}
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Moving a file aside fails: the file grows on, nobody is refused, the operator
// hears of it once, and it is moved when it can be.
func TestAFileThatCannotBeMoved(t *testing.T) {
	for name, fail := range map[string]func(from, to string) error{
		"an error": func(string, string) error { return syscall.ENOSPC },
		"a panic":  func(string, string) error { panic("disk driver") },
		"a file is there": func(from, to string) error {
			return errors.Join(os.WriteFile(to, []byte("another's"), 0o600), renameRotated(from, to), os.Remove(to))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, clock, received, tries := t.TempDir(), noon, &reports{}, 0
			broken := true
			l := open(t, dir, Options{RotateBytes: 1000, OnDegraded: received.report, Now: func() time.Time { return clock }, move: func(from, to string) error {
				tries++
				if broken {
					return fail(from, to)
				}
				return renameRotated(from, to)
			}})
			names := ids(8)
			mustAppend(t, l, names[:6]...)
			if tries != 1 {
				t.Errorf("tried %d times in no time", tries)
			}
			if files, err := Files(dir); err != nil || len(files) != 1 {
				t.Errorf("%q, %v", files, err)
			}
			clock = clock.Add(logfile.MaxPause)
			mustAppend(t, l, names[6])
			broken = false
			clock = clock.Add(logfile.MaxPause)
			mustAppend(t, l, names[7])
			mustClose(t, l)
			if got := received.heard(); tries != 3 || !slices.Equal(got, []string{"rotation true", "rotation false"}) {
				t.Errorf("tried %d times, heard %q", tries, got)
			}
			files, err := Files(dir)
			if err != nil || len(files) != 2 {
				t.Fatalf("%q, %v", files, err)
			}
			if got := calls(t, files...); !slices.Equal(got, names) {
				t.Errorf("the log holds %q", got)
			}
		})
	}
}

// The file was moved and the next one cannot be made: everything is refused
// until it can.
func TestANewFileThatCannotBeMade(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(path string) (logfile.File, error)
		after func(path string) error
	}{
		"an error": {func(string) (logfile.File, error) { return nil, syscall.ENOSPC }, func(string) error { return nil }},
		"a panic":  {func(string) (logfile.File, error) { panic("disk driver") }, func(string) error { return nil }},
		"another is there": {func(path string) (logfile.File, error) {
			if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
				return nil, err
			}
			return logfile.OpenFile(path, logfile.WriteFlags)
		}, os.Remove},
	} {
		t.Run(name, func(t *testing.T) {
			dir, broken := t.TempDir(), false
			var passed atomic.Int64 // the signer asks for the time too
			l := open(t, dir, Options{RotateBytes: 1000, SignKey: testKey(1), Now: func() time.Time { return noon.Add(time.Duration(passed.Load())) }, open: func(path string, flags int) (logfile.File, error) {
				if filepath.Base(path) == fileName && broken {
					return c.fail(path)
				}
				f, err := logfile.OpenFile(path, flags)
				if err != nil {
					return nil, err
				}
				return f, nil
			}})
			mustAppend(t, l, "a", "b")
			broken = true
			for range 3 {
				wantUnavailable(t, l.Append(context.Background(), sample("refused")))
				passed.Add(int64(logfile.MaxPause))
			}
			broken = false
			if err := c.after(logFile(dir)); err != nil {
				t.Fatal(err)
			}
			mustAppend(t, l, "c")
			mustClose(t, l)
			files, err := Files(dir)
			if err != nil || len(files) != 2 {
				t.Fatalf("%q, %v", files, err)
			}
			if got := calls(t, files...); !slices.Equal(got, []string{"a", "b", "c"}) {
				t.Errorf("the log holds %q", got)
			}
			mustHold(t, files...)
		})
	}
}

// A crash after each step of a rotation: moved and nothing made; made and
// empty; made with a torn record; and each with or without the head of the end.
func TestACrashBetweenStepsOfARotation(t *testing.T) {
	t.Parallel()
	for name, left := range map[string][]byte{"moved": nil, "made": {}, "torn": []byte(`{"seq":41,"time":`)} {
		for _, signed := range []bool{true, false} {
			t.Run(fmt.Sprint(name, " signed ", signed), func(t *testing.T) {
				r := replicaOf(t, filepath.Join(t.TempDir(), "gate"), 1, 40)
				last := r.files[len(r.files)-1]
				rotatedFile := filepath.Join(r.dir, fmt.Sprintf(rotatedName, r.base[len(r.base)-1]+1))
				if err := os.Rename(last, rotatedFile); err != nil {
					t.Fatal(err)
				}
				if left != nil {
					put(t, last, left)
				}
				if !signed {
					put(t, filepath.Join(r.dir, checkpoint.FileName), bytes.Join(r.heads[:len(r.heads)-1], nil))
				}
				l := open(t, r.dir, Options{SignKey: testKey(1), RotateBytes: 6000})
				mustAppend(t, l, "new")
				mustClose(t, l)
				files, err := Files(r.dir)
				if err != nil {
					t.Fatal(err)
				}
				if c := mustHold(t, files...); c.Records != 41 || c.SignedSeq != 41 || len(files) != len(r.files)+1 {
					t.Errorf("%+v", c)
				}
				partial := checked(1)
				partial.Partial = true
				if chains, err := partial.Verify(last); err != nil || chains[0].Corruption != nil || chains[0].FirstSeq != 41 {
					t.Errorf("the new file alone: %+v, %v", chains, err)
				}
			})
		}
	}
}

// 25 times: a process that appends, signs and rotates is killed at a random
// moment. No head claims what is not there, and every accepted record is.
func TestKilledWhileSigningAndRotating(t *testing.T) {
	kills := wholeOrShort(25, 5)
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(11, 12))
	var accepted []string
	for k := range kills {
		accepted = append(accepted, untilKilled(t, dir, k, random, "CALLGATE_AUDIT_SIGNED=1")...)
		files, err := Files(dir)
		if err != nil {
			t.Fatal(err)
		}
		c := mustHold(t, files...) // before anything is repaired
		eachOnce(t, k, accepted, files...)
		if k == kills-1 {
			t.Logf("%d kills, %d accepted records, %d files, %d heads", kills, len(accepted), len(files), c.Checkpoints)
		}
	}
}

// A disk that fills up while files are moved aside and heads are written:
// refused meanwhile, and served again when there is space.
func TestAFullDiskWhileSigningAndRotating(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: a full disk is not tested")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no tmpfs can be mounted (%v): a full disk is not tested", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	put(t, ballast, make([]byte, 128<<10))
	l := open(t, dir, Options{SignKey: testKey(1), RotateBytes: 9000, checkpointEvery: 5})
	var accepted []string
	full := 0
	for _, id := range ids(2000) {
		err := l.Append(context.Background(), sample(id))
		if err == nil {
			accepted = append(accepted, id)
			if full > 0 {
				break
			}
			continue
		}
		wantUnavailable(t, err)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the operator does not learn why: %v", err)
		}
		if full++; full == 10 {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			time.Sleep(logfile.MaxPause) // a rotation that failed is tried again after its pause
		}
	}
	if full == 0 {
		t.Fatal("the disk was not full")
	}
	before := len(accepted)
	for _, id := range []string{"again-1", "again-2", "again-3"} {
		mustAppend(t, l, id)
		accepted = append(accepted, id)
	}
	mustClose(t, l)
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := calls(t, files...); !slices.Equal(got, accepted) {
		t.Errorf("the log holds %q, accepted were %q", got, accepted)
	}
	if c := mustHold(t, files...); c.SignedSeq != uint64(len(accepted)) {
		t.Errorf("%+v", c)
	}
	t.Logf("%d records and %d files before the disk was full, %d refused", before, len(files), full)
}

func TestRotatedNamesSortBeforeTheCurrentFile(t *testing.T) {
	names := []string{fileName, fmt.Sprintf(rotatedName, 1), fmt.Sprintf(rotatedName, uint64(1<<63)), fmt.Sprintf(rotatedName, 99)}
	slices.Sort(names)
	if names[3] != fileName || !strings.Contains(names[1], "099") {
		t.Errorf("%q", names)
	}
}
