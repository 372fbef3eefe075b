package upstream

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/callgate/callgate/internal/sse"
)

// errAfterDone is the cause of an exchange that is cancelled after its last event.
var errAfterDone = errors.New("nothing came after the end")

// doneWord is the data of the last event of a stream.
const doneWord = "[DONE]"

// afterDoneTime is how long the connection is read after [DONE].
const afterDoneTime = time.Second

// Events reads the chunks of one stream. Only Close is safe for concurrent use.
type Events struct {
	upstream  string
	response  *response
	scanner   sse.Reader
	reader    *reader // nil after the end
	finishes  finishTracker
	remaining int // events until the bound is reached
	err       error
}

// Next returns the next chunk, which is valid until the next call. io.EOF is the end of a
// complete stream, in which every choice has a finish_reason. Any other error is a
// *refusal.Error: the stream is incomplete, and none of its calls may be used. Next returns
// the same error again after that.
func (e *Events) Next() (*Chunk, error) {
	if e.err != nil {
		return nil, e.err
	}
	chunk, err := e.next()
	if err != nil {
		e.err = err
		e.reader.release()
		e.reader = nil
		e.scanner.Release()
		e.Close()
		return nil, err
	}
	return chunk, nil
}

// Ready reports whether Next will return a chunk without waiting. It is false before the end
// of the stream and before an error of the connection.
func (e *Events) Ready() bool {
	if e.err != nil {
		return false
	}
	data, ok := e.scanner.Peek()
	// After [DONE], Next waits for the end of the connection.
	return ok && string(data) != doneWord
}

// Close ends the stream and releases its connection.
func (e *Events) Close() { e.response.close() }

func (e *Events) next() (chunk *Chunk, err error) {
	defer recoverPanic(&err)
	name, data, err := e.scanner.Next()
	switch {
	case errors.Is(err, sse.ErrEnd):
		return nil, e.closed()
	case err != nil:
		return nil, transportError(e.response.timeouts.ctx, e.upstream, err, true)
	case string(data) == doneWord:
		return nil, e.done()
	}
	if e.remaining--; e.remaining < 0 {
		return nil, tooLarge("%s: more events in a stream than are allowed", e.upstream)
	}
	if string(name) == "error" {
		failure := readFailure(data)
		return nil, failed("%s: an error event in the stream%s", e.upstream, errorSuffix(failure.Type, failure.Code))
	}
	chunk, err = e.reader.readChunk(data)
	if err != nil {
		return nil, invalidAnswer(e.upstream, err)
	}
	for i := range chunk.Choices {
		if err := e.finishes.observe(&chunk.Choices[i]); err != nil {
			return nil, malformed("%s: found %w", e.upstream, err)
		}
	}
	return chunk, nil
}

// closed returns the result of a body that ended without [DONE].
func (e *Events) closed() error {
	if err := e.finishes.incomplete(); err != nil {
		return brokenOff("%s: the stream ended with %w", e.upstream, err)
	}
	if !e.response.framed {
		return brokenOff("%s: the connection was closed, and the stream had no [DONE]", e.upstream)
	}
	return io.EOF
}

// done returns the result of a stream with [DONE]: nothing may follow.
func (e *Events) done() error {
	if err := e.finishes.incomplete(); err != nil {
		return brokenOff("%s: [DONE] came with %w", e.upstream, err)
	}
	until := time.AfterFunc(afterDoneTime, func() { e.response.timeouts.cancel(errAfterDone) })
	defer until.Stop()
	_, _, err := e.scanner.Next()
	switch {
	case err == nil, errors.Is(err, sse.ErrCut):
		return malformed("%s: found an event after [DONE]", e.upstream)
	case errors.Is(err, errOversize), errors.Is(err, sse.ErrTooLarge):
		return tooLarge("%s: after [DONE]: %w", e.upstream, err)
	}
	// How the connection was closed does not matter for a complete stream. A request
	// cancelled by its caller does.
	if cause := context.Cause(e.response.timeouts.ctx); cause != nil && !errors.Is(cause, errAfterDone) && !errors.Is(cause, errIdle) {
		return transportError(e.response.timeouts.ctx, e.upstream, err, true)
	}
	return io.EOF
}
