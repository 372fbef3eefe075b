package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
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

// judge is one run of check or call.
type judge struct {
	env
	config   *configs.Config
	subject  subject
	executes bool // it executes
	lines    bool // there is one completion a line
	// answer answers one completion. Its error tells how a command ends that
	// answers no other; it may come with an answer.
	answer func(context.Context, native.Body) (any, error)
}

// judgeCommand completes a command that judges one completion or, with --jsonl, one a line. run
// has the file that it names, if any, as its arguments.
func (e env) judgeCommand(c *cobra.Command, jsonlUsage string, run func(ctx context.Context, j judge, args []string) error) *cobra.Command {
	j := judge{env: e}
	var config string
	c.Args = cobra.MaximumNArgs(1)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := j.subject.bounded(); err != nil {
			return err
		}
		if j.config, err = e.load(config); err != nil {
			return err
		}
		return run(c.Context(), j, args)
	}
	configFlag(c, &config)
	j.subject.flags(c)
	c.Flags().BoolVar(&j.lines, "jsonl", false, jsonlUsage)
	return c
}

// request is for whom a body is judged: what it says, else the flags; what
// neither says, the configuration's defaults fill.
func (s subject) request(b native.Body) gateway.Request {
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	return gateway.Request{
		Subject: gateway.Subject{
			Agent:     first(b.Agent, s.agent),
			Workspace: first(b.Workspace, s.workspace),
			Project:   first(b.Project, s.project),
		},
		ID: idOf(b.ID),
		Inputs: []gateway.Input{{
			Completion: b.Completion,
			Truncated:  parser.Truncates(first(b.FinishReason, s.finish)),
		}},
	}
}

// idOf is the request id of a line: a string without its quotes, or a number.
func idOf(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// read reads all of in as one completion, as far as it may be looked at.
func (j judge) read(in io.Reader, name string) ([]byte, error) {
	// A little more than is allowed tells that it is too much.
	completion, err := io.ReadAll(io.LimitReader(in, int64(parser.Window(j.config.Output))))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, oserr.Reason(err))
	}
	return completion, nil
}

// one answers one completion.
func (j judge) one(ctx context.Context, completion []byte) error {
	answer, ended := j.answer(ctx, native.Body{Completion: completion})
	if answer == nil {
		return ended
	}
	line, err := cli.JSONLine(answer)
	if err != nil {
		return err
	}
	if _, err := j.stdout.Write(line); err != nil {
		return err
	}
	return ended
}

// outcomeStatus is the exit code of a refusal, or of a call that ended in an
// error.
func outcomeStatus(refused *refusal.Error) error {
	switch {
	case refused == nil:
		return nil
	case refused.Code == refusal.Internal:
		return cli.InternalError{Err: refused}
	}
	return cli.ErrRefused
}
