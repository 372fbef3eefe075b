package chat

import (
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
)

// readChoice reads tool_choice.
func (r *request) readChoice() error {
	const param = "tool_choice"
	raw := r.members.Get(param)
	if raw == nil {
		return nil
	}
	if word, ok := rawjson.String(raw); ok {
		switch word {
		case "auto":
		case "none":
			r.choice.None = true
		case "required", "any": // as Mistral's API says it
			r.choice.Required = true
		default:
			return bad(param, "\"tool_choice\" must be none, auto, required, any, or an object that names tools.")
		}
		return nil
	}
	object, ok := rawjson.Members(raw)
	kind, _ := rawjson.String(object.Get("type"))
	switch {
	case ok && isFunction(object):
		name, err := toolName(raw, param)
		if err != nil {
			return err
		}
		r.choice = turns.ToolChoice{Required: true, Names: []string{name}, Forced: true}
	case ok && kind == "allowed_tools":
		if err := r.readAllowed(object.Get(kind)); err != nil {
			return err
		}
	default:
		return bad(param, "\"tool_choice\" must be none, auto, required, any, or an object that names tools.")
	}
	for _, name := range r.choice.Names {
		if r.tools != nil && !r.toolSet[name] {
			return bad(param, "\"tool_choice\" names a tool that is not in \"tools\".")
		}
	}
	return nil
}

// readAllowed reads {"mode":…,"tools":[…]}.
func (r *request) readAllowed(raw []byte) error {
	const param = "tool_choice"
	allowed, _ := rawjson.Members(raw)
	mode, _ := rawjson.String(allowed.Get("mode"))
	invalid := bad(param, "\"allowed_tools\" must have a \"mode\", auto or required, and a list of \"tools\", of at most %d.", maxTools)
	list, ok := rawjson.Elements(allowed.Get("tools"))
	if !ok || mode != "auto" && mode != "required" {
		return invalid
	}
	r.choice.Required = mode == "required"
	seen := map[string]bool{} // one that is named twice is no second tool
	for i, raw := range list {
		if i == maxTools {
			return invalid
		}
		name, err := toolName(raw, param)
		if err != nil {
			return err
		}
		if !seen[name] {
			seen[name] = true
			r.choice.Names = append(r.choice.Names, name)
		}
	}
	if len(r.choice.Names) == 0 {
		return invalid
	}
	return nil
}
