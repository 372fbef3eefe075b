package responses

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream"
)

// doneWord is the data of the last event of some streams (RS-40).
const doneWord = "[DONE]"

// reader reads one reply: a whole response, or the events of a stream.
type reader struct {
	rules *upstream.Rules
	// background says that the request was for a response that is fetched later: it need not have ended.
	background bool

	reply        turns.Reply
	answer       turns.Answer
	items        []*item // in their order
	sequence     int     // the last of a piece of a text
	numbered     bool    // there was one
	rises        bool    // it has risen
	unindexed    bool    // an event was about an item, and did not say which by an output_index
	ids, callIDs map[string]bool
	calls        int
	deltas       []turns.Delta

	event    wireEvent
	template template
	bytes    int
	repeated int    // of them, those that state once more what was counted
	head     []byte // the response as it began
	name     string // of the last event that is passed on
	begun    bool
	finished bool
	over     bool   // no item grows any more
	last     []byte // the response as it ended
	done     bool   // [DONE] came
}

func newReader(rules *upstream.Rules) *reader {
	r := &reader{rules: rules}
	r.reply.Answers = []*turns.Answer{&r.answer}
	return r
}

// unknown reports whether items and events of unknown types may pass.
func (r *reader) unknown() bool { return r.rules.Responses.UnknownItems == upstream.Pass }

// Reply is of turns.Reader.
func (r *reader) Reply() *turns.Reply { return &r.reply }

// State is of turns.Reader.
func (r *reader) State() (held, size int, at turns.Progress) {
	if r.finished {
		at = turns.Ended
	}
	return r.bytes, r.bytes - r.repeated, at
}

// Whole is of turns.Reader.
func (r *reader) Whole(body []byte) error {
	if err := rawjson.Check(body, maxDepth); err != nil {
		return err
	}
	start := bytes.IndexByte(body, '{')
	if start < 0 || len(bytes.TrimLeft(body[:start], " \t\r\n")) > 0 {
		return errors.New("a reply that is not an object")
	}
	if body = body[start:]; turns.IsNothing(rawjson.MemberOf(body, "error")) &&
		rawjson.IsNull(rawjson.MemberOf(body, "output")) && rawjson.IsNull(rawjson.MemberOf(body, "status")) {
		return failureIn(body, "an answer without an output")
	}
	output, err := r.readResponse(body)
	if err != nil {
		return err
	}
	if err := r.readOutput(output, r.add); err != nil {
		return err
	}
	r.finished = true
	return r.End()
}

// End is of turns.Reader: it says what the answer is, in the order of its items.
func (r *reader) End() error {
	if !r.finished {
		return fmt.Errorf("%w without its terminal event", turns.ErrIncomplete)
	}
	a := &r.answer
	reason, _ := word(rawjson.MemberOf(r.reply.Head.Get(memberDetails), "reason"))
	if reason != "" && a.Reason == "completed" { // what is said to be missing may be of a call
		a.Reason = "incomplete"
	}
	pending := a.Reason == "queued" || a.Reason == "in_progress"
	if pending && (!r.background || len(r.items) > 0) {
		return fmt.Errorf("%w: an answer with the status %s", turns.ErrIncomplete, a.Reason)
	}
	a.Parts, a.End = a.Parts[:0], turns.Done
	for _, it := range r.items {
		for _, p := range it.parts {
			a.Parts = append(a.Parts, &p.Part)
		}
		p := &it.own
		if it.isCall() {
			if it.call.id == "" { // the application and the model refer to it
				it.call.id = "call_" + rand.Text()
			}
			switch c := &it.call; {
			case len(c.payload) == 0 && !it.closed:
				c.payload = c.first
			case !bytes.HasPrefix(c.payload, c.first):
				return errDifferentArguments
			}
			it.call.first = nil
			p.Call = it.called()
			it.writeCall()
		}
		if it.Kind == turns.Text {
			if len(it.parts) == 0 {
				a.Parts = append(a.Parts, p)
			}
			continue
		}
		if it.hasTextPayload() {
			if err := it.call.elsewhere.Check(it.call.payload); err != nil {
				return err
			}
		}
		p.Raw, p.Cut = it.raw, !it.complete
		switch it.Kind {
		case turns.Call:
			p.Call.Arguments = it.judged()
			a.End = turns.Called
		case turns.Ask:
			p.Call.Arguments = it.call.payload
		case turns.Thought:
			o, _ := rawjson.Members(it.raw)
			for _, name := range rowReasoning.Hooked {
				if value := o.Get(name); value != nil {
					p.Beside = append(p.Beside, rawjson.Field(name, value))
				}
			}
		}
		a.Parts = append(a.Parts, p)
	}
	switch a.Reason {
	case "completed":
	case "queued":
		a.End = turns.Paused
	default:
		a.End = turns.Cut
		if reason == "content_filter" {
			a.Withheld = "incomplete_details.reason " + reason
		}
	}
	a.Partial = pending || a.Reason == "incomplete"
	return nil
}

