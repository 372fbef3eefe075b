package audit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/audit/internal/logfile"
)

// aheadAppender has an appender write zeros ahead.
const aheadAppender = "CALLGATE_AUDIT_AHEAD=1"

// appender is the process that these tests start, trace and kill. It appends
// with two writers, as many records each as it is told or without end, and
// prints a line for each answer once it has it.
func appender(dir string) int {
	o := Options{Wait: patient, Preallocate: slices.Contains(os.Environ(), aheadAppender)}
	if os.Getenv("CALLGATE_AUDIT_SIGNED") != "" {
		o.SignKey, o.RotateBytes, o.checkpointEvery = testKey(1), 20_000, 10
	}
	if os.Getenv("CALLGATE_AUDIT_PINNED") != "" {
		o.open = pinnedTo(oneThread(), o.Preallocate)
	}
	l, err := Open(dir, o)
	if err != nil {
		fmt.Println("open", err)
		return 2
	}
	limit, err := strconv.Atoi(os.Getenv("CALLGATE_AUDIT_RECORDS"))
	if err != nil {
		limit = 1 << 30
	}
	done := make(chan struct{})
	for w := range 2 {
		go func() {
			defer func() { done <- struct{}{} }()
			for i := range limit {
				id := fmt.Sprintf("%s-%d-%d", os.Getenv("CALLGATE_AUDIT_PREFIX"), w, i)
				if err := l.Append(context.Background(), sample(id)); err != nil {
					fmt.Printf("refused %s %v\n", id, err)
				} else {
					fmt.Printf("accepted %s\n", id)
				}
			}
		}()
	}
	<-done
	<-done
	if err := l.Close(); err != nil {
		fmt.Println("close", err)
		return 1
	}
	return 0
}

// oneThread runs what it is given on one thread of the system, in turn.
func oneThread() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for do := range work {
			do()
		}
	}()
	return work
}

// pinned is a file whose changes are all made by one thread. strace counts the
// calls of each thread apart: spread over several, the Nth may never come.
type pinned struct {
	logfile.File
	thread chan<- func()
}

func pinnedTo(thread chan<- func(), ahead bool) func(string, int) (logfile.File, error) {
	return func(path string, flags int) (f logfile.File, err error) {
		if ahead {
			f, err = logfile.OpenAhead(path, flags)
		} else {
			f, err = logfile.OpenFile(path, flags)
		}
		if err != nil {
			return nil, err
		}
		return pinned{f, thread}, nil
	}
}

func (p pinned) do(f func() error) error {
	done := make(chan error)
	p.thread <- func() { done <- f() }
	return <-done
}

func (p pinned) Write(b []byte) (n int, err error) {
	err = p.do(func() (err error) { n, err = p.File.Write(b); return err })
	return n, err
}

func (p pinned) Sync() error { return p.do(p.File.Sync) }

func (p pinned) Truncate(size int64) error {
	return p.do(func() error { return p.File.Truncate(size) })
}

func startAppender(t *testing.T, dir, prefix string, before ...string) (*exec.Cmd, io.Reader) {
	t.Helper()
	args := append(before, os.Args[0], "-test.run=^$")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "CALLGATE_AUDIT_APPENDER="+dir, "CALLGATE_AUDIT_PREFIX="+prefix)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// answers reads what an appender printed: the ids it was told are accepted and
// refused. A last line that the kill cut short says nothing.
func answers(t *testing.T, out io.Reader, each func(string)) (accepted, refused []string) {
	t.Helper()
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return accepted, refused
		}
		term, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		id, _, _ := strings.Cut(rest, " ")
		switch term {
		case "accepted":
			accepted = append(accepted, id)
		case "refused":
			refused = append(refused, id)
		default:
			t.Fatalf("the appender says %q", line)
		}
		if each != nil {
			each(term)
		}
	}
}

