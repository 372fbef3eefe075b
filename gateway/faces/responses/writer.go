package responses

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// writer writes one response to the application, whole or as a stream, whose items are those of all turns that are shown.
// Its numbers are its own, without gaps (RS-60 to RS-63).
type writer struct {
	*dialogue
	buffer   []byte       // that is written to
	reply    *turns.Reply // of this turn
	id       string       // of the response; empty before its beginning was written
	head     *turns.Reply // that the response began with
	sequence int
	ids      map[string]bool
	begun    []*item // that have not ended
	scratch  []byte
	outputs  [][]byte // the items that have ended, by their output_index; nil: not yet
	asked    bool     // the caller is asked of a call
	cut      bool     // what was begun is of an earlier turn, which did not go on
}

// sentItem is how much of an item was sent.
type sentItem struct {
	index       int
	added       bool
	part        int // of a message, the one that is being written
	open        bool
	text        int // bytes of that part
	annotations int
	place       []byte // the members of its events, see placePart; empty: not yet
}

// Turn is of turns.Writer.
func (w *writer) Turn(r *turns.Reply) { w.reply, w.cut = r, true }

// Delta is of turns.Writer.
func (w *writer) Delta(b []byte, d *turns.Delta, text []byte) []byte {
	w.resume(b)
	switch {
	case d.Part == nil && d.Is == turns.Mark:
		w.passOther(nil, d)
	case d.Part == nil:
	default:
		switch of := d.Part.Wire.(type) {
		case *textPart:
			w.passText(of, d, text)
		case *item:
			switch d.Is {
			case turns.Start:
				w.addItem(of)
			case turns.Mark:
				w.passOther(of, d)
			case turns.Stop:
				w.endItem(of)
			}
		}
	}
	return w.buffer
}

func (w *writer) passText(p *textPart, d *turns.Delta, text []byte) {
	switch d.Is {
	case turns.Start:
		w.openPart(p)
	case turns.Grown:
		w.writeText(p, text)
	case turns.Mark:
		w.passAnnotation(p, d.Raw)
	case turns.Stop:
		w.endPart(p, nil)
	}
}

// Rest is of turns.Writer.
func (w *writer) Rest(b []byte, a *turns.Answer, shown []turns.Shown, _, _ bool) []byte {
	w.resume(b)
	for i := range shown {
		switch of := partOf(&shown[i]).(type) {
		case *textPart:
			w.endPart(of, shown[i].Text)
		case *item:
			switch {
			case shown[i].Question != nil:
				w.writeRequest(of, shown[i].Question)
			case of.isCall():
				w.writeCall(of, shown[i].Arguments)
			default:
				if !of.sent.added {
					w.addItem(of)
					w.writeSummary(of)
				}
				w.endItem(of)
			}
		}
	}
	return w.buffer
}

// partOf is what the wire knows of a part that passed: of a text of Callgate, a message of its own.
func partOf(p *turns.Shown) any {
	if p.Wire != nil {
		return p.Wire
	}
	message := &item{row: rowMessage, id: "msg_" + rand.Text(), complete: true, done: true}
	part := newPart(false, 0)
	part.of, part.Text, part.closed, message.parts = message, p.Text, true, []*textPart{part}
	return part
}

// resume goes on with a buffer. It ends the items that an earlier turn has begun, messages with no more than was sent of them.
func (w *writer) resume(b []byte) {
	if w.buffer = b; !w.cut {
		return
	}
	w.cut = false
	for _, it := range slices.Clone(w.begun) {
		if it.complete = it.complete && it.Kind != turns.Text; it.Kind == turns.Text {
			if it.parts = it.parts[:min(it.sent.part+1, len(it.parts))]; it.sent.open {
				part := it.parts[it.sent.part]
				part.Text, part.Beside = part.Text[:it.sent.text], nil
				w.closePart(part)
			} else {
				it.parts = it.parts[:it.sent.part]
			}
		}
		w.endItem(it)
	}
}