// tell notes what an event has added.
func (r *reader) tell(d turns.Delta) {
	d.Answer = &r.answer
	r.deltas = append(r.deltas, d)
}

// tellItem notes that an item has begun, or ended, and what has come of a message.
func (r *reader) tellItem(it *item) {
	switch {
	case it.Kind == turns.Text:
		r.tellMessage(it)
		return
	case !it.begun && (!it.late || it.done || r.finished):
		it.begun = true
		r.tell(turns.Delta{Is: turns.Start, Part: &it.own})
	}
	if it.done && !it.ended {
		it.ended = true
		r.tell(turns.Delta{Is: turns.Stop, Part: &it.own})
	}
}

// tellMessage notes what has come of a message. What comes of a later message, or of a later part of one, waits until those
// before it have ended: texts are told of in the order of the answer.
func (r *reader) tellMessage(it *item) {
	for _, before := range r.items {
		if before == it {
			break
		}
		if before.Kind == turns.Text && !before.done && !r.over {
			return
		}
	}
	if len(it.parts) == 0 && it.done && !it.ended { // a message without a text has no part but itself
		it.ended = true
		r.tell(turns.Delta{Is: turns.Start, Part: &it.own})
		r.tell(turns.Delta{Is: turns.Stop, Part: &it.own})
	}
	for i, p := range it.parts {
		if p.ended {
			continue
		}
		if !p.begun {
			p.begun = true
			r.tell(turns.Delta{Is: turns.Start, Part: &p.Part})
		}
		if len(p.Text) > p.told {
			r.tell(turns.Delta{Is: turns.Grown, Part: &p.Part, From: p.told})
			p.told = len(p.Text)
		}
		switch last := i == len(it.parts)-1; {
		case r.over, p.closed && (!last || it.done):
			p.ended = true
			r.tell(turns.Delta{Is: turns.Stop, Part: &p.Part})
		case !last:
			return
		}
	}
}

// Event is of turns.Reader.
func (r *reader) Event(name, data []byte) ([]turns.Delta, error) {
	r.deltas = r.deltas[:0]
	err := r.read(name, data)
	return r.deltas, err
}

func (r *reader) read(name, data []byte) error {
	if string(data) == doneWord && r.finished && !r.done {
		r.done = true
		return nil
	}
	if r.finished {
		return errors.New("an event after the end of the reply")
	}
	data = bytes.TrimLeft(data, " \t\r\n") // parts of a document begin with their first byte
	if isPing(name, data) {
		return nil
	}
	e := &r.event
	if !r.template.match(e, data) {
		if err := e.read(data); err != nil {
			return err
		}
		r.template.learn(e)
	}
	if len(name) > 0 && !bytes.Equal(name, e.kind) {
		return errors.New("an event whose name is not its type")
	}
	if string(e.kind) == "error" {
		if turns.IsNothing(e.failure) { // code and message stand in the event itself, whose type is not theirs
			stated := providerError(data)
			stated.Failure.Type = ""
			return stated
		}
		return providerError(e.failure)
	}
	// Clients take a member error of any event for a failure (RS-49).
	if !turns.IsNothing(e.failure) {
		return providerError(e.failure)
	}
	return r.dispatch()
}

