package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/tools/internal/sample"
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
		return sample.Healthcheck(ctx, "sampletool", defaultListen, args[1:], stderr)
	}
	var o options
	flags := flag.NewFlagSet("sampletool", flag.ContinueOnError)
	flags.StringVar(&o.listen, "listen", defaultListen, "the `address` to listen on, host:port; port 0 is any free one")
	flags.StringVar(&o.root, "root", "", "the `folder` of texts that is searched and read; a bundled one if absent")
	flags.StringVar(&o.hits, "hits", "", "the `file` to append one line to for each request, before it is acted on")
	flags.StringVar(&o.later, "later", "plain",
		"the `modes` in which calls of /later are answered: some of "+strings.Join(modes, ", ")+", joined by +")
	flags.DurationVar(&o.delay, "later-delay", 0, "the `time` before such an answer")
	flags.DurationVar(&o.lateness, "later-late", 3*time.Second, "the `time` before a late one")
	flags.DurationVar(&o.patience, "later-patience", time.Minute, "the `time` for which an answer is tried again")
	if code, ok := sample.Parse(flags, args, stderr); !ok {
		return code
	}
	return sample.ExitCode("sampletool", start(ctx, o, stdout, stderr), stderr)
}

// start opens what the options name, and serves.
func start(ctx context.Context, o options, stdout, stderr io.Writer) error {
	texts, err := bundled()
	if err != nil {
		return err
	}
	if o.root != "" {
		root, err := os.OpenRoot(o.root)
		if err != nil {
			return fmt.Errorf("--root %s: %w", o.root, oserr.Reason(err))
		}
		defer root.Close()
		texts = root.FS()
	}
	var file io.Writer
	if o.hits != "" {
		f, err := os.OpenFile(o.hits, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
		if err != nil {
			return fmt.Errorf("--hits %s: %w", o.hits, oserr.Reason(err))
		}
		defer f.Close()
		file = f
	}
	as, err := parseModes(o.later)
	if err != nil {
		return fmt.Errorf("--later: %w", err)
	}
	answering, stop := context.WithCancel(context.WithoutCancel(ctx))
	answers := newLater(answering, as, o.delay, o.lateness, o.patience)
	defer answers.underway.Wait()
	defer stop()
	listener, err := sample.Listen("sampletool", o.listen, stdout)
	if err != nil {
		return err
	}
	handler := newHandler(tools(library{texts}, time.Now), newHits(file, time.Now), stderr)
	answers.mount(handler)
	return sample.Serve(ctx, newServer(handler, stderr), listener, sample.Grace)
}

// newServer has time for the longest wait of /slow, and to read and answer.
func newServer(handler http.Handler, stderr io.Writer) *http.Server {
	return sample.NewServer("sampletool", handler, maxWait+20*time.Second, stderr)
}
