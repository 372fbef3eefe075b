package chat

import (
	"slices"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream/chat"
)

// eventStream is the stream to the application. It is for one goroutine.
type eventStream struct {
	turns.EventWriter
	run *run

	chunkNames []byte // what every chunk begins with; from the first turn that shows something
	chunkHead  []byte // names, and the bytes between them and the choices
	written    [maxChoices]writtenChoice
}

// writtenChoice says what of a choice was sent.
type writtenChoice struct {
	role          bool
	text, thought bool // content, and reasoning
	// textAbove and thoughtAbove say that earlier turns sent such, and a separator is due.
	textAbove, thoughtAbove bool
}

// completionHead are the members that a whole completion and a chunk begin with.
type completionHead struct {
	id, model string
	created   int64
	extra     chat.Extra
}

func (s *eventStream) shows() bool { return s.chunkNames != nil }

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
func (s *eventStream) setExtras(x chat.Extra) {
	s.chunkHead = append(appendExtras(slices.Clip(s.chunkNames), x, forwardedOfAnswer), `,"choices":[`...)
}

// beginChunk starts a chunk of a choice.
func (s *eventStream) beginChunk(from completionHead, index int) {
	s.setHead(from)
	s.Buffer = strconv.AppendInt(append(append(s.Buffer, s.chunkHead...), `{"index":`...), int64(index), 10)
	s.Buffer = append(s.Buffer, `,"delta":{`...)
	if !s.written[index].role {
		s.written[index].role = true
		s.Buffer = append(s.Buffer, `"role":"assistant",`...)
	}
}

// endChunk ends a chunk; what was added to its delta ends in a comma.
func (s *eventStream) endChunk(logprobs []byte, finish string) {
	if n := len(s.Buffer); s.Buffer[n-1] == ',' {
		s.Buffer = s.Buffer[:n-1]
	}
	s.Buffer = append(s.Buffer, '}')
	if logprobs != nil {
		s.Buffer = append(append(s.Buffer, `,"logprobs":`...), logprobs...)
	}
	s.Buffer = append(s.Buffer, `,"finish_reason":`...)
	if finish == "" {
		s.Buffer = append(s.Buffer, "null"...)
	} else {
		s.Buffer = strictjson.AppendQuote(s.Buffer, finish)
	}
	s.Buffer = append(s.Buffer, "}]}\n\n"...)
}

// turnSeparator stands between the texts of two turns: an empty line, which readers of plain
// text and of Markdown show as the beginning of a paragraph.
const turnSeparator = "\n\n"

// beginTurn says that what follows is of another turn.
func (s *eventStream) beginTurn() {
	for i := range s.written {
		w := &s.written[i]
		w.textAbove, w.thoughtAbove = w.text, w.thought
	}
}

// writeText shows a piece of the content. The first of a turn stands apart from the text above.
func (s *eventStream) writeText(from completionHead, index int, text, logprobs []byte) {
	if s.written[index].textAbove {
		s.written[index].textAbove = false
		s.writeText(from, index, []byte(turnSeparator), nil)
	}
	s.written[index].text = true
	s.beginChunk(from, index)
	s.Buffer = append(strictjson.AppendQuote(append(s.Buffer, `"content":`...), text), ',')
	s.endChunk(logprobs, "")
}

// writeReasoning shows what the model thought, where that passes, apart from what it thought in an
// earlier turn.
func (s *eventStream) writeReasoning(from completionHead, index int, x chat.Extra) {
	picked := s.run.appendReasoning(nil, x)
	if len(picked) == 0 {
		return
	}
	w, due := &s.written[index], s.written[index].thoughtAbove
	for _, name := range reasoningMembers {
		if value := x.Lookup(name); len(value) <= len(`""`) || value[0] != '"' {
			continue // no text
		}
		if due {
			separator := append(strictjson.AppendQuote([]byte{','}, name), ':')
			s.writeMembers(from, index, strictjson.AppendQuote(separator, turnSeparator))
		}
		w.thought, w.thoughtAbove = true, false
	}
	s.writeMembers(from, index, picked)
}

// writeMembers shows members of a message, each behind a comma, if there is any.
func (s *eventStream) writeMembers(from completionHead, index int, picked []byte) {
	if len(picked) == 0 {
		return
	}
	s.beginChunk(from, index)
	s.Buffer = append(append(s.Buffer, picked[1:]...), ',')
	s.endChunk(nil, "")
}

// finish sends the rest of a turn, and ends the stream.
func (s *eventStream) finish(t *turn) {
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
		s.Buffer = append(append(s.Buffer, s.chunkHead...), `],"usage":`...)
		s.Buffer = append(append(s.Buffer, usage...), "}\n\n"...)
	}
	s.Buffer = sse.AppendEvent(s.Buffer, "", []byte("[DONE]"))
	s.Write()
}

// endTurn shows the rest of the text of a turn whose calls were executed.
func (s *eventStream) endTurn(t *turn, j *judgedChoice) {
	from := completionHead{t.ID, t.Model, t.Created, t.Extra}
	if j.buffered {
		s.writeReasoning(from, j.Index, j.Message.Extra)
	}
	if j.released() && len(j.decision.Reports[0].Text) > 0 {
		s.writeText(from, j.Index, j.decision.Reports[0].Text, nil)
	}
	s.Flush()
}

// writeChoice shows the rest of a choice: its text, its calls, and why it ended. The
// members of the whole answer are in the chunk that ends the last choice.
func (s *eventStream) writeChoice(t *turn, j *judgedChoice, last bool) {
	from := completionHead{t.ID, t.Model, t.Created, t.Extra}
	s.setHead(from)
	if j.buffered {
		s.writeReasoning(from, j.Index, j.Message.Extra)
	}
	content, calls, finish := s.run.present(j)
	switch {
	case j.released():
		if rest := j.decision.Reports[0].Text; len(rest) > 0 {
			s.writeText(from, j.Index, rest, nil)
		}
	case content != nil && *content != "":
		s.writeText(from, j.Index, []byte(*content), nil)
	}
	if m := &j.Message; m.Refusal != nil {
		s.beginChunk(from, j.Index)
		s.Buffer = append(strictjson.AppendQuote(append(s.Buffer, `"refusal":`...), *m.Refusal), ',')
		s.endChunk(nil, "")
	}
	s.writeMembers(from, j.Index, s.run.appendContentExtras(nil, j, content))
	for i, call := range calls {
		s.beginChunk(from, j.Index)
		s.Buffer = append(appendToolCall(append(s.Buffer, `"tool_calls":[`...), i, call.id, call.name, call.arguments, call.extra), "],"...)
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
	s.Fail(f, sse.AppendEvent(nil, "", turns.OpenAIError(f)))
}
