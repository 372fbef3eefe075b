package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/faces/native"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/input"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
	"github.com/callgate/callgate/parser"
)

// subject says for whom a completion is judged where its line does not. The defaults of
// the configuration fill what is empty in both.
type subject struct {
	Agent, Workspace, Project string
	FinishReason              string
	Thread                    string
}

// completions answers the completions of a file. It is for one goroutine.
type completions struct {
	Parser  parser.Options
	Subject subject
	Answer  answerer
	// Executes says that answers report what was done, so that each is written at once.
	Executes bool
	Out, Err io.Writer // answers; progress, if it is a terminal
}

// readCompletion reads a completion whole, as far as the parser may look at it. The name of the
// input is for errors.
func readCompletion(in io.Reader, name string, options parser.Options) ([]byte, error) {
	// Window is more than is allowed, so that too large a completion is refused as such.
	completion, err := io.ReadAll(io.LimitReader(in, int64(parser.Window(options))))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, oserr.Reason(err))
	}
	return completion, nil
}

// One answers one completion. The error decides the exit code.
func (r completions) One(ctx context.Context, completion []byte) error {
	answer, ended := r.Answer(ctx, nil, r.request(native.Body{Completion: completion}))
	if answer == nil {
		return ended
	}
	line, err := cli.JSONLine(answer)
	if err != nil {
		return err
	}
	if _, err := r.Out.Write(line); err != nil {
		return err
	}
	return ended
}

// Lines answers one completion a line, in order. Memory is bounded by the longest allowed
// line. A line of another form gets its own error, and cli.ErrInvalidLines at the end.
func (r completions) Lines(ctx context.Context, in io.Reader, name string) error {
	reader := input.NewLineReader(in, native.MaxBody(r.Parser.MaxBytes))
	out := bufio.NewWriterSize(r.Out, 64<<10)
	progress := terminal.NewProgress(r.Err, "lines judged")
	defer progress.Done()
	invalid := false
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return errors.Join(out.Flush(), errors.New("interrupted"))
		}
		line, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, input.ErrLineTooLong) {
			return errors.Join(out.Flush(), fmt.Errorf("cannot read %s: %w", name, oserr.Reason(err)))
		}
		var body native.Body
		if err == nil {
			body, err = native.ReadLine(line)
		}
		var answer any
		if err != nil {
			invalid = true
			answer = lineError{number, err.Error()}
		} else {
			// The answer says how each ends; the exit code does not.
			answer, _ = r.Answer(ctx, body.ID, r.request(body))
		}
		text, err := cli.JSONLine(answer)
		if err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
		// Verdicts are written when no further line waits to be read.
		if r.Executes || reader.Waiting() {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		progress.Add(1)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if invalid {
		return cli.ErrInvalidLines
	}
	return nil
}

// lineError is the answer to a line that is no completion.
type lineError struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

// request says for whom a body is judged: for whom it says, else for the subject.
func (r completions) request(b native.Body) gateway.Request {
	return gateway.Request{
		Subject: gateway.Subject{
			Agent:     cmp.Or(b.Agent, r.Subject.Agent),
			Workspace: cmp.Or(b.Workspace, r.Subject.Workspace),
			Project:   cmp.Or(b.Project, r.Subject.Project),
		},
		ID: requestID(b.ID), Thread: cmp.Or(b.Thread, r.Subject.Thread), Ancestors: b.Ancestors,
		Inputs: []gateway.Input{{
			Completion: b.Completion,
			Truncated:  parser.Truncates(cmp.Or(b.FinishReason, r.Subject.FinishReason)),
		}},
	}
}

// requestID is the id of a line: a string without its quotes, or a number.
func requestID(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
