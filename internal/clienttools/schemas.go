package clienttools

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Custom is the schema of the arguments of a custom tool.
var Custom = object("input", text)

// Schemas of members. A member that may be left out may be null as well: models write both.
const (
	text      = `{"type":"string"}`
	maybeText = `{"type":["string","null"]}`
	flag      = `{"type":["boolean","null"]}`
	integer   = `{"type":"integer"}`
	number    = `{"type":"number"}`
	maybeNum  = `{"type":["number","null"]}`
	maybeInt  = `{"type":["integer","null"]}`
	point     = `{"type":"array","items":{"type":"number"},"minItems":2,"maxItems":2}`
	maybeAt   = `{"type":["array","null"],"items":{"type":"number"},"minItems":2,"maxItems":2}`
	region    = `{"type":"array","items":{"type":"number"},"minItems":4,"maxItems":4}`
	lines     = `{"type":["array","null"],"items":{"type":"integer"},"minItems":2,"maxItems":2}`
	words     = `{"type":"array","items":{"type":"string"}}`
	maybeKeys = `{"type":["array","null"],"items":{"type":"string"}}`
	// viewport is a place in a page: a coordinate, or an element by its reference.
	viewport = `{"type":"object","properties":{"type":{"enum":["coordinate","ref"]},"x":{"type":"number"},"y":{"type":"number"},` +
		`"ref":{"type":"string"}},"required":["type"],"additionalProperties":false}`
	directions = `{"enum":["up","down","left","right"]}`
)

// Tools of Anthropic Messages.
var (
	bash       = object("command?", maybeText, "restart?", flag)
	textEditor = object(
		"command", oneOf("view", "create", "str_replace", "insert", "undo_edit"), "path", text, "view_range?", lines,
		"file_text?", maybeText, "old_str?", maybeText, "new_str?", maybeText, "insert_line?", maybeInt, "insert_text?", maybeText,
	)
	memory = object(
		"command", oneOf("view", "create", "str_replace", "insert", "delete", "rename"), "path?", maybeText, "view_range?", lines,
		"file_text?", maybeText, "old_str?", maybeText, "new_str?", maybeText, "insert_line?", maybeInt, "insert_text?", maybeText,
		"old_path?", maybeText, "new_path?", maybeText,
	)
	computer = object(
		"action", oneOf("key", "type", "mouse_move", "left_click", "left_click_drag", "right_click", "middle_click", "double_click",
			"triple_click", "screenshot", "cursor_position", "left_mouse_down", "left_mouse_up", "scroll", "hold_key", "wait", "zoom"),
		"coordinate?", maybeAt, "start_coordinate?", maybeAt, "text?", maybeText, "duration?", `{"type":["number","null"]}`,
		"scroll_direction?", `{"enum":["up","down","left","right",null]}`, "scroll_amount?", maybeInt, "key?", maybeText, "region?",
		`{"type":["array","null"],"items":{"type":"number"},"minItems":4,"maxItems":4}`,
	)
	click           = object("coordinate?", maybeAt, "text?", maybeText)
	none            = object()
	computerMembers = map[string]json.RawMessage{
		"key": object("text", text, "repeat?", maybeInt), "hold_key": object("duration", number, "text", text),
		"type":            object("text", text),
		"cursor_position": none, "mouse_move": object("coordinate", point), "left_mouse_down": none, "left_mouse_up": none,
		"left_click": click, "right_click": click, "middle_click": click, "double_click": click, "triple_click": click,
		"left_click_drag": object("coordinate", point, "start_coordinate", point, "text?", maybeText),
		"scroll":          object("scroll_amount", number, "scroll_direction", directions, "coordinate?", maybeAt, "text?", maybeText),
		"wait":            object("duration", number), "screenshot": none, "zoom": object("region", region),
	}
	tab            = object("tab_id?", maybeText)
	tabs           = object("tab_id", text)
	typed          = object("text", text, "tab_id?", maybeText)
	pressed        = object("target", viewport, "tab_id?", maybeText)
	clicked        = object("target", viewport, "modifiers?", maybeText, "tab_id?", maybeText)
	browserMembers = map[string]json.RawMessage{
		"navigate": object("url", text, "tab_id?", maybeText), "list_tabs": none, "new_tab": none, "switch_tab": tabs, "close_tab": tabs,
		"read_page": object("depth?", maybeInt, "filter?", maybeText, "ref?", maybeText, "tab_id?", maybeText), "get_page_text": tab,
		"read_console": tab, "read_network": tab, "find": object("query", text, "tab_id?", maybeText),
		"form_input":  object("target", viewport, "value", `{"type":["string","number","boolean"]}`, "tab_id?", maybeText),
		"file_upload": object("target", viewport, "document_ids?", maybeKeys, "paths?", maybeKeys, "tab_id?", maybeText),
		"scroll_to":   pressed, "screenshot": tab, "zoom": object("region", region, "tab_id?", maybeText),
		"left_click": clicked, "right_click": clicked, "middle_click": clicked, "double_click": clicked, "triple_click": clicked,
		"hover": pressed, "left_click_drag": object("from", viewport, "target", viewport, "tab_id?", maybeText),
		"left_mouse_down": pressed, "left_mouse_up": pressed, "mouse_move": pressed,
		"scroll": object("scroll_direction", directions, "target", viewport, "scroll_amount?", maybeNum, "tab_id?", maybeText),
		"type":   typed, "key": object("text", text, "repeat?", maybeInt, "tab_id?", maybeText),
		"hold_key":        object("duration", number, "text", text, "tab_id?", maybeText),
		"wait":            object("duration", number, "tab_id?", maybeText),
		"javascript_exec": typed,
	}
)

