package responses

import (
	"bytes"
	"slices"

	"github.com/callgate/callgate/internal/ascii"
)

// Class is the side that acts on an item.
type Class int

// The classes; doc.go has the types of each.
const (
	Message Class = iota
	Reasoning
	Call
	Approval
	Hosted
	Unknown
)

// Item is one item of a reply. It is valid as long as its Reply.
type Item struct {
	Type  string
	Class Class
	ID    string // may be empty for calls
	// Raw is the whole item as it was received last, strict JSON; nil while a stream has
	// not ended it.
	Raw []byte
	// Parts are the parts of a message, in their order.
	Parts []*Part
	Phase string // of a message: commentary, final_answer, or empty
	Call  ItemCall
	// Complete means that the item has ended, and that its status is completed or absent.
	Complete bool
	Done     bool // the item has ended

	index  int     // output_index of its events
	added  []byte  // the item of output_item.added, for items that are passed on at once
	closed bool    // a place has stated the payload whole
	pieces []piece // texts of a shell_call's commands, or of a patch, as their events had them
}

// ItemCall is the call that an item of the classes Call and Approval is.
type ItemCall struct {
	ID              string // call_id; of an approval, its id
	Name, Namespace string // as the model wrote them; empty for types without a name
	ServerLabel     string // of an approval
	// Payload is the arguments of a function_call or an approval, the input of a
	// custom_tool_call, and the object action or operation of any other call. The computer's
	// list of actions is the array itself.
	Payload []byte
	Async   bool // its result may come later than the next turn (RS-32)
	Program bool // a program at the provider makes the call (RS-32)
	Actions bool // the payload is the array of a computer_call with several actions
}

// Part is one part of a message.
type Part struct {
	Refusal bool // a refusal; else text
	Text    []byte
	Closed  bool // the text has ended
	// Annotations is the array of annotations, or nil.
	Annotations []byte

	index int // content_index of its events
}

// classes are the types that are known; the others are Unknown.
var classes = map[string]Class{
	"message": Message, "reasoning": Reasoning,
	"function_call": Call, "custom_tool_call": Call, "shell_call": Call,
	"local_shell_call": Call, "apply_patch_call": Call, "computer_call": Call,
	"mcp_approval_request": Approval,
	"web_search_call":      Hosted, "file_search_call": Hosted, "code_interpreter_call": Hosted, "image_generation_call": Hosted,
	"mcp_list_tools": Hosted, "mcp_call": Hosted, "tool_search_call": Hosted, "tool_search_output": Hosted, "program": Hosted,
	"program_output": Hosted, "compaction": Hosted, "shell_call_output": Hosted, "apply_patch_call_output": Hosted,
	"local_shell_call_output": Hosted, "custom_tool_call_output": Hosted, "function_call_output": Hosted, "computer_call_output": Hosted,
	"mcp_approval_response": Hosted, "additional_tools": Hosted,
}

// maxParts bounds the parts of a message and the commands of a shell call.
const maxParts = 256

// fields are the members of an item that this package reads, as they were written.
type fields struct {
	id, kind, status, callID, name, namespace, serverLabel, phase, role   []byte // string literals
	arguments, input, parameters, action, actions, operation, environment []byte
	caller, async, content, summary                                       []byte
}

// readFields reads the members of an item that was checked as a part of its document.
func readFields(raw []byte) (fields, error) {
	var f fields
	return f, members(raw, func(name, value []byte) error {
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
		case "parameters":
			f.parameters = value
		case "action":
			f.action = value
		case "actions":
			f.actions = value
		case "operation":
			f.operation = value
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
				return malformed("a member whose name is that of another but for the case of letters")
			}
		}
		return nil
	})
}

