package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/input"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
)

// jsonl judges one completion a line. Memory is bounded by the longest line
// that is allowed, whatever comes.
func (j judge) jsonl(ctx context.Context, in io.Reader, name string) error {
	reader := input.NewLineReader(in, native.MaxBody(j.config.Output.MaxBytes))
	out := bufio.NewWriterSize(j.stdout, 64<<10)
	progress := terminal.NewProgress(j.stderr, "lines judged")
	defer progress.Done()
	bad := false
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
			bad = true
			answer = lineError{number, err.Error()}
		} else {
			// How each ends stands in its answer, not in the exit code.
			answer, _ = j.answer(ctx, body)
			if a, ok := answer.(interface{ withID(json.RawMessage) any }); ok {
				answer = a.withID(body.ID)
			}
		}
		text, err := cli.JSONLine(answer)
		if err != nil {
			return err
		}
		if _, err := out.Write(text); err != nil {
			return err
		}
		// What was executed is said at once; verdicts when nothing waits to be read.
		if j.executes || reader.Waiting() {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		progress.Add(1)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if bad {
		return cli.ErrInvalidLines
	}
	return nil
}

// lineError is the answer to a line that is no completion.
type lineError struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}
