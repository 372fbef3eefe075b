package messages

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/clienttools"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// entries are the entries of tools, and then the tools that stand whole in messages.
func (d *dialogue) entries() []*toolEntry {
	var all []*toolEntry
	for i := range d.tools {
		all = append(all, &d.tools[i])
	}
	for i := range d.changes {
		if t := d.changes[i].definition; t != nil {
			all = append(all, t)
		}
	}
	return all
}

// checkTools checks the tools of the request by the rules of its route.
func (d *dialogue) checkTools() error {
	switch u := d.unknownBlock; {
	case u.kind == "":
	case u.disguised:
		return bad(u.param, "The content block has the type %s, which is a known one in another spelling. Write the known one.",
			parser.Quote(u.kind))
	case !d.allowsUnknown():
		return bad(u.param, "The content block has the type %s, which is not known in this place. The operator can let unknown blocks pass, with messages: {unknown_blocks: pass} at the upstream %s.",
			parser.Quote(u.kind), d.Route.Upstream)
	}
	if err := d.checkServerTools(); err != nil {
		return err
	}
	for i := range d.changes {
		t := d.changes[i].definition
		if t != nil && t.shortened {
			return bad(t.param, "The tool has members that are not known, and a message goes to the model as it is. Leave them out.")
		}
		if t != nil && !d.Route.Rules.Messages.ToolDefinitions {
			return bad(t.param, "Whole tools inside messages are not allowed here. Name a tool of \"tools\" instead; or the operator allows them, with messages: {tool_definitions: true} at the upstream %s.", d.Route.Upstream)
		}
	}
	return nil
}

// Tools is of turns.Dialogue.
func (d *dialogue) Tools() turns.Tools {
	var params []string
	all := turns.Tools{Choice: d.choice, Param: func(i int) string { return params[i] + ".name" }}
	if d.tools != nil {
		all.Names = []string{}
	}
	for _, t := range d.entries() {
		for _, name := range d.registered(t) {
			all.Names, params = append(all.Names, name), append(params, t.param)
		}
	}
	return all
}

// Definitions is of turns.Dialogue.
func (d *dialogue) Definitions() []turns.RequestTool {
	var all []turns.RequestTool
	for _, t := range d.entries() {
		switch {
		case t.server:
		case t.kind == "":
			_, known := d.Admission.ToolName(t.name)
			t.brought = !known
			description, _ := rawjson.String(t.members.Get("description"))
			all = append(all, turns.RequestTool{Wire: t.name, LongName: true, Description: description,
				Schema: t.members.Get("input_schema"), Param: t.param + ".input_schema"})
		default:
			for i, defined := range clienttools.Anthropic(t.kind) {
				if _, known := d.Admission.ToolName(t.names[i]); !known { // the request states no schema of its own
					all = append(all, turns.RequestTool{Wire: t.names[i], Name: defined.Name, Description: defined.Description,
						Schema: defined.Schema, Param: t.param})
				}
			}
		}
	}
	return all
}

// registered are the names that an entry offers. Of a toolset those are enough that the registry has:
// a call of any other is one of an unknown tool.
func (d *dialogue) registered(t *toolEntry) []string {
	if len(t.names) < 2 {
		return t.names
	}
	names := slices.DeleteFunc(slices.Clone(t.names), func(name string) bool {
		_, ok := d.Admission.ToolName(name)
		return !ok
	})
	if len(names) == 0 {
		return t.names[:1]
	}
	return names
}

// checkServerTools refuses tools of the provider that the upstream's entry does not allow, and tools
// that a program at the provider may call.
func (d *dialogue) checkServerTools() error {
	rules := &d.Route.Rules.Messages
	for _, t := range d.entries() {
		switch {
		case t.kind == "mcp_toolset":
			name, _ := rawjson.String(t.members.Get("mcp_server_name"))
			if !slices.Contains(rules.MCPServers, name) || name == "" {
				return d.refuseTool(t, "mcp_servers: [NAME]")
			}
		case t.server && !rules.AllowsServerTool(t.kind):
			return d.refuseTool(t, "server_tools: ["+parser.Quote(upstream.WithoutDate(t.kind))+"]")
		case !t.server && !rules.ProgrammaticCalls && !directOnly(t.members.Get("allowed_callers")):
			return bad(t.param+".allowed_callers", "Calls by programs at the provider are not allowed here. Leave the member out; or the operator allows them, with messages: {programmatic_calls: true} at the upstream %s.", d.Route.Upstream)
		}
	}
	return nil
}

func (d *dialogue) refuseTool(t *toolEntry, key string) error {
	return bad(t.param, "The provider runs a tool of the type %s itself, and nobody would judge its calls. Leave it out; or the operator allows it, with messages: {%s} at the upstream %s.",
		parser.Quote(t.kind), key, d.Route.Upstream)
}

