package responses

import (
	"bytes"

	"github.com/callgate/callgate/internal/strictjson"
)

// hasTextPayload reports whether the payload is text that comes in deltas.
func (item *Item) hasTextPayload() bool {
	return item.Type == "function_call" || item.Type == "custom_tool_call" || item.Class == Approval
}

// change reads an event of an item between its beginning and its end.
func (s *Stream) change(item *Item) (Event, error) {
	switch item.Class {
	case Message:
		return s.changeMessage(item)
	case Call, Approval:
		return Event{}, s.changeCall(item)
	}
	return s.other(item)
}

// other takes an event that is passed on unread, where it is of a kind that may be.
func (s *Stream) other(item *Item) (Event, error) {
	kind := s.event.kind
	allowed, own := s.options.Unknown, false
	switch {
	case item == nil:
		allowed = allowed && s.event.item == nil && s.event.response == nil ||
			s.options.Hosted["compaction"] && string(kind) == "response.compaction.compacting"
	case item.Class == Reasoning:
		if s.event.part != nil && !isReasoning(s.event.part) {
			return Event{}, malformed("a part of reasoning of another type")
		}
		own = eventOf(kind, "reasoning") || string(kind) == "response.content_part.added" || string(kind) == "response.content_part.done"
	case item.Class == Hosted:
		own = eventOf(kind, item.Type)
	}
	allowed = own || allowed && !isJudged(kind)
	if !allowed || s.event.item != nil || s.event.response != nil {
		return Event{}, notAllowed("an event of an unknown type")
	}
	return Event{Other, item}, nil
}

// isJudged reports whether an event is of a type that brings texts or calls of the model. About an
// item of another class, or about none, it is not one of an unknown type: clients go by the type alone.
func isJudged(kind []byte) bool {
	kind = bytes.ToLower(kind)
	for _, of := range []string{"output_item", "content_part", "output_text", "refusal"} {
		if eventOf(kind, of) {
			return true
		}
	}
	for of, class := range classes {
		if (class == Call || class == Approval) && eventOf(kind, of) {
			return true
		}
	}
	return false
}

// changeMessage reads an event of a message.
func (s *Stream) changeMessage(item *Item) (Event, error) {
	e := &s.event
	refuses := false
	switch string(e.kind) {
	case "response.content_part.added", "response.content_part.done":
		return Event{Grown, item}, s.changePart(item)
	case "response.refusal.delta", "response.refusal.done":
		refuses = true
	case "response.output_text.delta", "response.output_text.done":
	case "response.output_text.annotation.added":
		if part := item.partAt(e.content); part == nil || part.Refusal || e.annotation == nil ||
			e.annotation[0] != '{' || e.item != nil || e.response != nil {
			return Event{}, malformed("an annotation of no text")
		}
		return Event{Other, item}, nil
	default:
		return Event{}, notAllowed("an event of an unknown type about a message")
	}
	part := item.partAt(e.content)
	if part == nil {
		part = &Part{Refusal: refuses, index: e.content}
		if err := item.addPart(part); err != nil {
			return Event{}, err
		}
	}
	if part.Refusal != refuses {
		return Event{}, malformed("a part of a message that is text and a refusal at once")
	}
	value, whole := e.delta, false
	if bytes.HasSuffix(e.kind, []byte(".done")) {
		if value, whole = e.text, true; refuses {
			value = e.refused
		}
	}
	return Event{Grown, item}, s.state(&part.Text, &part.Closed, value, whole)
}

// changePart reads content_part.added or content_part.done.
func (s *Stream) changePart(item *Item) error {
	e := &s.event
	if e.part == nil {
		return malformed("a part of a message without the part")
	}
	stated, err := readPart(e.part)
	if err != nil {
		return err
	}
	s.bytes += len(stated.Annotations)
	stated.Annotations = bytes.Clone(stated.Annotations)
	part := item.partAt(e.content)
	if part == nil || len(part.Text) == 0 {
		stated.Text = bytes.Clone(stated.Text) // it is kept
		s.bytes += len(stated.Text)
	}
	ended := string(e.kind) == "response.content_part.done"
	switch {
	case part == nil:
		stated.index, stated.Closed = e.content, ended || len(stated.Text) > 0
		return item.addPart(stated)
	case !ended:
		return malformed("the beginning of a part that has begun")
	}
	return part.settle(stated)
}

