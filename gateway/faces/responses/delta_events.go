package responses

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// hasTextPayload reports whether the payload is text that comes in deltas.
func (it *item) hasTextPayload() bool {
	return it.Type == "function_call" || it.Type == "custom_tool_call" || it.Kind == turns.Ask
}

// change reads an event of an item between its beginning and its end.
func (r *reader) change(it *item) error {
	switch it.Kind {
	case turns.Text:
		return r.changeMessage(it)
	case turns.Call, turns.Ask:
		return r.changeCall(it)
	}
	return r.other(it)
}

// other takes an event that is passed on unread, where it is of a kind that may be.
func (r *reader) other(it *item) error {
	kind := r.event.kind
	allowed, own := r.unknown(), false
	switch {
	case it == nil:
		allowed = allowed && r.event.item == nil && r.event.response == nil ||
			string(kind) == "response.compaction.compacting" && r.compacts()
	case it.Kind == turns.Thought:
		if part := r.event.part; part != nil && !isReasoning(part) {
			if r.statesNoText() { // one server announces it as a text
				return nil
			}
			return errors.New("a part of reasoning of another type")
		}
		own = eventOf(kind, "reasoning") || string(kind) == "response.content_part.added" || string(kind) == "response.content_part.done"
	case it.Kind == turns.Hosted:
		own = eventOf(kind, it.Type)
	}
	switch {
	case r.event.item != nil, r.event.response != nil, !own && isJudged(kind):
		return errors.New("an event that is not in its place")
	case !own && !allowed:
		return turns.UnknownType("an event", string(kind))
	}
	if r.name != string(kind) {
		r.name = string(kind)
	}
	d := turns.Delta{Is: turns.Mark, Name: r.name, Raw: r.event.data}
	if it != nil {
		d.Part = &it.own
	}
	r.tell(d)
	return nil
}

// compacts reports whether the provider may compact the conversation.
func (r *reader) compacts() bool {
	found, _ := rows["compaction"].Allowed(r.rules, nil)
	return found == ""
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
	for of, row := range rows {
		if (row.Kind == turns.Call || row.Kind == turns.Ask) && eventOf(kind, of) {
			return true
		}
	}
	return false
}

// changeMessage reads an event of a message.
func (r *reader) changeMessage(it *item) error {
	e := &r.event
	if e.content < 0 { // one that has no index is about the last part, and a part that begins about the next
		if n := len(it.parts); n == 0 {
			e.content = 0
		} else if e.content = it.parts[n-1].index; string(e.kind) == "response.content_part.added" {
			e.content++
		}
	}
	refuses := false
	switch string(e.kind) {
	case "response.content_part.added", "response.content_part.done":
		if isReasoning(e.part) {
			return nil // one server ends a text with what was thought
		}
		if err := r.changePart(it); err != nil {
			return err
		}
		r.tellItem(it)
		return nil
	case "response.refusal.delta", "response.refusal.done":
		refuses = true
	case "response.output_text.delta", "response.output_text.done":
	case "response.output_text.annotation.added":
		if part := it.partAt(e.content); part == nil || part.refuses() || e.annotation == nil ||
			e.annotation[0] != '{' || e.item != nil || e.response != nil {
			return errors.New("an annotation of no text")
		}
		r.tell(turns.Delta{Is: turns.Mark, Part: &it.partAt(e.content).Part, Raw: e.annotation})
		return nil
	default:
		return errors.New("an event of a type that is not known about a message")
	}
	part := it.partAt(e.content)
	if part == nil {
		part = newPart(refuses, e.content)
		if err := it.addPart(part); err != nil {
			return err
		}
	}
	if part.refuses() != refuses {
		return errors.New("a part of a message that is text and a refusal at once")
	}
	value, whole := e.delta, false
	if bytes.HasSuffix(e.kind, []byte(".done")) {
		if value, whole = e.text, true; refuses {
			value = e.refused
		}
	}
	if err := r.state(&part.Text, &part.closed, value, whole); err != nil {
		return err
	}
	r.tellItem(it)
	return nil
}

// changePart reads content_part.added or content_part.done.
func (r *reader) changePart(it *item) error {
	e := &r.event
	if e.part == nil {
		return errors.New("a part of a message without the part")
	}
	stated, err := readPart(e.part, e.content)
	if err != nil {
		return err
	}
	if annotations := stated.Beside.Get("annotations"); annotations != nil {
		r.bytes += len(annotations)
		stated.Beside = stated.Beside.Set("annotations", bytes.Clone(annotations))
	}
	part := it.partAt(e.content)
	if part == nil || len(part.Text) == 0 {
		stated.Text = bytes.Clone(stated.Text) // it is kept
		r.bytes += len(stated.Text)
	}
	ended := string(e.kind) == "response.content_part.done"
	switch {
	case part == nil:
		stated.closed = ended || len(stated.Text) > 0
		return it.addPart(stated)
	case !ended:
		return errors.New("the beginning of a part that has begun")
	}
	return part.settle(stated)
}

