package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"

	"github.com/callgate/callgate/configs"
)

func newCall(e env) *cobra.Command {
	return judgeCommand(e, &cobra.Command{
		Use:   "call [flags] [FILE|-]",
		Short: "Judge a completion, and execute the call",
		Long: `Judge one completion, from a file or standard input, record the decision, execute the call,
and print what the model would read as a line of JSON: {"tool_result":…} for a call or a
refusal, {"text":…} for text.

--jsonl reads a completion a line, as check does; answers carry the id:
  {"id":…,"tool_result":…}

One process at a time locks the audit log in data_dir. Exit code 1: refused, or the call
ended in an error.`,
		Example: `  echo '{"tool":{"name":"math.evaluate","arguments":{"expression":"2*(3+4)"}}}' | callgate call
  callgate call --agent Intern completion.txt`,
	}, "judge and execute one completion a line", func(ctx context.Context, c *configs.Config, r *completions) (func() error, error) {
		runtime, err := app.Open(ctx, c, nil, runtimeOptions(e, warningLog(e)))
		if err != nil {
			return nil, err
		}
		runtime.Servers.WaitFirst(ctx)
		r.Answer, r.Executes = executeCompletion(runtime.Executor), true
		return runtime.Close, nil
	})
}