// untilKilled runs an appender, which is killed at a random moment after it has begun,
// and returns what it was told is accepted.
func untilKilled(t *testing.T, dir string, kill int, random *rand.Rand, env ...string) []string {
	t.Helper()
	cmd, out := startAppender(t, dir, fmt.Sprint(kill))
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started := false
	received, refused := answers(t, out, func(string) {
		if !started {
			started = true
			time.AfterFunc(time.Duration(random.IntN(20_000))*time.Microsecond, func() { cmd.Process.Kill() })
		}
	})
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the appender was not killed: %v", err)
	}
	if len(received) == 0 || len(refused) > 0 {
		t.Fatalf("kill %d: %d accepted, %d refused", kill, len(received), len(refused))
	}
	return received
}

// eachOnce fails unless each call that was accepted stands once in the log, and returns
// how often each call stands there.
func eachOnce(t *testing.T, kill int, accepted []string, files ...string) map[string]int {
	t.Helper()
	onDisk := make(map[string]int)
	for _, id := range calls(t, files...) {
		onDisk[id]++
	}
	for _, id := range accepted {
		if onDisk[id] != 1 {
			t.Fatalf("kill %d: accepted %s stands %d times in the log", kill, id, onDisk[id])
		}
	}
	return onDisk
}

// 50 times: a process that appends is killed at a random moment. The log opens
// again, verifies, and has every record that the process was told is accepted.
func TestKilledFiftyTimes(t *testing.T) {
	killed(t, t.TempDir(), wholeOrShort(50, 10), false)
}

// The same with zeros ahead of the records, which every kill leaves at the end of the file.
func TestKilledWithZerosAhead(t *testing.T) {
	dir := t.TempDir()
	mustClose(t, openAhead(t, dir, Options{}))
	killed(t, dir, wholeOrShort(10, 3), true, aheadAppender)
}

func killed(t *testing.T, dir string, kills int, ahead bool, env ...string) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	var accepted []string
	for k := range kills {
		accepted = append(accepted, untilKilled(t, dir, k, random, env...)...)
		if left := zeros(t, logFile(dir)) > 0; left != ahead {
			t.Fatalf("kill %d: zeros at the end of the file: %t", k, left)
		}
		if report, err := Verify(logFile(dir)); err != nil {
			t.Fatalf("kill %d: %+v, %v", k, report, err)
		}
		l := open(t, dir, Options{Preallocate: ahead && k%2 == 0})
		mustClose(t, l)
		onDisk := eachOnce(t, k, accepted, logFile(dir))
		// Each of the two writers has at most one record that was not answered.
		if extra := len(onDisk) - len(accepted); extra > 2*(k+1) {
			t.Fatalf("kill %d: %d records that nobody was told of", k, extra)
		}
	}
	t.Logf("%d kills, %d accepted records, all there", kills, len(accepted))
}

func TestASecondProcessNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	open(t, dir, Options{})
	cmd, out := startAppender(t, dir, "second")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("exit: %v", err)
	}
	if want := fmt.Sprintf("%s is in use by process %d on host", dir, os.Getpid()); !strings.Contains(string(output), want) {
		t.Errorf("it says %q, want %q", output, want)
	}
}

// Real system calls that fail, one or all from the Nth on: what was accepted
// is in the log, what was refused is not, and the chain holds.
func TestInjectedSystemCalls(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not here: failing system calls are not tested")
	}
	if err := exec.Command("strace", "-o", os.DevNull, "true").Run(); err != nil {
		t.Skipf("strace may not trace here (%v): failing system calls are not tested", err)
	}
	for _, fault := range []string{
		"fsync:error=EIO:when=6", "fsync:error=EIO:when=5+3", "fsync:error=EIO:when=9+1", "write:error=ENOSPC:when=5", "write:error=EIO:when=4+2",
		"write:retval=7:when=4+3", "write:error=EINTR:when=3+2", "ftruncate:error=EIO:when=2+1",
		"pwrite64:error=ENOSPC:when=4", "pwrite64:error=ENOSPC:when=3+2", "fdatasync:error=EIO:when=3+3",
	} {
		t.Run(fault, func(t *testing.T) {
			// On a very busy machine strace was once seen to let every call pass.
			for attempt := 1; !survives(t, fault); attempt++ {
				if attempt == 3 {
					t.Fatal("the fault was not met")
				}
			}
		})
	}
}

