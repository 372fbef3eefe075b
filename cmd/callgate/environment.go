package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/input"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
)

// env is what a command may touch.
type env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Version is that of the program.
	Version string
	// ChangeParts changes the parts of a kernel before it is made. It is how a test has a
	// process fail at a point that it names; the program has none, and nothing that
	// it reads can give it one.
	ChangeParts func(calls.Deps) calls.Deps
	// Wait is how long the disk and Redis are waited for; zero is as long as the
	// packages that ask them say. A test has more patience, on a machine that is busy
	// with others.
	Wait time.Duration
	// DrainDelay is how long a draining gateway still accepts connections; zero is as long as
	// app says. A test that has no load balancer has no need of it.
	DrainDelay time.Duration
}

// Engine is that of a command which does not serve: it asks tool servers what they have.
func (e env) Engine() *app.Engine {
	return app.NewEngine(e.Version, engine.Options{}, nil, nil)
}

// Open opens the file of an argument, or standard input for none and "-". Reading
// ends when the context does. A terminal is said to be waited for: a command that is silent
// there looks as if it hung.
func (e env) Open(ctx context.Context, args []string) (io.ReadCloser, string, error) {
	if len(args) == 0 || args[0] == "-" {
		if e.IsTerminal() {
			fmt.Fprintln(e.Stderr, "callgate: reading standard input from this terminal; Ctrl-D at the beginning of a line ends it")
		}
		return input.ContextReader(ctx, io.NopCloser(e.Stdin)), "standard input", nil
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, "", fmt.Errorf("cannot read %s: %w", args[0], oserr.Reason(err))
	}
	if info, err := f.Stat(); err != nil || info.IsDir() {
		f.Close()
		if err != nil {
			return nil, "", fmt.Errorf("cannot read %s: %w", args[0], oserr.Reason(err))
		}
		return nil, "", fmt.Errorf("cannot read %s: it is a directory", args[0])
	}
	return input.ContextReader(ctx, f), args[0], nil
}

// maxImportBytes bounds a file of definitions.
const maxImportBytes = 64 << 20

// Definitions reads a file of definitions whole.
func (e env) Definitions(ctx context.Context, args []string) (name string, data []byte, err error) {
	in, name, err := e.Open(ctx, args)
	if err != nil {
		return "", nil, err
	}
	defer in.Close()
	data, err = io.ReadAll(io.LimitReader(in, maxImportBytes+1))
	if err != nil {
		return "", nil, fmt.Errorf("cannot read %s: %w", name, oserr.Reason(err))
	}
	if len(data) > maxImportBytes {
		return "", nil, fmt.Errorf("%s is larger than %d MiB", name, maxImportBytes>>20)
	}
	return name, data, nil
}

// IsTerminal reports whether standard input is one.
func (e env) IsTerminal() bool {
	f, ok := e.Stdin.(*os.File)
	return ok && terminal.IsTerminal(f)
}

// Confirm asks a question, whose answer must be y or yes.
func (e env) Confirm(question string) bool {
	fmt.Fprint(e.Stderr, question)
	line, err := bufio.NewReader(e.Stdin).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}