// isPing reports whether an event only keeps the connection alive, by its name: its data may be anything but an event of
// another type.
func isPing(name, data []byte) bool {
	switch {
	case string(name) != "ping":
		return false
	case len(data) == 0 || data[0] != '{':
		return true
	case rawjson.Check(data, maxDepth) != nil:
		return false
	}
	kind, ok := optional(rawjson.MemberOf(data, "type"))
	return ok && (kind == "" || kind == "ping")
}

// dispatch goes by the type of the event.
func (r *reader) dispatch() error {
	e := &r.event
	switch string(e.kind) {
	case "response.created", "response.queued", "response.in_progress":
		return r.begin()
	case "keepalive", "ping":
		return nil
	}
	if !r.begun {
		return errors.New("an event before the beginning of the reply")
	}
	switch string(e.kind) {
	case "response.completed", "response.incomplete", "response.failed":
		return r.finish()
	}
	if bytes.HasSuffix(e.kind, []byte(".delta")) {
		if err := r.follow(e.sequence); err != nil {
			return err
		}
	}
	if string(e.kind) == "response.output_item.added" {
		return r.addItem()
	}
	ends := string(e.kind) == "response.output_item.done"
	it, err := r.itemOf(ends)
	switch {
	case err != nil:
		return err
	case it == nil && len(r.items) > 0 && 0 <= e.output && e.output < r.items[len(r.items)-1].index && r.statesNoText():
		return nil // one server ends an empty message before its calls that it did not begin
	case it == nil && ends: // some servers send items whole
		if err := r.addItem(); err != nil {
			return err
		}
		it = r.items[len(r.items)-1]
	case it == nil && e.output >= 0:
		return errors.New("an event about an item that was not added")
	case it == nil:
		return r.other(nil)
	}
	if ends {
		return r.endItem(it)
	}
	if it.done {
		return errors.New("an event about an item that has ended")
	}
	return r.change(it)
}

// follow refuses pieces of texts that come twice or in another order, where they are numbered: some servers write one number
// for all (RS-45). What other events say is compared.
func (r *reader) follow(sequence int) error {
	switch {
	case sequence < 0:
		return nil
	case r.rises && sequence <= r.sequence:
		return errors.New("a sequence_number of a piece that does not rise")
	}
	r.rises = r.rises || r.numbered && sequence > r.sequence
	r.sequence, r.numbered = sequence, true
	return nil
}

// itemOf finds the item that an event is about: by its output_index; where it has none, by its item_id, or as the only
// item that has not ended (RS-47). nil: none that was added. ends says that the event is the end of an item.
func (r *reader) itemOf(ends bool) (found *item, err error) {
	e := &r.event
	if e.output >= 0 {
		return r.itemAt(ends)
	}
	id, _ := optional(e.itemID)
	callID := id // some servers know calls by nothing else
	if ends {
		id, _ = optional(rawjson.MemberOf(e.item, "id"))
		callID, _ = optional(rawjson.MemberOf(e.item, "call_id"))
	}
	open, last := 0, (*item)(nil) // of the items that have not ended
	for _, it := range r.items {
		switch {
		case id != "" && (it.id == id || it.eventID == id), callID != "" && it.isCall() && it.call.id == callID:
			if found != nil {
				return nil, errManyItems
			}
			found = it
		case !it.done:
			open, last = open+1, it
		}
	}
	switch {
	case found != nil, open == 0, !ends && !isJudged(e.kind) && !eventOf(e.kind, "reasoning"):
	case id == "" && open > 1:
		return nil, errManyItems
	case id == "":
		found = last
	case open > 1 || last.id != "":
	case !last.isCall():
		found = last
	case last.call.id == "" && last.eventID == "": // its first id, which stays its own: another is that of another call
		if r.ids[id] || r.callIDs[id] {
			return nil, errSameID
		}
		found, last.eventID, r.ids[id], r.callIDs[id] = last, id, true, true
	}
	r.unindexed = r.unindexed || found != nil
	return found, nil
}

