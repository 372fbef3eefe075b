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

	"github.com/callgate/callgate/audit"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
)

func newDemo(e env) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "A short guided tour",
		Long: `Take a short tour: twelve completions through the whole gateway with the built-in
configuration, in a temporary folder. Each is judged, recorded and executed, and has a line
with its verdict, in color on a terminal, unless NO_COLOR is set or TERM=dumb.`,
		Example: "  callgate demo --json | less",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return runDemo(c.Context(), e, asJSON) },
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print completions and what the model would read, as lines of JSON")
	return c
}

func runDemo(ctx context.Context, e env, asJSON bool) (err error) {
	dir, err := os.MkdirTemp("", "callgate-demo-")
	if err != nil {
		return fmt.Errorf("cannot make a folder for the demo in %s: %w; set TMPDIR to a folder that you may write to", os.TempDir(),
			oserr.Reason(err))
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
	var exchanges []demoExchange
	for _, s := range demoSteps() {
		var x demoExchange
		if x, err = s.send(ctx, r.Executor); err != nil {
			break
		}
		exchanges = append(exchanges, x)
	}
	if err := errors.Join(err, r.Close()); err != nil {
		return err
	}
	report, err := audit.Verify(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		return cli.InternalError{Err: errors.New("the audit log of the demo does not verify")}
	}
	if asJSON {
		for _, x := range exchanges {
			line, err := cli.JSONLine(x)
			if err != nil {
				return err
			}
			if _, err := e.Stdout.Write(line); err != nil {
				return err
			}
		}
		return nil
	}
	color := terminal.Colorizer(terminal.Colorful(terminalOf(e.Stdout)))
	printExchanges(e.Stdout, color, exchanges)
	fmt.Fprintf(e.Stdout, "\n%s %d records, each with the hash of the one before; the chain holds.\n",
		color(terminal.Bold, "The audit log:"), report.Records)
	fmt.Fprintln(e.Stdout, "What the model sent and read: callgate demo --json")
	fmt.Fprintf(e.Stdout, "%s callgate init mine && cd mine && callgate serve", color(terminal.Bold, "Next:"))
	if app.Has(configs.Console) {
		fmt.Fprintf(e.Stdout, "   (console: http://%s/console)", loaded.Server.AdminListen)
	}
	fmt.Fprintln(e.Stdout)
	return nil
}

// terminalOf is what a writer of ours writes to.
func terminalOf(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}
