package messages

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/sse"
	wire "github.com/callgate/callgate/upstream/messages"
)

// eventStream is the stream to the application: one message, also of several turns. It is for one
// goroutine.
type eventStream struct {
	turns.EventWriter
	c       *gin.Context
	run     *run
	message *wire.Reply // the head of the first turn that showed something, or of the last
	started bool        // message_start was sent
	blocks  int         // that were sent: the next index
	open    bool        // the last of them has not ended
}

func newEventStream(c *gin.Context, r *run) *eventStream {
	return &eventStream{EventWriter: r.NewEventWriter(c), c: c, run: r}
}

// setHead takes the headers of the provider's answer, while nothing was sent.
func (s *eventStream) setHead(from http.Header) {
	if !s.Begun() {
		setHeaders(s.c, from)
	}
}

// setMessage takes the message that a turn begins with.
func (s *eventStream) setMessage(head *wire.Reply) {
	if !s.started {
		s.message = head
	}
}

// start sends message_start, once.
func (s *eventStream) start() {
	if !s.started {
		s.started = true
		s.Buffer = s.message.AppendStart(s.Buffer)
	}
}

// emit appends an event, at the next index or that of the open block.
func (s *eventStream) emit(e *wire.Event) {
	s.start()
	switch e.Kind {
	case wire.BlockStart:
		s.blocks++
		s.open = true
	case wire.BlockStop:
		s.open = false
	}
	s.Buffer = wire.AppendEvent(s.Buffer, e, s.blocks-1)
}

// emitBlock appends the events of a whole block.
func (s *eventStream) emitBlock(b *wire.Block) {
	s.start()
	s.Buffer = b.AppendEvents(s.Buffer, s.blocks)
	s.blocks++
}

// ping passes a ping on, once the message has begun.
func (s *eventStream) ping() {
	if s.started {
		s.emit(&wire.Event{Kind: wire.Ping})
	}
}

// keepAlive sends a sign of life: a ping, or a comment before the message has begun, where some
// clients expect nothing but its start.
func (s *eventStream) keepAlive(note string) {
	if !s.started {
		s.Comment(note)
		return
	}
	s.ping()
	s.Send()
}

// pace sends what was appended, if nothing more is there.
func (s *eventStream) pace(ready bool) {
	if len(s.Buffer) > 0 || s.Begun() {
		s.Pace(ready)
	}
}

// rest appends what was not sent of a turn that passed: what waited, and the blocks from the first
// call on.
func (s *eventStream) rest(t *turn) {
	from := t.reply.Shown
	if t.relay.whole {
		from = 0
	}
	t.relay.flush()
	for i := from; i < len(t.reply.Blocks); i++ {
		if b := &t.reply.Blocks[i]; s.run.shows(b.Kind) {
			s.emitBlock(b)
		}
	}
}

// endTurn ends a turn that is not the answer. Of one whose calls were executed the rest is shown;
// nothing more of one that was refused.
func (s *eventStream) endTurn(t *turn) {
	if t.decision.Refusal() == nil {
		s.rest(t)
		s.Flush()
	}
}

// finish sends the rest of the last turn, and ends the stream.
func (s *eventStream) finish(t *turn) {
	s.setMessage(t.reply)
	s.rest(t)
	s.end(t.reply)
}

// finishMessage ends the stream with a text in place of the rest of the last turn.
func (s *eventStream) finishMessage(reply *wire.Reply, block *wire.Block) {
	s.setMessage(reply)
	if s.open {
		s.emit(&wire.Event{Kind: wire.BlockStop})
	}
	s.emitBlock(block)
	s.end(reply)
}

func (s *eventStream) end(reply *wire.Reply) {
	s.start()
	s.Buffer = reply.AppendEnd(s.Buffer, s.run.usage())
	s.Write()
}

// fail ends a stream that has begun, by an error event (AM-47, AM-64). No block is closed.
func (s *eventStream) fail(f *turns.Failure) {
	body := errorBody(f, s.c.Writer.Header().Get(server.HeaderRunID))
	s.Fail(f, sse.AppendEvent(nil, "error", body))
}
