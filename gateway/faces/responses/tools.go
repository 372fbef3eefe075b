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
func (r *run) readTools(raw []byte, param string) ([]definition, error) {
	list, ok := rawjson.Elements(raw)
	if !ok {
		return nil, bad(param, "%q must be a list.", param)
	}
	var tools []definition
	for i, value := range list {
		d, err := r.readTool(value, param+"."+strconv.Itoa(i), "")
		if err != nil {
			return nil, err
		}
		tools = append(tools, d)
	}
	return tools, nil
}

// readTool reads one tool, which may be in a namespace.
func (r *run) readTool(raw []byte, param, namespace string) (definition, error) {
	if r.toolCount++; r.toolCount > maxTools {
		return definition{}, bad(param, "There may be at most %d tools.", maxTools)
	}
	o, ok := rawjson.Members(raw)
	kind, _ := rawjson.String(o.Get("type"))
	if !ok || kind == "" {
		return definition{}, bad(param, "A tool must be an object with a type.")
	}
	d := definition{kind: kind, raw: raw, param: param, object: o}
	name, _ := rawjson.String(o.Get("name"))
	switch {
	case kind == kindFunction, kind == kindCustom:
		if name == "" {
			return d, bad(param, "A tool of the type %q must have a name.", kind)
		}
		if d.wire = name; namespace != "" {
			d.wire, d.name = namespace+"_"+name, namespace+"."+name
		}
		if other, twice := r.namespaceOf[d.wire]; twice && other != namespace {
			return d, bad(param, "Two tools have the same name.")
		}
		if namespace != "" && r.kinds[d.wire] == "" {
			r.namespaceOf[d.wire] = namespace
		}
		return d, r.checkTool(&d)
	case namespace != "":
		return d, bad(param, "A namespace must hold functions and custom tools alone.")
	case kind == "namespace":
		return d, r.readNamespace(&d, name)
	case kind == "shell":
		environment, _ := rawjson.Members(o.Get("environment"))
		if place, _ := rawjson.String(environment.Get("type")); place != "" && place != "local" {
			return d, r.checkHosted(&d) // a container of the provider
		}
	}
	if d.wire = fixedNames[kind]; d.wire != "" {
		return d, r.checkTool(&d)
	}
	return d, r.checkHosted(&d)
}

func (r *run) readNamespace(d *definition, name string) error {
	list, ok := rawjson.Elements(d.object.Get("tools"))
	if !ok || name == "" {
		return bad(d.param, "A namespace must have a name and a list of tools.")
	}
	for i, value := range list {
		tool, err := r.readTool(value, d.param+".tools."+strconv.Itoa(i), name)
		if err != nil {
			return err
		}
		d.nested = append(d.nested, tool)
	}
	r.namespaces[name] = true
	return nil
}

// checkTool checks a tool that the client runs, and notes its name and its kind.
func (r *run) checkTool(d *definition) error {
	if string(d.object.Get("async")) == "true" && !r.Route.Rules.Responses.Async {
		return bad(d.param+".async",
			"Calls whose results come later are not taken here. The operator can allow them by responses.async of the upstream.")
	}
	if callers, ok := rawjson.Elements(d.object.Get("allowed_callers")); ok && !r.Route.Rules.Responses.ProgrammaticCalls {
		for _, value := range callers {
			if caller, _ := rawjson.String(value); caller != "direct" {
				return bad(d.param+".allowed_callers",
					"Calls by programs are not taken here. The operator can allow them by responses.programmatic_calls of the upstream.")
			}
		}
	}
	if kind, twice := r.kinds[d.wire]; twice {
		if kind == d.kind && r.inInput {
			return nil // a search may find a tool again
		}
		return bad(d.param, "Two tools have the same name.")
	}
	r.kinds[d.wire] = d.kind
	r.wires = append(r.wires, d.wire)
	r.defined = append(r.defined, d.forRegistry())
	return nil
}

// checkHosted checks a tool that the provider runs, which a switch must allow (RS-36).
func (r *run) checkHosted(d *definition) error {
	rules := &r.Route.Rules.Responses
	switch d.kind {
	case "mcp":
		if r.isOwn(d) {
			return r.readOwn(d)
		}
		label, _ := rawjson.String(d.object.Get("server_label"))
		if !slices.Contains(rules.MCPServers, label) {
			return bad(d.param,
				"The server %s of the provider's MCP is not taken here. The operator can allow it by responses.mcp_servers of "+
					"the upstream.", parser.Quote(label))
		}
		if r.servers[label] && !r.inInput {
			return bad(d.param, "Two servers have the label %s, by which calls are approved. Give each its own.", parser.Quote(label))
		}
		r.servers[label] = true
		return nil
	case "programmatic_tool_calling":
		if rules.ProgrammaticCalls {
			return nil
		}
		return bad(d.param,
			"Calls by programs are not taken here. The operator can allow them by responses.programmatic_calls of the upstream.")
	}
	if !r.allowsHosted(d.kind) {
		return bad(d.param,
			"A tool of the type %s is run by the provider, and not taken here. The operator can allow it by "+
				"responses.hosted_tools of the upstream.", parser.Quote(d.kind))
	}
	return nil
}

