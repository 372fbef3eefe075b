package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/wrapper"
)

// scene is one completion of the tour.
type scene struct {
	title, completion string
}

var scenes = []scene{
	{"A strict tool call", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","num_results":3}}}`},
	{"Plain text", "The answer needs no tool."},
	{"A call in a code fence", "```json\n{\"tool\":{\"name\":\"time.now\",\"arguments\":{}}}\n```"},
	{"Prose around a call", "Sure, let me look.\n" + `{"tool":{"name":"time.now","arguments":{}}}`},
	{"A name that is nearly right", `{"tool":{"name":"web_search","arguments":{"query":"agent memory"}}}`},
	{"An argument too many", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","extra":1}}}`},
	{"A wrong type", `{"tool":{"name":"web.search","arguments":{"query":"agent memory","num_results":"3"}}}`},
}

func newDemo(e env) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "A short guided tour",
		Long:  "Judge a few completions of a model by the built-in configuration, and show each verdict.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return e.demo(c.Context())
		},
	}
}

func (e env) demo(ctx context.Context) error {
	loaded, err := e.load("")
	if err != nil {
		return err
	}
	k, err := kernel(loaded)
	if err != nil {
		return err
	}
	paint := painter(isTerminal(terminalOf(e.stdout)))
	for i, s := range scenes {
		report := k.Check(ctx, gateway.Request{
			Agent: loaded.Defaults.Agent, Workspace: loaded.Defaults.Workspace, Project: loaded.Defaults.Project,
			Input: gateway.Input{Completion: []byte(s.completion)},
		})
		fmt.Fprintf(e.stdout, "%s\n%s\n", paint(bold, fmt.Sprintf("%d. %s", i+1, s.title)), indent(s.completion))
		switch report.Verdict {
		case gateway.VerdictRefused:
			fmt.Fprintf(e.stdout, "   %s %s at stage %s\n", paint(red, "refused:"), report.Refusal.Code, report.Refusal.Stage)
			fmt.Fprintf(e.stdout, "   %s\n\n", report.Refusal.Message)
		case gateway.VerdictText:
			fmt.Fprintf(e.stdout, "   %s it goes on to the reader as it is\n\n", paint(green, "text:"))
		default:
			line, err := wrapper.Marshal(report.Call)
			if err != nil {
				return internalError{err}
			}
			fmt.Fprintf(e.stdout, "   %s %s\n\n", paint(green, "accepted:"), line)
		}
	}
	return nil
}

// terminalOf is what a writer of ours writes to.
func terminalOf(w io.Writer) io.Writer {
	if o, ok := w.(*output); ok {
		return o.Writer
	}
	return w
}
