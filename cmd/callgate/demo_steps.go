package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/terminal"
)

// demoStep is one completion of the demo, and how often it is sent.
type demoStep struct {
	title, completion string
	times             int
}

// demoSteps are the demo. Each but the first two fails in one way; the last is
// sent until the limit of its agent is reached.
func demoSteps() []demoStep {
	return []demoStep{
		{"A strict tool call runs", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","num_results":1}}}`, 1},
		{"Plain text passes unchanged", "The answer needs no tool.", 1},
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

// demo shows the steps.
type demo struct {
	Out   io.Writer
	Color func(terminal.Color, string) string
	// Pause waits between two screens; nil does not wait. An error ends the demo.
	Pause func() error
	// Executor has the built-in configuration.
	Executor *calls.Executor
}

// stepsOfScreen is how many steps are shown together, so that there are three screens.
const stepsOfScreen = 4

// Run sends every completion and shows what becomes of it.
func (t demo) Run(ctx context.Context) error {
	for i, s := range demoSteps() {
		if i > 0 && i%stepsOfScreen == 0 && t.Pause != nil {
			if err := t.Pause(); err != nil {
				return err
			}
		}
		t.show(ctx, i+1, s)
	}
	return nil
}

// firstCompletion is the first completion of the demo, which runs.
func firstCompletion() string { return demoSteps()[0].completion }

// show sends a completion, as often as its step says or until it is refused.
func (t demo) show(ctx context.Context, number int, s demoStep) {
	fmt.Fprintf(t.Out, "%s\n", t.Color(terminal.Bold, fmt.Sprintf("%d. %s", number, s.title)))
	fmt.Fprintln(t.Out, indent("model", s.completion))
	var o calls.Outcome
	sent := 0
	for o.Refusal == nil && sent < s.times {
		o = t.Executor.Execute(ctx, t.Executor.Judge(ctx, gateway.Request{Inputs: []gateway.Input{{Completion: []byte(s.completion)}}}))[0]
		sent++
	}
	if sent > 1 {
		fmt.Fprintf(t.Out, "   (sent %d times)\n", sent)
	}
	switch {
	case o.Refusal != nil:
		fmt.Fprintf(t.Out, "   %s %s, by the stage %s\n", t.Color(terminal.Red, "refused:"), o.Refusal.Code, o.Refusal.Stage)
	case o.Result == nil:
		fmt.Fprintf(t.Out, "   %s\n\n", t.Color(terminal.Green, "text"))
		return
	default:
		fmt.Fprintf(t.Out, "   %s\n", t.Color(terminal.Green, "accepted and executed"))
	}
	fmt.Fprintf(t.Out, "%s\n\n", indent("reads", string(o.Result)))
}

// indent shows a block of text, with who writes or reads it before each line.
func indent(who, s string) string {
	return "   " + who + " | " + strings.ReplaceAll(s, "\n", "\n   "+who+" | ")
}