// Close is of turns.Writer: the terminal event.
func (w *writer) Close(b, usage []byte) []byte {
	w.buffer = b
	status := "completed"
	if w.reply.Answers[0].Reason == "incomplete" {
		status = "incomplete"
	}
	w.open("response." + status)
	w.raw("response", w.encodeResponse(w.reply, w.id, status, w.outputs, nil, usage))
	w.close()
	w.remember(w.id)
	return w.buffer
}

// Whole is of turns.Writer.
func (w *writer) Whole(r *turns.Reply, shown [][]turns.Shown, usage []byte) []byte {
	w.reply = r
	var output [][]byte
	var message *item
	for i := range shown[0] {
		switch of := partOf(&shown[0][i]).(type) {
		case *textPart:
			if of.of != message {
				message = of.of
				message.giveID()
				output = append(output, message.encodeWhole())
			}
		case *item:
			switch q := shown[0][i].Question; {
			case q != nil:
				w.asked = true
				output = append(output, encodeRequest(of, q))
			case of.isCall():
				output = append(output, of.encodeCall(shown[0][i].Arguments, "completed", false))
			default:
				of.giveID()
				output = append(output, of.encodeWhole())
			}
		}
	}
	status := r.Answers[0].Reason
	switch status {
	case "incomplete", "queued", "in_progress":
	default:
		status = "completed"
	}
	w.remember(r.ID)
	return append(w.encodeResponse(r, r.ID, status, output, nil, usage), '\n')
}

// Fail is of turns.Writer: the terminal event of a response that has failed (RS-50). Items that have not ended stay so.
func (w *writer) Fail(b []byte, f *turns.Failure) []byte {
	w.buffer = b
	if w.id == "" {
		w.beginResponse()
	}
	ended := slices.DeleteFunc(slices.Clone(w.outputs), func(item []byte) bool { return item == nil })
	w.open("response.failed")
	w.raw("response", w.encodeResponse(w.head, w.id, "failed", ended, encodeError(f), w.Usage().Encode()))
	w.close()
	return w.buffer
}

// Alive is of turns.Writer: a comment, which clients pass over (RS-64).
func (w *writer) Alive(b []byte, note string) []byte { return sse.AppendComment(b, note) }

// forwardedOfResponse are the members of a response that are passed on as they came, where no
// call can be found in them: echoes of the request, and how it was served.
var forwardedOfResponse = []string{
	"background", "billing", "completed_at", "frequency_penalty", "max_output_tokens", "max_tool_calls",
	"metadata", "moderation", "presence_penalty",
	"prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store",
	"temperature", "text", "top_logprobs", "top_p", "truncation", "user",
}

// restored are echoes of members that this face changes on their way to the model, and what
// they are where the request does not have them (RS-30).
var restored = []struct{ name, absent string }{
	{"instructions", "null"}, {"tools", "[]"}, {"tool_choice", `"auto"`}, {"parallel_tool_calls", "true"}, {"previous_response_id", "null"},
}

// encodeResponse returns a response object. failure is its error; nil: null.
func (w *writer) encodeResponse(reply *turns.Reply, id, status string, output [][]byte, failure, usage []byte) []byte {
	size := 1 << 10 // for what is short
	for _, item := range output {
		size += len(item) + 1
	}
	b := rawjson.AppendQuote(append(make([]byte, 0, size), `{"id":`...), id)
	b = append(b, `,"object":"response","created_at":`...)
	if created := reply.Head.Get("created_at"); created != nil && len(created) <= 32 && created[0] >= '0' && created[0] <= '9' {
		b = append(b, created...)
	} else {
		b = strconv.AppendInt(b, time.Now().Unix(), 10)
	}
	b = rawjson.AppendQuote(append(b, `,"status":`...), status)
	if failure == nil {
		failure = []byte("null")
	}
	b = append(append(b, `,"error":`...), failure...)
	b = append(b, `,"incomplete_details":`...)
	if details := reply.Head.Get(memberDetails); status == "incomplete" && details != nil {
		b = append(b, details...)
	} else {
		b = append(b, "null"...)
	}
	b = rawjson.AppendQuote(append(b, `,"model":`...), turns.ModelName(reply.Model, w.model))
	b = append(b, `,"output":[`...)
	for i, item := range output {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, item...)
	}
	b = append(b, ']')
	for _, m := range restored {
		value := w.members.Get(m.name)
		if value == nil {
			value = []byte(m.absent)
		}
		b = append(append(append(append(b, `,"`...), m.name...), `":`...), value...)
	}
	for _, m := range reply.Head {
		if slices.Contains(forwardedOfResponse, m.Name) && rawjson.HoldsNoCall(m.Value) {
			b = append(append(append(append(b, `,"`...), m.Name...), `":`...), m.Value...)
		}
	}
	if usage == nil {
		usage = []byte("null")
	}
	return append(append(append(b, `,"usage":`...), usage...), '}')
}

