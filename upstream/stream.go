package upstream

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/internal/sse"
)

// errAfterDone is the cause of an exchange that is cancelled after its last event.
var errAfterDone = errors.New("nothing came after the end")

// doneWord is the data of the last event of a stream of chat completions. Some providers of
// other wires send it too (RS-40).
const doneWord = "[DONE]"

// IsDone reports whether the data of an event is that word; some servers write a space behind it.
func IsDone(data []byte) bool {
	// Every event is looked at, and nearly all are objects.
	return len(data) > 0 && data[0] != '{' && string(bytes.Trim(data, " \t")) == doneWord
}

// afterDoneTime is how long the connection is read after the last event, or after one that may be.
const afterDoneTime = time.Second

// settledTime is how long a stream is read in all that is whole if nothing more comes: some servers send signs of life
// without end.
const settledTime = 5 * time.Second

// EventStream reads the events of one stream, of any wire, undecoded. Only Close is safe for
// concurrent use.
type EventStream struct {
	// Header has the headers of the answer that are kept.
	Header http.Header

	upstream  string
	exchange  *exchange
	scanner   sse.Reader
	remaining int           // events until the bound is reached
	done      bool          // [DONE] was read
	partial   bool          // the connection failed within an event
	until     time.Duration // by alarms.Now, where the stream may be whole; 0: it may not
	err       error
}

// Open posts a request for a stream, and returns the stream once its first byte has arrived. Its
// errors are those of Post. Close the stream, also after its end.
func (c *Client) Open(ctx context.Context, route *Route, request Request) (stream *EventStream, err error) {
	defer safe.Catch(func(panicked error) { err = refusePanic(panicked) })
	p, err := request.posting(typeStream)
	if err != nil {
		return nil, err
	}
	return c.openStream(ctx, route, p)
}

func (c *Client) openStream(ctx context.Context, route *Route, p *posting) (*EventStream, error) {
	a, err := c.send(ctx, route, p)
	if err != nil {
		return nil, err
	}
	stream := &EventStream{
		Header:    a.header,
		upstream:  route.Upstream,
		exchange:  a,
		scanner:   sse.Reader{Source: &a.body, MaxBytes: route.definition.MaxEvent, Last: IsDone},
		remaining: route.definition.MaxEvents,
	}
	if p.last != nil {
		stream.scanner.Last = func(data []byte) bool { return IsDone(data) || p.last(data) }
	}
	if err := stream.scanner.Wait(); err != nil {
		defer a.close()
		return nil, transportError(a, route.Upstream, err, true)
	}
	return stream, nil
}

// Next returns the type, which may be empty, and the data of the next event, [DONE] included.
// Both are valid until the next call. io.EOF is the end of the body after a whole event; the
// wire says whether the stream may end there. Any other error is a *refusal.Error. Next returns the
// same error again after that. An event without data is none (WHATWG HTML, section 9.2.6), unless it
// names an error.
func (s *EventStream) Next() (name, data []byte, err error) {
	s.until = 0
	return s.read()
}

func (s *EventStream) read() (name, data []byte, err error) {
	if s.err != nil {
		return nil, nil, s.err
	}
	name, data, err = s.next()
	if err != nil {
		s.err = err
		s.release()
	}
	return name, data, err
}

// NextIfAny is Next for a stream that is whole if nothing more comes: it waits a second at most, five for all events in a
// row, and silence is io.EOF too. An event that has begun must come to its end.
func (s *EventStream) NextIfAny() (name, data []byte, err error) {
	now := s.exchange.alarms.Now()
	if s.until == 0 {
		s.until = now + settledTime
	}
	s.exchange.shorten(min(afterDoneTime, s.until-now), errAfterDone)
	defer s.exchange.restore()
	name, data, err = s.read()
	if cause := context.Cause(s.exchange); err == nil || !errors.Is(cause, errAfterDone) && !errors.Is(cause, errIdle) {
		return name, data, err
	}
	if s.err = io.EOF; s.partial {
		s.err = timedOut("%s: within an event, %w", s.upstream, errIdle)
	}
	return nil, nil, s.err
}

func (s *EventStream) next() (name, data []byte, err error) {
	for len(data) == 0 && string(name) != "error" && err == nil {
		name, data, err = s.nextAny()
	}
	return name, data, err
}

// nextAny returns the next event, with data or without.
func (s *EventStream) nextAny() (name, data []byte, err error) {
	name, data, err = s.scanner.Next()
	switch {
	case errors.Is(err, sse.ErrEnd):
		return nil, nil, io.EOF
	case err != nil:
		s.partial = s.scanner.Partial()
		return nil, nil, transportError(s.exchange, s.upstream, err, true)
	case IsDone(data):
		s.done = true
		return name, data, nil
	}
	if s.remaining--; s.remaining < 0 {
		return nil, nil, tooLarge("%s: more events in a stream than are allowed", s.upstream)
	}
	return name, data, nil
}

// Ready reports whether Next will return an event without waiting. It is false before the end of
// the stream and before an error of the connection. It is false before [DONE], too: End waits for the
// end of the connection.
func (s *EventStream) Ready() bool {
	if s.err != nil {
		return false
	}
	data, ok := s.scanner.Peek()
	return ok && len(data) > 0 && !IsDone(data)
}

// MentionsKey is like that of Reply. It may be called after the end.
func (s *EventStream) MentionsKey(text []byte) bool { return s.exchange.mentionsKey(text) }

// End is called after the last event of a wire, which must be read: it waits for the end of the
// body, at most a second. An event after the last is a *refusal.Error, but for [DONE], what follows that, and those that
// add nothing, of which the wire knows; nil: it knows none. However the connection ends, the stream
// is whole. Events read before are no longer valid.
func (s *EventStream) End(addsNothing func(name, data []byte) bool) error {
	if s.err != nil {
		return nil
	}
	s.err = io.EOF
	defer s.release()
	s.exchange.shorten(afterDoneTime, errAfterDone)
	name, data, err := s.scanner.Next()
	for ; err == nil && (s.done || len(data) == 0 || IsDone(data) ||
		addsNothing != nil && addsNothing(name, data)); name, data, err = s.scanner.Next() {
		s.done = s.done || IsDone(data)
	}
	switch {
	case s.done: // no reader of such streams looks at what follows
	case err == nil, errors.Is(err, sse.ErrCut):
		s.err = malformed(s.upstream, errors.New("an event after the end"))
		return s.err
	case errors.Is(err, errOversize), errors.Is(err, sse.ErrTooLarge):
		s.err = tooLarge("%s: after the end: %w", s.upstream, err)
		return s.err
	}
	// How the connection was closed does not matter for a complete stream. A request
	// cancelled by its caller does.
	if cause := context.Cause(s.exchange); cause != nil && !errors.Is(cause, errAfterDone) && !errors.Is(cause, errIdle) {
		s.err = transportError(s.exchange, s.upstream, err, true)
		return s.err
	}
	return nil
}

// Close ends the stream and releases its connection.
func (s *EventStream) Close() { s.exchange.close() }

// release closes the stream and gives its buffer back.
func (s *EventStream) release() {
	s.scanner.Release()
	s.Close()
}
