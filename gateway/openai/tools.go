package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
	"github.com/callgate/callgate/wrapper"
)

// offer is the set of tools that the model may call.
type offer struct {
	tools []gateway.Tool // in the order of the registry
	// listed are the registry's names of the tools of the request, permitted or
	// not; nil where it has none.
	listed       []string
	wires        map[string]string // the names of tools in OpenAI's alphabet, by those in the registry
	offeredWires map[string]bool   // the same names
}

// newOffer decides which tools are offered to the model. If Callgate runs the tools, a
// request that names none means all that the agent may use; if the application runs them,
// it means that it can run none.
func (r *run) newOffer() (offer, error) {
	orchestrated := r.mode == gateway.ModeCall
	if r.request.tools == nil && !orchestrated {
		return offer{}, nil
	}
	o := offer{wires: map[string]string{}, offeredWires: map[string]bool{}}
	if r.request.tools != nil {
		o.listed = []string{} // an empty list means no tools, not all
	}
	for i, wire := range r.request.tools {
		name, ok := r.admission.ToolName(wire)
		if !ok {
			return offer{}, bad("tools."+strconv.Itoa(i)+".function.name",
				"The tool %s is not in the registry. Put the request into FILE, and import its tools with: callgate tools import openai FILE", parser.Quote(wire))
		}
		o.listed = append(o.listed, name)
	}
	permitted, err := r.permitted(o.listed)
	if err != nil {
		return offer{}, err
	}
	for _, tool := range permitted {
		if !(orchestrated && tool.Client) {
			o.tools = append(o.tools, tool)
			o.wires[tool.Name], o.offeredWires[tool.Wire] = tool.Wire, true
		}
	}
	return o, nil
}

// permitted returns the listed tools that the agent may use, or all of them if listed is nil,
// in the order of the registry. It looks at no others than the listed ones.
func (r *run) permitted(listed []string) ([]gateway.Tool, error) {
	if listed == nil || r.admission.Subject().Agent == "" {
		return r.admission.Tools()
	}
	var tools []gateway.Tool
	for i, name := range slices.Sorted(slices.Values(listed)) {
		if i > 0 && tools != nil && tools[len(tools)-1].Name == name {
			continue
		}
		tool, err := r.admission.Tool(name)
		if err != nil {
			return nil, err
		}
		if tool != nil {
			tools = append(tools, *tool)
		}
	}
	return tools, nil
}

// wire is the name of an offered tool in OpenAI's alphabet.
func (o *offer) wire(name string) (string, bool) {
	wire, ok := o.wires[name]
	return wire, ok
}

// has reports whether a tool is offered, by its name in OpenAI's alphabet.
func (o *offer) has(wire string) bool { return o.offeredWires[wire] }

// definitions are the tools as a request has them.
func (o *offer) definitions() ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	type definition struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	list := make([]definition, len(o.tools))
	for i, t := range o.tools {
		list[i] = definition{"function", function{t.Wire, t.Description, t.InputSchema}}
	}
	return wrapper.Marshal(list)
}

// narrowToolChoice narrows tool_choice to the offered tools. A choice that could never be
// met is refused now.
func (r *run) narrowToolChoice() error {
	c := &r.choice
	*c = r.request.choice
	if !c.required && c.names == nil {
		return nil
	}
	if len(r.request.tools) == 0 && (r.request.tools != nil || r.mode == gateway.ModeEnforce) {
		return bad("tool_choice", "\"tool_choice\" asks for a call, but there are no \"tools\".")
	}
	c.names = slices.DeleteFunc(slices.Clone(c.names), func(name string) bool { return !r.offer.has(name) })
	if len(r.offer.tools) == 0 || r.request.choice.names != nil && len(c.names) == 0 {
		refused := refusal.New(refusal.PermissionDenied, "\"tool_choice\" asks for a call of a tool that this agent may not use here.")
		return &failure{refused: refused, param: "tool_choice"}
	}
	return nil
}

// constraints returns the request's constraints on the next answer.
func (r *run) constraints() gateway.Constraints {
	t := gateway.Constraints{OfferedTools: r.offer.listed}
	if t.OfferedTools == nil && r.mode == gateway.ModeEnforce && r.route.Rules.Protocol != upstream.Text {
		t.OfferedTools = []string{}
	}
	if r.mode == gateway.ModeCall && r.steps >= r.route.Rules.MaxTurns {
		t.RefuseCall = refusal.New(refusal.BoundReached, fmt.Sprintf("The run has called tools in %d turns, and may not go on. Nothing of the last call was executed.", r.steps))
	}
	c := &r.choice
	if c.none {
		t.RefuseCall = choiceViolated("The request rules calls out. Answer in text.")
	}
	if c.required {
		t.RefuseText = choiceViolated("The request asks for a call, not for text. Send a call of a tool.")
	}
	if c.names != nil {
		t.RefuseOther = choiceViolated("The request asks for a call of " + r.allowedTools(maxNamedTools) + ". Call no other tool.")
		for _, wire := range c.names {
			name, _ := r.admission.ToolName(wire)
			t.OnlyTools = append(t.OnlyTools, name)
		}
		if c.required {
			t.RefuseText = choiceViolated("The request asks for a call of " + r.allowedTools(maxNamedTools) + ", not for text. Send it.")
		}
	}
	return t
}
