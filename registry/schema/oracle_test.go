package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/callgate/callgate/internal/ascii"
	"github.com/callgate/callgate/refusal"
)

// oracleFor compiles a definition with an independent validator.
func oracleFor(raw []byte) (*oracle.Schema, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	c := oracle.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource("https://test.invalid/schema", v); err != nil {
		return nil, err
	}
	return c.Compile("https://test.invalid/schema")
}

// Names, texts and numbers are few, so that schemas and values meet.
var (
	drawnNames = []string{"a", "b", "c", "ab"}
	drawnTexts = []string{"", "a", "ab", "b", "é"}
	drawnNums  = []string{"0", "1", "-1", "2", "1.0", "1.5", "2e0", "10", "0.1", "100e-2"}
)

func drawScalar(t *rapid.T) any {
	switch rapid.IntRange(0, 6).Draw(t, "scalar") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2, 3:
		return rapid.SampledFrom(drawnTexts).Draw(t, "text")
	}
	return json.Number(rapid.SampledFrom(drawnNums).Draw(t, "number"))
}

func drawValue(t *rapid.T, depth int) any {
	if depth == 0 {
		return drawScalar(t)
	}
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0, 1, 2:
		return drawObject(t, depth)
	case 3:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	}
	return drawScalar(t)
}

func drawObject(t *rapid.T, depth int) map[string]any {
	object := map[string]any{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(drawnNames), 0, 4, rapid.ID).Draw(t, "members") {
		object[name] = drawValue(t, depth-1)
	}
	return object
}

// drawSchema draws a schema of any keywords. Most of them are object schemas.
func drawSchema(t *rapid.T, depth int) any {
	if rapid.IntRange(0, 12).Draw(t, "boolean") == 0 {
		return rapid.Bool().Draw(t, "verdict")
	}
	s := map[string]any{}
	sub := func() any { return drawSchema(t, depth-1) }
	subs := func() []any {
		list := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "branches") {
			list = append(list, sub())
		}
		return list
	}
	named := func() map[string]any {
		m := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(drawnNames), 0, 3, rapid.ID).Draw(t, "names") {
			m[name] = sub()
		}
		return m
	}
	names := func() []any {
		list := []any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(drawnNames), 1, 2, rapid.ID).Draw(t, "list") {
			list = append(list, name)
		}
		return list
	}
	count := func() any { return json.Number(fmt.Sprint(rapid.IntRange(0, 3).Draw(t, "count"))) }
	number := func() any { return json.Number(rapid.SampledFrom(drawnNums).Draw(t, "bound")) }
	leaf := []func(){
		func() {
			s["type"] = rapid.SampledFrom([]any{"object", "object", "array", "string", "integer", "number", "boolean", "null", []any{"object", "null"}, []any{"string", "integer"}}).Draw(t, "type")
		},
		func() { s["enum"] = []any{drawValue(t, 1), drawScalar(t), drawScalar(t)} },
		func() { s["const"] = drawScalar(t) },
		func() { s["minimum"] = number() },
		func() { s["exclusiveMaximum"] = number() },
		func() {
			s["multipleOf"] = json.Number(rapid.SampledFrom([]string{"1", "0.1", "0.5", "2"}).Draw(t, "multiple"))
		},
		func() { s["minLength"] = count() },
		func() { s["maxLength"] = count() },
		func() { s["pattern"] = rapid.SampledFrom([]string{"^a", "b$", "^$"}).Draw(t, "pattern") },
		func() { s["minItems"] = count() },
		func() { s["maxItems"] = count() },
		func() { s["uniqueItems"] = true },
		func() { s["required"] = names() },
		func() { s["minProperties"] = count() },
		func() { s["maxProperties"] = count() },
		func() { s["dependentRequired"] = map[string]any{"a": names()} },
		func() { s["$ref"] = rapid.SampledFrom([]string{"#", "#/$defs/a", "#/$defs/b"}).Draw(t, "ref") },
	}
	inner := []func(){
		func() { s["properties"] = named() },
		func() { s["properties"] = named() },
		func() { s["properties"] = named() },
		func() { s["patternProperties"] = map[string]any{"^a": sub()} },
		func() { s["additionalProperties"] = sub() },
		func() { s["unevaluatedProperties"] = sub() },
		func() { s["propertyNames"] = sub() },
		func() { s["dependentSchemas"] = map[string]any{"a": sub()} },
		func() { s["items"] = sub() },
		func() { s["prefixItems"] = subs() },
		func() { s["contains"] = sub(); s["maxContains"] = count(); s["minContains"] = count() },
		func() { s["contains"] = sub() },
		func() { s["unevaluatedItems"] = sub() },
		func() { s["allOf"] = subs() },
		func() { s["anyOf"] = subs() },
		func() { s["oneOf"] = subs() },
		func() { s["not"] = sub() },
		func() { s["if"] = sub(); s["then"] = sub(); s["else"] = sub() },
	}
	for range rapid.IntRange(0, 2).Draw(t, "leaves") {
		leaf[rapid.IntRange(0, len(leaf)-1).Draw(t, "leaf")]()
	}
	if depth > 0 {
		for range rapid.IntRange(0, 3).Draw(t, "inners") {
			inner[rapid.IntRange(0, len(inner)-1).Draw(t, "inner")]()
		}
	}
	return s
}