// partAt returns the part with a content_index, or nil.
func (item *Item) partAt(index int) *Part {
	for i := len(item.Parts) - 1; i >= 0; i-- {
		if item.Parts[i].index == index {
			return item.Parts[i]
		}
	}
	return nil
}

// addPart adds a part whose content_index is above those before it. One provider begins at 1.
func (item *Item) addPart(part *Part) error {
	n := len(item.Parts)
	switch {
	case part.index < 0, n > 0 && part.index <= item.Parts[n-1].index:
		return malformed("a content_index that does not rise")
	case n == maxParts:
		return tooLarge("a message of more than %d parts", maxParts)
	}
	item.Parts = append(item.Parts, part)
	return nil
}

// settle takes over a later place's statement of a part.
func (p *Part) settle(stated *Part) error {
	switch {
	case p.Refusal != stated.Refusal:
		return malformed("a part of a message that is text and a refusal at once")
	case !p.Closed && len(p.Text) == 0:
		p.Text = stated.Text
	case !bytes.Equal(p.Text, stated.Text):
		return malformed("a text that differs between two places")
	}
	p.Closed = true
	if stated.Annotations != nil {
		p.Annotations = stated.Annotations
	}
	return nil
}

// settleParts compares the parts of a message with those of a later place, which may add some.
func (item *Item) settleParts(last *Item) error {
	if len(last.Parts) < len(item.Parts) {
		return malformed("a message that has lost a part")
	}
	for i, stated := range last.Parts {
		if i < len(item.Parts) {
			if err := item.Parts[i].settle(stated); err != nil {
				return err
			}
			continue
		}
		if item.Done {
			return malformed("a message that grows after its end")
		}
		if stated.index = 0; i > 0 {
			stated.index = item.Parts[i-1].index + 1
		}
		if err := item.addPart(stated); err != nil {
			return err
		}
	}
	return nil
}

// state adds what an event states of a text: a piece, or the whole of it.
func (s *Stream) state(text *[]byte, closed *bool, value []byte, whole bool) error {
	if len(value) == 0 || value[0] != '"' {
		return malformed("a text that is not a string")
	}
	if !whole {
		before := len(*text)
		grown, err := strictjson.AppendUnquote(*text, value)
		if err != nil {
			return malformed("a text that is not a string")
		}
		if len(grown) > before && *closed {
			return malformed("a piece of a text that was stated whole")
		}
		s.bytes += len(grown) - before
		*text = grown
		return nil
	}
	stated, ok := literal(value)
	switch {
	case !ok:
		return malformed("a text that is not a string")
	case !*closed && len(*text) == 0:
		*text = append(*text, stated...)
		s.bytes += len(stated)
	case !bytes.Equal(*text, stated):
		return malformed("a text that differs between two places")
	}
	*closed = true
	return nil
}

// changeCall reads an event of a call. Nothing of it is passed on.
func (s *Stream) changeCall(item *Item) error {
	e := &s.event
	type form struct {
		prefix string // of the events
		whole  []byte
	}
	var f form
	switch item.Type {
	case "function_call":
		f = form{"response.function_call_arguments.", e.arguments}
	case "custom_tool_call":
		f = form{"response.custom_tool_call_input.", e.input}
	case "shell_call":
		f = form{"response.shell_call_command.", e.command}
	case "apply_patch_call":
		f = form{"response.apply_patch_call_operation_diff.", e.diff}
	}
	kind, ok := bytes.CutPrefix(e.kind, []byte(f.prefix))
	if f.prefix == "" || !ok {
		return notAllowed("an event of an unknown type about a call")
	}
	whole := string(kind) == "done"
	value := f.whole
	if string(kind) == "delta" {
		value = e.delta
	} else if !whole && !(string(kind) == "added" && item.Type == "shell_call") {
		return notAllowed("an event of an unknown type about a call")
	}
	if item.hasTextPayload() {
		return s.state(&item.Call.Payload, &item.closed, value, whole)
	}
	return s.changePieces(item, max(e.commandIndex, 0), value, string(kind) == "added", whole)
}

