//go:build unix

package program_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/program"
	"github.com/callgate/callgate/internal/testkit/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// patience is far longer than anything here takes.
const patience = 30 * time.Second

// session is a program that runs.
type session struct {
	*program.Program
	t     *testing.T
	lines *bufio.Scanner
	done  chan struct{}
	over  chan struct{} // Supervise has returned
}

func start(t *testing.T, script string, variables ...string) *session {
	t.Helper()
	p, err := program.Start([]string{"sh", "-c", script}, t.TempDir(), variables)
	if err != nil {
		t.Fatal(err)
	}
	s := &session{Program: p, t: t, lines: bufio.NewScanner(p.Output), done: make(chan struct{}), over: make(chan struct{})}
	go func() {
		p.Supervise(s.done)
		close(s.over)
	}()
	return s
}

func (s *session) line() string {
	s.t.Helper()
	if !s.lines.Scan() {
		s.t.Fatalf("no line: %v", s.lines.Err())
	}
	return s.lines.Text()
}

// ends reads the rest of the program's standard error and waits for Supervise to return.
func (s *session) ends() {
	s.t.Helper()
	_, _ = io.Copy(io.Discard, s.Errors)
	select {
	case <-s.over:
	case <-time.After(patience):
		s.t.Fatal("the program still runs")
	}
}

// gone waits for a process to be no more.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); syscall.Kill(n, 0) == nil; time.Sleep(time.Millisecond) {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		if _, rest, _ := strings.Cut(string(stat), ") "); strings.HasPrefix(rest, "Z") {
			return // somebody else has to reap it
		}
		if time.Now().After(end) {
			t.Fatalf("process %s still runs", pid)
		}
	}
}

// TestPrograms: they speak, have the variables that they are given and few of ours, and a folder.
func TestPrograms(t *testing.T) {
	t.Setenv("CALLGATE_SECRET", "secret")
	t.Setenv("HOME", "/nonexistent")
	s := start(t, `read line; echo "got $line"; echo err >&2; pwd; env; exit 3`, "OWN=own value", "HOME=/srv")
	if _, err := io.WriteString(s.Input, "hello\n"); err != nil {
		t.Fatal(err)
	}
	if got := s.line(); got != "got hello" {
		t.Error(got)
	}
	if got := s.line(); !strings.Contains(got, "TestPrograms") {
		t.Error(got)
	}
	var env []string
	for s.lines.Scan() {
		env = append(env, s.lines.Text())
	}
	if all := strings.Join(env, "\n"); !slices.Contains(env, "OWN=own value") || !slices.Contains(env, "HOME=/srv") || strings.Contains(all, "secret") || strings.Contains(all, "nonexistent") {
		t.Errorf("%q", env)
	}
	var complaints []string
	program.EachLine(s.Errors, func(line string) { complaints = append(complaints, line) })
	<-s.Exited()
	if s.Status() != "exit status 3" || strings.Join(complaints, "|") != "err" {
		t.Errorf("%s, %q", s.Status(), complaints)
	}
	close(s.done)
	s.ends()
	if _, err := program.Start([]string{"callgate-no-such-program"}, "", nil); !errors.Is(err, exec.ErrNotFound) {
		t.Error(err)
	}
}

// TestProgramsEnd: a program ends once its input does, or else when it is asked, or else when it is
// killed, and with it whatever it has started.
func TestProgramsEnd(t *testing.T) {
	for script, want := range map[string]string{
		`trap 'exit 7' TERM; sleep 1000 & echo $$ $!; read line; exit 7`: "exit status 7",
		`trap 'exit 8' TERM; sleep 1000 & echo $$ $!; wait; sleep 1000`:  "exit status 8",
		`trap '' TERM; sleep 1000 & echo $$ $!; while :; do wait; done`:  "signal: killed",
	} {
		s := start(t, script)
		pids := strings.Fields(s.line())
		close(s.done)
		s.ends()
		if s.Status() != want {
			t.Errorf("%s: %s", script, s.Status())
		}
		for _, pid := range pids {
			gone(t, pid)
		}
		if _, err := s.Output.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
}

// TestProgramsThatLeaveChildren: the output of a program ends with it, although a child holds it open.
func TestProgramsThatLeaveChildren(t *testing.T) {
	s := start(t, `sleep 1000 & echo $!; exit 0`)
	child := s.line()
	if s.lines.Scan() || s.lines.Err() != nil { // the end
		t.Errorf("%q, %v", s.lines.Text(), s.lines.Err())
	}
	<-s.Exited()
	gone(t, child)
	close(s.done)
	s.ends()
	if s.Status() != "exit status 0" {
		t.Error(s.Status())
	}
}

// TestLastWords: the standard error of a program that is told to end, and that ends by itself
// before anybody has read it, can still be read.
func TestLastWords(t *testing.T) {
	s := start(t, `echo ready; read line; echo "cannot continue" >&2; exit 3`)
	s.line()
	close(s.done) // its input ends
	<-s.Exited()
	time.Sleep(100 * time.Millisecond) // a busy reader comes late
	var last []string
	program.EachLine(s.Errors, func(line string) { last = append(last, line) })
	s.ends()
	if strings.Join(last, "|") != "cannot continue" {
		t.Errorf("%q", last)
	}
}

// TestKill ends a program that has no session.
func TestKill(t *testing.T) {
	p, err := program.Start([]string{"sh", "-c", "trap '' TERM; echo $$; while :; do sleep 1; done"}, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(p.Output)
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	p.Kill()
	gone(t, lines.Text())
}
