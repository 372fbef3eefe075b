package responses

import (
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
)

// maxTools is how many tools a request may name, those of its input included.
const maxTools = 1 << 10

// readTools reads a list of tools at a place of the request.
func (d *dialogue) readTools(raw []byte, param string) ([]definition, error) {
	list, ok := rawjson.Elements(raw)
	if !ok {
		return nil, bad(param, "%q must be a list.", param)
	}
	if d.kinds == nil {
		d.kinds, d.namespaces, d.namespaceOf, d.servers = map[string]string{}, map[string]bool{}, map[string]string{}, map[string]bool{}
	}
	var tools []definition
	for i, value := range list {
		def, err := d.readTool(value, param+"."+strconv.Itoa(i), "")
		if err != nil {
			return nil, err
		}
		tools = append(tools, def)
	}
	return tools, nil
}

// readTool reads one tool, which may be in a namespace.
func (d *dialogue) readTool(raw []byte, param, namespace string) (definition, error) {
	if d.toolCount++; d.toolCount > maxTools {
		return definition{}, bad(param, "There may be at most %def tools.", maxTools)
	}
	o, ok := rawjson.Members(raw)
	kind, _ := rawjson.String(o.Get("type"))
	if !ok || kind == "" {
		return definition{}, bad(param, "A tool must be an object with a type.")
	}
	def := definition{kind: kind, raw: raw, param: param, object: o}
	name, _ := rawjson.String(o.Get("name"))
	switch {
	case kind == kindFunction, kind == kindCustom:
		if name == "" {
			return def, bad(param, "A tool of the type %q must have a name.", kind)
		}
		if def.wire = name; namespace != "" {
			def.wire, def.name = namespace+"_"+name, namespace+"."+name
		}
		if other, twice := d.namespaceOf[def.wire]; twice && other != namespace {
			return def, bad(param, "Two tools have the same name.")
		}
		if namespace != "" && d.kinds[def.wire] == "" {
			d.namespaceOf[def.wire] = namespace
		}
		return def, d.checkTool(&def)
	case namespace != "":
		return def, bad(param, "A namespace may hold only functions and custom tools.")
	case kind == "namespace":
		return def, d.readNamespace(&def, name)
	case kind == "shell":
		environment, _ := rawjson.Members(o.Get("environment"))
		if place, _ := rawjson.String(environment.Get("type")); place != "" && place != "local" {
			return def, d.checkHosted(&def) // a container of the provider
		}
	}
	if def.wire = fixedName(kind); def.wire != "" {
		return def, d.checkTool(&def)
	}
	return def, d.checkHosted(&def)
}

func (d *dialogue) readNamespace(def *definition, name string) error {
	list, ok := rawjson.Elements(def.object.Get("tools"))
	if !ok || name == "" {
		return bad(def.param, "A namespace must have a name and a list of tools.")
	}
	for i, value := range list {
		tool, err := d.readTool(value, def.param+".tools."+strconv.Itoa(i), name)
		if err != nil {
			return err
		}
		def.nested = append(def.nested, tool)
	}
	d.namespaces[name] = true
	return nil
}

// checkTool checks a tool that the client runs, and notes its name and its kind.
func (d *dialogue) checkTool(def *definition) error {
	if string(def.object.Get("async")) == "true" && !d.Route.Rules.Responses.Async {
		return bad(def.param+".async",
			"Calls whose results come later are not taken here. The operator can allow them by responses.async of the upstream.")
	}
	if callers, ok := rawjson.Elements(def.object.Get("allowed_callers")); ok && !d.Route.Rules.Responses.ProgrammaticCalls {
		for _, value := range callers {
			if caller, _ := rawjson.String(value); caller != "direct" {
				return bad(def.param+".allowed_callers",
					"Calls by programs are not taken here. The operator can allow them by responses.programmatic_calls of the upstream.")
			}
		}
	}
	if kind, twice := d.kinds[def.wire]; twice {
		if kind == def.kind && d.inInput {
			return nil // a search may find a tool again
		}
		return bad(def.param, "Two tools have the same name.")
	}
	d.kinds[def.wire] = def.kind
	d.wires = append(d.wires, def.wire)
	d.defined = append(d.defined, def.forRegistry())
	return nil
}

// checkHosted checks a tool that the provider runs, which a switch must allow (RS-36).
func (d *dialogue) checkHosted(def *definition) error {
	rules := &d.Route.Rules.Responses
	switch def.kind {
	case "mcp":
		if d.isOwn(def) {
			return d.readOwn(def)
		}
		label, _ := rawjson.String(def.object.Get("server_label"))
		if !slices.Contains(rules.MCPServers, label) {
			return bad(def.param,
				"The server %s of the provider's MCP is not taken here. The operator can allow it by responses.mcp_servers of "+
					"the upstream.", parser.Quote(label))
		}
		if d.servers[label] && !d.inInput {
			return bad(def.param, "Two servers have the label %s, by which calls are approved. Give each its own.", parser.Quote(label))
		}
		d.servers[label] = true
		return nil
	case "programmatic_tool_calling":
		if rules.ProgrammaticCalls {
			return nil
		}
		return bad(def.param,
			"Calls by programs are not taken here. The operator can allow them by responses.programmatic_calls of the upstream.")
	}
	if !d.allowsHosted(def.kind) {
		return bad(def.param,
			"A tool of the type %s is run by the provider, and not taken here. The operator can allow it by "+
				"responses.hosted_tools of the upstream.", parser.Quote(def.kind))
	}
	return nil
}

