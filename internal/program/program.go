// Package program starts programs that speak over their standard input and output, and ends them
// with whatever they have started.
package program

import (
	"os"
	"os/exec"
	"sync"
	"time"
)

// Grace is how long a program has to end by itself, and again after it was asked.
const Grace = time.Second

// errorsGrace is how long the standard error of an ended program may take to be read. It is at its
// end at once, unless a process that has left the program's group holds it open.
const errorsGrace = 5 * time.Second

// Program is a running program, with our ends of its standard input, output and error.
type Program struct {
	Input, Output *os.File
	// Errors must be read until it ends: the last lines of a program say why it ended.
	Errors *Errors

	command *exec.Cmd
	exited  chan struct{}
}

// Start starts a program in a process group of its own, with the environment of Environment. An
// error for a command that there is not is exec.ErrNotFound.
func Start(command []string, folder string, variables []string) (_ *Program, err error) {
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
	c := exec.Command(command[0], command[1:]...)
	c.Stdin, c.Stdout, c.Stderr, c.Dir, c.Env = stdin, stdout, stderr, folder, Environment(variables)
	ownProcessGroup(c)
	if err := c.Start(); err != nil {
		return nil, err
	}
	stdin.Close()
	stdout.Close()
	stderr.Close()
	return &Program{
		command: c, Input: input, Output: output, exited: make(chan struct{}),
		Errors: &Errors{file: complaints, ended: make(chan struct{})},
	}, nil
}

// Errors is the standard error of a program. One goroutine may read it.
type Errors struct {
	file  *os.File
	ended chan struct{} // closed once a read has failed, or found the end
	once  sync.Once
}

// Read reads as os.File does.
func (e *Errors) Read(p []byte) (int, error) {
	n, err := e.file.Read(p)
	if err != nil {
		e.once.Do(func() { close(e.ended) })
	}
	return n, err
}

// closeAfterEnd closes the file once it was read to its end, or after errorsGrace.
func (e *Errors) closeAfterEnd() {
	select {
	case <-e.ended:
	case <-time.After(errorsGrace):
	}
	e.file.Close()
}

// Supervise waits for the program, and ends it and its group once its session is done: its input is
// closed, after Grace it is asked to end, and after Grace again it is killed. When the program ends
// by itself, its group is killed, and its output is still read for Grace. Supervise returns when the
// program has ended and its standard error was read to its end, or for errorsGrace; our ends are
// closed then.
func (p *Program) Supervise(done <-chan struct{}) {
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
		case <-time.After(Grace):
		}
	}
	p.stop()
}

// stop ends the program: its input is closed, then it is asked, then it is killed,
// and whatever it has started with it.
func (p *Program) stop() {
	p.Input.Close()
	if !p.ExitsWithin(Grace) {
		signalGroup(p.command, false)
		if !p.ExitsWithin(Grace) {
			signalGroup(p.command, true)
		}
	}
	<-p.exited
	signalGroup(p.command, true)
	p.Output.Close()
	p.Errors.closeAfterEnd()
}

// Exited is closed once the program itself has ended, which may leave processes behind that it has
// started. Supervise must run.
func (p *Program) Exited() <-chan struct{} { return p.exited }

// Status says how the program ended, such as "exit status 1". Exited must be closed.
func (p *Program) Status() string { return p.command.ProcessState.String() }

// ExitsWithin waits for the program to end, and reports whether it did within a time.
func (p *Program) ExitsWithin(limit time.Duration) bool {
	select {
	case <-p.exited:
		return true
	case <-time.After(limit):
		return false
	}
}

// Kill ends a program that has no session.
func (p *Program) Kill() {
	signalGroup(p.command, true)
	_ = p.command.Wait()
	p.Input.Close()
	p.Output.Close()
	p.Errors.file.Close()
}
