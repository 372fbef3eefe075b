package acptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// Process is an agent that runs as a process, behind an editor and a recorder.
type Process struct {
	*Editor
	*Recorder

	t      testing.TB
	cmd    *exec.Cmd
	in     io.Closer
	log    buffer
	ended  sync.Once
	exited error
}

// buffer collects what several goroutines write.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// Start starts a command as the agent of an Editor; the recorder holds the sides that are
// ours against the letter of the protocol. The test fails where the process does not end
// after its input has, and the recorder finds a fault.
func Start(t testing.TB, cmd *exec.Cmd, ours ...Side) *Process {
	t.Helper()
	p := &Process{t: t, cmd: cmd, Recorder: NewRecorder(t, ours...)}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr, p.in = &p.log, in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Editor = NewEditor(t, p.Reader(Agent, out), p.Writer(Client, in))
	t.Cleanup(func() {
		_ = p.Stop()
		p.Check(t)
	})
	return p
}

// Stop ends the input of the process, and returns how it has ended.
func (p *Process) Stop() error {
	p.ended.Do(func() {
		_ = p.in.Close()
		killed := time.AfterFunc(Patience, func() {
			p.t.Errorf("the process did not end with its input: %s", p.log.String())
			_ = p.cmd.Process.Kill()
		})
		p.Done()
		p.exited = p.cmd.Wait()
		killed.Stop()
	})
	return p.exited
}

// Log is the standard error of the process so far.
func (p *Process) Log() string { return p.log.String() }

// linesOf ends the name of the file with the lines of a scripted agent, of which each begins
// with its sender.
const (
	linesOf      = ".lines"
	sentByClient = ">"
	sentByAgent  = "<"
)

// Replay records the lines that a scripted agent, whose process has ended, has got and sent.
func Replay(t testing.TB, script string, ours ...Side) *Recorder {
	t.Helper()
	lines, err := os.ReadFile(script + linesOf)
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecorder(t, ours...)
	for line := range strings.Lines(string(lines)) {
		sender, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		r.Record(map[string]Side{sentByClient: Client, sentByAgent: Agent}[sender], []byte(text))
	}
	return r
}

// AgentMain is RunAgent for a process, which exits with what it returns. The file holds the
// script; the lines of both directions go to a file beside it, for Replay.
func AgentMain(file string) (exitCode int) {
	var s Script
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	var lines *os.File
	if err == nil {
		lines, err = os.OpenFile(file+linesOf, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer lines.Close()
	note := func(sender string) *tap {
		return &tap{record: func(line []byte) { fmt.Fprintf(lines, "%s %s\n", sender, line) }, w: io.Discard}
	}
	out := note(sentByAgent)
	out.w = os.Stdout
	RunAgent(process{}, s, io.TeeReader(os.Stdin, note(sentByClient)), out, os.Stderr)
	return 0
}

// process is the Reporter of a process.
type process struct{}

func (process) Helper() {}

func (process) Errorf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (p process) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	os.Exit(1)
}
