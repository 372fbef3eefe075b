package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
)

// demoStep is one completion of the tour, and how often it is sent.
type demoStep struct {
	title, completion string
	times             int
}

// demoSteps are the tour. Each but the first two fails in one way; the last is
// sent until the limit of its agent is reached.
func demoSteps() []demoStep {
	return []demoStep{
		{"A strict tool call runs", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","num_results":1}}}`, 1},
		{"Plain text goes on as it is", "The answer needs no tool.", 1},
		{"A code fence around the call", "```json\n{\"tool\":{\"name\":\"time.now\",\"arguments\":{}}}\n```", 1},
		{"Prose around the call", "Sure, let me look.\n" + `{"tool":{"name":"time.now","arguments":{}}}`, 1},
		{"A name that is nearly right", `{"tool":{"name":"web_search","arguments":{"query":"agent memory"}}}`, 1},
		{"An argument too many", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","extra":1}}}`, 1},
		{"A wrong type", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","num_results":"3"}}}`, 1},
		{"A tool that this agent may not use", `{"tool":{"name":"files.delete","arguments":{"path":"notes.md"}}}`, 1},
		{"A path outside the project", `{"tool":{"name":"files.read","arguments":{"path":"../../secrets.txt"}}}`, 1},
		{"Over the limit", `{"tool":{"name":"web.search","arguments":{"query":"tides","num_results":1}}}`, 5},
	}
}

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
	tour := demoRun{w: e.stdout, color: terminal.Colorizer(terminal.IsTerminal(terminalOf(e.stdout))), kernel: r.Executor}
	for i, s := range demoSteps() {
		tour.step(ctx, i+1, s)
	}
	if err := r.Close(); err != nil {
		return err
	}
	report, err := audit.Verify(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		return cli.InternalError{Err: errors.New("the audit log of the demo does not verify")}
	}
	fmt.Fprintf(e.stdout, "%s %d records, each with the hash of the one before; the chain holds.\n", tour.color(terminal.Bold, "The audit log:"), report.Records)
	fmt.Fprintf(e.stdout, "Next: echo '%s' | callgate call\n", demoSteps()[0].completion)
	return nil
}

// demoRun shows scenes.
type demoRun struct {
	w      io.Writer
	color  func(terminal.Color, string) string
	kernel *calls.Executor
}

func (t demoRun) step(ctx context.Context, number int, s demoStep) {
	fmt.Fprintf(t.w, "%s\n", t.color(terminal.Bold, fmt.Sprintf("%d. %s", number, s.title)))
	fmt.Fprintln(t.w, indent("model", s.completion))
	var o calls.Outcome
	sent := 0
	for o.Refusal == nil && sent < s.times {
		o = t.kernel.Execute(ctx, t.kernel.Judge(ctx, gateway.Request{Inputs: []gateway.Input{{Completion: []byte(s.completion)}}}))[0]
		sent++
	}
	if sent > 1 {
		fmt.Fprintf(t.w, "   (sent %d times)\n", sent)
	}
	switch {
	case o.Refusal != nil:
		fmt.Fprintf(t.w, "   %s %s, by the stage %s\n", t.color(terminal.Red, "refused:"), o.Refusal.Code, o.Refusal.Stage)
	case o.Result == nil:
		fmt.Fprintf(t.w, "   %s\n\n", t.color(terminal.Green, "text"))
		return
	default:
		fmt.Fprintf(t.w, "   %s\n", t.color(terminal.Green, "accepted and executed"))
	}
	fmt.Fprintf(t.w, "%s\n\n", indent("reads", string(o.Result)))
}

// indent shows a block of text, with who writes or reads it before each line.
func indent(who, s string) string {
	return "   " + who + " | " + strings.ReplaceAll(s, "\n", "\n   "+who+" | ")
}

// terminalOf is what a writer of ours writes to.
func terminalOf(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}
