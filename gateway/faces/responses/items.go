package responses

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/internal/rawjson"
)

// item is an item of the output. It is valid as long as its reply.
type item struct {
	*row
	// own is the part of the answer that the item is; of a message those of parts are.
	own   turns.Part
	id    string // empty: the provider gives none
	index int    // output_index of its events; -1: they have none
	// eventID is the item_id of the events of a call that had no id of its own when they came; empty: there were none.
	eventID string
	// raw is the whole item as it was received last, strict JSON; nil while a stream has not ended it.
	raw      []byte
	parts    []*textPart // of a message, in their order
	phase    string      // of a message: commentary, final_answer, or empty
	call     itemCall
	complete bool // it has ended, and its status is completed or absent
	done     bool // it has ended

	added        []byte  // the item of output_item.added, for items that are passed on at once
	begun, ended bool    // the engine was told so
	closed       bool    // a place has stated the payload whole
	pieces       []piece // texts of a shell_call's commands, or of a patch, as their events had them
	sent         sentItem
}

// itemCall is the call that an item is, of the client or one that the provider asks for.
type itemCall struct {
	id              string // call_id; of a request for approval, its id; empty: it was not stated
	name, namespace string // as the model wrote them; empty for types without a name, and while none was stated
	serverLabel     string // of a request for approval
	// payload is the arguments of a function_call or a request for approval, the input of a custom_tool_call, and the
	// object action or operation of any other call. The computer's list of actions is the array itself.
	payload   []byte
	first     []byte // arguments in the beginning of the item: a piece of them, which its events state anew, or all
	elsewhere turns.Elsewhere
	async     bool // its result may come later than the next turn (RS-32)
	program   bool // a program at the provider makes the call (RS-32)
	actions   bool // the payload is the array of a computer_call with several actions
}

// textPart is one part of a message.
type textPart struct {
	turns.Part
	of     *item
	closed bool // the text has ended
	index  int  // content_index of its events
	// What the engine was told of.
	begun, ended bool
	told         int // bytes of the text
}

// newPart is a part of a message: a text, or a refusal.
func newPart(refuses bool, index int) *textPart {
	p := &textPart{index: index}
	if p.Row = &rowMessage.Row; refuses {
		p.Row = &rowRefusal.Row
	}
	p.Text, p.Wire = []byte{}, p
	return p
}

func (p *textPart) refuses() bool { return p.Kind == turns.Refusal }

// isCall reports whether an item is a call of the client, or one that the provider asks for.
func (it *item) isCall() bool { return it.Kind == turns.Call || it.Kind == turns.Ask }

// maxParts bounds the parts of a message and the commands of a shell call.
const maxParts = 256

// fields are the members of an item that this package reads, as they were written.
type fields struct {
	id, kind, status, callID, name, namespace, serverLabel, phase, role []byte // string literals
	arguments, input, action, actions, environment                      []byte
	caller, async, content, summary                                     []byte
}

// readFields reads the members of an item that was checked as a part of its document.
func readFields(raw []byte) (fields, error) {
	var f fields
	return f, rawjson.Each(raw, func(name, value []byte) error {
		switch string(name) {
		case "id":
			f.id = value
		case "type":
			f.kind = value
		case "status":
			f.status = value
		case "call_id":
			f.callID = value
		case "name":
			f.name = value
		case "namespace":
			f.namespace = value
		case "server_label":
			f.serverLabel = value
		case "phase":
			f.phase = value
		case "role":
			f.role = value
		case "arguments":
			f.arguments = value
		case "input":
			f.input = value
		case "action":
			f.action = value
		case "actions":
			f.actions = value
		case "environment":
			f.environment = value
		case "caller":
			f.caller = value
		case "async":
			f.async = value
		case "content":
			f.content = value
		case "summary":
			f.summary = value
		case "item", "response", "error": // of an event
		default:
			if isDisguised(name) {
				return errors.New("a member whose name is that of another but for the case of letters")
			}
			if turns.NamesCalls(name) && !turns.IsNothing(value) {
				return errStray
			}
		}
		return nil
	})
}

var errStray = errors.New("calls in a member that is not read")

