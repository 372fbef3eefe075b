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
	return e.judgeCommand(&cobra.Command{
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
	}, "judge one completion a line", checkCompletions)
}

// checkCompletions judges what a command was given.
func checkCompletions(ctx context.Context, j judge, args []string) error {
	k, err := app.NewChecker(j.config)
	if err != nil {
		return err
	}
	in, name, err := j.open(ctx, args)
	if err != nil {
		return err
	}
	defer in.Close()
	j.answer = func(ctx context.Context, b native.Body) (any, error) {
		report := k.Check(ctx, j.subject.request(b))
		return checked{Report: report}, outcomeStatus(report.Refusal)
	}
	if j.lines {
		return j.jsonl(ctx, in, name)
	}
	completion, err := j.read(in, name)
	if err != nil {
		return err
	}
	return j.one(ctx, completion)
}

// checked is the answer to one completion that was judged.
type checked struct {
	ID json.RawMessage `json:"id,omitempty"`
	gateway.Report
}

func (c checked) withID(id json.RawMessage) any { c.ID = id; return c }
