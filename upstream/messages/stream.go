package messages

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/internal/strictjson"
)

// EventKind is the kind of an Event.
type EventKind int

// The kinds of events.
const (
	MessageStart EventKind = iota + 1 // the message has begun; see Stream.Head
	BlockStart                        // a block begins; Raw is the block as it begins
	TextDelta                         // Text continues a text block
	BlockDelta                        // Text, or Raw, continues another block or has a citation
	BlockStop                         // the open block ends
	Ping                              // nothing happened
	Other                             // Raw is an event of the unknown type Name
)

// Event is a part of a stream that may be shown. It is valid until the next Add.
type Event struct {
	Kind  EventKind
	Index int      // of the block, where there is one
	Block Kind     // of that block
	Name  string   // the type of the block that begins, of the delta, or of an unknown event
	Call  *ToolUse // of a block that begins with a call at the provider; else nil
	Text  []byte   // of a delta with text
	Raw   []byte   // the block, the event, or a delta without text: a JSON object
}

// Stream puts a streamed message together. It is for one goroutine. The first error is final;
// nothing that was not returned before it may be used.
type Stream struct {
	options  Options
	reply    *Reply
	events   []Event
	open     *openBlock
	calls    int
	ids      map[string]bool
	holding  bool
	whole    bool // the content stood in message_start
	reasoned bool // a stop_reason came
	stopped  bool // message_stop came
	deltas   int  // of the message
	size     int
	form     sse.Template // of the last delta: those of one block differ in their text alone
	formed   delta        // that delta
	text     []byte       // of a delta of its form
	err      error
}

// NewStream returns a stream that has read nothing.
func NewStream(o Options) *Stream {
	if o.MaxBytes <= 0 {
		o.MaxBytes = defaultMaxBytes
	}
	return &Stream{options: o, ids: map[string]bool{}}
}

// Holding reports whether the client's first call has begun: from there on Add returns nothing
// but pings.
func (s *Stream) Holding() bool { return s.holding }

// Stopped reports whether message_stop has come: the next step is End.
func (s *Stream) Stopped() bool { return s.stopped }

// Complete reports whether nothing but message_stop may be missing, which not each provider sends: the
// reason has come, and no block is open (AM-47).
func (s *Stream) Complete() bool {
	return s.err == nil && s.reasoned && s.open == nil && (s.deltas > 0 || s.whole)
}

// Size returns how many bytes of the reply are held.
func (s *Stream) Size() int { return s.size }

// Head returns the message as it began, without blocks; nil before message_start.
func (s *Stream) Head() *Reply { return s.reply }

// Add reads the next event, and returns what may be shown of it. The result is valid until
// the next call. The error is ErrTooLarge, ErrUnknown or *ProviderError, or says how the
// event breaks the rules of the stream.
func (s *Stream) Add(name, data []byte) ([]Event, error) {
	if s.err != nil {
		return nil, s.err
	}
	s.events = s.events[:0]
	if err := s.add(name, data); err != nil {
		s.err = err
		return nil, err
	}
	if s.size > s.options.MaxBytes {
		s.err = ErrTooLarge
		return nil, s.err
	}
	return s.events, nil
}

// End returns the reply once the stream has ended: its error is ErrIncomplete, or that of Add.
func (s *Stream) End() (*Reply, error) {
	switch {
	case s.err != nil:
	case !s.stopped && !s.Complete():
		s.err = ErrIncomplete
	default:
		s.err = errEnded
		return s.reply, nil
	}
	return nil, s.err
}

var errEnded = errors.New("the stream was read already")

// IsLast reports whether the data of an event is that of message_stop: nothing may follow it, so
// it is complete even where the body ends before the empty line behind it.
func IsLast(data []byte) bool {
	kind, others := "", 0
	err := document(data, func(name string, value []byte) error {
		if name == "type" {
			return readWord(&kind, "a type", value)
		}
		others++
		return nil
	})
	return err == nil && kind == "message_stop" && others == 0
}