// readItem reads an item. A streamed one may lack what its later events bring; done means
// that nothing of it may be missing.
func readItem(raw []byte, o *Options, done bool) (*Item, error) {
	f, err := readFields(raw)
	if err != nil {
		return nil, err
	}
	kind, ok := word(f.kind)
	if !ok || kind == "" {
		return nil, malformed("an item without a type")
	}
	item := &Item{Type: kind, Class: Unknown, Raw: raw, Done: done}
	if class, known := classes[kind]; known {
		item.Class = class
	}
	status, okStatus := optional(f.status)
	id, okID := optional(f.id)
	if !okStatus || !okID {
		return nil, malformed("an item whose id or status is not a string")
	}
	item.ID, item.Complete = id, done && (status == "" || status == "completed")
	if id != "" && !ascii.IsPlainID(id) {
		return nil, malformed("an item with an id that is not plain")
	}
	if kind == "shell_call" {
		if environment, _ := word(member(f.environment, "type")); environment == "container_reference" {
			item.Class = Hosted
		}
	}
	switch item.Class {
	case Message:
		return item, item.readMessage(&f)
	case Call, Approval:
		err := item.readCall(&f, o, done)
		if item.Call.Program && status == "in_progress" { // it continues within the program (R)
			item.Complete = done
		}
		return item, err
	case Hosted:
		if !o.Hosted[kind] {
			return nil, notAllowed("an item of the type %s", kind)
		}
	case Reasoning:
		if !areReasoning(f.content) || !areReasoning(f.summary) {
			return nil, malformed("a part of reasoning of another type")
		}
	case Unknown:
		if !o.Unknown {
			return nil, notAllowed("an item of an unknown type")
		}
		if IsDisguised(kind) {
			return nil, malformed("a type that is a known one in another spelling")
		}
	}
	if item.ID == "" && item.Class != Unknown {
		return nil, malformed("an item of the type %s without an id", kind)
	}
	return item, nil
}

// IsDisguised reports whether a type is a known one but for the case of letters and
// what stands between them.
func IsDisguised(kind string) bool {
	if _, known := classes[kind]; known {
		return false
	}
	for known := range classes {
		if ascii.Folded(kind) == ascii.Folded(known) {
			return true
		}
	}
	return false
}

// readMessage reads the role, the phase and the content of a message.
func (item *Item) readMessage(f *fields) error {
	role, ok := optional(f.role)
	if !ok || role != "" && role != "assistant" {
		return malformed("a message of another role than assistant")
	}
	if item.Phase, ok = optional(f.phase); !ok || !ascii.IsPlainID(item.Phase) && item.Phase != "" {
		return malformed("a message whose phase is not a word")
	}
	if item.ID == "" {
		return malformed("a message without an id")
	}
	if isNull(f.content) {
		return nil
	}
	if f.content[0] != '[' {
		return malformed("a message whose content is not a list")
	}
	return elements(f.content, func(raw []byte) error {
		part, err := readPart(raw)
		if err != nil {
			return err
		}
		if len(item.Parts) == maxParts {
			return tooLarge("a message of more than %d parts", maxParts)
		}
		part.index, part.Closed = len(item.Parts), true
		item.Parts = append(item.Parts, part)
		return nil
	})
}

// readPart reads a part of a message: output_text or refusal. No other part is known, and no
// switch allows one: text would go unjudged. Its text may be a part of raw.
func readPart(raw []byte) (*Part, error) {
	var kind, text, refused, annotations []byte
	if raw[0] != '{' {
		return nil, malformed("a part of a message that is not an object")
	}
	if err := members(raw, func(name, value []byte) error {
		switch string(name) {
		case "type":
			kind = value
		case "text":
			text = value
		case "refusal":
			refused = value
		case "annotations":
			annotations = value
		}
		return nil
	}); err != nil {
		return nil, err
	}
	part := &Part{}
	word, _ := word(kind)
	// Some providers write the other member too, as null or empty.
	other := refused
	switch word {
	case "output_text":
	case "refusal":
		part.Refusal, text, other = true, refused, text
	default:
		return nil, malformed("a part of a message that is neither text nor a refusal")
	}
	if rest, ok := optional(other); !ok || rest != "" {
		return nil, malformed("a part of a message that is text and a refusal at once")
	}
	if !isNull(annotations) && annotations[0] != '[' {
		return nil, malformed("annotations that are not a list")
	}
	if !isNull(annotations) && len(bytes.TrimSpace(annotations[1:len(annotations)-1])) > 0 {
		part.Annotations = annotations
	}
	decoded, ok := literal(text)
	if !ok {
		return nil, malformed("a part of a message without its text")
	}
	part.Text = slices.Clip(decoded)
	return part, nil
}

