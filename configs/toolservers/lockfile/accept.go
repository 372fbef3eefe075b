package lockfile

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// Acceptance is the result of accepting the definitions that a server returned.
type Acceptance struct {
	Pins    []Pin
	Changed []*document.Fault // what was added to a schema so that it loads
	Refused []*document.Fault // why a definition is not accepted
}

// Accept loads the definitions of a server as tools of the registry. Those that load are
// pins; the others are refused, each with its reasons.
func Accept(s Server, found []tool.Definition) *Acceptance {
	out := &Acceptance{}
	for _, d := range found {
		p, err := out.judge(s, d)
		if err == nil {
			_, err = registry.New([]registry.Tool{{Name: s.ToolName(p.Name), Version: p.Version, InputSchema: p.InputSchema,
				OutputSchema: p.OutputSchema, Run: s.Run(p)}})
		}
		if err != nil {
			out.refuse(s, d.Name, err)
			continue
		}
		out.Pins = append(out.Pins, p)
	}
	out.Pins = toolfile.DropCollisions(out.Pins,
		func(p Pin) (name, version string) { return s.ToolName(p.Name), p.Version },
		func(p Pin, f *registry.LoadError) { out.refuse(s, p.Name, f) })
	return out
}

// refuse notes why a definition is not accepted.
func (a *Acceptance) refuse(s Server, name string, err error) {
	reasons := []string{err.Error()}
	if faults := toolfile.LoadErrors(err); len(faults) > 0 {
		reasons = nil
		for _, f := range faults {
			reasons = append(reasons, f.Message)
		}
	}
	for _, reason := range reasons {
		a.Refused = append(a.Refused, &document.Fault{File: s.Name, Message: fmt.Sprintf("%s: %s", parser.Quote(name), reason)})
	}
}

// judge makes a pin of one definition.
func (a *Acceptance) judge(s Server, d tool.Definition) (Pin, error) {
	switch {
	case d.Unusable != "":
		return Pin{}, errors.New(d.Unusable)
	case !registry.ValidName(s.ToolName(d.Name)):
		return Pin{}, fmt.Errorf("with its prefix it is %s; expected a name of letters, digits, _ and - in parts joined by dots, at most 64 bytes, for which a shorter prefix makes room", parser.Quote(s.ToolName(d.Name)))
	}
	digest, err := Digest(d)
	if err != nil {
		return Pin{}, err
	}
	stated := map[string]json.RawMessage{"name": quoteJSON(s.ToolName(d.Name)), "inputSchema": d.InputSchema}
	if d.InputSchema == nil {
		delete(stated, "inputSchema")
	}
	if d.OutputSchema != nil {
		stated["outputSchema"] = d.OutputSchema
	}
	data, err := json.Marshal(stated)
	if err != nil {
		return Pin{}, err
	}
	definition, changes, err := toolimport.ImportMCPTool(s.Name, data)
	if err != nil {
		return Pin{}, err
	}
	for _, f := range changes {
		a.Changed = append(a.Changed, &document.Fault{File: s.Name, Message: f.Message})
	}
	if r, found := wrapper.Hidden(d.Description); found {
		a.Changed = append(a.Changed, &document.Fault{File: s.Name,
			Message: fmt.Sprintf("tool %q: found %s in a description; models are shown it written out", s.ToolName(d.Name),
				toolfile.HiddenCharacter(r))})
	}
	return Pin{
		Name: d.Name, Version: d.Version, Endpoint: d.Endpoint, Digest: digest, Description: d.Description,
		InputSchema: definition.InputSchema, OutputSchema: definition.OutputSchema,
	}, nil
}

func quoteJSON(s string) json.RawMessage {
	q, _ := json.Marshal(s) // a string cannot fail
	return q
}
