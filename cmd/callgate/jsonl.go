package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/gateway/native"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/wrapper"
)

// jsonl judges one completion a line. Memory is bounded by the longest line
// that is allowed, whatever comes.
func (j judge) jsonl(ctx context.Context, in io.Reader, name string) error {
	reader := lineReader{r: bufio.NewReaderSize(in, 64<<10), limit: native.MaxBody(j.config.Output.MaxBytes)}
	out := bufio.NewWriterSize(j.stdout, 64<<10)
	progress := newProgress(j.stderr, "lines judged")
	defer progress.done()
	bad := false
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return errors.Join(out.Flush(), errors.New("interrupted"))
		}
		line, err := reader.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && !errors.Is(err, errLineTooLong) {
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
		text, err := wrapper.Marshal(answer)
		if err != nil {
			return app.InternalError{Err: err}
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
		// What was executed is said at once; verdicts when nothing waits to be read.
		if j.executes || reader.r.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
		progress.add(1)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if bad {
		return status(exitUsage)
	}
	return nil
}

// lineError is the answer to a line that is no completion.
type lineError struct {
	Line  int    `json:"line"`
	Error string `json:"error"`
}

var errLineTooLong = errors.New("the line is longer than a completion can be")

// lineReader reads lines of bounded length. One that is longer is passed over,
// with an error of its own.
type lineReader struct {
	r     *bufio.Reader
	limit int
	line  []byte
}

// next returns the next line without its end; it is valid until the next call.
// Empty lines at the end of input are no lines.
func (l *lineReader) next() ([]byte, error) {
	l.line = l.line[:0]
	tooLong := false
	for {
		piece, err := l.r.ReadSlice('\n')
		if !tooLong {
			if len(l.line)+len(piece) > l.limit {
				tooLong, l.line = true, l.line[:0]
			} else {
				l.line = append(l.line, piece...)
			}
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(piece) == 0 && len(l.line) == 0 && !tooLong:
			return nil, io.EOF
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case tooLong:
			return nil, fmt.Errorf("%w (%d bytes)", errLineTooLong, l.limit)
		}
		return bytes.TrimSuffix(l.line, []byte("\n")), nil
	}
}