// remember binds the response that the application knows by an id to its caller, where it may
// continue it. One that asks its caller is continued by its items: the provider has the calls, and not
// what they were asked by.
func (w *writer) remember(id string) {
	if w.asked || w.reply.Answers[0].Reason == "" {
		return
	}
	if w.Route.Rules.Responses.State != upstream.BindState || string(w.members.Get("store")) == "false" {
		return
	}
	principal := w.Admission.Principal()
	w.ledger.Put(owner{principal, w.Route.Upstream, id}, w.reply.ID)
	for _, it := range w.reader.items {
		if it.id != "" {
			w.ledger.Put(owner{principal, w.Route.Upstream, it.id}, it.id)
		}
	}
}

// encodeError is the error of a failed response: the provider's own code and words, or ours.
func encodeError(f *turns.Failure) []byte {
	var code, message string
	var result []byte
	switch {
	case f.Upstream != nil:
		code, message = f.Upstream.Code, f.Upstream.Why()
		if !ascii.IsPlainID(code) {
			code = "server_error"
		}
		if !rawjson.IsProse([]byte(message)) {
			message = "The model's provider refused the request."
		}
	default:
		code, message, result = string(f.Refused.Code), f.Refused.Message, f.Result
		if result == nil {
			line, _ := wrapper.Refusal(nil, f.Refused) // it holds text and numbers
			result = line.Line
		}
	}
	b := rawjson.AppendQuote([]byte(`{"code":`), code)
	b = rawjson.AppendQuote(append(b, `,"message":`...), message)
	if result != nil {
		b = append(append(b, `,"callgate":`...), result...)
	}
	return append(b, '}')
}

// open begins an event.
func (w *writer) open(kind string) {
	if w.id == "" {
		w.beginResponse()
	}
	w.openBare(kind)
}

func (w *writer) openBare(kind string) {
	b := append(append(append(w.buffer, "event: "...), kind...), "\ndata: {\"type\":\""...)
	b = append(append(b, kind...), `","sequence_number":`...)
	w.buffer = strconv.AppendInt(b, int64(w.sequence), 10)
	w.sequence++
}

func (w *writer) close() { w.buffer = append(w.buffer, "}\n\n"...) }

// placePart writes the members that say which part of a message an event is about.
func (w *writer) placePart(it *item, state *sentItem) {
	if len(state.place) == 0 {
		state.place = rawjson.AppendQuote(append(state.place, `,"item_id":`...), it.id)
		state.place = strconv.AppendInt(append(state.place, `,"output_index":`...), int64(state.index), 10)
		state.place = strconv.AppendInt(append(state.place, `,"content_index":`...), int64(state.part), 10)
	}
	w.buffer = append(w.buffer, state.place...)
}

// place writes the members that say which item an event is about.
func (w *writer) place(it *item, state *sentItem) {
	w.buffer = rawjson.AppendQuote(append(w.buffer, `,"item_id":`...), it.id)
	w.buffer = strconv.AppendInt(append(w.buffer, `,"output_index":`...), int64(state.index), 10)
}