// allowsHosted reports whether a type of tool that the provider runs is allowed, with its date or
// without.
func (d *dialogue) allowsHosted(kind string) bool {
	listed := d.Route.Rules.Responses.HostedTools
	if slices.Contains(listed, kind) {
		return true
	}
	const date = "_2025_03_11"
	at := len(kind) - len(date)
	return at > 0 && strings.Trim(kind[at:], "_0123456789") == "" && slices.Contains(listed, kind[:at])
}

// offered reports whether the model may be offered a tool that the client runs.
func (d *dialogue) offered(def *definition) bool {
	name, _ := d.Admission.ToolName(def.wire)
	wire, ok := d.Offer.Wire(name)
	return ok && wire == def.wire
}

// appendTools writes tools for the model: descriptions and schemas from the registry, and none
// of a tool that the agent may not use.
func (d *dialogue) appendTools(b []byte, tools []definition) []byte {
	b = append(b, '[')
	first := true
	for i := range tools {
		raw := d.definitionOf(&tools[i])
		if raw == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		b, first = append(b, raw...), false
	}
	return append(b, ']')
}

// definitionOf is a tool as the model gets it; nil: it does not.
func (d *dialogue) definitionOf(def *definition) []byte {
	switch {
	case def.kind == "namespace":
		nested := d.appendTools(nil, def.nested)
		if len(nested) == len("[]") {
			return nil
		}
		return def.known().Set("tools", nested).Bytes()
	case def.kind == "mcp":
		// The gateway answers each request for approval by its policy (RS-37).
		return def.known().Set("require_approval", rawjson.Quote("always")).Bytes()
	case def.wire == "":
		return def.raw
	case !d.offered(def):
		return nil
	case def.kind == "shell":
		// Without a place, the provider's default would decide where commands run.
		environment, _ := rawjson.Members(def.object.Get("environment"))
		return def.known().Set("environment", keep(environment.Set("type", rawjson.Quote("local")), "type", "skills").Bytes()).Bytes()
	case def.kind != kindFunction:
		if o := def.known(); len(o) < len(def.object) {
			return o.Bytes()
		}
		return def.raw
	}
	name, _ := d.Admission.ToolName(def.wire)
	at := slices.IndexFunc(d.Offer.Tools, func(t gateway.Tool) bool { return t.Name == name })
	o := rawjson.Object{rawjson.Field("type", rawjson.Quote(kindFunction)), rawjson.Field("name", def.object.Get("name"))}
	if text := d.Offer.Tools[at].Description; text != "" {
		o = append(o, rawjson.Field("description", rawjson.Quote(text)))
	}
	o = append(o, rawjson.Field("parameters", d.Offer.Tools[at].InputSchema))
	// strict as it was sent: absent and false differ (RS-15).
	for _, name := range []string{"strict", "async", "defer_loading", "allowed_callers", "output_schema"} {
		for _, m := range def.object {
			if m.Name == name {
				o = append(o, m)
			}
		}
	}
	return o.Bytes()
}

// knownMembers are the members of a tool that go to the provider beside its type, by that: by another, a provider
// could run the tool itself, or call without an approval.
var knownMembers = map[string][]string{
	"namespace": {"name", "description", "tools"},
	"mcp": {
		"server_label", "server_url", "connector_id", "authorization", "headers", "allowed_tools", "require_approval", "server_description",
		"allowed_callers", "defer_loading",
	},
	kindCustom:             {"name", "description", "format", "async", "allowed_callers", "defer_loading"},
	"shell":                {"environment", "allowed_callers"},
	"apply_patch":          {"allowed_callers"},
	"computer_use_preview": {"display_width", "display_height", "environment"},
}

// known is a tool with the members that its type has.
func (def *definition) known() rawjson.Object {
	return keep(def.object, append([]string{"type"}, knownMembers[def.kind]...)...)
}

// keep is an object with those of its members that have one of some names.
func keep(o rawjson.Object, names ...string) rawjson.Object {
	return slices.DeleteFunc(slices.Clone(o), func(m rawjson.Member) bool { return !slices.Contains(names, m.Name) })
}

// registryTools are all offered tools as functions, for a request that names none.
func (d *dialogue) registryTools() []byte {
	b := []byte{'['}
	for i, t := range d.Offer.Tools {
		if i > 0 {
			b = append(b, ',')
		}
		o := rawjson.Object{rawjson.Field("type", rawjson.Quote(kindFunction)), rawjson.Field("name", rawjson.Quote(t.Wire))}
		if t.Description != "" {
			o = append(o, rawjson.Field("description", rawjson.Quote(t.Description)))
		}
		o = append(o, rawjson.Field("parameters", t.InputSchema), rawjson.Field("strict", []byte("false")))
		b = append(b, o.Bytes()...)
	}
	return append(b, ']')
}

// wireOf is the name of a tool on the wire by its namespace and its name: one that was loaded by
// a search has its own name as its namespace.
func (d *dialogue) wireOf(namespace, name string) string {
	if namespace == "" || namespace == name && !d.namespaces[namespace] {
		return name
	}
	return namespace + "_" + name
}
