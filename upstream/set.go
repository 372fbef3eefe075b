package upstream

import (
	"cmp"
	"errors"
	"net/url"
	"slices"
	"strings"
)

// Set holds all upstreams of one configuration. It is immutable. A nil Set is empty.
type Set struct {
	exact    map[string]*Route
	prefixes []prefixRoute // the longest first
	models   []ModelInfo
	// wildcards has a route for each upstream that serves models by a prefix under the
	// provider's names, in the order of the definitions.
	wildcards []*Route
}

type prefixRoute struct {
	prefix string
	route  *Route
}

// Route says which upstream serves a model, and how its completions are treated. It belongs to a Set, and must not
// be changed.
type Route struct {
	Upstream      string // its name
	Model         string // in the application's request
	UpstreamModel string // sent to the provider
	Exact         bool   // the definition has the whole name, not a prefix
	Rules         Rules

	definition *Definition           // is not changed
	endpoints  map[Endpoint]*url.URL // empty: base_url cannot be parsed
	plain      bool                  // see isPlain
}

// Safeguards is the treatment of the member safeguards. Auto lets it go to the providers that know it
// alone: any other would refuse the request, and it holds paths of the user.
func (r *Route) Safeguards() Treatment {
	if rule := r.Rules.Messages.Safeguards; rule != Auto {
		return rule
	}
	address, err := url.Parse(r.definition.BaseURL)
	if err == nil && slices.ContainsFunc([]string{".anthropic.com", ".amazonaws.com", ".googleapis.com"}, func(domain string) bool {
		return strings.HasSuffix(strings.ToLower(address.Hostname()), domain)
	}) {
		return Pass
	}
	return Drop
}

// ModelInfo is a model that is listed to applications.
type ModelInfo struct{ ID, Upstream string }

// New returns the set of the definitions. Its error joins all faults.
func New(definitions []Definition) (*Set, error) {
	if faults := Validate(definitions); len(faults) > 0 {
		all := make([]error, len(faults))
		for i, f := range faults {
			all[i] = f
		}
		return nil, errors.Join(all...)
	}
	s := &Set{exact: map[string]*Route{}}
	for _, d := range definitions {
		d.Models = slices.Clone(d.Models)
		d.BaseURL = strings.TrimSuffix(d.BaseURL, "/")
		targets := endpointsOf(d.BaseURL)
		for _, m := range d.Models {
			route := &Route{Upstream: d.Name, Model: m.ID, UpstreamModel: cmp.Or(m.UpstreamModel, m.ID), Rules: d.Rules, definition: &d,
				endpoints: targets, plain: isPlain(targets[ChatCompletions])}
			if m.Rules != nil {
				route.Rules = *m.Rules
			}
			route.Rules = route.Rules.clone()
			prefix, every := strings.CutSuffix(m.ID, "*")
			if !every {
				route.Exact = true
				s.exact[m.ID] = route
				s.models = append(s.models, ModelInfo{m.ID, d.Name})
				continue
			}
			route.UpstreamModel = m.UpstreamModel
			if n := len(s.wildcards); m.UpstreamModel == "" && (n == 0 || s.wildcards[n-1].Upstream != d.Name) {
				s.wildcards = append(s.wildcards, route)
			}
			s.prefixes = append(s.prefixes, prefixRoute{prefix, route})
		}
	}
	slices.SortFunc(s.prefixes, func(a, b prefixRoute) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	return s, nil
}

// Lookup returns the route of a model: an exact name, else the longest matching prefix.
func (s *Set) Lookup(model string) (*Route, bool) {
	if s == nil || model == "" {
		return nil, false
	}
	if route, ok := s.exact[model]; ok {
		return route, true
	}
	for _, p := range s.prefixes {
		if strings.HasPrefix(model, p.prefix) {
			route := *p.route
			route.Model, route.UpstreamModel = model, cmp.Or(route.UpstreamModel, model)
			return &route, true
		}
	}
	return nil, false
}

// MaxBody is the most bytes of an answer, whole or put together from a stream.
func (r *Route) MaxBody() int { return r.definition.MaxBody }

// Models lists the models with an exact name, in the order of the definitions.
func (s *Set) Models() []ModelInfo {
	if s == nil {
		return nil
	}
	return slices.Clone(s.models)
}

// Speaks reports whether the models of the route are asked in this wire.
func (r *Route) Speaks(w Wire) bool { return slices.Contains(r.Rules.Speaks, w) }

// Wildcards returns a route for each upstream that serves models by a prefix under the provider's
// own names, in the order of the definitions: ListModels says which models these are.
func (s *Set) Wildcards() []*Route {
	if s == nil {
		return nil
	}
	return slices.Clone(s.wildcards)
}