// allowsHosted reports whether a type of tool that the provider runs is allowed, with its date or
// without.
func (r *run) allowsHosted(kind string) bool {
	listed := r.Route.Rules.Responses.HostedTools
	if slices.Contains(listed, kind) {
		return true
	}
	const date = "_2025_03_11"
	at := len(kind) - len(date)
	return at > 0 && strings.Trim(kind[at:], "_0123456789") == "" && slices.Contains(listed, kind[:at])
}

// offered reports whether the model may be offered a tool that the client runs.
func (r *run) offered(d *definition) bool {
	name, _ := r.Admission.ToolName(d.wire)
	wire, ok := r.Offer.Wire(name)
	return ok && wire == d.wire
}

// appendTools writes tools for the model: descriptions and schemas from the registry, and none
// of a tool that the agent may not use.
func (r *run) appendTools(b []byte, tools []definition) []byte {
	b = append(b, '[')
	first := true
	for i := range tools {
		raw := r.definitionOf(&tools[i])
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
func (r *run) definitionOf(d *definition) []byte {
	switch {
	case d.kind == "namespace":
		nested := r.appendTools(nil, d.nested)
		if len(nested) == len("[]") {
			return nil
		}
		return d.known().Set("tools", nested).Bytes()
	case d.kind == "mcp":
		// The gateway answers each request for approval by its policy (RS-37).
		return d.known().Set("require_approval", rawjson.Quote("always")).Bytes()
	case d.wire == "":
		return d.raw
	case !r.offered(d):
		return nil
	case d.kind == "shell":
		// Without a place, the provider's default would decide where commands run.
		environment, _ := rawjson.Members(d.object.Get("environment"))
		return d.known().Set("environment", keep(environment.Set("type", rawjson.Quote("local")), "type", "skills").Bytes()).Bytes()
	case d.kind != kindFunction:
		if o := d.known(); len(o) < len(d.object) {
			return o.Bytes()
		}
		return d.raw
	}
	name, _ := r.Admission.ToolName(d.wire)
	at := slices.IndexFunc(r.Offer.Tools, func(t gateway.Tool) bool { return t.Name == name })
	o := rawjson.Object{rawjson.Field("type", rawjson.Quote(kindFunction)), rawjson.Field("name", d.object.Get("name"))}
	if text := r.Offer.Tools[at].Description; text != "" {
		o = append(o, rawjson.Field("description", rawjson.Quote(text)))
	}
	o = append(o, rawjson.Field("parameters", r.Offer.Tools[at].InputSchema))
	// strict as it was sent: absent and false differ (RS-15).
	for _, name := range []string{"strict", "async", "defer_loading", "allowed_callers", "output_schema"} {
		for _, m := range d.object {
			if m.Name == name {
				o = append(o, m)
			}
		}
	}
	return o.Bytes()
}

// knownMembers are the members of a tool that go to the provider, by its type: by another, a provider
// could run the tool itself, or call without an approval.
var knownMembers = map[string][]string{
	"namespace": {"type", "name", "description", "tools"},
	"mcp": {
		"type", "server_label", "server_url", "connector_id", "authorization", "headers", "allowed_tools", "require_approval", "server_description",
		"allowed_callers", "defer_loading",
	},
	kindCustom:    {"type", "name", "description", "format", "async", "allowed_callers", "defer_loading"},
	"shell":       {"type", "environment", "allowed_callers"},
	"local_shell": {"type"}, "apply_patch": {"type", "allowed_callers"}, "computer": {"type"},
	"computer_use_preview": {"type", "display_width", "display_height", "environment"},
}

// known is a tool with the members that its type has.
func (d *definition) known() rawjson.Object { return keep(d.object, knownMembers[d.kind]...) }

// keep is an object with those of its members that have one of some names.
func keep(o rawjson.Object, names ...string) rawjson.Object {
	return slices.DeleteFunc(slices.Clone(o), func(m rawjson.Member) bool { return !slices.Contains(names, m.Name) })
}

// registryTools are all offered tools as functions, for a request that names none.
func (r *run) registryTools() []byte {
	b := []byte{'['}
	for i, t := range r.Offer.Tools {
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

// unknownTool is the failure for a tool that is not of the registry.
func (r *run) unknownTool(i int) error {
	return r.UnknownTool(r.defined[i].Param, r.wires[i], "responses")
}

// wireOf is the name of a tool on the wire by its namespace and its name: one that was loaded by
// a search has its own name as its namespace.
func (r *run) wireOf(namespace, name string) string {
	if namespace == "" || namespace == name && !r.namespaces[namespace] {
		return name
	}
	return namespace + "_" + name
}
