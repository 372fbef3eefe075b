package openai

import (
	"slices"
	"strconv"
	"sync"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// maxBuffered bounds how much of a stream is buffered while more of it is available. net/http
// takes more than its own buffer of 4 KiB by two writes to the connection.
const maxBuffered = 15 << 10

// eventStream is the stream to the application. It is for one goroutine.
type eventStream struct {
	c      *gin.Context
	writer *sse.Writer
	run    *run
	begun  bool // the head was sent, with status 200

	chunkNames   []byte           // what every chunk begins with; from the first turn that shows something
	chunkHead    []byte           // names, and the bytes between them and the choices
	rolesWritten [maxChoices]bool // choices whose role was sent
	textWritten  [maxChoices]bool // choices of which text was sent
	textAbove    [maxChoices]bool // the same, by earlier turns, and a separator is due
	buffer       []byte
	unflushed    bool // something was written after the last flush
}

// streamBuffers are the buffers of streams that have ended.
var streamBuffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 4<<10)
	return &b
}}

// release gives the buffer back. Nothing can be sent any more.
func (s *eventStream) release() {
	if b := s.buffer[:0]; cap(b) <= 2*maxBuffered {
		streamBuffers.Put(&b)
	}
	s.buffer = nil
}

// writeHead sends the head of the stream.
func (s *eventStream) writeHead() {
	if s.begun {
		return
	}
	s.begun = true
	s.run.SetHeaders(s.c)
	s.writer.Begin("text/event-stream; charset=utf-8", "no-cache")
}

// send writes and flushes the buffer. A disconnected application is detected elsewhere: the
// request's context ends.
func (s *eventStream) send() {
	s.writeHead()
	_ = s.writer.Send(wrapper.Escape(s.buffer))
	s.buffer, s.unflushed = s.buffer[:0], false
}

// write writes the buffer without a flush: more follows without waiting, or the answer ends.
func (s *eventStream) write() {
	s.writeHead()
	_ = s.writer.Write(wrapper.Escape(s.buffer))
	s.buffer, s.unflushed = s.buffer[:0], true
}

// flush sends what has not been sent yet.
func (s *eventStream) flush() {
	if len(s.buffer) > 0 || s.unflushed {
		s.send()
	}
}

// comment sends a line that readers of events pass over.
func (s *eventStream) comment(text string) {
	s.buffer = sse.AppendComment(s.buffer, text)
	s.send()
}

// completionHead are the members that a whole completion and a chunk begin with.
type completionHead struct {
	id, model string
	created   int64
	extra     upstream.Extra
}

// setHead settles what every chunk begins with.
func (s *eventStream) setHead(from completionHead) {
	if s.chunkNames != nil {
		return
	}
	b := strictjson.AppendQuote([]byte(`data: {"id":`), from.id)
	b = strconv.AppendInt(append(b, `,"object":"chat.completion.chunk","created":`...), from.created, 10)
	b = strictjson.AppendQuote(append(b, `,"model":`...), s.run.modelName(from.model))
	s.chunkNames = appendExtrasIf(b, from.extra, forwardedWords, isWord)
	s.setExtras(nil)
}

// setExtras puts members of a whole answer into the chunks that follow; nil takes them
// out.
func (s *eventStream) setExtras(x upstream.Extra) {
	s.chunkHead = append(appendExtras(slices.Clip(s.chunkNames), x, forwardedOfAnswer), `,"choices":[`...)
}

// beginChunk starts a chunk of a choice.
func (s *eventStream) beginChunk(from completionHead, index int) {
	s.setHead(from)
	s.buffer = strconv.AppendInt(append(append(s.buffer, s.chunkHead...), `{"index":`...), int64(index), 10)
	s.buffer = append(s.buffer, `,"delta":{`...)
	if !s.rolesWritten[index] {
		s.rolesWritten[index] = true
		s.buffer = append(s.buffer, `"role":"assistant",`...)
	}
}

// endChunk ends a chunk; what was added to its delta ends in a comma.
func (s *eventStream) endChunk(logprobs []byte, finish string) {
	if n := len(s.buffer); s.buffer[n-1] == ',' {
		s.buffer = s.buffer[:n-1]
	}
	s.buffer = append(s.buffer, '}')
	if logprobs != nil {
		s.buffer = append(append(s.buffer, `,"logprobs":`...), logprobs...)
	}
	s.buffer = append(s.buffer, `,"finish_reason":`...)
	if finish == "" {
		s.buffer = append(s.buffer, "null"...)
	} else {
		s.buffer = strictjson.AppendQuote(s.buffer, finish)
	}
	s.buffer = append(s.buffer, "}]}\n\n"...)
}

