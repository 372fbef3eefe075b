package turns

import (
	"slices"

	"github.com/callgate/callgate/gateway"
)

// Offer is the set of tools that the model may call.
type Offer struct {
	Tools []gateway.Tool // in the order of the registry
	// listed are the registry's names of the tools of the request, permitted or not; nil
	// where it has none.
	listed       []string
	wires        map[string]string // the names of tools on the wire, by those in the registry
	offeredWires map[string]bool   // the same names
}

// SetOffer decides which tools are offered to the model, of those that the request names as
// the wire does. If Callgate runs the tools, a request that names none (nil) means all that
// the agent may use; if the application runs them, it means that it can run none. unknown is
// the failure for a name that is not of the registry, by its index.
func (r *Run) SetOffer(requested []string, unknown func(i int) error) error {
	orchestrated := r.Mode == gateway.ModeCall
	if requested == nil && !orchestrated {
		return nil
	}
	o := Offer{wires: map[string]string{}, offeredWires: map[string]bool{}}
	if requested != nil {
		o.listed = []string{} // an empty list means no tools, not all
	}
	for i, wire := range requested {
		name, ok := r.Admission.ToolName(wire)
		if !ok && r.leftOut[wire] != "" {
			continue
		}
		if !ok {
			return unknown(i)
		}
		o.listed = append(o.listed, name)
	}
	permitted, err := r.permitted(o.listed)
	if err != nil {
		return err
	}
	for _, tool := range permitted {
		if !orchestrated || !tool.Client || r.ClientRuns != nil && r.ClientRuns(tool) {
			if tool.Description == "" {
				tool.Description = r.described[tool.Name]
			}
			o.Tools = append(o.Tools, tool)
			o.wires[tool.Name], o.offeredWires[tool.Wire] = tool.Wire, true
		}
	}
	r.Offer = o
	return nil
}

// NarrowOffer leaves the tools that the conversation has left, by the registry's names: calls of others are refused.
// Where the application runs the tools, a request that names none has none left.
func (r *Run) NarrowOffer(left []string) {
	switch {
	case r.Offer.listed != nil:
		r.Offer.listed = slices.DeleteFunc(r.Offer.listed, func(name string) bool { return !slices.Contains(left, name) })
	case r.Mode == gateway.ModeCall:
		r.Offer.listed = left
	}
}

// permitted returns the listed tools that the agent may use, or all of them if listed is nil,
// in the order of the registry. It looks at no others than the listed ones.
func (r *Run) permitted(listed []string) ([]gateway.Tool, error) {
	if listed == nil || r.Admission.Subject().Agent == "" {
		return r.Admission.Tools()
	}
	var tools []gateway.Tool
	for i, name := range slices.Sorted(slices.Values(listed)) {
		if i > 0 && tools != nil && tools[len(tools)-1].Name == name {
			continue
		}
		tool, err := r.Admission.Tool(name)
		if err != nil {
			return nil, err
		}
		if tool != nil {
			tools = append(tools, *tool)
		}
	}
	return tools, nil
}

// Wire is the name of an offered tool on the wire.
func (o *Offer) Wire(name string) (string, bool) {
	wire, ok := o.wires[name]
	return wire, ok
}

// has reports whether a tool is offered, by its name on the wire.
func (o *Offer) has(wire string) bool { return o.offeredWires[wire] }

// RegistryName is the registry's name of a tool for its name on the wire; one that is not of
// the registry keeps its own.
func (r *Run) RegistryName(wire string) string {
	if name, ok := r.Admission.ToolName(wire); ok {
		return name
	}
	return wire
}
