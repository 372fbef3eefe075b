package messages

import (
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/clienttools"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// toolEntry is an entry of tools (AM-13).
type toolEntry struct {
	raw      []byte
	members  rawjson.Object
	kind     string // its type; empty: a custom tool
	name     string
	names    []string // of the tools that a call of it can name: its own, or the members of a toolset
	deferred bool     // it is offered once a message refers to it
	server   bool     // the provider runs it
	brought  bool     // the registry does not have it
	// shortened says that members that are not known were left out.
	shortened bool
	param     string
}

// toolMembers are the members of a tool that the application runs, of the API's own tools included
// (AM-13). Any other is left out: by one that is not known a provider could run the tool itself.
var toolMembers = []string{
	"type", "name", "description", "input_schema", "input_examples", "strict", "eager_input_streaming", "cache_control", "defer_loading",
	"allowed_callers",
	"max_characters", "display_width_px", "display_height_px", "display_number", "enable_zoom", "configs", "default_config",
}

// leaveOut leaves out the members that are not known.
func (t *toolEntry) leaveOut() {
	o := slices.DeleteFunc(slices.Clone(t.members), func(m rawjson.Member) bool { return !slices.Contains(toolMembers, m.Name) })
	if t.shortened = len(o) < len(t.members); t.shortened {
		t.members, t.raw = o, o.Bytes()
	}
}

// toolChange is a change of the offered tools by a message.
type toolChange struct {
	name       string
	added      bool
	definition *toolEntry // of a tool that stands in the message; nil: it is in tools
}

// toolUnknown is a content block of an unknown type.
type toolUnknown struct {
	kind, param string
	disguised   bool // it is a known one in another spelling
}

// readTools reads the entries of tools; nil where the request has none.
func readTools(raw []byte) ([]toolEntry, error) {
	if raw == nil {
		return nil, nil
	}
	list, ok := rawjson.Elements(raw)
	if !ok {
		return nil, bad("tools", "\"tools\" must be a list.")
	}
	tools := []toolEntry{}
	seen := map[string]bool{}
	for i, raw := range list {
		if i == maxTools {
			return nil, bad("tools", "\"tools\" must be at most %d.", maxTools)
		}
		entry, err := readTool(raw, "tools."+strconv.Itoa(i))
		if err != nil {
			return nil, err
		}
		for _, name := range entry.names {
			if seen[name] {
				return nil, bad("tools", "Two tools have the same name.")
			}
			seen[name] = true
		}
		tools = append(tools, entry)
	}
	return tools, nil
}

// readTool reads one tool: a custom one, one that the API defines and the application runs, or one of
// the provider.
func readTool(raw []byte, param string) (toolEntry, error) {
	o, ok := rawjson.Members(raw)
	if !ok {
		return toolEntry{}, bad(param, "A tool must be an object.")
	}
	t := toolEntry{raw: raw, members: o, param: param}
	t.kind, _ = rawjson.String(o.Get("type"))
	t.name, _ = rawjson.String(o.Get("name"))
	t.deferred = string(o.Get("defer_loading")) == "true"
	if o.Get("type") != nil && t.kind == "" {
		return t, bad(param+".type", "The type of a tool must be a word.")
	}
	switch t.kind {
	case "custom":
		t.kind = ""
	case "function":
		return t, bad(param+".type", "This tool has the form of OpenAI's APIs. In this one a tool has a name, a description and an input_schema.")
	}
	if t.kind == "" {
		if t.name == "" {
			return t, bad(param+".name", "A tool must have a name.")
		}
		t.names = []string{t.name}
		t.leaveOut()
		return t, nil
	}
	defined := clienttools.Anthropic(t.kind)
	for _, tool := range defined {
		t.names = append(t.names, strings.ReplaceAll(tool.Name, ".", "_")) // as names are on this wire
	}
	if t.server = len(defined) == 0; len(defined) == 1 && t.name != defined[0].Name {
		return t, bad(param+".name", "A tool of the type %s has the name %s.", parser.Quote(t.kind), defined[0].Name)
	}
	if !t.server {
		t.leaveOut()
	}
	return t, nil
}

// Name is of turns.Dialogue.
func (d *dialogue) Name(p *turns.Part) (registry, wire string) {
	wire = p.Call.Name
	if p.Call.Group != "" {
		wire = p.Call.Group + "_" + p.Call.Name
	}
	if (p.Call.Group != "") != d.inToolset(wire) {
		// A client that does not know toolsets goes by the name alone. No registry can have this name.
		return p.Call.Group + ":" + p.Call.Name, wire
	}
	return d.RegistryName(wire), wire
}

// inToolset reports whether a name is that of a member of a toolset that the request has. Calls of
// members, and they alone, have a toolset_name.
func (d *dialogue) inToolset(name string) bool {
	is := func(t *toolEntry) bool {
		return strings.HasSuffix(upstream.WithoutDate(t.kind), "_toolset") && slices.Contains(t.names, name)
	}
	return slices.ContainsFunc(d.tools, func(t toolEntry) bool { return is(&t) }) ||
		slices.ContainsFunc(d.changes, func(c toolChange) bool { return c.definition != nil && is(c.definition) })
}
