package grammar_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/callgate/callgate/grammar"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry"
)

// within is a schema of some types, each of which has members of all of them.
func within(types int) string {
	var members, defs []string
	for i := range types {
		members = append(members, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"}`, i, i))
	}
	for i := range types {
		defs = append(defs, fmt.Sprintf(`"d%d":{"type":"object","properties":{%s}}`, i, strings.Join(members, ",")))
	}
	return `{"type":"object","properties":{"v":{"$ref":"#/$defs/d0"}},"$defs":{` + strings.Join(defs, ",") + `}}`
}

// ways is a schema whose last definitions can be reached in 2^levels ways.
func ways(levels int) string {
	var defs []string
	for i := range levels {
		next := fmt.Sprintf(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x%d"},"b":{"$ref":"#/$defs/y%d"}}}`, i+1, i+1)
		defs = append(defs, fmt.Sprintf(`"x%d":%s,"y%d":%s`, i, next, i, next))
	}
	defs = append(defs, fmt.Sprintf(`"x%d":{"type":"null"},"y%d":{"type":"null"}`, levels, levels))
	return `{"type":"object","properties":{"v":{"$ref":"#/$defs/x0"}},"$defs":{` + strings.Join(defs, ",") + `}}`
}

func argument(schema string) string { return `{"type":"object","properties":{"v":` + schema + `}}` }

func onlyTool(t *testing.T, schema string) *registry.Registry {
	t.Helper()
	tools, err := registry.New([]registry.Tool{{Name: "a.b", InputSchema: json.RawMessage(schema), Run: client}})
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// Schemas with more ways through them than can be counted, and patterns of many states or
// large classes, make a grammar of bounded size; or they are left out.
func TestBoundedSize(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		most   int // bytes
	}{
		"three types within each other":  {within(3), 1 << 20},
		"four types within each other":   {within(4), 8 << 20},
		"twelve types within each other": {within(12), 0},
		"2^40 ways":                      {ways(40), 1 << 18},
		"a chain":                        {argument(`{"type":"string","pattern":"^a{1000}$"}`), 1 << 14},
		"a class of Unicode":             {argument(`{"type":"string","pattern":"^\\p{L}{1,200}$"}`), 1 << 16},
		"too many threads":               {argument(`{"type":"string","pattern":"(?:[a-z]{0,90}[0-9]{0,90}){0,4}x(?:.{0,60}){0,4}$"}`), 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := onlyTool(t, c.schema)
			g := grammar.New(toolsOf(tools, all), grammar.Options{Compact: true})
			var b strings.Builder
			if err := g.Write(&b, "gbnf"); (err != nil) != (len(g.LeftOut) > 0) {
				t.Fatalf("found %v, left out %v", err, g.LeftOut)
			}
			t.Logf("%d bytes, left out %v, notes %v", b.Len(), g.LeftOut, g.Notes)
			if b.Len() > c.most {
				t.Errorf("found %d bytes; expected at most %d", b.Len(), c.most)
			}
		})
	}
}

// Patterns whose states are told apart one by one take bounded work. The allocations measure it:
// a clock would measure the machine.
func TestBoundedWork(t *testing.T) {
	for _, pattern := range []string{"^(?:a{0,900}b)*$", "^(?:a{0,900}b?)*$", "(?:a{0,300}b{0,300}c{0,300})+"} {
		tools := toolsOf(onlyTool(t, argument(`{"type":"string","pattern":"`+pattern+`"}`)), all)
		const most = 4_000_000
		if found := testing.AllocsPerRun(1, func() { grammar.New(tools, grammar.Options{Compact: true}) }); found > most {
			t.Errorf("%s: found %.0f allocations; expected at most %d", pattern, found, most)
		}
	}
}

// No call nests deeper than the parser reads, whatever the schema allows.
func TestDepth(t *testing.T) {
	nested := argument(strings.Repeat(`{"type":"array","items":`, 8) + `{}` + strings.Repeat(`}`, 8))
	several := argument(`{"anyOf":[{"const":{"a":{"b":[{}]}}},{"enum":[[[]],1,"x"]},{"type":"array","items":{"type":"array","items":{"type":"object","additionalProperties":{}}}}]}`)
	shared := `{"type":"object","properties":{"a":{"$ref":"#/$defs/x"},"b":{"type":"array","items":{"type":"array","items":{"$ref":"#/$defs/x"}}}},
		"$defs":{"x":{"type":"array","items":{"type":"array","items":{"type":"null"}}}}}`
	for name, schema := range map[string]string{"nested": nested, "values": several, "shared": shared, "tree": within(2)} {
		tools := onlyTool(t, schema)
		for depth := 3; depth < 18; depth++ {
			for _, compact := range []bool{false, true} {
				g := grammar.New(toolsOf(tools, all), grammar.Options{MaxDepth: depth, Compact: compact})
				w := write(t, g, "gbnf")
				s := newSampler(w.rules, uint64(depth))
				for range 60 {
					text := s.sample(w.start)
					if err := judged(tools, text); err != nil {
						t.Fatalf("%s: %v:\n%s", name, err, text)
					}
					if r := parser.Parse([]byte(text), false, parser.Options{MaxDepth: depth}); r.Kind != parser.Call {
						t.Fatalf("%s: a call nests deeper than %d:\n%s", name, depth, text)
					}
				}
			}
		}
		shallow := grammar.New(toolsOf(tools, all), grammar.Options{MaxDepth: 4})
		if len(shallow.Notes) == 0 {
			t.Errorf("%s: nothing says that deep calls are left out", name)
		}
	}
}

// Notes name each tool whose grammar is narrower than its schema.
func TestNotesOfEachTool(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"v":{}},"additionalProperties":false}`)
	g := grammar.New([]grammar.Tool{{Name: "a.b", Schema: schema}, {Name: "c.d", Schema: schema}}, grammar.Options{})
	for _, name := range []string{"a.b", "c.d"} {
		if !strings.Contains(strings.Join(g.Notes, "\n"), name+": values that no schema describes nest at most") {
			t.Errorf("found the notes %q; none says of %s how deep values nest", g.Notes, name)
		}
	}
}