// changePieces reads a piece of a command, or of a patch.
func (s *Stream) changePieces(item *Item, at int, value []byte, begins, whole bool) error {
	switch {
	case at > len(item.pieces), at == maxParts, begins && at != len(item.pieces):
		return malformed("a command_index that is not the next one")
	case at == len(item.pieces):
		item.pieces = append(item.pieces, piece{})
	}
	p := &item.pieces[at]
	return s.state(&p.text, &p.closed, value, whole)
}

// piece is the text of a command, or of a patch, as its events had it.
type piece struct {
	text   []byte
	closed bool
}

// settleCall compares a call with a later place of it.
func (item *Item) settleCall(last *Item) error {
	if !item.sameCall(last) {
		return malformed("a call whose name, id or type differs between two places")
	}
	c := &item.Call
	if item.hasTextPayload() {
		if last.Call.Payload == nil {
			return nil // it does not say them
		}
		if (item.closed || len(c.Payload) > 0) && !bytes.Equal(c.Payload, last.Call.Payload) {
			return malformed("a call whose arguments differ between two places")
		}
		c.Payload, item.closed = last.Call.Payload, true
		return nil
	}
	if item.Done && !bytes.Equal(c.Payload, last.Call.Payload) || !item.Done && !item.beginsAs(last) {
		return malformed("a call whose action differs between two places")
	}
	c.Payload, c.Actions = last.Call.Payload, last.Call.Actions
	return nil
}

// beginsAs reports whether the payload of an added item, and what its events brought, agree
// with the whole one: the added one may have an empty list of commands, or an empty diff.
func (item *Item) beginsAs(last *Item) bool {
	first, whole := item.Call.Payload, last.Call.Payload
	switch item.Type {
	case "shell_call":
		begun, commands := member(first, "commands"), member(whole, "commands")
		return item.commandsAre(commands) && (isEmpty(begun, "[]") || bytes.Equal(begun, commands))
	case "local_shell_call":
		return isEmpty(member(first, "command"), "[]") || bytes.Equal(member(first, "command"), member(whole, "command"))
	case "apply_patch_call":
		if len(item.pieces) > 0 {
			if diff, ok := literal(member(whole, "diff")); !ok || len(item.pieces) > 1 || !bytes.Equal(diff, item.pieces[0].text) {
				return false
			}
		}
		if first == nil {
			return true
		}
		return bytes.Equal(member(first, "type"), member(whole, "type")) && bytes.Equal(member(first, "path"), member(whole, "path")) &&
			(isEmpty(member(first, "diff"), `""`) || bytes.Equal(member(first, "diff"), member(whole, "diff")))
	}
	return isEmpty(first, "{}") || isEmpty(first, "[]") || bytes.Equal(first, whole)
}

// isEmpty reports whether a value is absent, null, or the empty one.
func isEmpty(value []byte, empty string) bool { return isNull(value) || string(value) == empty }

// commandsAre reports whether the commands of the events, if there were any, are those of a
// list.
func (item *Item) commandsAre(list []byte) bool {
	if len(item.pieces) == 0 {
		return true
	}
	if len(list) == 0 || list[0] != '[' {
		return false
	}
	at, same := 0, true
	_ = elements(list, func(value []byte) error { // it was checked before
		command, ok := literal(value)
		same = same && ok && at < len(item.pieces) && bytes.Equal(command, item.pieces[at].text)
		at++
		return nil
	})
	return same && at == len(item.pieces)
}
