package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/configs"
)

func newCheck(e env) *cobra.Command {
	return judgeCommand(e, &cobra.Command{
		Use:   "check [flags] [FILE|-]",
		Short: "Judge a completion, and execute nothing",
		Long: `Judge one completion, from a file or standard input, and print the verdict as a line of JSON:
"tool_call" with the call, "text", or "refused" with the error that the model would read.
Nothing is executed, recorded or counted.

--jsonl judges a completion a line, in order:
  {"id":"1","completion":"…","agent":"Analyst","finish_reason":"stop"}
"completion_b64" in place of "completion" carries bytes that JSON cannot. A line of another
form gets its own error, and the exit code is 2, else 0.`,
		Example: `  callgate check --agent Intern completion.txt
  callgate check --jsonl completions.jsonl > verdicts.jsonl`,
	}, "judge one completion a line", func(_ context.Context, c *configs.Config, r *completions) (func() error, error) {
		k, err := app.NewChecker(c)
		if err != nil {
			return nil, err
		}
		r.Answer = checkCompletion(k)
		return func() error { return nil }, nil
	})
}
