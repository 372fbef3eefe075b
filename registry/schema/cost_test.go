package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kaptinlin/jsonschema"
)

// listed writes n texts made of a letter and a number, as JSON.
func listed(n int, format string) string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(texts, ",")
}

func manyOf(n int, v any) map[string]any {
	list := make([]any, n)
	for i := range list {
		list[i] = v
	}
	return map[string]any{"a": list}
}

func itemsOf(schema string) string {
	return `{"type":"object","properties":{"a":{"type":"array","items":` + schema + `}}}`
}

// costlyCall is a call that costs the library far more than its size
// suggests, and one of the same form that is large and meant well.
type costlyCall struct {
	why            string
	schema         string
	args, ordinary makeArguments
}

// makeArguments builds the arguments of a call.
type makeArguments func() map[string]any

func costlyCalls() []costlyCall {
	empty := map[string]any{}
	many := func(n int, v any) makeArguments { return func() map[string]any { return manyOf(n, v) } }
	properties := func(n int) string { return `"properties":{` + listed(n, `"p%d":{"type":"string"}`) + `}` }
	members := func(n int) makeArguments {
		return func() map[string]any {
			m := make(map[string]any, n)
			for i := range n {
				m[fmt.Sprint("k", i)] = json.Number("1")
			}
			return map[string]any{"a": m}
		}
	}
	place := func(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }
	either := func(schema string) string {
		return itemsOf(`{"anyOf":[` + schema + `,{"type":"object","properties":{"x":true}}]}`)
	}
	named := func(bytes, n int) makeArguments {
		return func() map[string]any {
			return map[string]any{"a": map[string]any{strings.Repeat("n", bytes): manyOf(n, json.Number("1"))["a"]}}
		}
	}
	return []costlyCall{
		{"values listed in a branch", itemsOf(`{"anyOf":[{"enum":[` + listed(250, `"v%d"`) + `]},{"type":"null"}]}`), many(116_000, "v249"), many(2_000, "v249")},
		{"numbers listed in a branch", itemsOf(`{"anyOf":[{"enum":[` + listed(250, `%d`) + `]}]}`), many(300_000, json.Number("249")), many(500, json.Number("249"))},
		{"30 members", itemsOf(`{"type":"object",` + properties(30) + `}`), many(340_000, empty), many(20_000, empty)},
		{"9000 members", itemsOf(`{"type":"object",` + properties(9_000) + `}`), many(340_000, empty), many(100, empty)},
		{"members in branches inside branches", itemsOf(`{"allOf":[{"allOf":[{"type":"object",` + properties(100) + `}]}]}`), many(340_000, empty), many(5_000, empty)},
		{"5000 required in a branch", either(`{"required":[` + listed(5_000, `"p%d"`) + `]}`), many(340_000, empty), many(100, empty)},
		{"required and described in a branch", either(`{"required":[` + listed(2_000, `"p%d"`) + `],` + properties(2_000) + `}`), many(340_000, empty), many(5, empty)},
		{"100 required", itemsOf(`{"type":"object","properties":{"x":true},"required":[` + listed(100, `"p%d"`) + `]}`), many(340_000, empty), nil},
		{"100 needed by one", itemsOf(`{"type":"object","properties":{"x":true},"dependentRequired":{"x":[` + listed(100, `"p%d"`) + `]}}`), many(120_000, map[string]any{"x": true}), many(10_000, empty)},
		{"2000 that need one", itemsOf(`{"type":"object","properties":{"x":true},"dependentRequired":{` + listed(2_000, `"p%d":["x"]`) + `}}`), many(340_000, empty), many(2_000, empty)},
		{"a map that 100 branches sort", place(`{"anyOf":[` + listed(100, `{"additionalProperties":{"type":"string","minLength":%d}}`) + `,{"type":"object","additionalProperties":true}]}`), members(100_000), members(800)},
		{"names that 100 branches ask for", place(`{"type":"object","additionalProperties":true,"allOf":[` + listed(100, `{"propertyNames":{"maxLength":9%d}}`) + `]}`), members(100_000), members(1_000)},
		{"names that 100 patterns ask for", place(`{"type":"object","additionalProperties":true,"patternProperties":{` + listed(100, `"^k%d[0-9]*x":true`) + `}}`), members(100_000), members(2_000)},
		{"items that 50 branches hand over", place(strings.Repeat(`{"allOf":[`, 50) + `{"type":"array","items":{"type":"number"}}` + strings.Repeat(`]}`, 50)), many(340_000, json.Number("1")), many(20_000, json.Number("1"))},
		{"numbers of extreme size", itemsOf(`{"type":"number","anyOf":[{"minimum":1},{"multipleOf":7e-300},{"maximum":5}]}`), many(150_000, json.Number("1e-399")), many(2_000, json.Number("1e-399"))},
		{"one long name above all faults", place(`{"type":"object","additionalProperties":{"type":"array","items":{"type":"string"}}}`), named(500_000, 200_000), nil},
	}
}