// turnSeparator stands between the texts of two turns: an empty line, which readers of plain
// text and of Markdown show as the beginning of a paragraph.
const turnSeparator = "\n\n"

// beginTurn says that the text that follows is of another turn.
func (s *eventStream) beginTurn() { s.textAbove = s.textWritten }

// writeText shows a piece of the content. The first of a turn stands apart from the text above.
func (s *eventStream) writeText(from completionHead, index int, text, logprobs []byte) {
	if s.textAbove[index] {
		s.textAbove[index] = false
		s.writeText(from, index, []byte(turnSeparator), nil)
	}
	s.textWritten[index] = true
	s.beginChunk(from, index)
	s.buffer = append(strictjson.AppendQuote(append(s.buffer, `"content":`...), text), ',')
	s.endChunk(logprobs, "")
}

// writeMembers shows members of a message, each behind a comma, if there is any.
func (s *eventStream) writeMembers(from completionHead, index int, picked []byte) {
	if len(picked) == 0 {
		return
	}
	s.beginChunk(from, index)
	s.buffer = append(append(s.buffer, picked[1:]...), ',')
	s.endChunk(nil, "")
}

// finish sends the rest of a turn, and ends the stream.
func (s *eventStream) finish(t *turn) {
	s.writeHead()
	for i := range t.choices {
		s.writeChoice(t, &t.choices[i], i == len(t.choices)-1)
	}
	s.writeEnd()
}

// finishMessage ends the stream with a text in place of the rest of a turn.
func (s *eventStream) finishMessage(t *turn, text string) {
	s.beginTurn()
	for i := range t.choices {
		from := completionHead{id: t.ID, model: t.Model, created: t.Created}
		s.writeText(from, t.choices[i].Index, []byte(text), nil)
		s.beginChunk(from, t.choices[i].Index)
		s.endChunk(nil, "stop")
	}
	s.writeEnd()
}

// writeEnd sends the usage, if it was requested, and ends the stream.
func (s *eventStream) writeEnd() {
	if usage := s.run.Usage().Encode(); usage != nil && s.run.request.includeUsage {
		s.buffer = append(append(s.buffer, s.chunkHead...), `],"usage":`...)
		s.buffer = append(append(s.buffer, usage...), "}\n\n"...)
	}
	s.buffer = sse.AppendEvent(s.buffer, "", []byte("[DONE]"))
	s.write() // net/http flushes it with the end of the body
}

// writeChoice shows the rest of a choice: its text, its calls, and why it ended. The
// members of the whole answer are in the chunk that ends the last choice.
func (s *eventStream) writeChoice(t *turn, j *judgedChoice, last bool) {
	from := completionHead{t.ID, t.Model, t.Created, t.Extra}
	s.setHead(from)
	if j.buffered {
		s.writeMembers(from, j.Index, s.run.appendReasoning(nil, j.Message.Extra))
	}
	content, calls, finish := s.run.present(j)
	switch {
	case j.released():
		if rest := j.decision.Reports[0].Text; len(rest) > 0 {
			s.writeText(from, j.Index, rest, nil)
		}
	case content != nil:
		s.writeText(from, j.Index, []byte(*content), nil)
	}
	if m := &j.Message; m.Refusal != nil {
		s.beginChunk(from, j.Index)
		s.buffer = append(strictjson.AppendQuote(append(s.buffer, `"refusal":`...), *m.Refusal), ',')
		s.endChunk(nil, "")
	}
	s.writeMembers(from, j.Index, s.run.appendContentExtras(nil, j, content))
	for i, call := range calls {
		s.beginChunk(from, j.Index)
		s.buffer = append(append(append(s.buffer, `"tool_calls":[`...), encodeToolCall(i, call.id, call.name, call.arguments, call.extra)...), "],"...)
		s.endChunk(nil, "")
	}
	if last {
		s.setExtras(t.Extra)
	}
	s.beginChunk(from, j.Index)
	s.endChunk(nil, finish)
	s.setExtras(nil)
}

// fail ends a stream that has begun, by an error event. There is no [DONE]
// behind it.
func (s *eventStream) fail(f *turns.Failure) {
	f.Log(s.c)
	s.buffer = sse.AppendEvent(s.buffer, "", errorBody(f))
	s.send()
}
