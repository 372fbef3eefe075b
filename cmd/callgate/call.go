package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/internal/cli"
)

func newCall(e env) *cobra.Command {
	return e.judgeCommand(&cobra.Command{
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
	}, "judge and execute one completion a line", callCompletions)
}

// callCompletions judges and executes what a command was given.
func callCompletions(ctx context.Context, j judge, args []string) (err error) {
	in, name, err := j.open(ctx, args)
	if err != nil {
		return err
	}
	defer in.Close()
	j.executes = true
	var completion []byte
	if !j.lines {
		// A command that waits for a completion does not hold the data folder.
		if completion, err = j.read(in, name); err != nil {
			return err
		}
	}
	r, err := app.Open(ctx, j.config, nil, j.options(j.warnings()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	r.Servers.WaitFirst(ctx)
	j.answer = func(ctx context.Context, b native.Body) (any, error) { return act(ctx, r.Executor, j.subject.request(b)) }
	if j.lines {
		return j.jsonl(ctx, in, name)
	}
	return j.one(ctx, completion)
}

// acted is the answer to one completion that was judged and executed.
type acted struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Result json.RawMessage `json:"tool_result,omitempty"`
	// CallID and State are of a call that has not ended yet.
	CallID string `json:"call_id,omitempty"`
	State  string `json:"state,omitempty"`
}

func (a acted) withID(id json.RawMessage) any { a.ID = id; return a }

// act judges and executes one completion.
func act(ctx context.Context, k *calls.Executor, request gateway.Request) (any, error) {
	o := k.Handle(ctx, request, "")
	if o.Pending {
		return acted{CallID: o.CallID, State: "pending"}, nil
	}
	if o.Refusal == nil && o.Result == nil {
		text := string(o.Text)
		return acted{Text: &text}, nil
	}
	var a acted
	if err := json.Unmarshal(o.Result, &a); err != nil {
		return nil, cli.InternalError{Err: err}
	}
	return a, outcomeStatus(o.Refusal)
}
