package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"
	"time"
)

// Exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // not healthy; or asked to stop, and requests had to be cut off
	exitUsage  = 2 // a wrong argument, or something that is needed is not there
	exitBroke  = 3 // the listener failed
)

const defaultListen = "127.0.0.1:9000"

// options are the flags.
type options struct {
	listen string // host:port; port 0 is any free one
	root   string // the folder of texts; empty is the bundled one
	hits   string // the file that hits are appended to; empty is none

	later    string        // how calls are answered later that do not say
	delay    time.Duration // before such an answer
	lateness time.Duration // before a late one
	patience time.Duration // how long an answer is tried again
}

// run is the whole program. It serves until ctx ends and returns an exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "healthcheck" {
		return healthcheck(ctx, args[1:], stderr)
	}
	var o options
	flags := flag.NewFlagSet("sampletool", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", defaultListen, "the `address` to listen on, host:port; port 0 is any free one")
	flags.StringVar(&o.root, "root", "", "the `folder` of texts that is searched and read; a bundled one if absent")
	flags.StringVar(&o.hits, "hits", "", "the `file` to append one line to for each request, before it is acted on")
	flags.StringVar(&o.later, "later", "plain", "the `manners` in which calls of /later are answered: some of "+strings.Join(manners, ", ")+", joined by +")
	flags.DurationVar(&o.delay, "later-delay", 0, "the `time` before such an answer")
	flags.DurationVar(&o.lateness, "later-late", 3*time.Second, "the `time` before a late one")
	flags.DurationVar(&o.patience, "later-patience", time.Minute, "the `time` for which an answer is tried again")
	if code, ok := parse(flags, args, stderr); !ok {
		return code
	}
	if err := start(ctx, o, stdout, stderr); err != nil {
		fmt.Fprintf(stderr, "sampletool: %v\n", err)
		var e *exitError
		if errors.As(err, &e) {
			return e.code
		}
		return exitUsage
	}
	return exitDone
}

// parse reads flags that have no arguments beside them. It is false where the
// program is to end with the code.
func parse(flags *flag.FlagSet, args []string, stderr io.Writer) (int, bool) {
	flags.SetOutput(stderr)
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return exitDone, false
	case err != nil:
		return exitUsage, false
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "sampletool: found the argument %q; expected flags only\n", flags.Arg(0))
		return exitUsage, false
	}
	return exitDone, true
}

// exitError is an error that has an exit code of its own.
type exitError struct {
	code  int
	cause error
}

func (e *exitError) Error() string { return e.cause.Error() }
func (e *exitError) Unwrap() error { return e.cause }

// start opens what the options name, and serves.
func start(ctx context.Context, o options, stdout, stderr io.Writer) error {
	texts, err := bundled()
	if err != nil {
		return err
	}
	if o.root != "" {
		root, err := os.OpenRoot(o.root)
		if err != nil {
			return fmt.Errorf("--root %s: %w", o.root, reason(err))
		}
		defer root.Close()
		texts = root.FS()
	}
	var file io.Writer
	if o.hits != "" {
		f, err := os.OpenFile(o.hits, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return fmt.Errorf("--hits %s: %w", o.hits, reason(err))
		}
		defer f.Close()
		file = f
	}
	as, err := parseManners(o.later)
	if err != nil {
		return fmt.Errorf("--later: %w", err)
	}
	answering, stop := context.WithCancel(context.WithoutCancel(ctx))
	answers := newLater(answering, as, o.delay, o.lateness, o.patience)
	defer answers.underway.Wait()
	defer stop()
	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("--listen %s: %w", o.listen, err)
	}
	if _, err := fmt.Fprintf(stdout, "sampletool listening on %s\n", listener.Addr()); err != nil {
		_ = listener.Close()
		return fmt.Errorf("cannot say where it listens: %w", err)
	}
	handler := newHandler(tools(library{texts}, time.Now), newHits(file, time.Now), stderr)
	answers.mount(handler)
	s := server{
		handler: handler,
		limits:  defaultLimits(),
		stderr:  stderr,
	}
	return s.serve(ctx, listener)
}

// reason takes operation and path out of an error of the system.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
