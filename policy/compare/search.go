package compare

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/policy/condition"
)

// The bounds of the search for examples.
const (
	maxTries    = 4_096     // sets of arguments for one pair of terms
	maxAllTries = 1_000_000 // for one comparison; pairs behind it are not searched
	maxOutcomes = 1 << 16   // pairs whose outcome is kept
)

// Known says whether something is known to be.
type known int

const (
	unknown known = iota
	no
	yes
)

// outcome says how two terms differ for one call: whether some arguments pass more easily
// under the new terms (wider) or less easily (narrower).
type outcome struct {
	wider, narrower known
	examples        []Example
	tried           int
}

// change is the verdict on an outcome; equivalent only where both are known.
func (o outcome) change() Verdict {
	switch {
	case o.wider == no && o.narrower == no:
		return Equivalent
	case o.narrower == no:
		return Wider
	case o.wider == no:
		return Narrower
	}
	return Incomparable
}

// searcher compares terms, each pair once.
type searcher struct {
	ctx      context.Context
	old, now Side
	facts    map[string]condition.Facts
	schemas  map[string][]map[string]any // by tool
	outcomes map[string]*outcome
	tries    int

	conditions conditions
}

func newSearcher(ctx context.Context, old, now Side) *searcher {
	return &searcher{
		ctx: ctx, old: old, now: now, facts: map[string]condition.Facts{},
		schemas: map[string][]map[string]any{}, outcomes: map[string]*outcome{}, conditions: conditions{},
	}
}

// call is one agent, project and tool.
type call struct {
	agent string
	at    place
	tool  string
}

// compare compares two different terms of a call.
func (s *searcher) compare(c call, old, now terms) (*outcome, error) {
	texts := slices.Concat(old.texts(), now.texts())
	slices.Sort(texts)
	texts = slices.Compact(texts)
	facts, err := s.factsOf(texts)
	if err != nil {
		return nil, err
	}
	key := old.key + "\n\n" + now.key
	if len(texts) > 0 {
		key += "\n\n" + c.tool
	}
	if facts.ReadsCaller {
		key += "\n\n" + c.agent + "\n" + c.at.String()
	}
	if found := s.outcomes[key]; found != nil {
		return found, nil
	}
	o, err := s.search(c, old, now, facts, len(texts) == 0)
	if err != nil {
		return nil, err
	}
	if len(s.outcomes) < maxOutcomes {
		s.outcomes[key] = o
	}
	return o, nil
}

// factsOf merges the facts of conditions.
func (s *searcher) factsOf(texts []string) (condition.Facts, error) {
	all := condition.Facts{Exact: true}
	for _, text := range texts {
		f, read := s.facts[text]
		if !read {
			var err error
			if f, err = condition.Inspect(text); err != nil {
				return all, fmt.Errorf("compare: %w", err)
			}
			s.facts[text] = f
		}
		all.Paths = append(all.Paths, f.Paths...)
		all.Texts = append(all.Texts, f.Texts...)
		all.Patterns = append(all.Patterns, f.Patterns...)
		all.Numbers = append(all.Numbers, f.Numbers...)
		all.ReadsCaller = all.ReadsCaller || f.ReadsCaller
		all.Exact = all.Exact && f.Exact
	}
	slices.SortFunc(all.Paths, slices.Compare)
	all.Paths = slices.CompactFunc(all.Paths, slices.Equal)
	slices.Sort(all.Texts)
	all.Texts = slices.Compact(all.Texts)
	return all, nil
}

func (s *searcher) search(c call, old, now terms, facts condition.Facts, plain bool) (*outcome, error) {
	o := &outcome{}
	if s.conditions.implies(now, old) {
		o.wider = no
	}
	if s.conditions.implies(old, now) {
		o.narrower = no
	}
	if plain { // no condition: one question decides
		_, err := s.try(c, o, map[string]any{})
		settle(o)
		o.examples = nil
		return o, err
	}
	if s.tries >= maxAllTries {
		return o, nil
	}
	if err := s.prove(c, o, facts); err != nil || o.change() == Equivalent {
		return o, err
	}
	return o, s.find(c, o, facts)
}

// settle says no to what was not found where everything was tried.
func settle(o *outcome) {
	if o.wider == unknown {
		o.wider = no
	}
	if o.narrower == unknown {
		o.narrower = no
	}
}

// prove tries one set of arguments for each case that Exact conditions can tell apart. An
// outcome that it finds is possible, though perhaps not by arguments that the schema accepts; one
// that it does not find is not possible.
func (s *searcher) prove(c call, o *outcome, facts condition.Facts) error {
	if !facts.Exact {
		return nil
	}
	var members []member
	product := 1
	for _, path := range facts.Paths {
		values, ok := cells(facts, propertyOf(s.schemasOf(c.tool), path[0]))
		if product *= len(values); !ok || product > maxTries {
			return nil
		}
		members = append(members, member{path, values})
	}
	seen := &outcome{wider: o.wider, narrower: o.narrower}
	for i := range product {
		args := map[string]any{}
		set := i
		for _, m := range members {
			put(args, m.path, m.values[set%len(m.values)])
			set /= len(m.values)
		}
		if done, err := s.try(c, seen, args); done || err != nil {
			return err
		}
	}
	settle(seen)
	if seen.wider == no {
		o.wider = no
	}
	if seen.narrower == no {
		o.narrower = no
	}
	return nil
}

