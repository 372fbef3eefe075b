package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/gateway/server"
)

// subject is the flags that say for whom a completion is judged.
type subject struct {
	agent, workspace, project, finish string
}

func (s *subject) flags(c *cobra.Command) {
	s.whoFlags(c)
	c.Flags().StringVar(&s.finish, "finish-reason", "", "why the model stopped, as its `reason`; with length or content_filter the completion is cut")
}

func (s *subject) whoFlags(c *cobra.Command) {
	c.Flags().StringVar(&s.agent, "agent", "", "the `agent` that the completion is for (default: the configuration's)")
	c.Flags().StringVar(&s.workspace, "workspace", "", "the `workspace` that the call acts in (default: the configuration's)")
	c.Flags().StringVar(&s.project, "project", "", "the `project` that the call acts in (default: the configuration's)")
}

// bounded says which flag is longer than what a request may say in its place.
func (s *subject) bounded() error {
	for _, flag := range []struct{ name, value string }{
		{"agent", s.agent}, {"workspace", s.workspace}, {"project", s.project}, {"finish-reason", s.finish},
	} {
		if len(flag.value) > server.MaxValueBytes {
			return fmt.Errorf("--%s is longer than %d bytes", flag.name, server.MaxValueBytes)
		}
	}
	return nil
}

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

// judge is one run of check or call.
type judge struct {
	env
	config   *configs.Config
	subject  subject
	executes bool // it executes
	// answer answers one completion. Its error tells how a command ends that
	// answers no other; it may come with an answer.
	answer func(context.Context, native.Body) (any, error)
}
