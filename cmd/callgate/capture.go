package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/capture"
	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/netx"
	"github.com/callgate/callgate/internal/oserr"
)

// captureFlags are those of callgate capture.
type captureFlags struct {
	listen, upstream, out         string
	bodies, anyListener, insecure bool
	requests                      int
	duration                      time.Duration
}

func newCapture(e cmdenv.Env) *cobra.Command {
	var f captureFlags
	c := &cobra.Command{
		Use:   "capture --upstream URL --out FOLDER",
		Short: "Record the tools that an application sends to its model, for import",
		Long: `Listen between an application and its model provider, pass everything on unchanged, and
record the tools of its requests. Nothing is judged: do not leave it in production.

Give the application http://LISTEN as its base URL, with the path that the provider's has,
such as http://127.0.0.1:8089/v1 with --upstream https://api.openai.com. Use the
application, then end this by ctrl-C, --requests or --for.

Tools of POST .../chat/completions, .../messages and .../responses are recorded, each
definition once, in openai.json, anthropic.json and responses.json of the folder, which
tools import and init --from request read. Another definition of the same name is
in NAME.conflicts.json. Headers, and so API keys, are never recorded, and prompts only with
--bodies. Files are readable by you alone.

Anyone who reaches the listener uses your provider through it, with credentials of their
own: it is on loopback unless --allow-any-listener is given.`,
		Example: `  callgate capture --upstream https://api.openai.com --out captured
  callgate tools import openai captured/openai.json > tools/app.yaml`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runCapture(c.Context(), e, f) },
	}
	c.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8089", "`HOST:PORT` of the proxy")
	c.Flags().StringVar(&f.upstream, "upstream", "", "the `URL` of the provider, without the path that the application sends")
	c.Flags().StringVar(&f.out, "out", "", "the `FOLDER` of the files; it must be absent or empty")
	c.Flags().BoolVar(&f.bodies, "bodies", false, "record whole bodies of requests, too: prompts, and what users wrote")
	c.Flags().BoolVar(&f.anyListener, "allow-any-listener", false, "allow --listen beyond loopback")
	c.Flags().BoolVar(&f.insecure, "insecure-http", false, "allow --upstream over plain HTTP beyond loopback")
	c.Flags().IntVar(&f.requests, "requests", 0, "stop after this `NUMBER` of requests to a model (default: none)")
	c.Flags().DurationVar(&f.duration, "for", 0, "stop after this `TIME`, such as 10m (default: none)")
	// Flags that were just added can be marked.
	_ = c.MarkFlagDirname("out")
	_ = c.MarkFlagRequired("upstream")
	_ = c.MarkFlagRequired("out")
	return c
}

func runCapture(ctx context.Context, e cmdenv.Env, f captureFlags) error {
	upstream, err := capture.CheckUpstream(f.upstream, f.insecure)
	if err != nil {
		return err
	}
	if f.requests < 0 || f.duration < 0 {
		return errors.New("--requests and --for: expected more than nothing")
	}
	if !f.anyListener && !netx.IsLoopbackListener(f.listen) {
		return fmt.Errorf("--listen %s is not of loopback: everybody who reaches it could use the provider through it; expected 127.0.0.1:PORT, or --allow-any-listener", f.listen)
	}
	if err := emptyFolder(f.out); err != nil {
		return err
	}
	var listening net.ListenConfig
	listener, err := listening.Listen(ctx, "tcp", f.listen)
	if err != nil {
		return fmt.Errorf("cannot listen on %s: %w", f.listen, oserr.Reason(err))
	}
	if f.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.duration)
		defer cancel()
	}
	fmt.Fprintf(e.Stderr, "capture: http://%s passes everything on to %s and judges nothing; tools are recorded in %s\n", listener.Addr(), upstream, f.out)
	summary, err := capture.Serve(ctx, listener, capture.Options{
		Upstream: upstream, Folder: f.out, Bodies: f.bodies, Requests: f.requests, AnyHost: f.anyListener,
		Log: func(line string) { fmt.Fprintln(e.Stderr, line) },
	})
	if err != nil {
		return err
	}
	return printCaptured(e, summary, f.out)
}

// printCaptured says what was recorded, and how it is imported.
func printCaptured(e cmdenv.Env, s capture.Summary, folder string) error {
	fmt.Fprintf(e.Stderr, "capture: %d requests to a model, %d not recorded\n", s.Requests, s.Skipped)
	if s.BodyFiles > 0 {
		fmt.Fprintf(e.Stderr, "capture: %d bodies in %s hold prompts: remove them when they are read\n", s.BodyFiles, filepath.Join(folder, "bodies"))
	}
	for _, file := range s.Files {
		fmt.Fprintf(e.Stderr, "capture: %d tools in %s, %d conflicts\n", file.Tools, file.Path, file.Conflicts)
		fmt.Fprintf(e.Stdout, "callgate tools import %s %s\n", file.API, file.Path)
	}
	if len(s.Files) == 0 {
		fmt.Fprintln(e.Stderr, "capture: no tools were seen")
		return cli.ErrRefused
	}
	return nil
}

// emptyFolder makes a folder, or finds one that is empty: nothing of an earlier capture is mixed in.
func emptyFolder(name string) error {
	if err := os.MkdirAll(name, 0o700); err != nil {
		return fmt.Errorf("cannot make %s: %w", name, oserr.Reason(err))
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, oserr.Reason(err))
	}
	if len(entries) > 0 {
		return fmt.Errorf("--out %s is not empty; expected a folder of its own", name)
	}
	return nil
}