// AddsNothing reports whether an event behind message_stop is a ping, or message_stop once more.
func AddsNothing(name, data []byte) bool { return string(name) == "ping" || IsLast(data) }

// done is the last event of some providers, after message_stop or in place of it.
const done = "[DONE]"

func (s *Stream) add(name, data []byte) error {
	if s.open != nil && string(name) == "content_block_delta" {
		if s.form.Match(data) {
			var err error
			if s.text, err = strictjson.AppendUnquote(s.text[:0], s.form.Values[0]); err != nil {
				return err
			}
			return s.addDelta(&delta{kind: s.formed.kind, name: s.formed.name, value: s.text})
		}
	}
	if string(data) == done && (s.stopped || s.Complete()) {
		s.stopped = true
		return nil
	}
	e, err := s.readEvent(name, data)
	if err != nil {
		return err
	}
	if s.stopped && e.kind != "ping" {
		return errors.New("an event after message_stop")
	}
	if s.reply == nil && e.kind != "message_start" && e.kind != "ping" && e.kind != "error" {
		return errors.New("an event before message_start")
	}
	switch e.kind {
	case "message_start":
		return s.messageStart(e.message)
	case "content_block_start":
		return s.blockStart(e)
	case "content_block_delta":
		return s.blockDelta(e, data)
	case "content_block_stop":
		return s.blockStop(e.index)
	case "message_delta":
		return s.messageDelta(e)
	case "message_stop":
		return s.messageStop()
	case "ping":
		s.events = append(s.events, Event{Kind: Ping})
	case "error":
		return &ProviderError{Type: e.errorType, Data: bytes.Clone(data)}
	default:
		if !s.options.Unknown {
			return unknown("an event", e.kind)
		}
		if slices.ContainsFunc(eventNames, func(known string) bool { return ascii.Folded(e.kind) == ascii.Folded(known) }) {
			return errors.New("an event whose type is a known one in another spelling")
		}
		s.show(Event{Kind: Other, Name: e.kind, Raw: data})
	}
	return nil
}

// show returns an event, unless a call is held.
func (s *Stream) show(e Event) {
	if !s.holding {
		s.events = append(s.events, e)
	}
}

// event is one event as it was read.
type event struct {
	kind      string
	index     int // -1: none
	message   part
	block     part
	delta     []byte
	deltaAt   int // its offset
	usage     []byte
	context   []byte // context_management
	failed    bool
	errorType string
}

// pathsOfInputs are the events that can hold an input.
var pathsOfInputs = map[string][]string{"message_start": inputsOfMessageStart, "content_block_start": inputOfBlockStart}

// readEvent reads the data of an event.
func (s *Stream) readEvent(name, data []byte) (*event, error) {
	if len(name) == 0 && strictjson.Valid(data) { // some servers name events in the data alone
		name = []byte(typeOf(data))
	}
	path := pathsOfInputs[string(name)]
	if path != nil {
		data = bytes.Clone(data) // its parts are kept
	}
	p, err := read(data, path)
	if err != nil {
		return nil, err
	}
	e := &event{index: -1}
	err = splitMembers(p.checked, func(name string, start, end int) (err error) {
		value := p.slice(start, end)
		switch name {
		case "type":
			err = readWord(&e.kind, "a type", value.checked)
		case "index":
			n := int64(-1)
			if err = readCount(&n, "an index", value.checked); n > maxBlocks {
				err = fmt.Errorf("more than %d content blocks", maxBlocks)
			}
			e.index = int(n)
		case "message":
			e.message = value
		case "content_block":
			e.block = value
		case "delta":
			e.delta, e.deltaAt = value.checked, start
		case "usage":
			e.usage = value.checked
		case "context_management":
			e.context = value.checked
		case "error":
			e.failed, e.errorType = !isNull(value.checked), typeOf(value.checked)
		default:
			if known := misspelt(name, eventMembers); known != "" {
				err = fmt.Errorf("an event with another spelling of %s", known)
			}
		}
		return err
	})
	switch {
	case err != nil:
	case e.kind == "" && e.failed: // in the form of another API
		e.kind = "error"
		return e, nil
	case e.kind == "":
		err = errors.New("an event without a type")
	case e.kind != string(name):
		err = errors.New("an event whose name is not the type in its data")
	}
	return e, err
}

