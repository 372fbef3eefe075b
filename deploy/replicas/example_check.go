package main

import (
	"context"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// check runs the commands that were printed, in their order, and then waits for
// Redis to be back.
func (s *stage) check(ctx context.Context, stdout io.Writer) error {
	steps := s.steps()
	for _, step := range steps {
		if err := step.prove(ctx); err != nil {
			return err
		}
		fmt.Fprintf(stdout, "proved: %s\n", step.command)
	}
	select {
	case <-s.redis.ended:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.startRedis(ctx); err != nil {
		return err
	}
	last := steps[len(steps)-1] // which asks whether they are
	last.holds, last.soon = agree, true
	if err := last.prove(ctx); err != nil {
		return fmt.Errorf("after Redis has come back: %w", err)
	}
	fmt.Fprintln(stdout, "proved: the limits are shared again")
	return nil
}

// prove runs the command of a step until it does what is promised.
func (s step) prove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, comeUp)
	defer cancel()
	for {
		shell := exec.CommandContext(ctx, "sh", "-c", s.command)
		output, err := shell.CombinedOutput()
		if err == nil && s.holds(string(output)) {
			return nil
		}
		if !s.soon || ctx.Err() != nil {
			return fmt.Errorf("%s ended with %d and said %q, which is not what was promised", s.command, shell.ProcessState.ExitCode(), output)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}
