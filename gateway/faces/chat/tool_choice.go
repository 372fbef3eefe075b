package chat

import (
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// readChoice reads tool_choice.
func (d *dialogue) readChoice() error {
	const param = "tool_choice"
	raw, c := d.members.Get(param), &d.choice
	object, _ := rawjson.Members(raw)
	word, isWord := rawjson.String(raw)
	kind, _ := rawjson.String(object.Get("type"))
	switch {
	case raw == nil, word == "auto":
	case word == "none":
		c.None = true
	case word == "required", word == "any": // as Mistral's API says it
		c.Required = true
	case !isWord && isFunction(object):
		name, err := chosenName(raw)
		if err != nil {
			return err
		}
		c.Required, c.Names, c.Forced = true, []string{name}, true
	case kind == "allowed_tools":
		if err := d.readAllowed(object.Get(kind)); err != nil {
			return err
		}
	default:
		return turns.Bad(param, "\"tool_choice\" must be none, auto, required, any, or an object that names tools.")
	}
	for _, name := range c.Names {
		if d.tools != nil && !d.toolSet[name] {
			return turns.Bad(param, "\"tool_choice\" names a tool that is not in \"tools\".")
		}
	}
	return nil
}

// chosenName reads the name of a tool in a choice: {"type":"function","name":…} too, as Responses have it.
func chosenName(raw []byte) (string, error) {
	object, _ := rawjson.Members(raw)
	if name, _ := rawjson.String(object.Get("name")); name != "" && isFunction(object) && object.Get("function") == nil {
		return name, nil
	}
	return toolName(raw, "tool_choice")
}

// readAllowed reads {"mode":…,"tools":[…]}.
func (d *dialogue) readAllowed(raw []byte) error {
	const param = "tool_choice"
	allowed, _ := rawjson.Members(raw)
	mode, _ := rawjson.String(allowed.Get("mode"))
	invalid := turns.Bad(param, "\"allowed_tools\" must have a \"mode\", auto or required, and a list of \"tools\", of at most %d.",
		maxTools)
	list, ok := rawjson.Elements(allowed.Get("tools"))
	if !ok || mode != "auto" && mode != "required" {
		return invalid
	}
	d.choice.Required = mode == "required"
	seen := map[string]bool{} // one that is named twice is no second tool
	for i, raw := range list {
		if i == maxTools {
			return invalid
		}
		name, err := chosenName(raw)
		if err != nil {
			return err
		}
		if !seen[name] {
			seen[name] = true
			d.choice.Names = append(d.choice.Names, name)
		}
	}
	if len(d.choice.Names) == 0 {
		return invalid
	}
	return nil
}

// encodeChoice returns tool_choice for the model, with only the members that were read. A list of
// tools may have become shorter.
func encodeChoice(c *turns.ToolChoice, original []byte) []byte {
	if c.Names == nil {
		return original // a word
	}
	named := func(name string) []byte {
		return rawjson.Object{rawjson.Field("type", rawjson.Quote("function")),
			rawjson.Field("function", rawjson.Object{rawjson.Field("name", rawjson.Quote(name))}.Bytes())}.Bytes()
	}
	if c.Forced {
		return named(c.Names[0])
	}
	mode := "auto"
	if c.Required {
		mode = "required"
	}
	tools := make([][]byte, len(c.Names))
	for i, name := range c.Names {
		tools[i] = named(name)
	}
	allowed := rawjson.Object{rawjson.Field("mode", rawjson.Quote(mode)), rawjson.Field("tools", list(tools))}.Bytes()
	return rawjson.Object{rawjson.Field("type", rawjson.Quote("allowed_tools")), rawjson.Field("allowed_tools", allowed)}.Bytes()
}