// eventNames are the types of events.
var eventNames = []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error"}

var eventMembers = []string{"type", "index", "message", "content_block", "delta", "usage", "error"}

// typeOf returns the type of an object, if it is a plain word.
func typeOf(object []byte) string {
	kind := ""
	_ = within(object, func(name string, value []byte) error {
		if name == "type" {
			return readWord(&kind, "a type", value)
		}
		return nil
	})
	return kind
}

func (s *Stream) messageStart(message part) error {
	switch {
	case s.reply != nil:
		return errors.New("a second message_start")
	case message.checked == nil:
		return errors.New("a message_start without a message")
	}
	r, err := readMessage(message, &s.options)
	if err != nil {
		return err
	}
	blocks := r.Blocks
	r.Blocks = nil
	s.reply, s.whole, s.reasoned = r, len(blocks) > 0, r.StopReason != ""
	s.size = len(message.checked)
	s.show(Event{Kind: MessageStart})
	for i := range blocks {
		s.addWhole(&blocks[i])
	}
	return nil
}

// addWhole adds a block that stood in message_start.
func (s *Stream) addWhole(b *Block) {
	index := len(s.reply.Blocks)
	s.reply.Blocks = append(s.reply.Blocks, *b)
	s.holding = s.holding || b.Kind == Call
	s.showStart(b, index)
	s.show(Event{Kind: BlockStop, Index: index, Block: b.Kind})
	if !s.holding {
		s.reply.Shown = len(s.reply.Blocks)
	}
}

func (s *Stream) messageDelta(e *event) error {
	if s.deltas++; s.deltas > maxMessageDeltas {
		return fmt.Errorf("more than %d events message_delta", maxMessageDeltas)
	}
	if e.delta == nil {
		return errors.New("a message_delta without a delta")
	}
	err := within(e.delta, func(name string, value []byte) error {
		switch {
		case name == "stop_reason":
			return s.stopReason(value)
		case slices.Contains(ofDelta, name) && !isNull(value):
			s.reply.set(name, bytes.Clone(value))
		}
		return nil
	})
	if err == nil && s.open != nil {
		err = s.cutBlock()
	}
	if err != nil {
		return err
	}
	if e.context != nil {
		s.reply.set("context_management", bytes.Clone(e.context))
	}
	if e.usage == nil {
		return nil
	}
	return s.reply.Usage.add(e.usage)
}

// cutBlock ends a block that was left open because the reply was cut off. Where calls count,
// each must have ended by itself.
func (s *Stream) cutBlock() error {
	if !s.reasoned || s.reply.StopReason == "tool_use" {
		return errors.New("a message_delta within a content block")
	}
	return s.blockStop(len(s.reply.Blocks) - 1)
}

// stopReason notes why the message stopped. null leaves the reason as it is.
func (s *Stream) stopReason(value []byte) error {
	if isNull(value) {
		return nil
	}
	var reason string
	if err := readWord(&reason, "a stop_reason", value); err != nil {
		return err
	}
	if s.reasoned && reason != s.reply.StopReason {
		return errors.New("two different values of stop_reason")
	}
	s.reply.StopReason, s.reasoned = reason, true
	s.reply.set("stop_reason", bytes.Clone(value))
	return nil
}

// set sets a member of the message.
func (r *Reply) set(name string, value []byte) {
	for i := range r.members {
		if r.members[i].name == name {
			r.members[i].value = value
			return
		}
	}
	r.members = append(r.members, member{name, value})
}

func (s *Stream) messageStop() error {
	switch {
	case s.open != nil:
		return errors.New("a message_stop within a content block")
	case !s.reasoned:
		return errors.New("a message_stop without a stop_reason")
	}
	s.stopped = true
	return nil
}
