package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/wrapper"
)

// subject is the flags that say for whom a completion is judged.
type subject struct {
	agent, workspace, project, finish string
}

func (s *subject) flags(c *cobra.Command) {
	c.Flags().StringVar(&s.agent, "agent", "", "the `agent` that the completion is for (default: the configuration's)")
	c.Flags().StringVar(&s.workspace, "workspace", "", "the `workspace` that the call acts in (default: the configuration's)")
	c.Flags().StringVar(&s.project, "project", "", "the `project` that the call acts in (default: the configuration's)")
	c.Flags().StringVar(&s.finish, "finish-reason", "", "why the model stopped, as its `reason`; with length or content_filter the completion is cut")
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
			loaded, err := e.load(config)
			if err != nil {
				return err
			}
			k, err := kernel(loaded)
			if err != nil {
				return err
			}
			in, name, err := e.open(args)
			if err != nil {
				return err
			}
			defer in.Close()
			j := judge{env: e, kernel: k, config: loaded, subject: s}
			if lines {
				return j.lines(c.Context(), in, name)
			}
			return j.one(c.Context(), in, name)
		},
	}
	configFlag(c, &config)
	s.flags(c)
	c.Flags().BoolVar(&lines, "jsonl", false, "judge one completion a line")
	return c
}

// judge is one run of check.
type judge struct {
	env
	kernel  *gateway.Kernel
	config  *configs.Config
	subject subject
}

// request is for whom a body is judged: what it says, else the flags, else the
// configuration's defaults.
func (j judge) request(b native.Body) gateway.Request {
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	return gateway.Request{
		Agent:     first(b.Agent, j.subject.agent, j.config.Defaults.Agent),
		Workspace: first(b.Workspace, j.subject.workspace, j.config.Defaults.Workspace),
		Project:   first(b.Project, j.subject.project, j.config.Defaults.Project),
		Input: gateway.Input{
			Completion: b.Completion,
			Truncated:  parser.Truncates(first(b.FinishReason, j.subject.finish)),
		},
	}
}

// one judges all of in as one completion.
func (j judge) one(ctx context.Context, in io.Reader, name string) error {
	// A little more than is allowed tells that it is too much.
	completion, err := io.ReadAll(io.LimitReader(in, int64(parser.Window(j.config.Output))))
	if err != nil {
		return fmt.Errorf("cannot read %s: %w", name, reason(err))
	}
	report := j.kernel.Check(ctx, j.request(native.Body{Completion: completion}))
	line, err := wrapper.Marshal(report)
	if err != nil {
		return internalError{err}
	}
	if _, err := fmt.Fprintf(j.stdout, "%s\n", line); err != nil {
		return err
	}
	return verdictStatus(report)
}

func verdictStatus(r gateway.Report) error {
	if r.Verdict != gateway.VerdictRefused {
		return nil
	}
	if r.Refusal.Status() >= 500 && r.Refusal.Code == "internal" {
		return internalError{r.Refusal}
	}
	return status(exitRefused)
}
