// Package grammar writes the calls that the gateway accepts from an agent as a grammar,
// for engines that constrain the sampling of a model.
//
// # Contract
//
// Every text of a grammar is a tool call that the parser and the schema of its tool
// accept; so a model that is held to it makes no call that those refuse. Conditions of
// the policy, limits and boundaries cannot be part of a grammar. Where a grammar is
// narrower than the schema, a note says so; a tool whose schema cannot be written is left
// out, with the reason. The JSON Schema of the calls is exact, but that no schema can say
// how JSON is spelled: that names do not repeat, and how long a number is.
//
// # The way of a schema
//
// The closed schema is split into the ways to keep it (schema_branches.go), each way into types
// (schema_to_rules.go, array_and_object.go, enum_values.go), and strings and numbers become
// automata (text.go, number.go, automaton.go) whose states are rules. write.go writes the rules.
package grammar

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/callgate/callgate/internal/decimal"
)

// Tool is a tool that an agent may call.
type Tool struct {
	Name   string
	Schema json.RawMessage // closed, as schema.Schema.Closed gives it
}

// Options say which calls a grammar is for.
type Options struct {
	// Agent may be named by a call, and must be where AgentRequired. Empty: no call names one.
	Agent         string
	AgentRequired bool
	// Compact gives each value one spelling: names as they are, members in the order of their
	// names, one space at most between tokens. Engines are faster with it.
	Compact bool
	// MaxDepth is how many objects and arrays a call may nest, its own included; 0 is no bound.
	MaxDepth int
}

// LeftOut is a tool that is not in a grammar.
type LeftOut struct {
	Tool, Reason string
}

// Grammar is a grammar of calls. It is immutable.
type Grammar struct {
	rules   []rule // the first is the start; none: no call is possible
	options Options
	tools   []Tool
	// Notes say where the grammar is narrower than the schemas, by tool.
	Notes []string
	// LeftOut has the tools whose schemas cannot be written as a grammar.
	LeftOut []LeftOut
}

const start = "root"

// New makes the grammar of the calls of some tools.
func New(tools []Tool, o Options) *Grammar {
	g := &Grammar{options: o, tools: slices.Clone(tools)}
	r := &rules{}
	r.name(start)
	common := map[string]expr{}
	var c *compiler
	compilerOf := func(tool string) *compiler {
		return &compiler{
			rules: r, compact: o.Compact, tool: tool, common: common, notes: map[string]bool{},
			maxDepth: o.MaxDepth, depth: envelopeLevels,
		}
	}
	var calls []expr
	for _, t := range tools {
		c = compilerOf(t.Name)
		arguments, err := c.arguments(t)
		if err != nil {
			g.LeftOut = append(g.LeftOut, LeftOut{t.Name, err.Error()})
			continue
		}
		for _, n := range slices.Sorted(maps.Keys(c.notes)) {
			g.Notes = append(g.Notes, t.Name+": "+n)
		}
		if arguments == nil {
			continue
		}
		calls = append(calls, r.define("call-"+t.Name, c.call(t.Name, arguments)))
	}
	c = compilerOf("")
	tool := r.define("tool", oneOf(calls...))
	if tool == nil {
		return g
	}
	r.list = append(r.list, rule{start, seq(c.space(), c.envelope(tool, o), c.space())})
	g.rules = r.used(start)
	return g
}

// call matches {"name":…,"arguments":…} of a tool.
func (c *compiler) call(name string, arguments expr) expr {
	return c.members("call-"+name, objectRules{
		names:    []string{"name", "arguments"},
		entries:  []expr{c.member("name", c.text(name)), c.member("arguments", arguments)},
		required: []bool{true, true}, least: 0, most: -1,
	})
}

// envelope matches {"tool":…} with the member agent where there is one.
func (c *compiler) envelope(tool expr, o Options) expr {
	rules := objectRules{names: []string{"tool"}, entries: []expr{c.member("tool", tool)}, required: []bool{true}, least: 0, most: -1}
	if o.Agent != "" {
		rules.names = append(rules.names, "agent")
		rules.entries = append(rules.entries, c.member("agent", c.text(o.Agent)))
		rules.required = append(rules.required, o.AgentRequired)
	}
	return c.members("call", rules)
}

// arguments matches the arguments of a tool.
func (c *compiler) arguments(t Tool) (expr, error) {
	var root any
	if err := decimal.Unmarshal(t.Schema, &root); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	if m, is := root.(map[string]any); is {
		c.defs, _ = m["$defs"].(map[string]any)
	}
	c.loops = loopsOf(c.defs)
	for c.recursion = maxRecursion; ; c.recursion-- {
		c.known, c.path = map[string]place{}, nil
		c.places, c.states, c.depth = 0, 0, envelopeLevels
		clear(c.notes)
		e, err := c.value(t.Name, []any{root, map[string]any{"type": "object"}})
		if !errors.Is(err, errTooManyPlaces) || c.recursion == 0 {
			return e, err
		}
	}
}

// envelopeLevels is how many objects the arguments of a call lie in.
const envelopeLevels = 2

// loopsOf lists the references to definitions that lie within themselves.
func loopsOf(defs map[string]any) map[string]bool {
	const at = "#/$defs/"
	to := map[string][]string{}
	for name, schema := range defs {
		to[at+name] = refsIn(schema, nil)
	}
	loops := map[string]bool{}
	for ref := range to {
		seen := map[string]bool{}
		for queue := slices.Clone(to[ref]); len(queue) > 0; queue = queue[1:] {
			if next := queue[0]; !seen[next] {
				seen[next] = true
				queue = append(queue, to[next]...)
			}
		}
		loops[ref] = seen[ref]
	}
	return loops
}

// refsIn lists the references within a schema. A value that only looks like one does no harm.
func refsIn(schema any, found []string) []string {
	switch s := schema.(type) {
	case []any:
		for _, item := range s {
			found = refsIn(item, found)
		}
	case map[string]any:
		for name, value := range s {
			if ref, is := value.(string); is && name == "$ref" {
				found = append(found, ref)
			}
			found = refsIn(value, found)
		}
	}
	return found
}

// header says what the grammar is of, and where it is narrower than the gateway.
func (g *Grammar) header() []string {
	lines := []string{"The calls that Callgate accepts, by its parser and the schemas of the tools.", "Conditions of the policy, limits and boundaries are judged when a call is made."}
	for _, n := range g.Notes {
		lines = append(lines, "Narrower than the schema of "+n+".")
	}
	for _, l := range g.LeftOut {
		lines = append(lines, "Left out: "+l.Tool+": "+l.Reason+".")
	}
	return lines
}
