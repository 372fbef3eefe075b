package responses

import (
	"bytes"
	"slices"
)

// doneWord is the data of the last event of some streams (RS-40).
const doneWord = "[DONE]"

// Kind is the meaning of an event to the one who passes the stream on.
type Kind int

// The kinds.
const (
	// Nothing: nothing can be passed on yet that could not be before.
	Nothing Kind = iota
	// Begun: the head of the reply is there.
	Begun
	// Added: an item began. Of the classes Call and Approval nothing follows but Nothing and
	// Ended.
	Added
	// Grown: parts of a message, or its text, were added.
	Grown
	// Ended: an item has ended.
	Ended
	// Other: an event that is passed on as it is (AppendOther).
	Other
	// Finished: the reply has ended.
	Finished
)

// Event is one event of a stream.
type Event struct {
	Kind Kind
	Item *Item // nil for Begun, Finished, and for Other events that are of no item
}

// Stream reads the events of one reply. It is for one goroutine. Its errors are *refusal.Error
// or *ProviderError; after one, every call returns it, and none of the calls may be used.
type Stream struct {
	options  Options
	event    wireEvent
	template template
	reply    Reply
	items    []*Item // by output_index
	sequence int     // the last one; -1: none
	bytes    int
	repeated int    // of them, those that state once more what was counted
	head     []byte // the response as it began
	begun    bool
	finished bool
	last     []byte // the response as it ended
	done     bool   // [DONE] came
	err      error
}

// NewStream returns a stream of one reply.
func NewStream(o Options) *Stream {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	return &Stream{options: o, sequence: -1}
}

// Reply returns the reply so far. Its members stay.
func (s *Stream) Reply() *Reply { return &s.reply }

// Bytes returns how many bytes of the reply are held.
func (s *Stream) Bytes() int { return s.bytes }

// Add reads the next event; name may be empty. Both are used until Add returns.
func (s *Stream) Add(name, data []byte) (Event, error) {
	if s.err != nil {
		return Event{}, s.err
	}
	event, err := s.add(name, data)
	if err == nil && s.bytes-s.repeated > s.options.MaxBytes {
		err = tooLarge("a reply of more than %d bytes", s.options.MaxBytes)
	}
	if err != nil {
		s.err = unreadable(err)
		return Event{}, s.err
	}
	return event, nil
}

// Close says that the body has ended, and returns the reply if it is whole.
func (s *Stream) Close() (*Reply, error) {
	if s.err == nil && !s.finished {
		s.err = brokenOff("a stream without its terminal event")
	}
	if s.err != nil {
		return nil, s.err
	}
	return &s.reply, nil
}

func (s *Stream) add(name, data []byte) (Event, error) {
	if string(data) == doneWord && s.finished && !s.done {
		s.done = true
		return Event{}, nil
	}
	if s.finished {
		return Event{}, malformed("an event after the end of the reply")
	}
	e := &s.event
	data = bytes.TrimLeft(data, " \t\r\n") // parts of a document begin with their first byte
	if !s.template.match(e, data) {
		if err := e.read(data); err != nil {
			return Event{}, err
		}
		s.template.learn(e)
	}
	if len(name) > 0 && !bytes.Equal(name, e.kind) {
		return Event{}, malformed("an event whose name is not its type")
	}
	if e.sequence >= 0 {
		if e.sequence <= s.sequence {
			return Event{}, malformed("a sequence_number that does not rise")
		}
		s.sequence = e.sequence
	}
	if string(e.kind) == "error" {
		if isNull(e.failure) { // code and message stand in the event itself, whose type is not theirs
			stated := providerError(data)
			stated.Type = ""
			return Event{}, stated
		}
		return Event{}, providerError(e.failure)
	}
	// Clients take a member error of any event for a failure (RS-49).
	if !isNull(e.failure) {
		return Event{}, providerError(e.failure)
	}
	return s.dispatch()
}

// dispatch goes by the type of the event.
func (s *Stream) dispatch() (Event, error) {
	e := &s.event
	switch string(e.kind) {
	case "response.created", "response.queued", "response.in_progress":
		return s.begin()
	case "keepalive":
		return Event{}, nil
	}
	if !s.begun {
		return Event{}, malformed("an event before the beginning of the reply")
	}
	switch string(e.kind) {
	case "response.completed", "response.incomplete", "response.failed":
		return Event{Kind: Finished}, s.finish()
	case "response.output_item.added":
		return s.addItem()
	}
	if e.output < 0 {
		return s.other(nil)
	}
	if e.output == len(s.items) && string(e.kind) == "response.output_item.done" { // some servers send items whole
		if _, err := s.addItem(); err != nil {
			return Event{}, err
		}
	}
	if e.output >= len(s.items) {
		return Event{}, malformed("an event about an item that was not added")
	}
	item := s.items[e.output]
	if string(e.kind) == "response.output_item.done" {
		return Event{Ended, item}, s.endItem(item)
	}
	if item.Done {
		return Event{}, malformed("an event about an item that has ended")
	}
	return s.change(item)
}