// partAt returns the part with a content_index, or nil.
func (it *item) partAt(index int) *textPart {
	for i := len(it.parts) - 1; i >= 0; i-- {
		if it.parts[i].index == index {
			return it.parts[i]
		}
	}
	return nil
}

// addPart adds a part whose content_index is above those before it. One provider begins at 1.
func (it *item) addPart(part *textPart) error {
	n := len(it.parts)
	switch {
	case n > 0 && part.index <= it.parts[n-1].index:
		return errors.New("a content_index that does not rise")
	case n == maxParts:
		return fmt.Errorf("a message of more than %d parts", maxParts)
	}
	part.of, it.parts = it, append(it.parts, part)
	return nil
}

// settle takes over a later place's statement of a part.
func (p *textPart) settle(stated *textPart) error {
	switch {
	case p.Kind != stated.Kind:
		return errors.New("a part of a message that is text and a refusal at once")
	case !p.closed && len(p.Text) == 0:
		p.Text = stated.Text
	case !bytes.Equal(p.Text, stated.Text):
		return errors.New("a text that differs between two places")
	}
	p.closed = true
	if stated.Beside != nil {
		p.Beside = stated.Beside
	}
	return nil
}

// settleParts compares the parts of a message with those of a later place, which may add some.
func (it *item) settleParts(last *item) error {
	if len(last.parts) < len(it.parts) {
		return errors.New("a message that has lost a part")
	}
	for i, stated := range last.parts {
		if i < len(it.parts) {
			if err := it.parts[i].settle(stated); err != nil {
				return err
			}
			continue
		}
		if it.done {
			return errors.New("a message that grows after its end")
		}
		if stated.index = 0; i > 0 {
			stated.index = it.parts[i-1].index + 1
		}
		if err := it.addPart(stated); err != nil {
			return err
		}
	}
	return nil
}

// state adds what an event states of a text: a piece, or the whole of it.
func (r *reader) state(text *[]byte, closed *bool, value []byte, whole bool) error {
	if string(value) == "null" && !whole && !r.event.hasMore() {
		return nil // a piece of nothing
	}
	if len(value) == 0 || value[0] != '"' {
		return errors.New("a text that is not a string")
	}
	if !whole {
		before := len(*text)
		grown, err := rawjson.AppendUnquote(*text, value)
		if err != nil {
			return errors.New("a text that is not a string")
		}
		if len(grown) > before && *closed {
			return errors.New("a piece of a text that was stated whole")
		}
		r.bytes += len(grown) - before
		*text = grown
		return nil
	}
	stated, ok := rawjson.Text(value)
	switch {
	case !ok:
		return errors.New("a text that is not a string")
	case !*closed && len(*text) == 0:
		*text = append(*text, stated...)
		r.bytes += len(stated)
	case !bytes.Equal(*text, stated):
		return errors.New("a text that differs between two places")
	}
	*closed = true
	return nil
}

// changeCall reads an event of a call. Nothing of it is passed on.
func (r *reader) changeCall(it *item) error {
	e := &r.event
	type form struct {
		prefix, member string // of the events, and what states it whole
		whole          []byte
	}
	var f form
	switch it.Type {
	case "function_call":
		f = form{"response.function_call_arguments.", "arguments", e.arguments}
	case "custom_tool_call":
		f = form{"response.custom_tool_call_input.", "input", e.input}
	case "shell_call":
		f = form{"response.shell_call_command.", "command", e.command}
	case "apply_patch_call":
		f = form{"response.apply_patch_call_operation_diff.", "diff", e.diff}
	}
	kind, ok := bytes.CutPrefix(e.kind, []byte(f.prefix))
	if f.prefix == "" || !ok {
		return errors.New("an event of a type that is not known about a call")
	}
	whole := string(kind) == "done"
	value := f.whole
	if string(kind) == "delta" {
		value, f.member = e.delta, "delta"
	} else if !whole && !(string(kind) == "added" && it.Type == "shell_call") {
		return errors.New("an event of a type that is not known about a call")
	}
	if name, ok := optional(e.name); !ok || name != "" && name != it.call.name && name != it.call.namespace+"."+it.call.name {
		return errors.New("an event about a call that names another tool")
	}
	if id, ok := optional(e.callID); !ok || id != "" && it.call.id != "" && id != it.call.id {
		return errors.New("an event about a call with the id of another")
	}
	if it.hasTextPayload() {
		if elsewhere := e.argumentsBut(f.member); elsewhere != "" { // a piece that is not in its place would be lost
			stated, _ := rawjson.Text(value)
			if err := elsewhere.Check(stated); err != nil {
				return err
			}
		}
		if stated, ok := rawjson.Text(value); ok && whole && len(it.call.payload) > 0 && it.isAlso(stated) {
			it.closed = true
			return nil
		}
		return r.state(&it.call.payload, &it.closed, value, whole)
	}
	return r.changePieces(it, max(e.commandIndex, 0), value, string(kind) == "added", whole)
}

