package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// child is a process that was started here. Its output is in a file.
type child struct {
	name  string
	cmd   *exec.Cmd
	lines chan string   // its first lines, until nobody reads them
	ended chan struct{} // closed when it has ended
}

// comeUp is how long a process has to come up, goDown how long to end.
const (
	comeUp = 30 * time.Second
	goDown = 15 * time.Second
)

// launch starts a program in a folder, to which its log is written as name.log.
func launch(name, folder string, environment []string, program string, args ...string) (*child, error) {
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the reader below has its own
	output, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer input.Close()
	c := &child{name: name, cmd: exec.Command(program, args...), lines: make(chan string, 100), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = folder, append(os.Environ(), environment...), input, input
	apart(c.cmd)
	if err := c.cmd.Start(); err != nil {
		output.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go c.listen(output, log.Name())
	go func() {
		_ = c.cmd.Wait() // how it ended is in its log
		close(c.ended)
	}()
	return c, nil
}

// listen writes what the process says to its log, and hands the first lines on.
func (c *child) listen(output io.ReadCloser, path string) {
	defer output.Close()
	defer close(c.lines)
	log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log = nil // the process must not wait for a reader
	}
	for reader := bufio.NewReader(output); ; {
		line, err := reader.ReadString('\n')
		if log != nil {
			_, _ = log.WriteString(line) // a full disk stops nothing here
		}
		select {
		case c.lines <- line:
		default:
		}
		if err != nil {
			break
		}
	}
	if log != nil {
		_ = log.Close()
	}
}

// await returns what find makes of the first line that it knows.
func (c *child) await(ctx context.Context, find func(line string) (string, bool)) (string, error) {
	late := time.NewTimer(comeUp)
	defer late.Stop()
	last := ""
	for {
		select {
		case <-ctx.Done():
			return "", errors.New("it was asked to end before everything had come up")
		case <-late.C:
			return "", fmt.Errorf("%s does not come up", c.name)
		case line, more := <-c.lines:
			if !more {
				return "", fmt.Errorf("%s has ended: %s", c.name, last)
			}
			if found, ok := find(line); ok {
				return found, nil
			}
			if line != "" {
				last = line
			}
		}
	}
}

// stop asks the process to end, and ends it when it does not.
func (c *child) stop() error {
	select {
	case <-c.ended:
		return nil
	default:
	}
	_ = c.cmd.Process.Signal(terminate) // where it has just ended, that is what is wanted
	select {
	case <-c.ended:
		return nil
	case <-time.After(goDown):
	}
	_ = c.cmd.Process.Kill()
	<-c.ended
	return fmt.Errorf("%s did not end within %v, and was killed", c.name, goDown)
}
