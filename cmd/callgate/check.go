package main

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/native"
)

func newCheck(e env) *cobra.Command {
	var config string
	var s subject
	var lines bool
	c := &cobra.Command{
		Use:   "check [flags] [FILE|-]",
		Short: "Judge a completion, and execute nothing",
		Long: `Judge one completion, from a file or from standard input, and print the verdict
as one line of JSON: "tool_call" with the call, "text", or "refused" with the
error that the model would read. Nothing is executed, written or counted.

With --jsonl, judge one completion a line:
  {"id":"1","completion":"…","agent":"Analyst","finish_reason":"stop"}
"completion_b64" may stand in place of "completion" for bytes that JSON cannot
carry. One line of verdict is printed for each, in order. A line of another form
gets its own error, and the exit code is 2 at the end; else it is 0.`,
		Example: `  echo 'It is noon.' | callgate check
  callgate check --agent Intern completion.txt
  callgate check --jsonl completions.jsonl > verdicts.jsonl`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.bounded(); err != nil {
				return err
			}
			loaded, err := e.load(config)
			if err != nil {
				return err
			}
			k, err := app.NewChecker(loaded)
			if err != nil {
				return err
			}
			in, name, err := e.open(c.Context(), args)
			if err != nil {
				return err
			}
			defer in.Close()
			j := judge{env: e, config: loaded, subject: s, answer: func(ctx context.Context, b native.Body) (any, error) {
				report := k.Check(ctx, s.request(b))
				return checked{Report: report}, outcomeStatus(report.Refusal)
			}}
			if lines {
				return j.jsonl(c.Context(), in, name)
			}
			completion, err := j.read(in, name)
			if err != nil {
				return err
			}
			return j.one(c.Context(), completion)
		},
	}
	configFlag(c, &config)
	s.flags(c)
	c.Flags().BoolVar(&lines, "jsonl", false, "judge one completion a line")
	return c
}

// checked is the answer to one completion that was judged.
type checked struct {
	ID json.RawMessage `json:"id,omitempty"`
	gateway.Report
}

func (c checked) withID(id json.RawMessage) any { c.ID = id; return c }