func drawDefinition(t *rapid.T) []byte {
	s := drawSchema(t, 3)
	object, ok := s.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	object["$defs"] = map[string]any{"a": drawSchema(t, 2), "b": drawSchema(t, 1)}
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// enoughDrawn is how many drawn values a whole run must have met, about a sixth
// of what it meets. A short run draws a fifth, too few for a floor that chance
// never falls below.
func enoughDrawn(whole int) int {
	if testing.Short() {
		return 0
	}
	return whole
}

// TestLibraryAgrees draws schemas and values: the library accepts nothing that the oracle refuses, as
// the schema is written.
func TestLibraryAgrees(t *testing.T) {
	evaluated, doubted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		raw := drawDefinition(t)
		s, faults := read(raw, Options{Authored: true})
		if len(faults) > 0 {
			return
		}
		o, err := oracleFor(raw)
		if err != nil {
			t.Fatalf("loaded what the oracle refuses: %s: %v", raw, err)
		}
		for range 8 {
			v := drawValue(t, 3)
			want := o.Validate(v) == nil
			found := s.Evaluate("tool", v)
			evaluated++
			if got := len(found) == 0; got && !want {
				t.Fatalf("schema %s\nvalue %s\naccepted; refused by the oracle", raw, asJSON(v))
			} else if got != want {
				doubted++
			} else if !got && found[0].Cause != nil {
				t.Fatalf("schema %s\nvalue %s\nno place is named: %v", raw, asJSON(v), found)
			}
		}
	})
	t.Logf("%d values evaluated, %d refused by the library alone", evaluated, doubted)
	if evaluated < enoughDrawn(100) {
		t.Errorf("only %d values evaluated", evaluated)
	}
}