// Tools of OpenAI Responses.
var (
	shell      = object("commands", words, "max_output_length?", maybeInt, "timeout_ms?", maybeInt)
	localShell = object(
		"type", oneOf("exec"), "command", words, "env?", `{"type":["object","null"],"additionalProperties":{"type":"string"}}`,
		"timeout_ms?", maybeInt, "user?", maybeText, "working_directory?", maybeText,
	)
	applyPatch      = object("type", oneOf("create_file", "update_file", "delete_file"), "path", text, "diff?", maybeText)
	computerActions = object(append([]string{
		"type?", oneOf(actions...),
		"actions?", `{"type":["array","null"],"items":` + string(object(append([]string{"type", oneOf(actions...)}, action...)...)) + `}`,
	}, action...)...)
)

// actions are the types of actions on a screen, and action the members of all of them.
var (
	actions = []string{"click", "double_click", "drag", "keypress", "move", "screenshot", "scroll", "type", "wait"}
	action  = []string{
		"button?", `{"enum":["left","right","wheel","back","forward",null]}`, "x?", maybeNum, "y?", maybeNum, "keys?", maybeKeys,
		"path?", `{"type":["array","null"],"items":` + string(object("x", number, "y", number)) + `}`,
		"scroll_x?", maybeNum, "scroll_y?", maybeNum, "text?", maybeText,
	}
)

// object is the schema of an object. members are names, each followed by its schema; a name that ends
// in ? is that of an optional member, which may be null too.
func object(members ...string) json.RawMessage {
	var properties, required []string
	for i := 0; i < len(members); i += 2 {
		name, optional := strings.CutSuffix(members[i], "?")
		if !optional {
			required = append(required, fmt.Sprintf("%q", name))
		}
		properties = append(properties, fmt.Sprintf("%q:%s", name, members[i+1]))
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` +
		strings.Join(required, ",") +
		`],"additionalProperties":false}`)
}

// oneOf is the schema of one of a few words.
func oneOf(words ...string) string { return `{"enum":["` + strings.Join(words, `","`) + `"]}` }
