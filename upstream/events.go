package upstream

import (
	"errors"
	"io"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/upstream/chat"
)

// Events reads the chunks of one stream of chat completions. Only Close is safe for concurrent use.
type Events struct {
	// Choices is how many were asked for; 0: one.
	Choices int

	stream   *EventStream
	reader   *chat.Reader // nil after the end
	finishes chat.FinishTracker
	err      error
}

// Next returns the next chunk, which is valid until the next call. io.EOF is the end of a
// complete stream; the comment of the package says which one is. Any other error is a
// *refusal.Error or a *StatusError: the stream is incomplete, and none of its calls may be used. Next returns
// the same error again after that.
func (e *Events) Next() (*chat.Chunk, error) {
	if e.err != nil {
		return nil, e.err
	}
	chunk, err := e.next()
	if err != nil {
		e.err = err
		e.reader.Release()
		e.reader = nil
		e.stream.release()
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
	data, ok := e.stream.scanner.Peek()
	// After [DONE], Next waits for the end of the connection.
	return ok && len(data) > 0 && !isDone(data)
}

// Close ends the stream and releases its connection.
func (e *Events) Close() { e.stream.Close() }

func (e *Events) next() (chunk *chat.Chunk, err error) {
	defer safe.Catch(func(panicked error) { err = refusePanic(panicked) })
	next := e.stream.Next
	if e.finishes.Started() >= max(e.Choices, 1) && e.finishes.Incomplete() == nil {
		next = e.stream.NextIfAny // not each provider sends [DONE] or closes the connection
	}
	name, data, err := next()
	switch {
	case errors.Is(err, io.EOF):
		return nil, e.closed()
	case err != nil:
		return nil, err
	case isDone(data):
		return nil, e.done()
	case string(name) == "error":
		return nil, statedFailure(e.stream.upstream, chat.ReadFailure(data), e.stream.MentionsKey)
	case string(name) == "ping":
		return &chat.Chunk{}, nil
	}
	e.reader.Choices = e.Choices
	chunk, err = e.reader.ReadChunk(data)
	if err != nil {
		return nil, invalidAnswer(e.stream.upstream, err, e.stream.MentionsKey)
	}
	for i := range chunk.Choices {
		if err := e.finishes.Observe(&chunk.Choices[i]); err != nil {
			return nil, malformed(e.stream.upstream, err)
		}
	}
	return chunk, nil
}

// closed returns the result of a body that ended without [DONE].
func (e *Events) closed() error {
	if err := e.finishes.Incomplete(); err != nil {
		return brokenOff("%s: the stream ended with %w", e.stream.upstream, err)
	}
	return io.EOF
}

// done returns the result of a stream with [DONE]: nothing may follow.
func (e *Events) done() error {
	if err := e.finishes.Unended(); err != nil {
		return brokenOff("%s: [DONE] came with %w", e.stream.upstream, err)
	}
	if err := e.stream.End(nil); err != nil {
		return err
	}
	return io.EOF
}
