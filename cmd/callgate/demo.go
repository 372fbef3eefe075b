package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/audit"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/input"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
)

func newDemo(e env) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "A short guided tour",
		Long: `Send ten completions of a model through the whole gateway, on the built-in
configuration: judge, write to the audit log, execute. Each is shown with its
verdict and with what the model would read. The demo works in a folder of its
own, which it removes.

On a terminal it has three screens, and waits for the Enter key between them; --all
shows everything at once. Without a terminal there is no pause, and no color; nor is
there color with NO_COLOR set, or TERM=dumb.`,
		Example: "  callgate demo\n  callgate demo --all | less",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), e, all) },
	}
	c.Flags().BoolVar(&all, "all", false, "do not wait between the screens")
	return c
}

func runDemo(ctx context.Context, e env, all bool) (err error) {
	dir, err := os.MkdirTemp("", "callgate-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the demo: %w", oserr.Reason(err))
	}
	defer os.RemoveAll(dir)
	loaded, err := configs.Default(dir)
	if err != nil {
		return err
	}
	r, err := app.Open(ctx, loaded, nil, runtimeOptions(e, warningLog(e)))
	if err != nil {
		return err
	}
	color := terminal.Colorizer(terminal.Colorful(terminalOf(e.Stdout)))
	steps := demo{Out: e.Stdout, Color: color, Executor: r.Executor}
	if !all && terminal.IsTerminal(terminalOf(e.Stdout)) && terminal.IsTerminal(e.Stdin) {
		steps.Pause = waitForEnter(e, bufio.NewReader(input.ContextReader(ctx, io.NopCloser(e.Stdin))))
	}
	if err := errors.Join(steps.Run(ctx), r.Close()); err != nil {
		return err
	}
	report, err := audit.Verify(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		return cli.InternalError{Err: errors.New("the audit log of the demo does not verify")}
	}
	fmt.Fprintf(e.Stdout, "%s %d records, each with the hash of the one before; the chain holds.\n", color(terminal.Bold, "The audit log:"), report.Records)
	fmt.Fprintf(e.Stdout, "Next: echo '%s' | callgate call\n", firstCompletion())
	return nil
}

// waitForEnter waits for a line of somebody at the terminal. At the end of the input it waits no more.
func waitForEnter(e env, in *bufio.Reader) func() error {
	return func() error {
		fmt.Fprint(e.Stderr, "-- Enter: continue --")
		_, err := in.ReadString('\n')
		fmt.Fprint(e.Stderr, "\n")
		if err == io.EOF {
			err = nil
		}
		return err
	}
}

// terminalOf is what a writer of ours writes to.
func terminalOf(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}