// raw writes a member whose value is JSON, on one line.
func (w *writer) raw(name string, value []byte) {
	w.buffer = append(append(append(w.buffer, `,"`...), name...), `":`...)
	w.buffer = append(w.buffer, rawjson.OneLine(value)...)
}

// beginResponse writes the beginning of the response.
func (w *writer) beginResponse() {
	if w.head = w.reply; w.head.ID == "" {
		w.head = &turns.Reply{ID: "resp_" + rand.Text(), Model: w.model}
	}
	w.id = w.head.ID
	begun := w.encodeResponse(w.head, w.id, "in_progress", nil, nil, nil)
	for _, kind := range []string{"response.created", "response.in_progress"} {
		w.openBare(kind)
		w.raw("response", begun)
		w.close()
	}
}

// begin gives an item its place and an id of its own (RS-61).
func (w *writer) begin(it *item) *sentItem {
	if w.id == "" {
		w.beginResponse()
	}
	state := &it.sent
	state.added, state.index = true, len(w.outputs)
	w.outputs, w.begun = append(w.outputs, nil), append(w.begun, it)
	if w.ids == nil {
		w.ids = map[string]bool{}
	}
	it.giveID()
	for w.ids[it.id] {
		it.id += "_" + strconv.Itoa(state.index)
	}
	w.ids[it.id] = true
	return state
}

// giveID gives an item an id where the provider has not: clients tell items apart by it.
func (it *item) giveID() {
	if it.id == "" {
		it.id = "item_" + cmp.Or(it.call.id, rand.Text())
	}
}

// writeItem writes an event with an item.
func (w *writer) writeItem(kind string, state *sentItem, item []byte) {
	w.open(kind)
	w.buffer = strconv.AppendInt(append(w.buffer, `,"output_index":`...), int64(state.index), 10)
	w.raw("item", item)
	w.close()
}

// addItem writes the beginning of an item that is no call.
func (w *writer) addItem(it *item) {
	state := w.begin(it)
	if it.Kind == turns.Text {
		w.writeItem("response.output_item.added", state, it.encode("in_progress", false))
		return
	}
	w.writeItem("response.output_item.added", state, it.encodeAdded())
}

// encodeAdded is an item as it began; as it ended where its beginning came late, or hooks have changed it.
func (it *item) encodeAdded() []byte {
	if it.Type == "tool_search_call" || it.added == nil || it.own.Raw != nil && !bytes.Equal(it.own.Raw, it.raw) {
		return it.encodeAs(it.own.Raw)
	}
	return it.encodeAs(it.added)
}

// endItem writes the end of an item that is no call, whose parts have ended.
func (w *writer) endItem(it *item) {
	if !it.sent.added {
		w.addItem(it)
	}
	w.done(it, it.encodeWhole())
}

// encodeWhole is an item that is no call, as it ended.
func (it *item) encodeWhole() []byte {
	if it.Kind == turns.Text {
		return it.encode(it.status(), true)
	}
	return it.encodeAs(it.own.Raw)
}

// status is that of a message.
func (it *item) status() string {
	if it.complete {
		return "completed"
	}
	return "incomplete"
}

// done writes the last event of an item.
func (w *writer) done(it *item, whole []byte) {
	w.writeItem("response.output_item.done", &it.sent, whole)
	w.outputs[it.sent.index] = whole
	w.begun = slices.DeleteFunc(w.begun, func(other *item) bool { return other == it })
}

// openPart writes the beginning of a message's part.
func (w *writer) openPart(p *textPart) *sentItem {
	state := &p.of.sent
	if !state.added {
		w.addItem(p.of)
	}
	if state.open {
		return state
	}
	state.open = true
	w.open("response.content_part.added")
	w.placePart(p.of, state)
	w.buffer = p.encode(append(w.buffer, `,"part":`...), false)
	w.close()
	return state
}

