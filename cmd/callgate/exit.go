package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/oserr"
)

// The exit codes of every command.
const (
	exitAccepted = 0 // a call or text that passed; for other commands, done
	exitRefused  = 1
	exitUsage    = 2 // of the command line, the configuration or a file
	exitInternal = 3 // also where a gateway that was asked is away
)

// exitCode says what went wrong, on one line but for a configuration, which
// gets a line for each fault, and returns the code to end with.
func exitCode(stderr io.Writer, err error) int {
	var faults document.Faults
	var internal cli.InternalError
	var peer cli.PeerError
	switch {
	case err == nil:
		return exitAccepted
	case errors.Is(err, cli.ErrRefused):
		return exitRefused
	case errors.Is(err, cli.ErrInvalidLines):
		return exitUsage
	case errors.As(err, &faults):
		fmt.Fprintf(stderr, "%v\n", faults)
		return exitUsage
	case errors.As(err, &peer):
		fmt.Fprintf(stderr, "callgate: %v\n", peer.Err)
		return exitInternal
	case errors.As(err, &internal):
		fmt.Fprintf(stderr, "callgate: internal error: %v\n", internal.Err)
		return exitInternal
	}
	fmt.Fprintf(stderr, "callgate: %v\n", err)
	return exitUsage
}

// output remembers the first error of writing to standard output, so that a
// closed pipe or a full disk ends no command as if it had been heard.
type output struct {
	io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.Writer.Write(p)
	if err != nil {
		o.err = fmt.Errorf("cannot write to standard output: %w", oserr.Reason(err))
	}
	return n, o.err
}
