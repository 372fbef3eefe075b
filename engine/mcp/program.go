package mcp

import (
	"errors"
	"os"
	"os/exec"
	"time"

	"github.com/callgate/callgate/engine/internal/refuse"
)

// exitGrace is how long a program has to end by itself, and again after it was asked.
const exitGrace = time.Second

// program is a running program, with our ends of its standard input and output.
type program struct {
	command       *exec.Cmd
	input, output *os.File
	errors        *os.File // its standard error
	exited        chan struct{}
}

// startProgram starts the program of an endpoint in a process group of its own, with its
// own environment.
func startProgram(p endpoint) (_ *program, err error) {
	var files []*os.File
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
		}
	}()
	pipe := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	stdin, input, err := pipe()
	if err != nil {
		return nil, err
	}
	output, stdout, err := pipe()
	if err != nil {
		return nil, err
	}
	complaints, stderr, err := pipe()
	if err != nil {
		return nil, err
	}
	c := exec.Command(p.command[0], p.command[1:]...)
	c.Stdin, c.Stdout, c.Stderr, c.Dir, c.Env = stdin, stdout, stderr, p.folder, environment(p.variables)
	ownProcessGroup(c)
	if err := c.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, refuse.Reason("its program was not found")
		}
		return nil, err
	}
	stdin.Close()
	stdout.Close()
	stderr.Close()
	return &program{command: c, input: input, output: output, errors: complaints, exited: make(chan struct{})}, nil
}

// supervise waits for the program, and ends it once its session is done.
func (p *program) supervise(done <-chan struct{}) {
	go func() {
		_ = p.command.Wait()
		close(p.exited)
	}()
	select {
	case <-done:
	case <-p.exited:
		// Its output ends only once every process that could write to it has ended.
		signalGroup(p.command, true)
		select {
		case <-done:
		case <-time.After(exitGrace):
		}
	}
	p.stop()
}

// stop ends the program: its input is closed, then it is asked, then it is killed,
// and whatever it has started with it.
func (p *program) stop() {
	p.input.Close()
	if !p.exitsWithin(exitGrace) {
		signalGroup(p.command, false)
		if !p.exitsWithin(exitGrace) {
			signalGroup(p.command, true)
		}
	}
	<-p.exited
	signalGroup(p.command, true)
	p.output.Close()
	p.errors.Close()
}

func (p *program) exitsWithin(limit time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(limit):
		return false
	}
}

// kill ends a program that has no session.
func (p *program) kill() {
	signalGroup(p.command, true)
	_ = p.command.Wait()
	p.input.Close()
	p.output.Close()
	p.errors.Close()
}