// writeText writes a piece of the text of a message's current part.
func (w *writer) writeText(p *textPart, text []byte) {
	state := w.openPart(p)
	kind := "response.output_text.delta"
	if p.refuses() {
		kind = "response.refusal.delta"
	}
	w.open(kind)
	w.placePart(p.of, state)
	w.buffer = rawjson.AppendQuote(append(w.buffer, `,"delta":`...), text)
	if !p.refuses() {
		w.buffer = append(w.buffer, `,"logprobs":[]`...)
	}
	w.close()
	state.text += len(text)
}

// endPart writes the rest of a message's current part, its end, and with the last part the end of the message.
func (w *writer) endPart(p *textPart, rest []byte) {
	if len(rest) > 0 {
		w.writeText(p, rest)
	}
	w.openPart(p)
	w.closePart(p)
	if p.of.sent.part == len(p.of.parts) {
		w.endItem(p.of)
	}
}

func (w *writer) closePart(p *textPart) {
	state := &p.of.sent
	kind, member := "response.output_text.done", `,"text":`
	if p.refuses() {
		kind, member = "response.refusal.done", `,"refusal":`
	}
	w.open(kind)
	w.placePart(p.of, state)
	w.buffer = rawjson.AppendQuote(append(w.buffer, member...), p.Text)
	if !p.refuses() {
		w.buffer = append(w.buffer, `,"logprobs":[]`...)
	}
	w.close()
	w.open("response.content_part.done")
	w.placePart(p.of, state)
	if p.Beside == nil {
		w.buffer = p.encode(append(w.buffer, `,"part":`...), true)
	} else {
		w.raw("part", p.encode(nil, true)) // which may have line ends
	}
	w.close()
	*state = sentItem{index: state.index, added: true, part: state.part + 1, place: state.place[:0]}
}

// passOther passes on an event of an item that was begun, or of none: with other numbers and without its obfuscation. An id that
// it does not have is not added.
func (w *writer) passOther(it *item, d *turns.Delta) {
	if it != nil && !it.sent.added {
		return // it is shown once it has ended
	}
	if w.id == "" {
		w.beginResponse()
	}
	if w.scratch = rawjson.AppendQuote(w.scratch[:0], d.Name); len(w.scratch) != len(d.Name)+len(`""`) {
		return // no word that a client could know
	}
	w.buffer = append(append(append(w.buffer, "event: "...), d.Name...), "\ndata: "...)
	b := strconv.AppendInt(append(w.scratch[:0], `{"sequence_number":`...), int64(w.sequence), 10)
	indexed := it == nil
	_ = rawjson.Each(d.Raw, func(name, value []byte) error { // it was checked before
		switch string(name) {
		case "sequence_number", "obfuscation", "error": // which says nothing
			return nil
		}
		b = append(rawjson.AppendQuote(append(b, ','), name), ':')
		switch {
		case string(name) == "output_index" && it != nil:
			b, indexed = strconv.AppendInt(b, int64(it.sent.index), 10), true
		case string(name) == "item_id" && it != nil:
			b = rawjson.AppendQuote(b, it.id)
		default:
			b = append(b, value...)
		}
		return nil
	})
	if !indexed {
		b = strconv.AppendInt(append(b, `,"output_index":`...), int64(it.sent.index), 10)
	}
	w.scratch = append(b, '}')
	w.buffer = append(append(w.buffer, rawjson.OneLine(w.scratch)...), "\n\n"...)
	w.sequence++
}

// passAnnotation passes on an annotation of the text that is being written, if no call can be found in it.
func (w *writer) passAnnotation(p *textPart, note []byte) {
	state := &p.of.sent
	if !state.open || !rawjson.HoldsNoCall(note) {
		return
	}
	w.open("response.output_text.annotation.added")
	w.placePart(p.of, state)
	w.buffer = strconv.AppendInt(append(w.buffer, `,"annotation_index":`...), int64(state.annotations), 10)
	w.raw("annotation", note)
	w.close()
	state.annotations++
}