// survives runs an appender whose system calls fail, checks its log, and reports whether it
// met the fault.
func survives(t *testing.T, fault string) bool {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir()) // strace knows files by where they are
	if err != nil {
		t.Fatal(err)
	}
	name := logFile(dir)
	inject := []string{"strace", "-f", "-qq", "-o", os.DevNull, "-P", name, "-e", "inject=" + fault}
	if strings.HasPrefix(fault, "ftruncate") {
		inject = append(inject, "-e", "inject=fsync:error=EIO:when=4+4")
	}
	cmd, out := startAppender(t, dir, "x", inject...)
	cmd.Env = append(cmd.Env, "CALLGATE_AUDIT_RECORDS=20", "CALLGATE_AUDIT_PINNED=1")
	if strings.HasPrefix(fault, "pwrite64") || strings.HasPrefix(fault, "fdatasync") {
		mustClose(t, openAhead(t, dir, Options{}))
		cmd.Env = append(cmd.Env, aheadAppender)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	accepted, refused := answers(t, io.MultiReader(trimmed{bufio.NewReader(out)}), nil)
	if err := cmd.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Fatal(err)
		}
	}
	if len(accepted)+len(refused) != 40 || len(accepted) == 0 {
		t.Errorf("%d accepted, %d refused, want 40 in all", len(accepted), len(refused))
	}
	l := open(t, dir, Options{})
	mustClose(t, l)
	got := calls(t, name)
	slices.Sort(got)
	slices.Sort(accepted)
	missing := slices.ContainsFunc(accepted, func(id string) bool { return !slices.Contains(got, id) })
	// Where nothing works to the end, the last batch can stay: see the package comment.
	if missing || !strings.Contains(fault, "+1") && !slices.Equal(got, accepted) {
		t.Errorf("the log holds %q\naccepted were %q", got, accepted)
	}
	t.Logf("%d accepted, %d refused, %d in the log", len(accepted), len(refused), len(got))
	return len(refused) > 0 || strings.Contains(fault, "EINTR")
}

// trimmed drops the appender's last word on closing, which some faults spoil.
type trimmed struct{ *bufio.Reader }

func (r trimmed) Read(p []byte) (int, error) {
	for {
		line, err := r.ReadString('\n')
		if !strings.HasPrefix(line, "close ") {
			return copy(p, line), err
		}
		if err != nil {
			return 0, err
		}
	}
}

// A disk that is full, and then is not: refused meanwhile, and again served
// without a restart.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: a full disk is not tested")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no tmpfs can be mounted (%v): a full disk is not tested", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(dir, "ballast")
	put(t, ballast, make([]byte, 32<<10))
	l := open(t, dir, Options{})
	var accepted []string
	var full int
	for _, id := range ids(200) {
		err := l.Append(context.Background(), sample(id))
		if err == nil {
			accepted = append(accepted, id)
			continue
		}
		wantUnavailable(t, err)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the operator does not learn why: %v", err)
		}
		full++
		if got := calls(t, logFile(dir)); !slices.Equal(got, accepted) {
			t.Fatalf("while full the log holds %q, accepted were %q", got, accepted)
		}
		if full == 10 {
			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
		}
		if full > 10 {
			break
		}
	}
	if full != 11 {
		t.Fatalf("refused %d times, want 10 before and 1 after the space returned", full)
	}
	mustClose(t, l)
	if got := calls(t, logFile(dir)); !slices.Equal(got, accepted) {
		t.Errorf("the log holds %q, accepted were %q", got, accepted)
	}
	// A full disk keeps nobody from reading where the log ends.
	l = open(t, dir, Options{})
	wantUnavailable(t, l.Append(context.Background(), sample("still full")))
	mustClose(t, l)
}

// Writes that go to a device which is always full.
func TestDevFull(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	defer full.Close()
	m := &memory{}
	l := open(t, t.TempDir(), Options{open: m.open})
	mustAppend(t, l, "a")
	m.onWrite = full.Write
	for range 3 {
		err := l.Append(context.Background(), sample("refused"))
		wantUnavailable(t, err)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("got %v", err)
		}
	}
	m.onWrite = nil
	mustAppend(t, l, "b")
	mustClose(t, l)
	if got := calls(t, m.saved(t)); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the log holds %q", got)
	}
}