// drawBesideRoot draws a definition whose root has branches inside branches
// that speak of other members, by all the ways that lead to a branch.
func drawBesideRoot(t *rapid.T) []byte {
	var branch func(depth int) any
	branch = func(depth int) any {
		s := map[string]any{}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"properties", "additionalProperties", "unevaluatedProperties", "required", "patternProperties"}), 0, 3, rapid.ID).Draw(t, "keywords") {
			switch name {
			case "properties", "patternProperties":
				s[name] = map[string]any{rapid.SampledFrom(drawnNames).Draw(t, "member"): drawSchema(t, 0)}
			case "required":
				s[name] = []any{rapid.SampledFrom(drawnNames).Draw(t, "required")}
			default:
				s[name] = rapid.SampledFrom([]any{true, true, false, map[string]any{}, map[string]any{"type": "string"}, map[string]any{"const": json.Number("1")}}).Draw(t, "others")
			}
		}
		if depth == 0 {
			return s
		}
		for range rapid.IntRange(1, 2).Draw(t, "ways") {
			switch way := rapid.SampledFrom([]string{"allOf", "anyOf", "oneOf", "not", "if", "dependentSchemas", "$ref"}).Draw(t, "way"); way {
			case "allOf", "anyOf", "oneOf":
				s[way] = []any{branch(depth - 1), branch(depth - 1)}
			case "not":
				s[way] = branch(depth - 1)
			case "if":
				s["if"], s["then"], s["else"] = branch(depth-1), branch(depth-1), branch(depth-1)
			case "dependentSchemas":
				s[way] = map[string]any{"a": branch(depth - 1)}
			case "$ref":
				s[way] = rapid.SampledFrom([]string{"#/$defs/a", "#/$defs/b"}).Draw(t, "ref")
			}
		}
		return s
	}
	root := branch(2).(map[string]any)
	root["$defs"] = map[string]any{"a": branch(0), "b": map[string]any{"allOf": []any{branch(0), branch(0)}, "unevaluatedProperties": false}}
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// TestClosingOnlyNarrows: whatever the closed schema accepts, the author's
// schema accepts too; and all evaluators see the same closed schema.
func TestClosingOnlyNarrows(t *testing.T) {
	evaluated, accepted := 0, 0
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		raw := rapid.OneOf(rapid.Custom(drawDefinition), rapid.Custom(drawBesideRoot)).Draw(t, "definition")
		stated, _ := withMembersStated(outer, raw)
		open := rapid.Bool().Draw(t, "open")
		s, faults := read(stated, Options{Open: open})
		if len(faults) > 0 {
			return
		}
		author, err := oracleFor(stated)
		if err != nil {
			t.Fatal(err)
		}
		closed, err := oracleFor(s.closed)
		if err != nil {
			t.Fatalf("the closed schema does not compile: %s: %v", s.closed, err)
		}
		for range 8 {
			v := drawObject(t, 3)
			found := s.Evaluate("tool", v)
			evaluated++
			if len(found) == 0 {
				accepted++
				if !open {
					v["zz"] = json.Number("1")
					opened := s.Evaluate("tool", v) == nil
					delete(v, "zz")
					if opened {
						t.Fatalf("schema %s\nclosed %s\nvalue %s\naccepts a member that nothing names", raw, s.closed, asJSON(v))
					}
				}
				if err := author.Validate(v); err != nil {
					t.Fatalf("schema %s\nclosed %s\nvalue %s\naccepted against the author: %v", raw, s.closed, asJSON(v), err)
				}
			} else if found[0].Cause == nil && closed.Validate(v) == nil {
				t.Fatalf("schema %s\nclosed %s\nvalue %s\nrefused %v against the closed schema", raw, s.closed, asJSON(v), found)
			}
			if !reflect.DeepEqual(found, s.Evaluate("tool", v)) {
				t.Fatalf("schema %s value %s: two answers", raw, asJSON(v))
			}
			checkViolations(t, v, found)
		}
	})
	t.Logf("%d values evaluated, %d accepted", evaluated, accepted)
	if accepted < enoughDrawn(20) {
		t.Errorf("only %d values accepted", accepted)
	}
}

// checkViolations reports whether a list is as the contract wants it.
func checkViolations(t interface{ Fatalf(string, ...any) }, v any, list []Violation) {
	if len(list) > maxViolations {
		t.Fatalf("%d violations", len(list))
	}
	var lines []refusal.Violation
	for _, e := range list {
		pointer := ""
		for _, token := range e.Path {
			pointer += "/" + refusal.EscapePointer(token)
		}
		lines = append(lines, refusal.Violation{Code: e.Code, Path: pointer, Message: e.Message})
		at, found := follow(v, e.Path)
		if e.At == Parent {
			if found {
				t.Fatalf("%v is said to be missing and is there", e.Path)
			}
			_, found = follow(v, e.Path[:len(e.Path)-1])
		}
		if !found {
			t.Fatalf("%v leads nowhere in %s (%v)", e.Path, asJSON(v), at)
		}
		if e.Message == "" {
			t.Fatalf("%v has no message", e)
		}
	}
	sorted := slices.Clone(lines)
	refusal.Sort(sorted)
	if !slices.Equal(lines, sorted) {
		t.Fatalf("not in the order of the contract: %v", lines)
	}
	for i := 1; i < len(lines); i++ {
		if lines[i] == lines[i-1] {
			t.Fatalf("said twice: %v", lines[i])
		}
	}
}

func follow(v any, path []string) (any, bool) {
	for _, token := range path {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[token]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i := ascii.Number(token)
			if i < 0 || i >= len(c) {
				return nil, false
			}
			v = c[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func asJSON(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
