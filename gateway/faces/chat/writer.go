package chat

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
)

// writer writes one answer to the application, as one body or as a stream.
type writer struct {
	requested    string // the model
	includeUsage bool   // at the end of a stream

	reply      *turns.Reply
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

// appendMembers appends those members whose names are listed, each behind a comma, without what a call could be found
// in.
func appendMembers(b []byte, o rawjson.Object, listed []string) []byte {
	return appendMembersAs(b, o, listed, rawjson.WithoutCalls)
}

// appendMembersAs appends those members as a function returns their values; nil leaves one out.
func appendMembersAs(b []byte, o rawjson.Object, listed []string, as func(value []byte) []byte) []byte {
	for _, m := range o {
		if !slices.Contains(listed, m.Name) {
			continue
		}
		if value := as(m.Value); value != nil {
			b = append(append(rawjson.AppendQuote(append(b, ','), m.Name), ':'), value...)
		}
	}
	return b
}

// anyValue passes thoughts, which are never read for calls.
func anyValue(value []byte) []byte { return value }

// appendHead writes the members that a completion and a chunk begin with.
func (w *writer) appendHead(b []byte, r *turns.Reply, object string) []byte {
	b = rawjson.AppendQuote(append(b, `{"id":`...), r.ID)
	b = append(append(append(b, `,"object":"`...), object...), `","created":`...)
	return rawjson.AppendQuote(append(strconv.AppendInt(b, r.Created, 10), `,"model":`...), turns.ModelName(r.Model, w.requested))
}

// appendCall writes a call as a message has it; with an index as a stream does.
func appendCall(b []byte, index int, p *turns.Part, arguments []byte) []byte {
	b = append(b, '{')
	if index >= 0 {
		b = append(strconv.AppendInt(append(b, `"index":`...), int64(index), 10), ',')
	}
	b = rawjson.AppendQuote(append(b, `"id":`...), p.Call.ID)
	b = rawjson.AppendQuote(append(b, `,"type":"function","function":{"name":`...), p.Call.Name)
	b = append(rawjson.AppendQuote(append(b, `,"arguments":`...), arguments), '}')
	return append(appendMembers(b, p.Beside, forwardedOfCall), '}')
}

// finishOf is the word for the end of an answer. Clients go by it: a text alone does not end so, and an answer with
// calls does, whatever the provider says.
func finishOf(a *turns.Answer, calls int) string {
	switch {
	case calls > 0:
		return "tool_calls"
	case a.End == turns.Called, a.End == turns.Done && a.Reason == "":
		return "stop"
	}
	return a.Reason
}

// parts are those of an answer that passed, as a message has them.
type parts struct {
	text, refusal, speech *turns.Shown
	thoughts              rawjson.Object
	calls                 []turns.Shown
}

func partsOf(shown []turns.Shown) (p parts) {
	for i := range shown {
		switch s := &shown[i]; s.Kind {
		case turns.Text:
			p.text = s
		case turns.Refusal:
			p.refusal = s
		case turns.Speech:
			p.speech = s
		case turns.Thought:
			p.thoughts = s.Beside
		case turns.Call:
			p.calls = append(p.calls, *s)
		}
	}
	return p
}

// appendBeside writes what belongs to the text and the speech of an answer, each behind a comma.
func (p *parts) appendBeside(b []byte) []byte {
	if p.speech != nil {
		b = append(append(b, `,"audio":`...), encodeSpeech(p.speech.Part, p.speech.Text)...)
	}
	if p.text != nil {
		b = appendMembers(b, p.text.Beside, forwardedOfText)
	}
	return b
}

// Whole writes a completion.
func (w *writer) Whole(r *turns.Reply, shown [][]turns.Shown, usage []byte) []byte {
	size := 1 << 10
	for _, answer := range shown {
		for _, p := range answer {
			size += (len(p.Text)+len(p.Arguments))*5/4 + 1<<7
		}
	}
	b := append(w.appendHead(make([]byte, 0, size), r, "chat.completion"), `,"choices":[`...)
	for i, a := range r.Answers {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendChoice(b, a, partsOf(shown[i]))
	}
	b = append(b, ']')
	if usage != nil {
		b = append(append(b, `,"usage":`...), usage...)
	}
	return append(appendMembers(appendMembers(b, r.Head, forwardedWords), r.Head, forwardedOfAnswer), '}', '\n')
}

func appendChoice(b []byte, a *turns.Answer, p parts) []byte {
	b = strconv.AppendInt(append(b, `{"index":`...), int64(a.Index), 10)
	b = appendText(append(b, `,"message":{"role":"assistant","content":`...), p.text)
	b = appendText(append(b, `,"refusal":`...), p.refusal)
	for i := range p.calls {
		if i == 0 {
			b = append(b, `,"tool_calls":[`...)
		} else {
			b = append(b, ',')
		}
		b = appendCall(b, -1, p.calls[i].Part, p.calls[i].Arguments)
	}
	if len(p.calls) > 0 {
		b = append(b, ']')
	}
	b = append(appendMembersAs(p.appendBeside(b), p.thoughts, reasoningMembers, anyValue), `},"logprobs":`...)
	// They repeat what the model wrote: they are shown where all of that is.
	var logprobs []byte
	if p.text != nil && p.text.Text != nil && len(p.calls) == 0 {
		logprobs = verifiedLogprobs(a.Beside.Get(memberLogprobs), p.text.Text, p.refusal)
	}
	if logprobs == nil {
		logprobs = []byte("null")
	}
	b = appendMembers(append(b, logprobs...), a.Beside, forwardedOfChoice)
	return append(appendFinish(b, finishOf(a, len(p.calls))), '}')
}

func appendText(b []byte, p *turns.Shown) []byte {
	if p == nil || p.Text == nil {
		return append(b, "null"...)
	}
	return rawjson.AppendQuote(b, p.Text)
}

func appendFinish(b []byte, finish string) []byte {
	if b = append(b, `,"finish_reason":`...); finish == "" {
		return append(b, "null"...)
	}
	return rawjson.AppendQuote(b, finish)
}

// turnSeparator stands between the texts of two turns: an empty line, which readers of plain
// text and of Markdown show as the beginning of a paragraph.
const turnSeparator = "\n\n"

// Turn is of turns.Writer.
func (w *writer) Turn(r *turns.Reply) {
	w.reply = r
	for i := range w.written {
		c := &w.written[i]
		c.textAbove, c.thoughtAbove = c.text, c.thought
	}
}

// setHead settles what every chunk begins with.
func (w *writer) setHead() {
	if w.chunkNames == nil {
		const room = 256 // of most
		w.chunkNames = appendMembers(w.appendHead(append(make([]byte, 0, room), "data: "...), w.reply, "chat.completion.chunk"),
			w.reply.Head, forwardedWords)
		w.chunkHead = make([]byte, 0, len(w.chunkNames)+room)
		w.setMembers(nil)
	}
}

// setMembers puts members of a whole answer into the chunks that follow; nil takes them out.
func (w *writer) setMembers(o rawjson.Object) {
	w.chunkHead = append(appendMembers(append(w.chunkHead[:0], w.chunkNames...), o, forwardedOfAnswer), `,"choices":[`...)
}

// beginChunk starts a chunk of a choice.
func (w *writer) beginChunk(b []byte, index int) []byte {
	w.setHead()
	b = append(strconv.AppendInt(append(append(b, w.chunkHead...), `{"index":`...), int64(index), 10), `,"delta":{`...)
	if !w.written[index].role {
		w.written[index].role = true
		b = append(b, `"role":"assistant",`...)
	}
	return b
}

// endChunk ends a chunk; what was added to its delta ends in a comma.
func endChunk(b, logprobs []byte, finish string) []byte {
	if n := len(b); b[n-1] == ',' {
		b = b[:n-1]
	}
	b = append(b, '}')
	if logprobs != nil {
		b = append(append(b, `,"logprobs":`...), logprobs...)
	}
	return append(appendFinish(b, finish), "}]}\n\n"...)
}

// writeText shows a piece of the content. The first of a turn stands apart from the text above.
func (w *writer) writeText(b []byte, index int, text, logprobs []byte) []byte {
	if w.written[index].textAbove {
		w.written[index].textAbove = false
		b = w.writeText(b, index, []byte(turnSeparator), nil)
	}
	w.written[index].text = true
	b = append(rawjson.AppendQuote(append(w.beginChunk(b, index), `"content":`...), text), ',')
	return endChunk(b, logprobs, "")
}

// writeThought shows what the model thought, apart from what it thought in an earlier turn.
func (w *writer) writeThought(b []byte, index int, o rawjson.Object) []byte {
	c, due := &w.written[index], w.written[index].thoughtAbove
	for _, name := range reasoningMembers {
		if value := o.Get(name); len(value) <= len(`""`) || value[0] != '"' {
			continue // no text
		}
		if due {
			b = w.writeMembers(b, index, rawjson.AppendQuote(append(rawjson.AppendQuote([]byte{','}, name), ':'), turnSeparator))
		}
		c.thought, c.thoughtAbove = true, false
	}
	return w.writeMembers(b, index, appendMembersAs(nil, o, reasoningMembers, anyValue))
}

// writeMembers shows members of a message, each behind a comma, if there is any.
func (w *writer) writeMembers(b []byte, index int, picked []byte) []byte {
	if len(picked) == 0 {
		return b
	}
	return endChunk(append(append(w.beginChunk(b, index), picked[1:]...), ','), nil, "")
}

// Delta is of turns.Writer.
func (w *writer) Delta(b []byte, d *turns.Delta, text []byte) []byte {
	if d.Part.Kind == turns.Thought {
		return w.writeThought(b, d.Answer.Index, d.Beside)
	}
	var logprobs []byte
	if stated := d.Beside.Get(memberLogprobs); stated != nil && bytes.Equal(text, d.Part.Text[d.From:]) {
		logprobs = verifiedLogprobs(stated, text, nil)
	}
	return w.writeText(b, d.Answer.Index, text, logprobs)
}

// Rest is of turns.Writer. The members of the whole reply are in the chunk that ends its last answer.
func (w *writer) Rest(b []byte, a *turns.Answer, shown []turns.Shown, ended, last bool) []byte {
	p := partsOf(shown)
	b = w.writeThought(b, a.Index, p.thoughts)
	if p.text != nil && len(p.text.Text) > 0 {
		b = w.writeText(b, a.Index, p.text.Text, nil)
	}
	if p.refusal != nil && p.refusal.Text != nil {
		b = append(rawjson.AppendQuote(append(w.beginChunk(b, a.Index), `"refusal":`...), p.refusal.Text), ',')
		b = endChunk(b, nil, "")
	}
	b = w.writeMembers(b, a.Index, p.appendBeside(nil))
	for i := range p.calls {
		b = appendCall(append(w.beginChunk(b, a.Index), `"tool_calls":[`...), i, p.calls[i].Part, p.calls[i].Arguments)
		b = endChunk(append(b, "],"...), nil, "")
	}
	if !ended {
		return b
	}
	if w.setHead(); last {
		w.setMembers(w.reply.Head)
	}
	b = endChunk(w.beginChunk(b, a.Index), nil, finishOf(a, len(p.calls)))
	w.setMembers(nil)
	return b
}

// Close is of turns.Writer.
func (w *writer) Close(b, usage []byte) []byte {
	if usage != nil && w.includeUsage {
		b = append(append(append(b, w.chunkHead...), `],"usage":`...), usage...)
		b = append(b, "}\n\n"...)
	}
	return sse.AppendEvent(b, "", []byte("[DONE]"))
}

// Fail is of turns.Writer. There is no [DONE] behind it.
func (w *writer) Fail(b []byte, f *turns.Failure) []byte {
	return sse.AppendEvent(b, "", turns.OpenAIError(f))
}

// Alive is of turns.Writer: a comment.
func (w *writer) Alive(b []byte, note string) []byte { return sse.AppendComment(b, note) }
