package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/server"
)

// subjectFlags adds the flags that say for whom calls are judged.
func subjectFlags(c *cobra.Command, s *subject) {
	c.Flags().StringVar(&s.Agent, "agent", "", "the `AGENT` that calls are judged for (default: the configuration's)")
	c.Flags().StringVar(&s.Workspace, "workspace", "", "the `WORKSPACE` that calls act in (default: the configuration's)")
	c.Flags().StringVar(&s.Project, "project", "",
		"the `PROJECT` that calls act in, also as WORKSPACE/PROJECT (default: the configuration's)")
}

// checkSubject splits a project that is given as WORKSPACE/PROJECT, as the other commands take
// it, and returns which flag is longer than a request may be in its place.
func checkSubject(s *subject) error {
	if workspace, project, both := strings.Cut(s.Project, "/"); both {
		if workspace == "" || project == "" || strings.Contains(project, "/") {
			return fmt.Errorf("--project is %q; expected PROJECT or WORKSPACE/PROJECT", s.Project)
		}
		if s.Workspace != "" && s.Workspace != workspace {
			return fmt.Errorf("--project is %q beside --workspace %q; expected the same workspace", s.Project, s.Workspace)
		}
		s.Workspace, s.Project = workspace, project
	}
	for _, flag := range []struct{ name, value string }{
		{"agent", s.Agent}, {"workspace", s.Workspace}, {"project", s.Project}, {"finish-reason", s.FinishReason}, {"thread", s.Thread},
	} {
		if len(flag.value) > server.MaxValueBytes {
			return fmt.Errorf("--%s is longer than %d bytes", flag.name, server.MaxValueBytes)
		}
	}
	return nil
}

// judgeCommand completes a command that judges one completion or, with --jsonl, one a
// line. open sets what answers them, and returns the function that closes it.
func judgeCommand(e env, c *cobra.Command, jsonlUsage string,
	open func(context.Context, *configs.Config, *completions) (func() error, error)) *cobra.Command {
	r := completions{Out: e.Stdout, Err: e.Stderr}
	var file string
	var lines bool
	c.Args = arguments(0, 1)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := checkSubject(&r.Subject); err != nil {
			return err
		}
		config, err := e.Load(file)
		if err != nil {
			return err
		}
		r.Parser = config.Output
		in, name, err := e.Open(c.Context(), args)
		if err != nil {
			return err
		}
		defer in.Close()
		var completion []byte
		if !lines {
			// A command that waits for a completion does not hold the data folder.
			if completion, err = readCompletion(in, name, r.Parser); err != nil {
				return err
			}
		}
		closeAnswer, err := open(c.Context(), config, &r)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeAnswer()) }()
		if lines {
			return r.Lines(c.Context(), in, name)
		}
		return r.One(c.Context(), completion)
	}
	configFlag(c, &file)
	subjectFlags(c, &r.Subject)
	if c.Name() == "call" {
		c.Flags().StringVar(&r.Subject.Thread, "thread", "", "the `THREAD` that calls are in, for conditions that ask what it has done")
	}
	c.Flags().StringVar(&r.Subject.FinishReason, "finish-reason", "",
		"why the model stopped, as its `REASON`; with length, max_tokens, max_output_tokens or content_filter the completion is cut")
	c.Flags().BoolVar(&lines, "jsonl", false, jsonlUsage)
	return c
}
