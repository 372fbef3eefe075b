package upstream

import (
	"context"
	"errors"
	"io"
	"time"
)

// lingering is how long bytes after [DONE] are looked for.
const lingering = time.Second

// Events are the chunks of one stream. It is not safe for concurrent use, but
// Close is.
type Events struct {
	upstream string
	answer   *answer
	scanner  scanner
	reader   reader
	endings  endings
	left     int // events that may still come
	over     error
}

// Next returns the next chunk, which holds until the call after it. io.EOF is the
// end of a whole stream: each choice that began has ended. Any other error is a
// *refusal.Error: the stream is not whole, and no call of it may be used. After an
// error, Next returns it again.
func (e *Events) Next() (*Chunk, error) {
	if e.over != nil {
		return nil, e.over
	}
	chunk, err := e.next()
	if err != nil {
		e.over = err
		e.Close()
		return nil, err
	}
	return chunk, nil
}

// Ready tells that Next will not wait: another event has been read. Before an end,
// or a fault of the connection, it is false.
func (e *Events) Ready() bool {
	// Behind [DONE], Next waits for the end.
	return e.over == nil && e.scanner.ready() && e.scanner.fault == nil && string(e.scanner.data) != doneWord
}

// Close gives the stream up, where it has not ended, and frees its connection.
func (e *Events) Close() { e.answer.close() }

func (e *Events) next() (chunk *Chunk, err error) {
	defer contain(&err)
	name, data, err := e.scanner.next()
	switch {
	case errors.Is(err, errEnd):
		return nil, e.closed()
	case err != nil:
		return nil, lost(e.answer.watch.ctx, e.upstream, err, true)
	case string(data) == doneWord:
		return nil, e.done()
	}
	if e.left--; e.left < 0 {
		return nil, tooLarge("%s: more events in a stream than are allowed", e.upstream)
	}
	if string(name) == "error" {
		said := readFailure(data)
		return nil, failed("%s: an error event in the stream%s", e.upstream, named(said.Type, said.Code))
	}
	chunk, err = e.reader.chunk(data)
	if err != nil {
		return nil, unreadable(e.upstream, err)
	}
	for i := range chunk.Choices {
		if err := e.endings.see(&chunk.Choices[i]); err != nil {
			return nil, garbled("%s: found %w", e.upstream, err)
		}
	}
	return chunk, nil
}

// closed judges a body that ended without [DONE].
func (e *Events) closed() error {
	if err := e.endings.whole(); err != nil {
		return brokenOff("%s: the stream ended with %w", e.upstream, err)
	}
	if !e.answer.framed {
		return brokenOff("%s: the connection was closed, and the stream had no [DONE]", e.upstream)
	}
	return io.EOF
}

// done judges [DONE], and what comes after it.
func (e *Events) done() error {
	if err := e.endings.whole(); err != nil {
		return brokenOff("%s: [DONE] came with %w", e.upstream, err)
	}
	until := time.AfterFunc(lingering, func() { e.answer.watch.cancel(errLinger) })
	defer until.Stop()
	_, _, err := e.scanner.next()
	switch {
	case err == nil, errors.Is(err, errCut):
		return garbled("%s: found an event after [DONE]", e.upstream)
	case errors.Is(err, errOversize):
		return tooLarge("%s: after [DONE]: %w", e.upstream, err)
	}
	// Whether the connection was closed well, or at all, says nothing about a
	// stream that is whole. That it is no longer asked for does.
	if cause := context.Cause(e.answer.watch.ctx); cause != nil && !errors.Is(cause, errLinger) && !errors.Is(cause, errIdle) {
		return lost(e.answer.watch.ctx, e.upstream, err, true)
	}
	return io.EOF
}
