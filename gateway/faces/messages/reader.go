package messages

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// options say what a reader accepts.
type options struct {
	unknown  bool // blocks, deltas and events of unknown types pass as they are
	programs bool // programs at the provider may call tools
}

// reader reads one reply: a whole message, or the events of a stream.
type reader struct {
	options  options
	reply    turns.Reply
	answer   turns.Answer
	usage    usage
	deltas   []turns.Delta
	blocks   []*block        // by their indexes
	open     int             // how many of them have not ended
	cut      bool            // one of them was ended by the end of the message
	ids      map[string]bool // of calls
	begun    bool            // the message
	whole    bool            // the content stood in message_start
	reasoned bool            // a stop_reason came
	stopped  bool            // message_stop came
	ends     int             // events message_delta
	size     int
	form     sse.Template // of the last delta: those of one block differ in their text alone
	formed   delta        // that delta
	formedOf *block
	text     []byte // of a delta of its form
}

func newReader(o options) *reader {
	r := &reader{options: o}
	r.reply.Answers = []*turns.Answer{&r.answer}
	return r
}

// Reply is of turns.Reader.
func (r *reader) Reply() *turns.Reply { return &r.reply }

// State is of turns.Reader. Not each provider sends message_stop (AM-47).
func (r *reader) State() (held, size int, at turns.Progress) {
	switch {
	case r.stopped:
		return r.size, r.size, turns.Ended
	case r.isComplete():
		return r.size, r.size, turns.Settled
	}
	return r.size, r.size, turns.Coming
}

// isComplete reports whether nothing but message_stop may be missing: the reason has come, and no block is open.
func (r *reader) isComplete() bool { return r.reasoned && r.open == 0 && (r.ends > 0 || r.whole) }

// End is of turns.Reader.
func (r *reader) End() error {
	if !r.stopped && !r.isComplete() {
		return fmt.Errorf("%w before message_stop", turns.ErrIncomplete)
	}
	a, doubt := &r.answer, "" // whether its calls are complete
	switch a.Reason {
	case reasonDone:
		a.End, doubt = turns.Done, r.doubtOfCalls()
	case reasonCalls:
		a.End = turns.Called
	case "max_tokens", "model_context_window_exceeded":
		a.End, a.Partial = turns.Cut, true
	case "refusal": // AM-37
		a.End, a.Partial, a.Withheld = turns.Cut, true, "the stop_reason refusal"
	default:
		a.End, a.Partial, doubt = turns.Paused, a.Reason == "pause_turn" || a.Reason == "compaction", a.Reason
	}
	if doubt == "" && r.isHandedOver() {
		doubt = a.Reason + " after another model went on"
	}
	if doubt != "" { // AM-35, AM-37; calls of a reply that was cut off are refused as such
		a.RefuseCalls = refusal.New(refusal.TruncatedOutput, "The answer ended with the stop_reason "+doubt+
			", which does not say that its calls are complete; none of them was executed. Send the whole call again.")
	}
	return nil
}

// doubtOfCalls returns why the calls of a reply that ended with end_turn are not executed; empty: they are (AM-35), since some
// servers say so of each reply. But a program at the provider has the results of its calls already, and what lacks an end may
// be cut.
func (r *reader) doubtOfCalls() string {
	switch {
	case !r.stopped:
		return reasonDone + " and no message_stop"
	case r.cut:
		return reasonDone + " within a content block"
	case slices.ContainsFunc(r.blocks, func(b *block) bool { return b.Kind == turns.Call && b.isProgrammatic() }):
		return reasonDone + " after a call of a program at the provider"
	case r.goesOn():
		return reasonDone + " after more than calls"
	}
	return ""
}

// goesOn reports whether anything stands behind a call but calls: its result may be in it.
func (r *reader) goesOn() bool {
	called := false
	for _, b := range r.blocks {
		if called && b.Kind != turns.Call {
			return true
		}
		called = called || b.Kind == turns.Call
	}
	return false
}

// isHandedOver reports whether another model went on behind a call (AM-22), which is one of the model that declined.
func (r *reader) isHandedOver() bool {
	last := len(r.blocks) - 1
	for last >= 0 && r.blocks[last].Type != typeFallback {
		last--
	}
	return slices.ContainsFunc(r.blocks[:last+1], func(b *block) bool { return b.Kind == turns.Call })
}

// The stop_reasons of a reply whose calls are complete, and of one that is.
const (
	reasonCalls = "tool_use"
	reasonDone  = "end_turn"
)