// begin reads an event before the first item.
func (s *Stream) begin() (Event, error) {
	e := &s.event
	switch {
	case s.begun && string(e.kind) == "response.created", len(s.items) > 0:
		return Event{}, malformed("a second beginning of the reply")
	case e.response == nil:
		return Event{}, malformed("the beginning of a reply without the response")
	}
	if s.begun && bytes.Equal(e.response, s.head) {
		return Event{}, nil // it was read
	}
	raw := bytes.Clone(e.response)
	output, err := s.reply.readResponse(raw)
	if err != nil {
		return Event{}, err
	}
	if !isNull(output) && (output[0] != '[' || len(bytes.TrimSpace(output[1:len(output)-1])) > 0) {
		return Event{}, malformed("items in the beginning of a reply")
	}
	first := !s.begun
	s.begun, s.reply.Status = true, "in_progress"
	if !first {
		return Event{}, nil
	}
	s.head = raw
	s.bytes += len(raw)
	return Event{Kind: Begun}, nil
}

// addItem reads output_item.added.
func (s *Stream) addItem() (Event, error) {
	e := &s.event
	switch {
	case e.output < 0:
		return Event{}, malformed("an item without an output_index")
	case e.output != len(s.items):
		return Event{}, malformed("an output_index that is not the next one")
	case e.item == nil || e.item[0] != '{':
		return Event{}, malformed("the beginning of an item without the item")
	}
	raw := bytes.Clone(e.item)
	item, err := readItem(raw, &s.options, false)
	if err != nil {
		return Event{}, err
	}
	item.Raw, item.added, item.index = nil, raw, e.output
	for _, part := range item.Parts {
		part.Closed = len(part.Text) > 0
	}
	item.closed = len(item.Call.Payload) > 0 && item.hasTextPayload()
	if err := s.reply.add(item); err != nil {
		return Event{}, err
	}
	s.items = append(s.items, item)
	s.bytes += len(raw)
	return Event{Added, item}, nil
}

// endItem reads output_item.done, and checks that it states what the item's events did.
func (s *Stream) endItem(item *Item) error {
	e := &s.event
	switch {
	case item.Done:
		return malformed("the end of an item that has ended")
	case e.item == nil || e.item[0] != '{':
		return malformed("the end of an item without the item")
	}
	last, err := readItem(bytes.Clone(e.item), &s.options, true)
	if err != nil {
		return err
	}
	s.bytes += len(last.Raw)
	s.repeated += min(len(last.Raw), item.stated())
	return s.settle(item, last)
}

// stated is about how many bytes were counted of an item that is to end.
func (item *Item) stated() int {
	n := len(item.added) + len(item.Call.Payload)
	for _, part := range item.Parts {
		n += len(part.Text)
	}
	return n
}

// settle takes over what a later place states of an item, which must agree with the places
// before it.
func (s *Stream) settle(item, last *Item) error {
	if item.Type != last.Type || item.Class != last.Class {
		return malformed("an item whose type changes")
	}
	switch item.Class {
	case Message:
		if err := item.settleParts(last); err != nil {
			return err
		}
		if last.Phase != "" {
			item.Phase = last.Phase
		}
	case Call, Approval:
		if err := item.settleCall(last); err != nil {
			return err
		}
		if last.ID != item.ID && last.ID != "" {
			if s.reply.ids[last.ID] {
				return malformed("two items with one id")
			}
			item.ID, s.reply.ids[last.ID] = last.ID, true
		}
	}
	if !item.Done {
		item.Raw, item.Done, item.Complete = last.Raw, true, last.Complete
	}
	item.writeArguments()
	return nil
}

// finish reads the terminal event, whose output must agree with the items that were
// streamed.
func (s *Stream) finish() error {
	e := &s.event
	if e.response == nil {
		return malformed("the end of a reply without the response")
	}
	raw := bytes.Clone(e.response)
	s.repeated += min(len(raw), s.bytes-s.repeated)
	s.bytes += len(raw)
	output, err := s.reply.readResponse(raw)
	if err != nil {
		return err
	}
	wanted := string(e.kind)[len("response."):]
	switch {
	case wanted == "failed":
		return providerError(nil)
	case s.reply.Status == "":
		s.reply.Status = wanted
	case s.reply.Status != wanted && slices.Contains([]string{"completed", "incomplete", "in_progress", "queued"}, s.reply.Status):
		return malformed("a status that is not that of the event")
	}
	listed := 0
	if err := s.reply.readOutput(output, &s.options, func(at int, item *Item) error {
		listed++
		if at < len(s.items) {
			return s.settle(s.items[at], item)
		}
		return s.reply.add(item)
	}); err != nil {
		return err
	}
	if listed > 0 && listed < len(s.items) {
		return malformed("items that the terminal event leaves out")
	}
	for _, item := range s.reply.Items {
		if !item.Done && wanted == "completed" {
			return malformed("an item without its end in a completed reply")
		}
	}
	s.finished, s.last = true, raw
	return nil
}

// AddsNothing reports whether an event behind the terminal one repeats its response, or only keeps
// the connection alive.
func (s *Stream) AddsNothing(_, data []byte) bool {
	var e wireEvent
	if e.read(bytes.TrimLeft(data, " \t\r\n")) != nil {
		return false
	}
	return string(e.kind) == "keepalive" || s.finished && bytes.Equal(e.response, s.last)
}
