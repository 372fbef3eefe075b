package messages

import (
	"maps"
	"strconv"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// blocksByRole are the types of content blocks that a message of each role may hold (AM-16),
// beside those that are read here. Results of the provider's tools are history: data that was
// judged when it came, or was none of this gateway's.
var blocksByRole = map[string]map[string]bool{
	"user": set("text", "image", "document", "search_result", "container_upload"),
	"assistant": set("text", "thinking", "redacted_thinking", "document", "server_tool_use", "mcp_tool_use", "web_search_tool_result",
		"web_fetch_tool_result",
		"code_execution_tool_result", "bash_code_execution_tool_result", "text_editor_code_execution_tool_result",
		"tool_search_tool_result", "advisor_tool_result",
		"mcp_tool_result", "mcp_tool_listing", "container_upload", "compaction", "fallback"),
	"system": set("text"),
}

// blockTypes are the types that a message of some role may hold.
var blockTypes = func() map[string]bool {
	all := set("tool_use", "tool_result", "tool_addition", "tool_removal")
	for _, types := range blocksByRole {
		maps.Copy(all, types)
	}
	return all
}()

func set(names ...string) map[string]bool {
	all := map[string]bool{}
	for _, n := range names {
		all[n] = true
	}
	return all
}

// history reads the messages in order. Messages of one role in a row are one turn, as the API reads
// them: an agent writes one for each call, or one for each result.
type history struct {
	role    string                    // of the turn
	open    map[string]rawjson.Object // calls of the turn before, or of the model's own, that are not answered
	results bool                      // nothing but results has come in the turn
	blocks  int                       // of all messages
	changes []toolChange
	unknown toolUnknown      // a block of a type that is not known in its place
	brought []rawjson.Object // the calls whose results it has; nil for what the provider ran
}

// readHistory checks the messages: roles, known blocks, and each call answered once at the
// beginning of the next turn. It notes how the messages change the offered tools.
func readHistory(raw []byte) (*history, error) {
	list, ok := rawjson.Elements(raw)
	if !ok {
		return nil, bad("messages", "\"messages\" must be a list.")
	}
	h := &history{open: map[string]rawjson.Object{}}
	count := 0
	for i, raw := range list {
		if count = i + 1; count > maxMessages {
			return nil, bad("messages", "\"messages\" must be at most %d.", maxMessages)
		}
		if err := h.message(raw, "messages."+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	if count == 0 {
		return nil, bad("messages", "\"messages\" must have at least one message.")
	}
	if len(h.open) > 0 {
		return nil, bad("messages", "messages: `tool_use` ids were found without `tool_result` blocks after them. Each `tool_use` block must have a `tool_result` block in the next message.")
	}
	return h, nil
}

func (h *history) message(raw []byte, param string) error {
	o, ok := rawjson.Members(raw)
	if !ok {
		return bad(param, "A message must be an object.")
	}
	role, _ := rawjson.String(o.Get("role"))
	if blocksByRole[role] == nil {
		return bad(param+".role", "The role must be user, assistant or system.")
	}
	if role != h.role {
		if role != "user" {
			if err := h.unanswered(param); err != nil {
				return err
			}
		}
		h.role, h.results = role, true
	}
	content := o.Get("content")
	if rawjson.IsString(content) {
		return h.other(param)
	}
	list, ok := rawjson.Elements(content)
	if !ok {
		return bad(param+".content", "The content must be a string, or a list of blocks.")
	}
	for i, raw := range list {
		if h.blocks++; h.blocks > maxHistoryBlocks {
			return bad("messages", "\"messages\" must have at most %d content blocks in all.", maxHistoryBlocks)
		}
		at := param + ".content." + strconv.Itoa(i)
		block, ok := rawjson.Members(raw)
		kind, _ := rawjson.String(block.Get("type"))
		if !ok || kind == "" {
			return bad(at, "A content block must be an object with a type.")
		}
		if kind == "tool_result" && role == "user" {
			if err := h.result(block, at); err != nil {
				return err
			}
			continue
		}
		if err := h.other(at); err != nil {
			return err
		}
		if err := h.block(role, kind, block, at); err != nil {
			return err
		}
	}
	return nil
}

// other notes that something else than a result comes: the calls of the turn before must be answered.
func (h *history) other(param string) error {
	h.results = false
	if h.role == "assistant" {
		return nil // the open calls are its own
	}
	return h.unanswered(param)
}

// unanswered refuses a message that leaves calls of the turn before it without a result.
func (h *history) unanswered(param string) error {
	if len(h.open) == 0 {
		return nil
	}
	return bad(param, "%s: `tool_use` ids were found without `tool_result` blocks immediately after. Each `tool_use` block must have a corresponding `tool_result` block "+
		"at the beginning of the next message.", param)
}

// result reads a tool_result.
func (h *history) result(block rawjson.Object, param string) error {
	id, _ := rawjson.String(block.Get("tool_use_id"))
	call, open := h.open[id]
	if !open {
		return bad(param+".tool_use_id", "This result answers no call of the message before it, or one that is answered already.")
	}
	if !h.results {
		return bad(param, "Results of tools must come first in the message.")
	}
	delete(h.open, id)
	h.brought = append(h.brought, call)
	content := block.Get("content")
	list, ok := rawjson.Elements(content)
	if content != nil && !rawjson.IsString(content) && !ok {
		return bad(param+".content", "The content of a result must be a string, or a list of blocks.")
	}
	if ok {
		for _, raw := range list {
			h.reference(raw)
		}
	}
	return nil
}

// reference notes a tool that a block of a result loads (AM-16).
func (h *history) reference(raw []byte) {
	o, _ := rawjson.Members(raw)
	if kind, _ := rawjson.String(o.Get("type")); kind != "tool_reference" {
		return
	}
	if name, _ := rawjson.String(o.Get("tool_name")); name != "" {
		h.changes = append(h.changes, toolChange{name: name, added: true})
	}
}

// block reads a block of a message that is no result.
func (h *history) block(role, kind string, block rawjson.Object, param string) error {
	switch {
	case role == "assistant" && kind == "tool_use":
		return readEarlierCall(block, param, h.open)
	case role == "system" && (kind == "tool_addition" || kind == "tool_removal"):
		return h.change(kind == "tool_addition", block.Get("tool"), param)
	case role == "assistant" && kind == "tool_search_tool_result":
		h.found(block.Get("content"))
	}
	known := blocksByRole[role][kind]
	if !known || role == "assistant" && isOfProvider(kind) {
		h.brought = append(h.brought, nil)
	}
	if !known && !h.unknown.disguised {
		_, known := blockTypes[kind]
		h.unknown = toolUnknown{kind, param, !known && isDisguised(kind)}
	}
	return nil
}

// isOfProvider reports whether a block of the model holds what a tool of the provider said.
func isOfProvider(kind string) bool {
	switch kind {
	case "text", "thinking", "redacted_thinking", "document", "tool_use", "compaction":
		return false
	}
	return true
}

// found notes the tools that a search of the provider has loaded.
func (h *history) found(content []byte) {
	o, _ := rawjson.Members(content)
	if list, ok := rawjson.Elements(o.Get("tool_references")); ok {
		for _, raw := range list {
			h.reference(raw)
		}
	}
}

// readEarlierCall reads a tool_use of an earlier turn.
func readEarlierCall(block rawjson.Object, param string, calls map[string]rawjson.Object) error {
	id, _ := rawjson.String(block.Get("id"))
	if _, twice := calls[id]; id == "" || twice {
		return bad(param+".id", "A call must have an id, and each its own.")
	}
	calls[id] = block
	if name, _ := rawjson.String(block.Get("name")); name == "" {
		return bad(param+".name", "A call must have the name of a tool.")
	}
	if input := block.Get("input"); input == nil || input[0] != '{' {
		return bad(param+".input", "The input of a call must be an object; {} where it has none.")
	}
	return nil
}

// change reads a tool_addition or a tool_removal (AM-12).
func (h *history) change(added bool, raw []byte, param string) error {
	o, _ := rawjson.Members(raw)
	kind, _ := rawjson.String(o.Get("type"))
	name, _ := rawjson.String(o.Get("name"))
	if name == "" {
		name, _ = rawjson.String(o.Get("tool_name"))
	}
	switch {
	case kind == "tool_reference" && name != "":
		h.changes = append(h.changes, toolChange{name: name, added: added})
	case kind == "mcp_tool_reference" || kind == "mcp_toolset_reference":
		// Of the provider's tools, which mcp_servers has to allow.
	case kind == "tool_definition" && added:
		entry, err := readTool(o.Get("definition"), param+".tool.definition")
		if err != nil {
			return err
		}
		h.changes = append(h.changes, toolChange{name: entry.name, added: true, definition: &entry})
	default:
		return bad(param+".tool", "Found %s, expected a tool_reference with a name.", parser.Quote(kind))
	}
	return nil
}
