package emit

import (
	"bytes"
	"crypto/rand"
	"strconv"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/upstream/responses"
)

// Stream is the stream to the application: one response, whose items are those of all
// turns that are shown. Its numbers are its own, without gaps (RS-60 to RS-63). It is for one
// goroutine.
type Stream struct {
	turns.EventWriter
	model  string // that was requested
	encode ResponseEncoder

	reply    *responses.Reply // of this turn; nil before the first
	id       string           // of the response; empty before its beginning was written
	head     *responses.Reply // that the response began with
	sequence int
	items    map[*responses.Item]*sentItem // of this turn
	last     *responses.Item               // that was looked up last
	state    *sentItem                     // of that item
	ids      map[string]bool
	scratch  []byte
	outputs  [][]byte // the items that have ended, by their output_index; nil: not yet
}

// sentItem is how much of an item was sent.
type sentItem struct {
	index       int
	added, done bool
	part        int // of a message, the one that is being written
	open        bool
	text        int // bytes of that part
	annotations int
	place       []byte // the members of its events, see placePart; empty: not yet
}

// ResponseEncoder writes the object of a response with some items. failure is its error; nil: null.
type ResponseEncoder func(reply *responses.Reply, id, status string, output [][]byte, failure []byte) []byte

// NewStream is the stream of a response of the requested model.
func NewStream(w turns.EventWriter, model string, encode ResponseEncoder) *Stream {
	return &Stream{EventWriter: w, model: model, encode: encode, ids: map[string]bool{}}
}

// BeginTurn says which reply the items that follow are of.
func (s *Stream) BeginTurn(reply *responses.Reply) {
	s.reply, s.items, s.last = reply, map[*responses.Item]*sentItem{}, nil
}

// of is how much of an item was sent.
func (s *Stream) of(item *responses.Item) *sentItem {
	if item == s.last {
		return s.state
	}
	if s.items[item] == nil {
		s.items[item] = &sentItem{}
	}
	s.last, s.state = item, s.items[item]
	return s.state
}

// ID is the id of the response; empty before its beginning was written.
func (s *Stream) ID() string { return s.id }

// HasBegun reports whether the beginning of an item was sent.
func (s *Stream) HasBegun(item *responses.Item) bool { return s.of(item).added }

// HasEnded reports whether the end of an item was sent.
func (s *Stream) HasEnded(item *responses.Item) bool { return s.of(item).done }

// PartOf is the part of a message that is written next.
func (s *Stream) PartOf(item *responses.Item) int { return s.of(item).part }

// TextOf is how much of that part was sent, in bytes.
func (s *Stream) TextOf(item *responses.Item) int { return s.of(item).text }

// open begins an event.
func (s *Stream) open(kind string) {
	if s.id == "" {
		s.beginResponse()
	}
	s.openBare(kind)
}

func (s *Stream) openBare(kind string) {
	b := append(append(append(s.Buffer, "event: "...), kind...), "\ndata: {\"type\":\""...)
	b = append(append(b, kind...), `","sequence_number":`...)
	s.Buffer = strconv.AppendInt(b, int64(s.sequence), 10)
	s.sequence++
}

func (s *Stream) close() { s.Buffer = append(s.Buffer, "}\n\n"...) }

// placePart writes the members that say which part of a message an event is about.
func (s *Stream) placePart(item *responses.Item, state *sentItem) {
	if len(state.place) == 0 {
		state.place = strictjson.AppendQuote(append(state.place, `,"item_id":`...), item.ID)
		state.place = strconv.AppendInt(append(state.place, `,"output_index":`...), int64(state.index), 10)
		state.place = strconv.AppendInt(append(state.place, `,"content_index":`...), int64(state.part), 10)
	}
	s.Buffer = append(s.Buffer, state.place...)
}

// place writes the members that say which item an event is about.
func (s *Stream) place(item *responses.Item, state *sentItem) {
	s.Buffer = strictjson.AppendQuote(append(s.Buffer, `,"item_id":`...), item.ID)
	s.Buffer = strconv.AppendInt(append(s.Buffer, `,"output_index":`...), int64(state.index), 10)
}

// raw writes a member whose value is JSON, on one line.
func (s *Stream) raw(name string, value []byte) {
	s.Buffer = append(append(append(s.Buffer, `,"`...), name...), `":`...)
	s.Buffer = appendLine(s.Buffer, value)
}

// appendLine appends JSON without line ends, which stand between its tokens alone.
func appendLine(b, value []byte) []byte {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(b, value...)
	}
	for _, c := range value {
		if c != '\n' && c != '\r' {
			b = append(b, c)
		}
	}
	return b
}

// beginResponse writes the beginning of the response.
func (s *Stream) beginResponse() {
	s.head = s.reply
	if s.head == nil {
		s.head = &responses.Reply{ID: "resp_" + rand.Text(), Model: s.model}
	}
	s.id = s.head.ID
	begun := s.encode(s.head, s.id, "in_progress", nil, nil)
	for _, kind := range []string{"response.created", "response.in_progress"} {
		s.openBare(kind)
		s.raw("response", begun)
		s.close()
	}
}

// begin gives an item its place and an id of its own (RS-61).
func (s *Stream) begin(item *responses.Item) *sentItem {
	if s.id == "" {
		s.beginResponse()
	}
	state := s.of(item)
	state.added, state.index = true, len(s.outputs)
	s.outputs = append(s.outputs, nil)
	if item.ID == "" {
		item.ID = "item_" + item.Call.ID
	}
	for s.ids[item.ID] {
		item.ID += "_" + strconv.Itoa(state.index)
	}
	s.ids[item.ID] = true
	return state
}

