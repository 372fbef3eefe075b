package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/app/demo"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
)

func newDemo(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "A short guided tour",
		Long: `Send ten completions of a model through the whole gateway, on the built-in
configuration: judge, write to the audit log, execute. Each is shown with its
verdict and with what the model would read. The demo works in a folder of its
own, which it removes.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return e.demo(c.Context()) },
	}
}

func (e env) demo(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "callgate-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the demo: %w", oserr.Reason(err))
	}
	defer os.RemoveAll(dir)
	loaded, err := configs.Default(dir)
	if err != nil {
		return err
	}
	r, err := app.Open(ctx, loaded, nil, e.options(e.warnings()))
	if err != nil {
		return err
	}
	color := terminal.Colorizer(terminal.IsTerminal(terminalOf(e.stdout)))
	demo.Demo{Out: e.stdout, Color: color, Executor: r.Executor}.Run(ctx)
	if err := r.Close(); err != nil {
		return err
	}
	report, err := audit.Verify(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		return cli.InternalError{Err: errors.New("the audit log of the demo does not verify")}
	}
	fmt.Fprintf(e.stdout, "%s %d records, each with the hash of the one before; the chain holds.\n", color(terminal.Bold, "The audit log:"), report.Records)
	fmt.Fprintf(e.stdout, "Next: echo '%s' | callgate call\n", demo.FirstCompletion())
	return nil
}

// terminalOf is what a writer of ours writes to.
func terminalOf(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}