// writeCall writes a call that passed, in one piece.
func (w *writer) writeCall(it *item, arguments []byte) {
	state := w.begin(it)
	whole := it.encodeCall(arguments, "completed", false)
	kind, member, text := "", "", it.call.payload
	switch it.Type {
	case "function_call":
		kind, member, text = "response.function_call_arguments", "arguments", arguments
	case "custom_tool_call":
		kind, member = "response.custom_tool_call_input", "input"
	}
	w.writeItem("response.output_item.added", state, it.encodeCall(arguments, "in_progress", kind != ""))
	if kind != "" {
		w.open(kind + ".delta")
		w.place(it, state)
		w.raw("delta", rawjson.Quote(text))
		w.close()
		w.open(kind + ".done")
		w.place(it, state)
		if member == "arguments" {
			w.raw("name", rawjson.Quote(it.call.name))
		}
		w.raw(member, rawjson.Quote(text))
		w.close()
	}
	w.done(it, whole)
}

// writeRequest writes the item by which the caller is asked of a call. Like the API's own it is whole
// from its beginning on.
func (w *writer) writeRequest(it *item, q *calls.Question) {
	w.asked = true
	asked := &item{row: rows[typeRequest], id: q.ID}
	whole := encodeRequest(it, q)
	w.writeItem("response.output_item.added", w.begin(asked), whole)
	w.done(asked, whole)
}

// writeSummary writes the events of a reasoning item that came behind a call. Its beginning has
// no summary: clients put the events behind it.
func (w *writer) writeSummary(it *item) {
	if it.Kind != turns.Thought {
		return
	}
	state := &it.sent
	members, _ := rawjson.Members(it.own.Raw)
	begun, _ := rawjson.Members(it.encodeAdded())
	if string(begun.Get("summary")) != "[]" {
		return
	}
	parts, _ := rawjson.Elements(members.Get("summary"))
	if parts == nil {
		return
	}
	for i, part := range parts {
		o, _ := rawjson.Members(part)
		text := o.Get("text")
		if text == nil || text[0] != '"' {
			continue
		}
		for _, e := range []struct {
			kind, member string
			value        []byte
		}{
			{"response.reasoning_summary_part.added", "part", o.Set("text", rawjson.Quote("")).Bytes()},
			{"response.reasoning_summary_text.delta", "delta", text},
			{"response.reasoning_summary_text.done", "text", text},
			{"response.reasoning_summary_part.done", "part", part},
		} {
			w.open(e.kind)
			w.place(it, state)
			w.raw("summary_index", strconv.AppendInt(nil, int64(i), 10))
			w.raw(e.member, e.value)
			w.close()
		}
	}
}

// ownLabel is the server_label by which a client says that its user answers calls that wait for the
// caller, and by which it is asked.
const ownLabel = "callgate"

// forwardedOfCall are the members of every call that a client acts by: they name the call.
var forwardedOfCall = []string{"type", "call_id", "name", "namespace", "caller", "async"}

// encode is a message whose text passed; whole: with its parts.
func (it *item) encode(status string, whole bool) []byte {
	size := 256 // for what is short
	for _, part := range it.parts {
		if whole {
			size += len(part.Text)
		}
	}
	b := rawjson.AppendQuote(append(make([]byte, 0, size), `{"id":`...), it.id)
	b = rawjson.AppendQuote(append(b, `,"type":"message","status":`...), status)
	b = append(b, `,"role":"assistant","content":[`...)
	if whole {
		for i, part := range it.parts {
			if i > 0 {
				b = append(b, ',')
			}
			b = part.encode(b, true)
		}
	}
	b = append(b, ']')
	if it.phase != "" {
		b = rawjson.AppendQuote(append(b, `,"phase":`...), it.phase)
	}
	return append(b, '}')
}