// changePieces reads a piece of a command, or of a patch.
func (r *reader) changePieces(it *item, at int, value []byte, begins, whole bool) error {
	switch {
	case at > len(it.pieces), at == maxParts, begins && at != len(it.pieces):
		return errors.New("a command_index that is not the next one")
	case at == len(it.pieces):
		it.pieces = append(it.pieces, piece{})
	}
	p := &it.pieces[at]
	return r.state(&p.text, &p.closed, value, whole)
}

// piece is the text of a command, or of a patch, as its events had it.
type piece struct {
	text   []byte
	closed bool
}

// statesNoText reports whether the event ends, or announces, an empty text or a message of such.
func (r *reader) statesNoText() bool {
	e := &r.event
	switch string(e.kind) {
	case "response.output_text.done":
		return string(e.text) == `""`
	case "response.content_part.added", "response.content_part.done":
		part, err := readPart(e.part, 0)
		return err == nil && len(part.Text) == 0 && !part.refuses()
	case "response.output_item.done":
		it, err := r.readItem(e.item, true)
		return err == nil && it.Kind == turns.Text && it.isBlank()
	}
	return false
}

// isAlso reports whether a later place states the same arguments of a function, which one server encodes again there. Those that
// came first hold.
func (it *item) isAlso(stated []byte) bool {
	return it.Type == "function_call" && turns.SameArguments(it.call.payload, stated)
}

var errDifferentArguments = errors.New("a call whose arguments differ between two places")

// settleCall compares a call with a later place of it.
func (it *item) settleCall(last *item) error {
	if !it.sameCall(last) {
		return errors.New("a call whose name, id or type differs between two places")
	}
	c := &it.call
	c.elsewhere = cmp.Or(c.elsewhere, last.call.elsewhere)
	if it.hasTextPayload() {
		stated := last.call.payload
		switch {
		case stated == nil: // it does not say them
			return nil
		case !it.closed && len(c.payload) == 0:
			c.payload = stated
		case !bytes.Equal(c.payload, stated) && !it.isAlso(stated):
			return errDifferentArguments
		}
		it.closed = true
		return nil
	}
	if it.done && !bytes.Equal(c.payload, last.call.payload) || !it.done && !it.beginsAs(last) {
		return errors.New("a call whose action differs between two places")
	}
	c.payload, c.actions = last.call.payload, last.call.actions
	return nil
}

// beginsAs reports whether the payload of an added item, and what its events brought, agree
// with the whole one: the added one may have an empty list of commands, or an empty diff.
func (it *item) beginsAs(last *item) bool {
	first, whole := it.call.payload, last.call.payload
	switch it.Type {
	case "shell_call":
		begun, commands := rawjson.MemberOf(first, "commands"), rawjson.MemberOf(whole, "commands")
		return it.commandsAre(commands) && (isEmpty(begun, "[]") || bytes.Equal(begun, commands))
	case "local_shell_call":
		return isEmpty(rawjson.MemberOf(first, "command"), "[]") ||
			bytes.Equal(rawjson.MemberOf(first, "command"), rawjson.MemberOf(whole, "command"))
	case "apply_patch_call":
		if len(it.pieces) > 0 {
			if diff, ok := rawjson.Text(rawjson.MemberOf(whole, "diff")); !ok || len(it.pieces) > 1 ||
				!bytes.Equal(diff, it.pieces[0].text) {
				return false
			}
		}
		if first == nil {
			return true
		}
		return bytes.Equal(rawjson.MemberOf(first, "type"), rawjson.MemberOf(whole, "type")) &&
			bytes.Equal(rawjson.MemberOf(first, "path"), rawjson.MemberOf(whole, "path")) &&
			(isEmpty(rawjson.MemberOf(first, "diff"), `""`) ||
				bytes.Equal(rawjson.MemberOf(first, "diff"), rawjson.MemberOf(whole, "diff")))
	}
	return isEmpty(first, "{}") || isEmpty(first, "[]") || bytes.Equal(first, whole)
}

// isEmpty reports whether a value is absent, null, or the empty one.
func isEmpty(value []byte, empty string) bool { return rawjson.IsNull(value) || string(value) == empty }

// commandsAre reports whether the commands of the events, if there were any, are those of a
// list.
func (it *item) commandsAre(list []byte) bool {
	if len(it.pieces) == 0 {
		return true
	}
	if len(list) == 0 || list[0] != '[' {
		return false
	}
	at, same := 0, true
	_ = rawjson.EachOf(list, func(value []byte) error { // it was checked before
		command, ok := rawjson.Text(value)
		same = same && ok && at < len(it.pieces) && bytes.Equal(command, it.pieces[at].text)
		at++
		return nil
	})
	return same && at == len(it.pieces)
}
