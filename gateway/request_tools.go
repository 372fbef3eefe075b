package gateway

import (
	"fmt"
	"sync/atomic"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/registry/schema"
)

// broughtTools are the tools that a request brings and the registry does not have. They are judged
// as the others are: by the policy, the limits, the conditions and, where their schemas mark any, the
// boundaries, under their own names.
type broughtTools struct {
	tools []registry.Brought
	over  atomic.Pointer[overlay]
}

// overlay is a configuration with such tools.
type overlay struct{ base, config *Config }

// WithTools returns the admission with tools that its request brings, in the configuration of now
// and in each that comes while the conversation lasts. If a later configuration has a tool of the same
// name, that one holds; if the names of the tools cannot be told apart there, the request's tools are
// unknown. Tools that cannot be judged are left out, and leftOut says why; cured are the names of those
// whose schemas were changed so that they can be. The error is a *registry.LoadError, or says which names
// become one.
func (a *Admission) WithTools(tools []registry.Brought) (with *Admission, leftOut []*registry.LoadError, cured []string, err error) {
	if a.kernel == nil {
		return nil, nil, nil, refuse.NotAdmitted()
	}
	config := a.kernel.config.Load()
	over, leftOut, err := config.with(tools)
	if err != nil {
		return nil, nil, nil, err
	}
	brought := &broughtTools{}
	for _, t := range tools {
		if e, ok := over.Tools.Lookup(t.Name); ok {
			brought.tools = append(brought.tools, t)
			if len(e.Cured()) > 0 {
				cured = append(cured, t.Name)
			}
		}
	}
	brought.over.Store(&overlay{config, over})
	b := *a
	b.brought = brought
	return &b, leftOut, cured, nil
}

// Agrees reports whether the schema that a request states for a tool means what the registry's does
// (registry.Registry.Agrees). A tool that the registry does not have agrees with nothing.
func (a *Admission) Agrees(name string, schema []byte) bool {
	if a.kernel == nil {
		return false
	}
	tools := a.kernel.config.Load().Tools
	entry, known := tools.Lookup(name)
	return known && tools.Agrees(entry, schema)
}

// AnswerSchema compiles the schema that the request states for the answer of its model (registry.Registry.AnswerSchema).
func (a *Admission) AnswerSchema(text []byte) (*schema.Schema, []schema.Fault, error) {
	if a.kernel == nil {
		return nil, nil, refuse.NotAdmitted()
	}
	compiled, faults := a.kernel.config.Load().Tools.AnswerSchema(text)
	return compiled, faults, nil
}

// toolsOver returns a configuration with the tools that the request brings.
func (a *Admission) toolsOver(config *Config) *Config {
	if a == nil || a.brought == nil {
		return config
	}
	if o := a.brought.over.Load(); o.base == config {
		return o.config
	}
	var tools []registry.Brought
	for _, t := range a.brought.tools {
		if _, known := config.Tools.Lookup(t.Name); !known {
			tools = append(tools, t)
		}
	}
	with, _, err := config.with(tools)
	if err != nil {
		with = config
	}
	a.brought.over.Store(&overlay{config, with})
	return with
}

// with returns the configuration with further tools, and those that are left out.
func (s *Config) with(tools []registry.Brought) (*Config, []*registry.LoadError, error) {
	own := *s
	var leftOut []*registry.LoadError
	var err error
	if own.Tools, leftOut, err = s.Tools.With(tools); err != nil {
		return nil, nil, err
	}
	var names []string
	for i := range tools {
		if _, ok := own.Tools.Lookup(tools[i].Name); ok {
			names = append(names, tools[i].Name)
		}
	}
	alphabet := registry.OpenAI()
	alphabet.MaxBytes = registry.MaxBroughtName
	if own.openAINames, err = s.openAINames.With(names, alphabet); err != nil {
		return nil, nil, fmt.Errorf("gateway: %w", err)
	}
	return &own, leftOut, nil
}