// writeItem writes an event with an item.
func (s *Stream) writeItem(kind string, state *sentItem, item []byte) {
	s.open(kind)
	s.Buffer = strconv.AppendInt(append(s.Buffer, `,"output_index":`...), int64(state.index), 10)
	s.raw("item", item)
	s.close()
}

// AddItem writes the beginning of an item that is no call.
func (s *Stream) AddItem(item *responses.Item) {
	state := s.begin(item)
	if item.Class == responses.Message {
		s.writeItem("response.output_item.added", state, EncodeMessage(item, "in_progress", false))
		return
	}
	begun := item.AppendAdded(nil)
	if item.Type == "tool_search_call" {
		begun = item.AppendItem(nil)
	}
	s.writeItem("response.output_item.added", state, begun)
}

// EndItem writes the end of an item that is no call.
func (s *Stream) EndItem(item *responses.Item) {
	state := s.of(item)
	if !state.added {
		s.AddItem(item)
	}
	var whole []byte
	if item.Class == responses.Message {
		for state.part < len(item.Parts) {
			s.EndPart(item)
		}
		status := "completed"
		if !item.Complete {
			status = "incomplete"
		}
		whole = EncodeMessage(item, status, true)
	} else {
		whole = item.AppendItem(nil)
	}
	s.done(state, whole)
}

// CutItem ends a message that was begun with no more than was sent of it.
func (s *Stream) CutItem(item *responses.Item) {
	state := s.of(item)
	item.Complete = false
	if state.open {
		part := item.Parts[state.part]
		part.Text, part.Annotations = part.Text[:state.text], nil
		item.Parts = item.Parts[:state.part+1]
	} else {
		item.Parts = item.Parts[:state.part]
	}
	s.EndItem(item)
}

// done writes the last event of an item.
func (s *Stream) done(state *sentItem, whole []byte) {
	s.writeItem("response.output_item.done", state, whole)
	state.done, s.outputs[state.index] = true, whole
}

// openPart writes the beginning of a message's part.
func (s *Stream) openPart(item *responses.Item) *sentItem {
	state := s.of(item)
	if !state.added {
		s.AddItem(item)
	}
	if state.open {
		return state
	}
	state.open = true
	part := item.Parts[state.part]
	s.open("response.content_part.added")
	s.placePart(item, state)
	s.Buffer = appendPart(append(s.Buffer, `,"part":`...), part, false)
	s.close()
	return state
}

// WriteText writes a piece of the text of a message's current part.
func (s *Stream) WriteText(item *responses.Item, text []byte) {
	state := s.openPart(item)
	kind := "response.output_text.delta"
	if item.Parts[state.part].Refusal {
		kind = "response.refusal.delta"
	}
	s.open(kind)
	s.placePart(item, state)
	s.Buffer = strictjson.AppendQuote(append(s.Buffer, `,"delta":`...), text)
	if !item.Parts[state.part].Refusal {
		s.Buffer = append(s.Buffer, `,"logprobs":[]`...)
	}
	s.close()
	state.text += len(text)
}

// EndPart writes the rest of a message's current part, and its end.
func (s *Stream) EndPart(item *responses.Item) {
	state := s.of(item)
	part := item.Parts[state.part]
	if rest := part.Text[state.text:]; len(rest) > 0 {
		s.WriteText(item, rest)
	}
	s.openPart(item)
	kind, member := "response.output_text.done", `,"text":`
	if part.Refusal {
		kind, member = "response.refusal.done", `,"refusal":`
	}
	s.open(kind)
	s.placePart(item, state)
	s.Buffer = strictjson.AppendQuote(append(s.Buffer, member...), part.Text)
	if !part.Refusal {
		s.Buffer = append(s.Buffer, `,"logprobs":[]`...)
	}
	s.close()
	s.open("response.content_part.done")
	s.placePart(item, state)
	if part.Annotations == nil {
		s.Buffer = appendPart(append(s.Buffer, `,"part":`...), part, true)
	} else {
		s.raw("part", appendPart(nil, part, true)) // which may have line ends
	}
	s.close()
	*state = sentItem{index: state.index, added: true, part: state.part + 1, place: state.place[:0]}
}

// PassOther passes on an event of an item that was begun, or of none.
func (s *Stream) PassOther(from *responses.Stream, item *responses.Item) {
	index, id := 0, ""
	if item != nil {
		state := s.of(item)
		if !state.added || state.done {
			return
		}
		index, id = state.index, item.ID
	}
	if s.id == "" {
		s.beginResponse()
	}
	kind := from.EventType()
	if s.scratch = strictjson.AppendQuote(s.scratch[:0], kind); len(s.scratch) != len(kind)+len(`""`) {
		return // no word that a client could know
	}
	s.Buffer = append(append(append(s.Buffer, "event: "...), kind...), "\ndata: "...)
	s.scratch = from.AppendOther(s.scratch[:0], s.sequence, index, id)
	s.Buffer = appendLine(s.Buffer, s.scratch)
	s.Buffer = append(s.Buffer, "\n\n"...)
	s.sequence++
}

// PassAnnotation passes on an annotation of the text that is being written, if no call can be
// found in it.
func (s *Stream) PassAnnotation(from *responses.Stream, item *responses.Item) {
	state := s.of(item)
	note := from.Annotation()
	if !state.open || from.ContentIndex(item) != state.part || !rawjson.HoldsNoCall(note) {
		return
	}
	s.open("response.output_text.annotation.added")
	s.placePart(item, state)
	s.Buffer = strconv.AppendInt(append(s.Buffer, `,"annotation_index":`...), int64(state.annotations), 10)
	s.raw("annotation", note)
	s.close()
	state.annotations++
}