// Whole is of turns.Reader. The reply holds parts of the body.
func (r *reader) Whole(body []byte) error {
	message, err := read(body, inputsOfMessage)
	if err != nil {
		return err
	}
	if err := r.message(message, true); err != nil {
		return err
	}
	if r.answer.Reason == "" && !r.isText() {
		return saysWhy(message.checked, "a message without a stop_reason")
	}
	r.answer.Reason, r.stopped = cmp.Or(r.answer.Reason, reasonDone), true
	return r.End()
}

// message reads a message object: a whole one, or the beginning of one.
func (r *reader) message(message part, whole bool) error {
	r.begun = true
	var kind, role string
	content, null := false, []byte("null") // for what the writer fills
	err := message.members(func(name string, value part) (err error) {
		checked := value.checked
		switch name {
		case "id":
			if id, _ := rawjson.String(checked); len(id) <= maxID && ascii.IsPlainID(id) {
				r.reply.ID = id
			}
		case "type":
			kind, err = readOptionalWord("a type", checked)
		case "role":
			role, err = readOptionalWord("a role", checked)
		case "model":
			r.reply.Model, _ = rawjson.String(checked)
		case "content":
			if rawjson.IsNull(checked) {
				break
			}
			content = true
			err = value.elements(func(block part) error {
				b, err := r.add(block, true)
				if err != nil {
					return err
				}
				return b.checkInput()
			})
		case "stop_reason":
			r.answer.Reason, err = readOptionalWord("a stop_reason", checked)
		case "usage":
			err = r.addUsage(checked)
		case "error": // in place of a message
			if !turns.IsNothing(checked) {
				return stated(typeOf(checked), message.checked)
			}
		default:
			if turns.NamesCalls([]byte(name)) && !turns.IsNothing(checked) {
				return errStray
			}
			if known := misspelt(name, forwarded); known != "" {
				return fmt.Errorf("a message with another spelling of %s", known)
			}
		}
		if name == "content" {
			checked = null // its blocks are the parts
		}
		if err == nil && isForwarded(name) {
			r.reply.Head = append(r.reply.Head, rawjson.Field(name, checked))
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case cmp.Or(kind, "message") != "message" || cmp.Or(role, "assistant") != "assistant":
		return saysWhy(message.checked, "an object that is not a message of the assistant")
	case whole && !content:
		return saysWhy(message.checked, "a message without content")
	}
	if r.usage.raw == nil {
		r.usage.raw = r.usage.sums()
		r.reply.Usage = r.usage.taken()
	}
	if r.reply.ID == "" {
		r.reply.ID = "msg_" + rand.Text()
	}
	r.reply.Head = r.reply.Head.With(rawjson.Field("id", rawjson.Quote(r.reply.ID)), rawjson.Field("type", rawjson.Quote("message")),
		rawjson.Field("role", rawjson.Quote("assistant")), rawjson.Field("model", null), rawjson.Field("content", null),
		rawjson.Field("stop_reason", null), rawjson.Field("usage", null))
	if r.reply.Head.Get("stop_sequence") == nil {
		r.reply.Head = r.reply.Head.Set("stop_sequence", null)
	}
	return nil
}

// saysWhy is the error of a document that is no reply: what the provider says of it, or else what was found.
func saysWhy(document []byte, found string) error {
	if failure := upstream.ReadFailure(document); failure.Message != "" {
		return &turns.ProviderError{Failure: failure}
	}
	return errors.New(found)
}

// isLast reports whether the data of an event is that of message_stop: nothing may follow it, so
// it is complete even where the body ends before the empty line behind it.
func isLast(data []byte) bool {
	kind, others := "", 0
	if rawjson.Check(data, maxDepth) != nil {
		return false
	}
	err := rawjson.Each(data, func(name, value []byte) error {
		if string(name) == "type" {
			return readWord(&kind, "a type", value)
		}
		others++
		return nil
	})
	return err == nil && kind == "message_stop" && others == 0
}

// AddsNothing is of turns.Reader: a ping adds nothing, nor does message_stop once more.
func (*reader) AddsNothing(name, data []byte) bool { return string(name) == "ping" || isLast(data) }

// done is the last event of some providers, after message_stop or in place of it.
const done = "[DONE]"

// Event is of turns.Reader.
func (r *reader) Event(name, data []byte) ([]turns.Delta, error) {
	r.deltas = r.deltas[:0]
	err := r.event(name, data)
	return r.deltas, err
}

func (r *reader) event(name, data []byte) error {
	if string(name) == "content_block_delta" && r.form.Match(data) {
		var err error
		if r.text, err = rawjson.AppendUnquote(r.text[:0], r.form.Values[0]); err != nil {
			return err
		}
		return r.addDelta(r.formedOf, &delta{kind: r.formed.kind, name: r.formed.name, value: r.text})
	}
	if string(data) == done && (r.stopped || r.isComplete()) {
		r.stopped = true
		return nil
	}
	e, err := r.readEvent(name, data)
	if err != nil {
		return err
	}
	if err := r.take(e, data); err != nil {
		return err
	}
	if e.reason != "" && e.reason != r.answer.Reason {
		return errRestated
	}
	for _, content := range e.again {
		if err := r.checkRestated(content); err != nil && slices.Contains(eventNames, e.kind) {
			return err
		}
	}
	return nil
}

// take takes an event by its type.
func (r *reader) take(e *event, data []byte) error {
	if r.stopped && e.kind != "ping" {
		return errors.New("an event after message_stop")
	}
	if !r.begun && e.kind != "message_start" && e.kind != "ping" && e.kind != "error" {
		return errors.New("an event before message_start")
	}
	switch e.kind {
	case "message_start":
		return r.messageStart(e.message)
	case "content_block_start":
		return r.blockStart(e)
	case "content_block_delta":
		return r.blockDelta(e, data)
	case "content_block_stop":
		return r.blockStop(e)
	case "message_delta":
		return r.messageDelta(e)
	case "message_stop":
		return r.messageStop()
	case "ping":
		r.delta(turns.Delta{Is: turns.Ping})
	case "error":
		return stated(e.errorType, data)
	default:
		if slices.ContainsFunc(eventNames, func(known string) bool { return ascii.Folded(e.kind) == ascii.Folded(known) }) {
			return errors.New("an event whose type is a known one in another spelling")
		}
		if !r.options.unknown {
			return turns.UnknownType("an event", e.kind)
		}
		r.delta(turns.Delta{Is: turns.Mark, Name: e.kind, Raw: data})
	}
	return nil
}

// stated is the error of a failure that the provider states (AM-64): it goes to the application byte for byte, but without what
// else stands in the document, which nobody judges.
func stated(kind string, data []byte) error {
	all, _ := rawjson.Members(data)
	of := slices.DeleteFunc(slices.Clone(all), func(m rawjson.Member) bool {
		return m.Name != "type" && m.Name != "error" && (m.Name != "request_id" || !rawjson.IsString(m.Value))
	})
	if kind := of.Get("type"); len(of) < len(all) || kind != nil && string(kind) != `"error"` {
		data = of.With(rawjson.Field("type", []byte(`"error"`))).Bytes()
	}
	return &turns.ProviderError{Failure: upstream.Failure{Type: kind}, Body: bytes.Clone(data), Status: statusOf(kind)}
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
	elsewhere turns.Elsewhere
	again     []part // content of the message, where none begins
	reason    string // the stop_reason beside it
}

// pathsOfInputs are the events that can hold an input.
var pathsOfInputs = map[string][]string{"message_start": inputsOfMessageStart, "content_block_start": inputOfBlockStart}

// readEvent reads the data of an event.
func (r *reader) readEvent(name, data []byte) (*event, error) {
	if len(name) == 0 && rawjson.Valid(data) { // some servers name events in the data alone
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
	err = p.spans(func(name []byte, start, end int) (err error) {
		value := p.slice(start, end)
		switch string(name) {
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
			e.failed, e.errorType = !turns.IsNothing(value.checked), typeOf(value.checked)
		default:
			if known := misspelt(string(name), eventMembers); known != "" {
				err = fmt.Errorf("an event with another spelling of %s", known)
			}
			switch first := value.checked[0]; {
			case (turns.NamesCalls(name) || string(name) == "partial_json") && !turns.IsNothing(value.checked):
				err = errStray
			case string(name) == "content" && (first == '[' || first == '{'):
				e.again = append(e.again, value)
			case turns.NamesArguments(name), readsAsObject(value.checked):
				e.elsewhere.Note(name, value.checked)
			}
		}
		return err
	})
	switch {
	case err != nil:
	case e.kind != "content_block_start" && e.kind != "content_block_stop" && !turns.IsNothing(e.block.checked),
		slices.Contains(withoutDelta, e.kind) && !turns.IsNothing(e.delta, "type", "stop_reason", "stop_sequence"):
		err = errStray
	case e.kind == "message_stop" && isObject(e.delta):
		e.reason, err = readOptionalWord("a stop_reason", rawjson.MemberOf(e.delta, "stop_reason"))
	case e.kind != "message_start" && isObject(e.message.checked):
		err = e.message.members(func(name string, value part) error {
			switch name {
			case "content":
				e.again = append(e.again, value)
			case "stop_reason":
				e.reason, err = readOptionalWord("a stop_reason", value.checked)
			case "error":
				if !turns.IsNothing(value.checked) {
					return stated(typeOf(value.checked), e.message.checked)
				}
			}
			return err
		})
	}
	switch {
	case err != nil:
	case e.failed: // in the form of another API, or within an event
		e.kind = "error"
		return e, nil
	case e.kind == "" && string(name) == "ping":
		e.kind = "ping"
	case e.kind == "":
		err = saysWhy(data, "an event without a type")
	case e.kind != string(name):
		err = errors.New("an event whose name is not the type in its data")
	}
	return e, err
}

var errStray = errors.New("calls or content in a member that is not read")

// readsAsObject reports whether the value of a member of an event can be an input. Some servers pad events with a text.
func readsAsObject(value []byte) bool {
	text, isText := rawjson.Text(value)
	return value[0] == '{' || isText && bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{"))
}

// eventNames are the types of events.
var eventNames = []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
	"message_stop", "ping", "error"}

// withoutDelta are those that bring no delta.
var withoutDelta = []string{"message_start", "content_block_start", "content_block_stop", "message_stop", "ping"}

var eventMembers = []string{"type", "index", "message", "content_block", "delta", "usage", "error"}

// typeOf returns the type of an object, if it is a plain word.
func typeOf(object []byte) string {
	kind := ""
	_ = rawjson.Each(object, func(name, value []byte) error {
		if string(name) == "type" {
			return readWord(&kind, "a type", value)
		}
		return nil
	})
	return kind
}

func (r *reader) messageStart(message part) error {
	switch {
	case r.begun:
		return errors.New("a second message_start")
	case message.checked == nil:
		return errors.New("a message_start without a message")
	}
	if err := r.message(message, false); err != nil {
		return err
	}
	r.whole, r.reasoned = len(r.answer.Parts) > 0, r.answer.Reason != ""
	r.size = len(message.checked)
	for _, p := range r.answer.Parts { // that stand in message_start
		r.begin(p)
		r.delta(turns.Delta{Is: turns.Stop, Part: p})
	}
	return nil
}

func (r *reader) messageDelta(e *event) error {
	if r.ends++; r.ends > maxMessageDeltas {
		return fmt.Errorf("more than %d events message_delta", maxMessageDeltas)
	}
	var err error
	if !rawjson.IsNull(e.delta) { // else it brings the usage alone
		err = rawjson.Each(e.delta, func(name, value []byte) error {
			switch name := string(name); {
			case name == "stop_reason":
				return r.stopReason(value)
			case name == "error" && !turns.IsNothing(value):
				return stated(typeOf(value), e.delta)
			case name == "content" && !turns.IsNothing(value):
				e.again = append(e.again, part{value, value})
			case (name == "content_block" || turns.NamesCalls([]byte(name)) || turns.NamesArguments([]byte(name))) && !turns.IsNothing(value):
				return errStray
			case slices.Contains(ofDelta, name) && !rawjson.IsNull(value):
				r.reply.Head = r.reply.Head.Set(name, bytes.Clone(value))
			}
			return nil
		})
	}
	if err == nil && r.open > 0 {
		err = r.cutBlocks()
	}
	if err != nil {
		return err
	}
	if e.context != nil {
		r.reply.Head = r.reply.Head.Set("context_management", bytes.Clone(e.context))
	}
	if e.usage == nil {
		return nil
	}
	return r.addUsage(e.usage)
}

// cutBlocks ends the blocks that were left open because the reply was cut off. Where calls count,
// each must have ended by itself.
func (r *reader) cutBlocks() error {
	if !r.reasoned || r.answer.Reason == reasonCalls {
		return errors.New("a message_delta within a content block")
	}
	r.cut = true
	for _, b := range r.blocks {
		if b.open {
			if err := r.endBlock(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// stopReason notes why the message stopped. One of nothing leaves the reason as it is.
func (r *reader) stopReason(value []byte) error {
	reason, err := readOptionalWord("a stop_reason", value)
	if err != nil || reason == "" {
		return err
	}
	if r.reasoned && reason != r.answer.Reason {
		return errors.New("two different values of stop_reason")
	}
	r.answer.Reason, r.reasoned = reason, true
	return nil
}

func (r *reader) messageStop() error {
	switch {
	case r.open > 0:
		return errors.New("a message_stop within a content block")
	case !r.reasoned && !r.isText():
		return errors.New("a message_stop without a stop_reason")
	}
	r.answer.Reason, r.reasoned, r.stopped = cmp.Or(r.answer.Reason, reasonDone), true, true
	return nil
}

// isText reports whether a reply has text and no calls: where it has ended, the reason says nothing more.
func (r *reader) isText() bool {
	return slices.ContainsFunc(r.blocks, func(b *block) bool { return b.Kind == turns.Text }) && !slices.ContainsFunc(r.blocks, (*block).calls)
}

// isWord reports whether a text is one short word of a protocol.
func isWord(s string) bool {
	return s != "" && len(s) <= maxWord && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == ""
}