// readItem reads an item. A streamed one may lack what its later events bring; done means
// that nothing of it may be missing.
func (r *reader) readItem(raw []byte, done bool) (*item, error) {
	f, err := readFields(raw)
	if err != nil {
		return nil, err
	}
	kind, ok := word(f.kind)
	if !ok || kind == "" {
		return nil, errors.New("an item without a type")
	}
	it := &item{row: rows[kind], raw: raw, done: done}
	if it.row == nil {
		it.row = &row{Row: turns.Row{Type: kind, Kind: turns.Unknown}}
	}
	status, okStatus := optional(f.status)
	id, okID := optional(f.id)
	if !okStatus || !okID {
		return nil, errors.New("an item whose id or status is not a string")
	}
	it.id, it.complete = id, done && (status == "" || status == "completed")
	if id != "" && !ascii.IsPlainID(id) {
		return nil, errors.New("an item with an id that is not plain")
	}
	if kind == "shell_call" {
		if environment, _ := word(rawjson.MemberOf(f.environment, "type")); environment == "container_reference" {
			it.row = rowContainerCall
		}
	}
	it.own.Row, it.own.Wire = &it.row.Row, it
	switch it.Kind {
	case turns.Text:
		return it, it.readMessage(&f)
	case turns.Call, turns.Ask:
		err := it.readCall(&f, done)
		if it.call.program && status == "in_progress" { // it continues within the program (R)
			it.complete = done
		}
		return it, err
	case turns.Thought:
		if !areReasoning(f.content) || !areReasoning(f.summary) {
			return nil, errors.New("a part of reasoning of another type")
		}
	case turns.Unknown:
		if isDisguisedType(kind) {
			return nil, errors.New("a type that is a known one in another spelling")
		}
		if !r.unknown() {
			return nil, turns.UnknownType("an item", kind)
		}
	}
	return it, nil
}

// readMessage reads the role, the phase and the content of a message.
func (it *item) readMessage(f *fields) error {
	role, ok := optional(f.role)
	if !ok || role != "" && role != "assistant" {
		return errors.New("a message of another role than assistant")
	}
	if it.phase, ok = optional(f.phase); !ok || !ascii.IsPlainID(it.phase) && it.phase != "" {
		return errors.New("a message whose phase is not a word")
	}
	if rawjson.IsNull(f.content) {
		return nil
	}
	if f.content[0] != '[' {
		return errors.New("a message whose content is not a list")
	}
	return rawjson.EachOf(f.content, func(raw []byte) error {
		part, err := readPart(raw, len(it.parts))
		if err != nil {
			return err
		}
		part.closed = true
		return it.addPart(part)
	})
}

