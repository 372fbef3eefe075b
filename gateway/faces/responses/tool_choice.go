package responses

import (
	"slices"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// paramChoice is the member that says what the model must call.
const paramChoice = "tool_choice"

// readChoice reads what the model must call, and whether it may make several calls in a turn.
func (d *dialogue) readChoice() (err error) {
	d.choice, err = d.readChoiceOf()
	d.choice.Single = d.single
	return err
}

// readChoiceOf reads tool_choice: a word, one tool, or allowed tools. On this wire an object
// names a tool without a wrapper (RS-14).
func (d *dialogue) readChoiceOf() (turns.ToolChoice, error) {
	raw := d.members.Get(paramChoice)
	invalid := bad(paramChoice, "\"tool_choice\" must be none, auto, required, or an object that names tools of the request.")
	if raw == nil {
		return turns.ToolChoice{}, nil
	}
	if word, ok := rawjson.String(raw); ok {
		switch word {
		case "auto":
			return turns.ToolChoice{}, nil
		case "none":
			return turns.ToolChoice{None: true}, nil
		case "required":
			// Where the provider has tools of its own, a call of one of them meets it.
			return turns.ToolChoice{Required: !d.hasHosted}, nil
		}
		return turns.ToolChoice{}, invalid
	}
	o, ok := rawjson.Members(raw)
	if !ok {
		return turns.ToolChoice{}, invalid
	}
	if kind, _ := rawjson.String(o.Get("type")); kind != "allowed_tools" {
		wire, hosted, ok := d.chosen(o)
		switch {
		case !ok:
			return turns.ToolChoice{}, invalid
		case hosted:
			return turns.ToolChoice{}, nil
		}
		return turns.ToolChoice{Required: true, Names: []string{wire}, Forced: true}, nil
	}
	return d.readAllowed(o, invalid)
}

// readAllowed reads {"type":"allowed_tools","mode":…,"tools":[…]}.
func (d *dialogue) readAllowed(o rawjson.Object, invalid *turns.Failure) (turns.ToolChoice, error) {
	mode, _ := rawjson.String(o.Get("mode"))
	list, ok := rawjson.Elements(o.Get("tools"))
	if !ok || mode != "auto" && mode != "required" {
		return turns.ToolChoice{}, invalid
	}
	c := turns.ToolChoice{Names: []string{}}
	anyHosted := false
	for i, value := range list {
		tool, isObject := rawjson.Members(value)
		wire, hosted, named := d.chosen(tool)
		if i == maxTools || !isObject || !named {
			return turns.ToolChoice{}, invalid
		}
		anyHosted = anyHosted || hosted
		if !hosted && !slices.Contains(c.Names, wire) {
			c.Names = append(c.Names, wire)
		}
	}
	if len(c.Names) == 0 && !anyHosted {
		return turns.ToolChoice{}, invalid
	}
	if len(c.Names) == 0 {
		return turns.ToolChoice{None: true}, nil // no tool of the client may be called
	}
	c.Required = mode == "required" && !anyHosted
	return c, nil
}

// chosen finds the tool of the request that an object names by its type and name.
func (d *dialogue) chosen(o rawjson.Object) (wire string, hosted, ok bool) {
	kind, _ := rawjson.String(o.Get("type"))
	name, _ := rawjson.String(o.Get("name"))
	if kind == "mcp" || fixedName(kind) == "" && kind != kindFunction && kind != kindCustom {
		return "", true, slices.ContainsFunc(d.tools, func(t definition) bool { return t.kind == kind && t.wire == "" })
	}
	if wire = fixedName(kind); wire == "" {
		wire = name
	}
	return wire, false, wire != "" && (d.kinds[wire] == kind || !d.named && kind == kindFunction)
}

// encodeChoice is tool_choice for the model; nil: it has none. A list of tools may have become
// shorter.
func (d *dialogue) encodeChoice() []byte {
	original := d.members.Get(paramChoice)
	if original == nil || original[0] == '"' {
		if d.choice.Required && !d.Choice.Required && original != nil {
			return nil // it was met
		}
		return original
	}
	switch {
	case d.choice.Names == nil: // a tool of the provider, or none of the client's
		return original
	case d.choice.Forced && d.Choice.Names == nil:
		return nil // it was met
	case d.choice.Forced:
		return original
	}
	o, _ := rawjson.Members(original)
	list := []byte{'['}
	tools, _ := rawjson.Elements(o.Get("tools"))
	for _, value := range tools {
		tool, _ := rawjson.Members(value)
		wire, hosted, _ := d.chosen(tool)
		if !hosted && !slices.Contains(d.Choice.Names, wire) {
			continue
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		list = append(list, value...)
	}
	mode := "auto"
	if d.Choice.Required {
		mode = "required"
	}
	return o.Set("mode", rawjson.Quote(mode)).Set("tools", append(list, ']')).Bytes()
}
