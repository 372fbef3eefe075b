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
		Long: `Judge one completion, from a file or from standard input, write the decision to
the audit log, execute the call, and print what the model would read: one line
of JSON, {"tool_result":…} for a call or a refusal, {"text":…} for text.

With --jsonl, do so for one completion a line, in order; see check. The lines of
the answer carry the id: {"id":…,"tool_result":…}.

The audit log is audit.jsonl in data_dir, which one process locks at a time.
Exit codes: 0 done, 1 refused or ended in an error, 2 usage, 3 internal.`,
		Example: `  echo '{"tool":{"name":"math.evaluate","arguments":{"expression":"2*(3+4)"}}}' | callgate call
  callgate call --agent Intern completion.txt
  callgate audit verify callgate-data/audit.jsonl`,
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