// itemAt finds the item with the output_index of the event. Where a server gives one index to several items, the id says which;
// an id that no item has says nothing (RS-46).
func (r *reader) itemAt(ends bool) (found *item, err error) {
	id, index, open := r.event.itemID, r.event.output, 0
	if ends {
		id = rawjson.MemberOf(r.event.item, "id")
	}
	text, _ := rawjson.Text(id)
	for _, it := range r.items {
		named := len(text) > 0 && string(text) == it.id
		switch {
		case named && it.index != index && it.Kind != turns.Thought: // whose id one provider's share
			return nil, errors.New("an event with the output_index of one item and the id of another")
		case it.index != index:
		case named:
			return it, nil
		default:
			if found = it; !it.done {
				open++
			}
		}
	}
	if open > 1 {
		return nil, errors.New("an event with an output_index that several open items have")
	}
	return found, nil
}

var errManyItems = errors.New("an event without an output_index, where it may be about several items")

// begin reads an event before the first item.
func (r *reader) begin() error {
	e := &r.event
	switch {
	case r.begun && string(e.kind) == "response.created", len(r.items) > 0:
		return errors.New("a second beginning of the reply")
	case e.response == nil:
		return errors.New("the beginning of a reply without the response")
	}
	if r.begun && bytes.Equal(e.response, r.head) {
		return nil // it was read
	}
	raw := bytes.Clone(e.response)
	output, err := r.readResponse(raw)
	if err != nil {
		return err
	}
	if !rawjson.IsNull(output) && (output[0] != '[' || len(bytes.TrimSpace(output[1:len(output)-1])) > 0) {
		return errors.New("items in the beginning of a reply")
	}
	if r.begun {
		return nil
	}
	r.begun, r.head = true, raw
	r.bytes += len(raw)
	return nil
}

// addItem reads output_item.added.
func (r *reader) addItem() error {
	e := &r.event
	if e.item == nil || e.item[0] != '{' {
		return errors.New("the beginning of an item without the item")
	}
	id, _ := optional(rawjson.MemberOf(e.item, "id"))
	if n := len(r.items); n > 0 {
		switch last := r.items[n-1]; {
		case (e.output < 0) != (last.index < 0):
			return errors.New("items with and without an output_index")
		case e.output < 0 || e.output > last.index:
		case e.output == last.index && id != "" && last.id != "" && id != last.id:
			r.unindexed = true // the next item: one server does not count its calls
		default:
			return errors.New("an output_index that does not rise")
		}
	}
	raw := bytes.Clone(e.item)
	item, err := r.readItem(raw, false)
	if err != nil {
		return err
	}
	item.call.elsewhere = cmp.Or(item.call.elsewhere, e.argumentsBut(""))
	item.raw, item.added, item.index = nil, raw, e.output
	r.unindexed = r.unindexed || e.output < 0
	for _, part := range item.parts {
		part.closed = len(part.Text) > 0
	}
	if item.Type == "function_call" {
		item.call.first, item.call.payload = item.call.payload, nil
	}
	item.closed = len(item.call.payload) > 0 && item.hasTextPayload()
	if err := r.add(item); err != nil {
		return err
	}
	r.bytes += len(raw)
	r.tellItem(item)
	return nil
}

// endItem reads output_item.done, and checks that it states what the item's events did.
func (r *reader) endItem(it *item) error {
	e := &r.event
	switch {
	case it.done:
		return errors.New("the end of an item that has ended")
	case e.item == nil || e.item[0] != '{':
		return errors.New("the end of an item without the item")
	}
	last, err := r.readItem(bytes.Clone(e.item), true)
	if err != nil {
		return err
	}
	last.call.elsewhere = cmp.Or(last.call.elsewhere, e.argumentsBut(""))
	r.bytes += len(last.raw)
	r.repeated += min(len(last.raw), it.stated())
	if err := r.settle(it, last); err != nil {
		return err
	}
	r.tellItem(it)
	return nil
}