// readCall reads the identity and the payload of a call.
func (item *Item) readCall(f *fields, o *Options, done bool) error {
	c := &item.Call
	var ok [4]bool
	c.ID, ok[0] = optional(f.callID)
	c.Name, ok[1] = optional(f.name)
	c.Namespace, ok[2] = optional(f.namespace)
	c.ServerLabel, ok[3] = optional(f.serverLabel)
	if slices.Contains(ok[:], false) {
		return malformed("a call whose call_id, name, namespace or server_label is not a string")
	}
	if item.Class == Approval {
		c.ID = item.ID
	}
	if !ascii.IsPlainID(c.ID) || c.ID == "" {
		return malformed("a call without an id, or with one that is not plain")
	}
	if !isNull(f.async) && string(f.async) != "false" {
		if string(f.async) != "true" {
			return malformed("a call whose async is neither true nor false")
		}
		if c.Async = true; !o.Async {
			return notAllowed("a call whose result may come later (async)")
		}
	}
	if !isNull(f.caller) {
		switch caller, _ := word(member(f.caller, "type")); caller {
		case "direct":
		case "program":
			if c.Program = true; !o.Hosted["program"] {
				return notAllowed("a call by a program")
			}
		default:
			return malformed("a call by an unknown caller")
		}
	}
	return item.readPayload(f, done)
}

// readPayload reads what a call asks for.
func (item *Item) readPayload(f *fields, done bool) error {
	c := &item.Call
	named := item.Type == "function_call" || item.Type == "custom_tool_call" || item.Class == Approval
	if named && isNull(f.name) || !named && c.Name != "" { // an empty one is the name of no tool
		return malformed("a call of the type %s with a name, or without the one that it needs", item.Type)
	}
	var object []byte
	switch item.Type {
	case "function_call":
		if !isNull(f.arguments) && f.arguments[0] == '{' { // as some servers write them
			c.Payload = bytes.Clone(f.arguments)
			return nil
		}
		if done && (isNull(f.arguments) || string(f.arguments) == `""`) && (!isNull(f.input) || !isNull(f.parameters)) {
			return malformed("a call without arguments, which may stand in its member input or parameters")
		}
		if isNull(f.arguments) { // of a tool without parameters, or deltas bring them
			return nil
		}
		return item.readText(f.arguments, done)
	case "mcp_approval_request":
		return item.readText(f.arguments, done)
	case "custom_tool_call":
		return item.readText(f.input, done)
	case "apply_patch_call":
		object = f.operation
	case "computer_call":
		if !isNull(f.action) && !isNull(f.actions) {
			return malformed("a computer_call with both action and actions")
		}
		if object = f.action; !isNull(f.actions) {
			c.Actions, c.Payload = true, f.actions
			if f.actions[0] != '[' {
				return malformed("actions that are not a list")
			}
			return nil
		}
	default:
		object = f.action
	}
	if object == nil && !done {
		return nil
	}
	if isNull(object) || object[0] != '{' {
		return malformed("a call of the type %s without its action", item.Type)
	}
	c.Payload = object
	return nil
}

// readText reads a payload that is text.
func (item *Item) readText(value []byte, done bool) error {
	if value == nil && !done {
		return nil
	}
	text, ok := literal(value)
	if !ok {
		return malformed("a call of the type %s whose arguments are not a string", item.Type)
	}
	item.Call.Payload = bytes.Clone(text)
	return nil
}

// sameCall reports whether two places name the same call; their payloads are compared elsewhere.
func (item *Item) sameCall(other *Item) bool {
	a, b := &item.Call, &other.Call
	return item.Type == other.Type && item.Class == other.Class && a.ID == b.ID && a.Name == b.Name && a.Namespace == b.Namespace &&
		a.ServerLabel == b.ServerLabel && a.Async == b.Async && a.Program == b.Program
}