// encode appends a part of a message; not whole: as it begins.
func (p *textPart) encode(b []byte, whole bool) []byte {
	text, annotations := p.Text, p.Beside.Get("annotations")
	if !whole {
		text = nil
	}
	if p.refuses() {
		return append(rawjson.AppendQuote(append(b, `{"type":"refusal","refusal":`...), text), '}')
	}
	b = append(b, `{"type":"output_text","annotations":`...)
	if left := rawjson.WithoutCalls(annotations); whole && annotations != nil && left != nil {
		b = append(b, left...)
	} else {
		b = append(b, "[]"...)
	}
	return append(rawjson.AppendQuote(append(b, `,"logprobs":[],"text":`...), text), '}')
}

// encodeCall is a call that passed. begins: it is its beginning, without arguments.
func (it *item) encodeCall(arguments []byte, status string, begins bool) []byte {
	b := []byte{'{'}
	if it.id != "" {
		b = append(rawjson.AppendQuote(append(b, `"id":`...), it.id), ',')
	}
	b = rawjson.AppendQuote(append(b, `"status":`...), status)
	members, _ := rawjson.Members(it.raw)
	for _, m := range members {
		value := m.Value
		switch {
		case !slices.Contains(forwardedOfCall, m.Name) && !slices.Contains(it.forwarded, m.Name):
			continue
		case m.Name == "arguments" && it.Type == "function_call":
			value = rawjson.Quote(arguments)
		}
		if m.Name == "environment" { // of a shell call that the client runs
			value = []byte(`{"type":"local"}`)
		}
		if begins && (m.Name == "arguments" || m.Name == "input") {
			value = []byte(`""`)
		}
		b = append(append(append(append(b, `,"`...), m.Name...), `":`...), value...)
	}
	return append(b, '}')
}

// encodeRequest is the item by which the caller is asked of a call.
func encodeRequest(it *item, q *calls.Question) []byte {
	return rawjson.Object{
		rawjson.Field("id", rawjson.Quote(q.ID)), rawjson.Field("type", rawjson.Quote(typeRequest)),
		rawjson.Field("arguments", rawjson.Quote([]byte(q.Arguments))), rawjson.Field("name", rawjson.Quote(it.call.name)),
		rawjson.Field("server_label", rawjson.Quote(ownLabel)),
	}.Bytes()
}

// writeCall makes a call state its id, its name and its arguments, the last as a text, as clients and the provider read
// them: a server may have left them out, or stated them in another place of the stream.
func (it *item) writeCall() {
	if it.raw == nil || it.Kind != turns.Call {
		return
	}
	o, _ := rawjson.Members(it.raw)
	write := func(name string, text []byte) {
		if stated, ok := rawjson.Text(o.Get(name)); !ok || !bytes.Equal(stated, text) {
			o = o.Set(name, rawjson.Quote(text))
			it.raw = o.Bytes()
		}
	}
	write("call_id", []byte(it.call.id))
	if it.call.name != "" {
		write("name", []byte(it.call.name))
	}
	if it.call.namespace != "" {
		write("namespace", []byte(it.call.namespace))
	}
	if it.Type == "function_call" {
		write("arguments", it.call.payload)
	}
}

// reasoningMembers are the members of reasoning, which is passed on unjudged: others could be read
// as those of a call.
var reasoningMembers = map[string]bool{
	"id": true, "type": true, "status": true, "summary": true, "content": true, "encrypted_content": true, "format": true,
}

// encodeAs is an item that is neither a message nor a call, as it was received, with the id that the client knows it by. nil:
// as it was received last.
func (it *item) encodeAs(raw []byte) []byte {
	if raw == nil {
		raw = it.raw
	}
	if raw == nil {
		raw = it.added
	}
	b := []byte{'{'}
	known := it.id == ""
	_ = rawjson.Each(raw, func(name, value []byte) error { // it was checked before
		if it.Kind == turns.Thought && !reasoningMembers[string(name)] {
			return nil
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		if string(name) == "id" && it.id != "" {
			value, known = rawjson.AppendQuote(nil, it.id), true
		}
		b = append(append(rawjson.AppendQuote(b, name), ':'), value...)
		return nil
	})
	if !known {
		b = rawjson.AppendQuote(append(b, `,"id":`...), it.id)
	}
	return append(b, '}')
}