// stated is about how many bytes were counted of an item that is to end.
func (it *item) stated() int {
	n := len(it.added) + len(it.call.payload)
	for _, part := range it.parts {
		n += len(part.Text)
	}
	return n
}

// settle takes over what a later place states of an item, which must agree with the places
// before it.
func (r *reader) settle(it, last *item) error {
	if it.row != last.row && (it.Type != last.Type || it.Kind != last.Kind) {
		return errors.New("an item whose type changes")
	}
	switch it.Kind {
	case turns.Text:
		if err := it.settleParts(last); err != nil {
			return err
		}
		if last.phase != "" {
			it.phase = last.phase
		}
	case turns.Call, turns.Ask:
		late := it.call.id == "" && last.call.id != ""
		if err := it.settleCall(last); err != nil {
			return err
		}
		if late {
			if r.callIDs[it.call.id] && it.call.id != it.eventID {
				return errSameCallID
			}
			r.callIDs[it.call.id] = true
		}
		if last.id != it.id && last.id != "" {
			if r.ids[last.id] && last.id != it.eventID {
				return errSameID
			}
			it.id, r.ids[last.id] = last.id, true
		}
	}
	if it.done {
		it.complete = it.complete && last.complete
	} else {
		it.raw, it.done, it.complete = last.raw, true, last.complete
	}
	return nil
}

// finish reads the terminal event, whose output must agree with the items that were
// streamed.
func (r *reader) finish() error {
	e := &r.event
	if e.response == nil {
		return errors.New("the end of a reply without the response")
	}
	raw := bytes.Clone(e.response)
	r.repeated += min(len(raw), r.bytes-r.repeated)
	r.bytes += len(raw)
	output, err := r.readResponse(raw)
	if err != nil {
		return err
	}
	wanted := string(e.kind)[len("response."):]
	switch {
	case wanted == "failed":
		return providerError(nil)
	case r.answer.Reason == "":
		r.answer.Reason = wanted
	case r.answer.Reason != wanted && slices.Contains([]string{"completed", "incomplete", "in_progress", "queued"}, r.answer.Reason):
		return errors.New("a status that is not that of the event")
	}
	streamed, at, listed, passed := len(r.items), 0, false, false
	if err := r.readOutput(output, func(it *item) error {
		listed = true
		if passed && it.Kind == turns.Text {
			return errors.New("a message that does not end, and another one in the terminal event")
		}
		if at < streamed && it.Kind == turns.Text && it.isBlank() && r.items[at].Kind != turns.Text {
			return nil // which was not streamed
		}
		for at < streamed && r.items[at].Kind == turns.Text && !r.items[at].done && it.Kind != turns.Text {
			r.items[at].done, passed = true, true // one server neither ends nor lists a message before a call
			at++
		}
		if at++; at <= streamed {
			return r.settle(r.items[at-1], it)
		}
		return r.add(it)
	}); err != nil {
		return err
	}
	if at < streamed && (listed || r.unindexed && r.calls > 0) {
		return errors.New("items that the terminal event leaves out")
	}
	r.finished, r.last = true, raw
	r.over = true
	for _, it := range r.items {
		if !it.done && wanted == "completed" {
			return errors.New("an item without its end in a completed reply")
		}
		r.tellItem(it)
	}
	return nil
}

// isBlank reports whether a message says nothing.
func (it *item) isBlank() bool {
	return !slices.ContainsFunc(it.parts, func(p *textPart) bool { return len(p.Text) > 0 || p.refuses() })
}

// AddsNothing reports whether an event behind the terminal one repeats its response, or only keeps
// the connection alive.
func (r *reader) AddsNothing(name, data []byte) bool {
	var e wireEvent
	data = bytes.TrimLeft(data, " \t\r\n")
	switch {
	case isPing(name, data):
		return true
	case e.read(data) != nil:
		return false
	}
	return string(e.kind) == "keepalive" || string(e.kind) == "ping" || bytes.Equal(e.response, r.last)
}