// directOnly reports whether allowed_callers lets nobody but the model call.
func directOnly(raw []byte) bool {
	list, ok := rawjson.Elements(raw)
	if !ok {
		return raw == nil
	}
	for _, raw := range list {
		if caller, _ := rawjson.String(raw); caller != "direct" {
			return false
		}
	}
	return true
}

// narrowOffer applies what the tools and messages say of the time of the next turn (AM-12, AM-16):
// deferred tools are offered once a message refers to them, or where the provider may search for
// them; removed ones are not.
func (d *dialogue) narrowOffer() {
	if d.tools == nil && len(d.changes) == 0 {
		return
	}
	offered := map[string]bool{}
	known := map[string][]string{} // by the name of the entry
	searched := slices.ContainsFunc(d.tools, func(t toolEntry) bool {
		return upstream.WithoutDate(t.kind) == "tool_search_tool_bm25" || upstream.WithoutDate(t.kind) == "tool_search_tool_regex"
	})
	set := func(names []string, is bool) {
		for _, name := range names {
			offered[d.RegistryName(name)] = is
		}
	}
	for i := range d.tools {
		t := &d.tools[i]
		known[t.name] = t.names
		set(t.names, !t.deferred || searched)
	}
	if d.tools == nil { // the model gets all that the agent may use, and a message may take some away
		for i := range d.Offer.Tools {
			names := []string{d.Offer.Tools[i].Wire}
			known[names[0]] = names
			set(names, true)
		}
	}
	for i := range d.changes {
		c := &d.changes[i]
		if c.definition != nil {
			known[c.name] = c.definition.names
		}
		set(known[c.name], c.added)
	}
	left := []string{}
	for name, is := range offered {
		if is {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	d.NarrowOffer(left)
}

// writeTools writes tools for the model: entries byte for byte where they say what the registry
// says, with the registry's words where they differ, and none of a tool that the agent may not
// use. It depends on the entries and the registry alone, so that it is the same for every turn of
// a conversation (AM-18).
func (d *dialogue) writeTools() error {
	if d.tools == nil {
		return d.writeAllTools()
	}
	list, same := []byte{'['}, true
	for i := range d.tools {
		t := &d.tools[i]
		raw, ok := t.raw, true
		if !t.server {
			raw, ok = d.entry(t)
		}
		same = same && ok && !t.shortened && bytes.Equal(raw, t.raw)
		if !ok {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, raw...)
	}
	switch d.offered = append(list, ']'); {
	case len(d.offered) == len("[]"): // a provider may refuse a choice among no tools
		d.offered = nil
	case same:
		d.offered = d.members.Get("tools")
	}
	return d.checkDefinitions()
}

// entry is an entry of tools for the model; ok is false where the agent may use none of its tools.
func (d *dialogue) entry(t *toolEntry) (raw []byte, ok bool) {
	i := slices.IndexFunc(d.Offer.Tools, func(tool gateway.Tool) bool { return slices.Contains(t.names, tool.Wire) })
	if i < 0 {
		return nil, false
	}
	tool := &d.Offer.Tools[i]
	if t.kind != "" || t.brought || d.agrees(t, tool) {
		return t.raw, true // the API defines it, or the request, or it says what the registry says
	}
	o := t.members.Set("input_schema", tool.InputSchema).Without("input_examples")
	if tool.Description == "" {
		return o.Without("description").Bytes(), true
	}
	return o.Set("description", rawjson.Quote(tool.Description)).Bytes(), true
}

// agrees reports whether an entry says of a tool what the registry says, or is itself the registry's.
func (d *dialogue) agrees(t *toolEntry, tool *gateway.Tool) bool {
	description, _ := rawjson.String(t.members.Get("description"))
	schema := t.members.Get("input_schema")
	return description == tool.Description && schema != nil && d.Admission.Agrees(tool.Name, schema)
}

// checkDefinitions refuses whole tools in messages that differ from the registry's: messages are not
// rewritten.
func (d *dialogue) checkDefinitions() error {
	for i := range d.changes {
		t := d.changes[i].definition
		if t == nil || t.kind != "" {
			continue
		}
		at := slices.IndexFunc(d.Offer.Tools, func(tool gateway.Tool) bool { return tool.Wire == t.name })
		if at < 0 || !d.agrees(t, &d.Offer.Tools[at]) {
			return bad(t.param, "The tool differs from the registry's, or may not be used here. In a message it cannot be replaced.")
		}
	}
	return nil
}

// writeAllTools writes the tools of a request that has none: all that the agent may use, where
// Callgate runs them.
func (d *dialogue) writeAllTools() error {
	type definition struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if len(d.Offer.Tools) == 0 {
		return nil
	}
	list := make([]definition, len(d.Offer.Tools))
	for i, t := range d.Offer.Tools {
		list[i] = definition{t.Wire, t.Description, t.InputSchema}
	}
	var err error
	d.offered, err = wrapper.Marshal(list)
	return err
}
