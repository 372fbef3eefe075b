package chat

import (
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// message is one message of the history.
type message struct {
	came       []byte // as the request has it
	raw        []byte // as it is sent on
	role       string
	content    []byte        // as it stood; nil: none
	calls      []earlierCall // of an assistant
	toolCallID string        // the id of the call that a tool's message is the result of
}

// earlierCall is a call of an earlier turn.
type earlierCall struct {
	id, name  string
	arguments []byte
}

// readHistory reads the messages: each of a known role, and those with results
// behind the one with their calls.
func (d *dialogue) readHistory() error {
	invalid := func() error {
		return turns.Bad("messages", "\"messages\" must be a list of at least one message, and at most %d.", maxMessages)
	}
	raw := d.members.Get("messages")
	if raw == nil || raw[0] != '[' {
		return invalid()
	}
	d.history = make([]message, 0, 4)
	var open map[string]bool                            // calls that are not answered yet
	err := rawjson.EachOf(raw, func(raw []byte) error { // a range would allocate its variables
		i := len(d.history)
		if i == maxMessages {
			return invalid()
		}
		d.history = append(d.history, message{came: raw, raw: raw})
		m := &d.history[i]
		if err := m.read(i); err != nil {
			return err
		}
		if m.role == "tool" {
			if !open[m.toolCallID] {
				return turns.Bad(place(i)+".tool_call_id",
					"This message answers no call of the turn before it, or one that is answered already.")
			}
			delete(open, m.toolCallID)
		} else if len(open) > 0 {
			return turns.Bad(place(i), "The calls before this message are not all answered: each must have one message of the role \"tool\", right behind them.")
		}
		for _, call := range m.calls {
			if open == nil {
				open = map[string]bool{}
			}
			open[call.id] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(d.history) == 0 {
		return invalid()
	}
	if len(open) > 0 {
		return turns.Bad("messages", "The last calls are not all answered: each must have one message of the role \"tool\".")
	}
	return nil
}

// place names a message for an error.
func place(i int) string { return "messages." + strconv.Itoa(i) }

// read reads the i-th message.
func (m *message) read(i int) error {
	members, ok := rawjson.Members(m.raw)
	if !ok {
		return turns.Bad(place(i), "A message must be an object.")
	}
	m.content = members.Get("content")
	m.role, _ = rawjson.String(members.Get("role"))
	switch m.role {
	case "user":
		return nil
	case "system", "developer":
		if _, list := rawjson.Elements(m.content); m.content != nil && !rawjson.IsString(m.content) && !list {
			return turns.Bad(place(i)+".content", "The content must be a string, or a list of parts.")
		}
		return nil
	case "assistant":
		return m.readCalls(members, i)
	case "tool":
		return m.readResult(members, i)
	}
	if m.role == "function" {
		return turns.Bad(place(i)+".role", "\"function\" is the legacy form, which is not taken here; send the result with the role \"tool\".")
	}
	return turns.Bad(place(i)+".role", "The role must be system, developer, user, assistant or tool.")
}

// readCalls reads the calls of an assistant's message.
func (m *message) readCalls(members rawjson.Object, message int) error {
	if legacy := members.Get("function_call"); legacy != nil {
		if called, err := readLegacyCall(legacy); called || err != nil {
			return turns.Bad(place(message)+".function_call",
				"\"function_call\" is the legacy form, which is not taken here; use \"tool_calls\".")
		}
		m.raw = members.Without("function_call").Bytes() // as it stands in answers of some servers
	}
	raw := members.Get("tool_calls")
	if raw == nil {
		return nil
	}
	list, ok := rawjson.Elements(raw)
	if !ok {
		return turns.Bad(place(message)+".tool_calls", "\"tool_calls\" must be a list.")
	}
	ids := map[string]bool{}
	for i, raw := range list {
		if i == maxMessages {
			return turns.Bad(place(message)+".tool_calls", "\"tool_calls\" must be at most %d: each has a message with its result.",
				maxMessages)
		}
		at := place(message) + ".tool_calls." + strconv.Itoa(i)
		call, err := readEarlierCall(raw, at)
		if err != nil {
			return err
		}
		if call.id == "" || ids[call.id] {
			return turns.Bad(at+".id", "A call must have an id, and each its own.")
		}
		ids[call.id] = true
		m.calls = append(m.calls, call)
	}
	return nil
}

func readEarlierCall(raw []byte, param string) (earlierCall, error) {
	name, err := toolName(raw, param)
	if err != nil {
		return earlierCall{}, err
	}
	members, _ := rawjson.Members(raw)
	function, _ := rawjson.Members(members.Get("function"))
	id, _ := rawjson.String(members.Get("id"))
	raw = function.Get("arguments")
	arguments, ok := rawjson.String(raw)
	if arguments == "" && (ok || raw == nil) || arguments == "null" { // of a tool without parameters; Go writes null for a nil map
		arguments, ok = "{}", true
	}
	read := []byte(arguments)
	if first := parser.SkipSpace(read, 0); !ok || !rawjson.Readable(read) || read[first] != '{' {
		return earlierCall{}, turns.Bad(param+".function.arguments",
			"The arguments of a call must be a string that holds one strict JSON object.")
	}
	return earlierCall{id: id, name: name, arguments: read}, nil
}

// readResult reads a message with the result of a call.
func (m *message) readResult(members rawjson.Object, message int) error {
	if m.toolCallID, _ = rawjson.String(members.Get("tool_call_id")); m.toolCallID == "" {
		return turns.Bad(place(message)+".tool_call_id", "A message of the role \"tool\" must say which call it answers.")
	}
	if m.content == nil { // a tool that returned nothing
		m.content = []byte(`""`)
		m.raw = m.withContent(m.content)
	}
	if _, isList := rawjson.Elements(m.content); !rawjson.IsString(m.content) && !isList {
		return turns.Bad(place(message)+".content", "The content of a tool's message must be a string, or a list of parts.")
	}
	return nil
}

// textParts returns the text of content that is a string, or a list of texts.
func textParts(content []byte) (string, bool) {
	if s, ok := rawjson.String(content); ok {
		return s, true
	}
	list, ok := rawjson.Elements(content)
	if !ok {
		return "", false
	}
	var all strings.Builder
	for _, raw := range list {
		part, ok := rawjson.Members(raw)
		kind, _ := rawjson.String(part.Get("type"))
		s, isText := rawjson.String(part.Get("text"))
		if !ok || kind != "text" || !isText {
			return "", false
		}
		all.WriteString(s)
	}
	return all.String(), true
}