// readPart reads a part of a message: output_text or refusal. No other part is known, and no
// switch allows one: text would go unjudged. Its text may be a part of raw.
func readPart(raw []byte, index int) (*textPart, error) {
	var kind, text, refused, annotations []byte
	if raw[0] != '{' {
		return nil, errors.New("a part of a message that is not an object")
	}
	if err := rawjson.Each(raw, func(name, value []byte) error {
		switch string(name) {
		case "type":
			kind = value
		case "text":
			text = value
		case "refusal":
			refused = value
		case "annotations":
			annotations = value
		default:
			if turns.NamesCalls(name) && !turns.IsNothing(value) {
				return errStray
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	word, _ := word(kind)
	// Some providers write the other member too, as null or empty.
	other := refused
	switch word {
	case "output_text":
	case "refusal":
		text, other = refused, text
	default:
		return nil, errors.New("a part of a message that is neither text nor a refusal")
	}
	part := newPart(word == "refusal", index)
	if rest, ok := optional(other); !ok || rest != "" {
		return nil, errors.New("a part of a message that is text and a refusal at once")
	}
	if !rawjson.IsNull(annotations) && annotations[0] != '[' {
		return nil, errors.New("annotations that are not a list")
	}
	if !rawjson.IsNull(annotations) && len(bytes.TrimSpace(annotations[1:len(annotations)-1])) > 0 {
		part.Beside = rawjson.Object{rawjson.Field("annotations", annotations)}
	}
	decoded, ok := rawjson.Text(text)
	if !ok {
		return nil, errors.New("a part of a message without its text")
	}
	part.Text = slices.Clip(decoded)
	return part, nil
}

// readCall reads the identity and the payload of a call.
func (it *item) readCall(f *fields, done bool) error {
	c := &it.call
	var ok [4]bool
	c.id, ok[0] = optional(f.callID)
	c.name, ok[1] = optional(f.name)
	c.namespace, ok[2] = optional(f.namespace)
	c.serverLabel, ok[3] = optional(f.serverLabel)
	if slices.Contains(ok[:], false) {
		return errors.New("a call whose call_id, name, namespace or server_label is not a string")
	}
	if it.Kind == turns.Ask {
		c.id = it.id
	}
	if c.id != "" && !ascii.IsPlainID(c.id) || c.id == "" && it.Kind == turns.Ask {
		return errors.New("a call with an id that is not plain, or a request for approval without one")
	}
	if !rawjson.IsNull(f.async) && string(f.async) != "false" {
		if string(f.async) != "true" {
			return errors.New("a call whose async is neither true nor false")
		}
		c.async = true
	}
	if !rawjson.IsNull(f.caller) {
		switch caller, _ := word(rawjson.MemberOf(f.caller, "type")); caller {
		case "direct":
		case "program":
			c.program = true
		default:
			return errors.New("a call by an unknown caller")
		}
	}
	return it.readPayload(f, done)
}

// called is what a call is for, as far as it was stated.
func (it *item) called() turns.CallPart {
	c := &it.call
	return turns.CallPart{ID: c.id, Name: cmp.Or(it.tool, c.name), Group: cmp.Or(c.serverLabel, c.namespace)}
}

// readPayload reads what a call asks for.
func (it *item) readPayload(f *fields, done bool) error {
	c := &it.call
	switch { // where no place states a name, it is the empty one, which is that of no tool
	case !it.hasTextPayload() && c.name != "":
		return fmt.Errorf("a call of the type %s with a name", it.Type)
	case it.hasTextPayload():
		payload := "arguments"
		if it.Type == "custom_tool_call" {
			payload = "input"
		}
		_ = rawjson.Each(it.raw, func(name, value []byte) error { // it was checked before
			switch string(name) {
			case payload, "server_label":
			case "caller":
				_ = rawjson.Each(value, func(name, value []byte) error {
					if string(name) != "caller_id" {
						c.elsewhere.Note(name, value)
					}
					return nil
				})
			default:
				c.elsewhere.Note(name, value)
			}
			return nil
		})
	}
	var object []byte
	switch it.Type {
	case "function_call":
		if !rawjson.IsNull(f.arguments) && f.arguments[0] == '{' { // as some servers write them
			c.payload = bytes.Clone(f.arguments)
		} else if !rawjson.IsNull(f.arguments) { // absent: of a tool without parameters, or deltas bring them
			if err := it.readText(f.arguments, done); err != nil {
				return err
			}
		}
		if !done && turns.SaysNothing(c.payload) {
			c.payload = nil // it holds the place of what is to come
		}
		return nil
	case "mcp_approval_request":
		return it.readText(f.arguments, done)
	case "custom_tool_call":
		return it.readText(f.input, done)
	case "computer_call":
		if !rawjson.IsNull(f.action) && !rawjson.IsNull(f.actions) {
			return errors.New("a computer_call with both action and actions")
		}
		if object = f.action; !rawjson.IsNull(f.actions) {
			c.actions, c.payload = true, f.actions
			if f.actions[0] != '[' {
				return errors.New("actions that are not a list")
			}
			return nil
		}
	default:
		object = rawjson.MemberOf(it.raw, it.arguments[0])
	}
	if object == nil && !done {
		return nil
	}
	if rawjson.IsNull(object) || object[0] != '{' {
		return fmt.Errorf("a call of the type %s without its %s", it.Type, it.arguments[0])
	}
	c.payload = object
	return nil
}

// readText reads a payload that is text.
func (it *item) readText(value []byte, done bool) error {
	if value == nil && !done {
		return nil
	}
	text, ok := rawjson.Text(value)
	if !ok {
		return fmt.Errorf("a call of the type %s whose arguments are not a string", it.Type)
	}
	it.call.payload = bytes.Clone(text)
	return nil
}

// sameCall reports whether two places name the same call, and takes over what the second alone says; their payloads are
// compared elsewhere.
func (it *item) sameCall(other *item) bool {
	a, b := &it.call, &other.call
	if a.id == "" {
		a.id = b.id
	}
	if a.name == "" && a.namespace == "" {
		a.name, a.namespace = b.name, b.namespace
	}
	// One server makes up another call_id for each place, and the output_index says that it is the same call.
	id := a.id == b.id || b.id == "" || it.index >= 0 && it.Kind == turns.Call
	return it.row == other.row && id && a.serverLabel == b.serverLabel && a.async == b.async && a.program == b.program &&
		(a.name == b.name && a.namespace == b.namespace || b.name == "" && b.namespace == "")
}

// judged are the arguments of a call as they are judged.
func (it *item) judged() []byte {
	switch {
	case it.Type == "custom_tool_call":
		return append(rawjson.AppendQuote([]byte(`{"input":`), it.call.payload), '}')
	case it.call.actions:
		return slices.Concat([]byte(`{"actions":`), it.call.payload, []byte{'}'})
	}
	return it.call.payload
}
