package gateway

import (
	"fmt"
	"sync/atomic"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/registry"
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
// unknown. The error joins *registry.LoadError values, or says which names become one.
func (a *Admission) WithTools(tools []registry.Brought) (*Admission, error) {
	if a.kernel == nil {
		return nil, refuse.NotAdmitted()
	}
	config := a.kernel.config.Load()
	with, err := config.with(tools)
	if err != nil {
		return nil, err
	}
	b := *a
	b.brought = &broughtTools{tools: tools}
	b.brought.over.Store(&overlay{config, with})
	return &b, nil
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
	with, err := config.with(tools)
	if err != nil {
		with = config
	}
	a.brought.over.Store(&overlay{config, with})
	return with
}

// with returns the configuration with further tools.
func (s *Config) with(tools []registry.Brought) (*Config, error) {
	own := *s
	var err error
	if own.Tools, err = s.Tools.With(tools); err != nil {
		return nil, err
	}
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	if own.openAINames, err = s.openAINames.With(names, registry.OpenAI()); err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	return &own, nil
}
