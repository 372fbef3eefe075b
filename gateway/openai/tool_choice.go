package openai

import (
	"github.com/callgate/callgate/refusal"
)

// toolChoice is tool_choice: what the answer must and must not be. Its zero value
// leaves that to the model.
type toolChoice struct {
	none     bool
	required bool
	names    []string // tools that alone may be called; nil: any
	forced   bool     // names is one tool, named as such
}

// readChoice reads tool_choice.
func (r *request) readChoice() error {
	const param = "tool_choice"
	raw := r.members.get(param)
	if raw == nil {
		return nil
	}
	if word, ok := stringOf(raw); ok {
		switch word {
		case "auto":
		case "none":
			r.choice.none = true
		case "required":
			r.choice.required = true
		default:
			return bad(param, "\"tool_choice\" must be none, auto, required, or an object that names tools.")
		}
		return nil
	}
	object, ok := readMembers(raw)
	kind, _ := stringOf(object.get("type"))
	switch {
	case ok && kind == "function":
		name, err := toolName(raw, param)
		if err != nil {
			return err
		}
		r.choice = toolChoice{required: true, names: []string{name}, forced: true}
	case ok && kind == "allowed_tools":
		if err := r.choice.readAllowed(object.get(kind)); err != nil {
			return err
		}
	default:
		return bad(param, "\"tool_choice\" must be none, auto, required, or an object that names tools.")
	}
	for _, name := range r.choice.names {
		if r.tools != nil && !r.toolSet[name] {
			return bad(param, "\"tool_choice\" names a tool that is not in \"tools\".")
		}
	}
	return nil
}

// readAllowed reads {"mode":…,"tools":[…]}.
func (c *toolChoice) readAllowed(raw []byte) error {
	const param = "tool_choice"
	allowed, _ := readMembers(raw)
	mode, _ := stringOf(allowed.get("mode"))
	invalid := bad(param, "\"allowed_tools\" must have a \"mode\", auto or required, and a list of \"tools\", of at most %d.", maxTools)
	list, ok := elements(allowed.get("tools"))
	if !ok || mode != "auto" && mode != "required" {
		return invalid
	}
	c.required = mode == "required"
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
			c.names = append(c.names, name)
		}
	}
	if len(c.names) == 0 {
		return invalid
	}
	return nil
}

// satisfied means that the required call was made: afterwards the choice is the model's
// again.
func (c *toolChoice) satisfied() {
	c.required = false
	if c.forced {
		c.names = nil
	}
}

// choiceViolated is the refusal of an answer that tool_choice rules out.
func choiceViolated(message string) *refusal.Error {
	return refusal.New(refusal.ToolChoiceViolated, message)
}