// member is a member of the arguments with the values that are tried.
type member struct {
	path   []string
	values []any
}

// find looks for arguments that the schemas accept and that pass otherwise than before.
func (s *searcher) find(c call, o *outcome, facts condition.Facts) error {
	schemas := s.schemasOf(c.tool)
	base := map[string]any{}
	if len(schemas) > 0 {
		base, _ = (&sampler{}).value(schemas[0]).(map[string]any)
	}
	var members []member
	product := 1
	for _, path := range facts.Paths {
		about := propertyOf(nil, "")
		if len(path) == 1 {
			about = propertyOf(schemas, path[0])
		}
		var schema map[string]any
		if len(schemas) > 0 {
			schema = schemaAt(schemas[0], path)
		}
		m := member{path, candidates(facts, about, schema)}
		members = append(members, m)
		product = min(product*len(m.values), 1<<40)
	}
	// Where not all can be tried, a step that shares no factor with their number spreads
	// those that are.
	step := 1
	if product > maxTries {
		for step = product*5/8 | 1; common(step, product) != 1; step++ {
		}
	}
	at := 0
	for range min(product, maxTries) {
		args := clone(base)
		set := at
		for _, m := range members {
			put(args, m.path, m.values[set%len(m.values)])
			set /= len(m.values)
		}
		at = (at + step) % product
		o.tried++
		if !s.old.accepts(c.tool, args) || !s.now.accepts(c.tool, args) {
			continue
		}
		if done, err := s.try(c, o, args); done || err != nil {
			return err
		}
	}
	return nil
}

// try asks both policies; done is true when nothing more can be learned.
func (s *searcher) try(c call, o *outcome, args map[string]any) (done bool, err error) {
	s.tries++
	request := policy.Request{Agent: c.agent, Workspace: c.at.workspace, Project: c.at.project, Tool: c.tool, Arguments: args}
	before, err := s.old.Policy.Permit(s.ctx, request)
	if err != nil {
		return false, err
	}
	after, err := s.now.Policy.Permit(s.ctx, request)
	if err != nil {
		return false, err
	}
	found := false
	if o.wider == unknown && !Within(after, before) {
		o.wider, found = yes, true
	}
	if o.narrower == unknown && !Within(before, after) {
		o.narrower, found = yes, true
	}
	if found {
		text, err := json.Marshal(args)
		if err != nil {
			return false, err
		}
		o.examples = append(o.examples, Example{
			Agent: c.agent, Project: c.at.String(), Tool: c.tool, Arguments: text, Old: verdictOf(before), New: verdictOf(after),
		})
	}
	return o.wider != unknown && o.narrower != unknown, nil
}

// Within reports that a decision grants no more than another: it denies, or asks by at least
// the same rules.
func Within(a, b policy.Decision) bool {
	if !a.Allowed {
		return true
	}
	return b.Allowed && !slices.ContainsFunc(b.Asks, func(rule string) bool { return !slices.Contains(a.Asks, rule) })
}

// verdictOf says a decision: denied, allowed, or which rules ask.
func verdictOf(d policy.Decision) string {
	switch {
	case !d.Allowed:
		return "denied"
	case len(d.Asks) > 0:
		return "asks " + strings.Join(d.Asks, ", ")
	}
	return "allowed"
}

func (s *searcher) schemasOf(tool string) []map[string]any {
	read, known := s.schemas[tool]
	if known {
		return read
	}
	var raws []json.RawMessage
	for _, side := range []Side{s.old, s.now} {
		if side.Schemas != nil {
			raws = append(raws, side.Schemas(tool)...)
		}
	}
	// In one order, so that a comparison the other way round finds the same examples.
	slices.SortFunc(raws, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	for _, raw := range raws {
		read = append(read, readSchema(raw))
	}
	s.schemas[tool] = read
	return read
}

// schemaAt is what a schema declares of a member of a member; nil where it does not.
func schemaAt(schema map[string]any, path []string) map[string]any {
	for _, name := range path {
		declared, _ := schema["properties"].(map[string]any)
		schema, _ = declared[name].(map[string]any)
	}
	return schema
}

// put sets a member of a member, unless its value is absent.
func put(args map[string]any, path []string, value any) {
	for _, name := range path[:len(path)-1] {
		next, isObject := args[name].(map[string]any)
		if !isObject {
			next = map[string]any{}
			args[name] = next
		}
		args = next
	}
	name := path[len(path)-1]
	if _, gone := value.(absent); gone {
		delete(args, name)
		return
	}
	args[name] = value
}

// clone copies objects; lists are shared.
func clone(object map[string]any) map[string]any {
	copied := maps.Clone(object)
	if copied == nil {
		copied = map[string]any{}
	}
	for name, value := range copied {
		if inner, isObject := value.(map[string]any); isObject {
			copied[name] = clone(inner)
		}
	}
	return copied
}

// common is the greatest common divisor.
func common(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