// TestHostileCalls shows that each such call is refused before the library begins, by steps alone, and that what is meant well still passes.
func TestHostileCalls(t *testing.T) {
	for i, h := range costlyCalls() {
		if testing.Short() && i%3 != 0 {
			continue
		}
		t.Run(h.why, func(t *testing.T) {
			e := compiled(t, h.schema)
			if found := e.Evaluate("web.search", h.args()); len(found) != 1 || found[0].Cause != errTooManySteps || found[0].Code != "invalid_value" || len(found[0].Path) != 0 {
				t.Errorf("found %d, first %v", len(found), found[:min(1, len(found))])
			}
			if h.ordinary != nil && !testing.Short() {
				if found := e.Evaluate("web.search", h.ordinary()); found != nil {
					t.Errorf("an ordinary call: found %v", found[0])
				}
			}
		})
	}
}

// TestLongEnums: the program looks a value up in a table of many rows; the library, which compares
// with one row after another, is asked about a refusal only.
func TestLongEnums(t *testing.T) {
	e := compiled(t, itemsOf(`{"enum":[`+listed(9_000, `"v%d"`)+`]}`))
	if found := e.Evaluate("web.search", manyOf(116_000, "v8999")); found != nil {
		t.Errorf("found %v", found[0])
	}
	if found := e.Evaluate("web.search", manyOf(3, "v9000")); len(found) != 3 || found[0].Cause != nil {
		t.Errorf("found %v", found)
	}
}

// manyBranches gives many members that no branch declares to many branches that
// declare many.
func manyBranches(branches, unexpected int) (schema string, args map[string]any) {
	args = map[string]any{"recipeint": "x"}
	for i := range unexpected {
		args[fmt.Sprint("unexpected_member_", i)] = true
	}
	schema = `{"type":"object","allOf":[` + listed(branches, `{"minProperties":%d,"$ref":"#/$defs/b"}`) + `],"$defs":{"b":{"type":"object","properties":{` + listed(3_000, `"p%d":true`) + `,"recipient":true},"additionalProperties":false}}}`
	return schema, args
}

// TestMessagesAreBuiltOnce shows that a message is built for what is said alone,
// and that the names of a schema are folded once for all messages.
func TestMessagesAreBuiltOnce(t *testing.T) {
	schema, args := manyBranches(40, 100)
	e := compiled(t, schema)
	found := e.Evaluate("web.search", args)
	checkViolations(t, args, found)
	if len(found) != maxViolations || found[0].Path[0] != "recipeint" || !strings.HasSuffix(found[0].Message, `Did you mean "recipient"?`) {
		t.Errorf("%d found, first %v", len(found), found[:1])
	}
	j := explanation{words: ofArguments("web.search"), nodes: e.library().nodes}
	if err := e.library().judge(args, 0, func(r *jsonschema.EvaluationResult) { j.value(r, e.library().root, args) }); err != nil {
		t.Fatal(err)
	}
	for _, f := range j.found.list {
		if f.message != "" {
			t.Fatalf("a message before the end: %s", f.message)
		}
	}
	if j.suggestions != nil {
		t.Error("near names before the end")
	}
	j.result()
	folded := 0
	for _, list := range j.suggestions {
		folded += len(list)
	}
	if folded != 3_001 {
		t.Errorf("%d names were folded; expected each once", folded)
	}
}

func BenchmarkWorst(b *testing.B) {
	for _, h := range costlyCalls() {
		e := compiled(b, h.schema)
		for name, build := range map[string]makeArguments{"costly": h.args, "ordinary": h.ordinary} {
			if build == nil {
				continue
			}
			args := build()
			b.Run(strings.ReplaceAll(h.why, " ", "_")+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					e.Evaluate("web.search", args)
				}
			})
		}
	}
	schema, args := manyBranches(40, 100)
	e := compiled(b, schema)
	b.Run("messages", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			e.Evaluate("web.search", args)
		}
	})
}
