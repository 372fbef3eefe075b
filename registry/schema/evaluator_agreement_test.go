package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// probed are the values on which the evaluators of a schema are compared.
func probed(t *testing.T, schema string) []string {
	t.Helper()
	s := compiled(t, schema)
	if s.plain == nil {
		t.Fatalf("not plain: %s", schema)
	}
	var list []string
	seen := map[string]bool{}
	for _, value := range s.plain.Probes(func(rules string) bool { defer func() { seen[rules] = true }(); return seen[rules] }) {
		list = append(list, string(value))
	}
	if !s.AcceptsJSON([]byte(list[0])) {
		t.Errorf("%s: the first value is not valid: %s", schema, list[0])
	}
	return list
}

// TestProbes: each keyword of a plain schema alone decides about at least one of the generated
// values. Without the keyword the verdict of that value is another.
func TestProbes(t *testing.T) {
	for _, c := range []struct{ schema, without string }{
		{`{"type":"integer"}`, `{}`},
		{`{"type":["string","null"]}`, `{}`},
		{`{"enum":["a",1,null]}`, `{}`},
		{`{"const":"x"}`, `{}`},
		{`{"type":"integer","minimum":3}`, `{"type":"integer"}`},
		{`{"type":"number","maximum":-0.5}`, `{"type":"number"}`},
		{`{"type":"number","exclusiveMinimum":0}`, `{"type":"number","minimum":0}`},
		{`{"type":"number","exclusiveMaximum":1e2}`, `{"type":"number","maximum":1e2}`},
		{`{"type":"number","multipleOf":0.01}`, `{"type":"number"}`},
		{`{"type":"string","minLength":3}`, `{"type":"string"}`},
		{`{"type":"string","maxLength":200}`, `{"type":"string"}`},
		{`{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`, `{"type":"string"}`},
		{`{"type":"string","format":"uuid"}`, `{"type":"string"}`},
		{`{"type":"array","items":{"type":"string"}}`, `{"type":"array"}`},
		{`{"type":"array","minItems":2}`, `{"type":"array"}`},
		{`{"type":"array","maxItems":2}`, `{"type":"array"}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"integer"}}`, `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true}`},
	} {
		within := func(schema string) string { return `{"properties":{"m":` + schema + `}}` }
		other, decides := compiled(t, within(c.without)), 0
		same := compiled(t, within(c.schema))
		for _, value := range probed(t, within(c.schema)) {
			if same.AcceptsJSON([]byte(value)) != other.AcceptsJSON([]byte(value)) {
				decides++
			}
		}
		if decides == 0 {
			t.Errorf("%s: no generated value shows what it asserts beyond %s", c.schema, c.without)
		}
	}
}

// TestDisputedSchemaIsNotPlain: a schema about which the evaluators disagree when it is
// compiled is evaluated by both on each call, and the same rules are compared again elsewhere.
func TestDisputedSchemaIsNotPlain(t *testing.T) {
	const authored = `{"properties":{"a":{"type":"string","maxLength":5}}}`
	for name, document := range map[string]any{
		"accepts more": map[string]any{"type": "object"},
		"accepts less": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"maxLength": json.Number("4")}}, "additionalProperties": false},
	} {
		s := compiled(t, authored)
		other, err := newSecondary(document, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		s.secondary = other
		var a agreement
		found := a.disagreement(s)
		if !strings.HasPrefix(found, "{") {
			t.Errorf("%s: found %q", name, found)
		}
		if a.disagreement(s) != found {
			t.Errorf("%s: another answer for the same schema", name)
		}
		a.agreed.Range(func(rules, _ any) bool {
			t.Errorf("%s: %s counts as agreed upon", name, rules)
			return true
		})
	}
	c := NewCompiler(false)
	s, faults := c.Compile(json.RawMessage(authored), Options{})
	if len(faults) > 0 || s.Disputed() != "" || !s.AcceptsJSON([]byte(`{"a":"x"}`)) {
		t.Errorf("faults %v, disputed %q", faults, s.Disputed())
	}
	both, _ := NewCompiler(true).Compile(json.RawMessage(authored), Options{})
	if both.AcceptsJSON([]byte(`{"a":"x"}`)) {
		t.Error("with both evaluators always the program decides")
	}
}

// TestAgreementIsBounded: what comparing costs does not grow beyond its bound.
func TestAgreementIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for a second")
	}
	wide := map[string]any{}
	for i := range 200 {
		wide[strings.Repeat("n", i+1)] = map[string]any{"type": "array", "minItems": json.Number("200"), "items": map[string]any{"type": "integer", "minimum": json.Number("3")}}
	}
	c := NewCompiler(false)
	s, faults := c.Compile(encoded(map[string]any{"properties": wide}), Options{})
	if len(faults) > 0 || s.plain == nil {
		t.Fatalf("%v, %.200s", faults, s.Disputed())
	}
	first := len(s.plain.Probes(func(string) bool { return false }))
	if spent := c.agreement.spent.Load(); spent > maxSchemaAgreementSteps || first > 1000 {
		t.Errorf("%d steps, %d values", spent, first)
	}
}

// TestLateComparison: beyond the bound a schema is compared before its first value, and its
// program accepts nothing if the evaluators disagree.
func TestLateComparison(t *testing.T) {
	value := []byte(`{"name":"a"}`)
	for name, c := range map[string]struct {
		spoil func(*Schema)
		want  bool
	}{
		"agreement":    {func(*Schema) {}, true},
		"disagreement": {func(s *Schema) { s.root = &node{enumPrimaryOnly: true} }, false},
		"a panic":      {func(s *Schema) { s.secondary = nil }, false},
	} {
		compiler := NewCompiler(false)
		compiler.agreement.spent.Store(maxAgreementSteps + 1)
		s, faults := compiler.Compile(json.RawMessage(`{"properties":{"name":{"type":"string"}},"required":["name"]}`), Options{})
		if len(faults) > 0 || s.plain == nil || s.late == nil || compiler.agreement.spent.Load() != maxAgreementSteps+1 {
			t.Fatalf("%s: %v, compared beyond the bound", name, faults)
		}
		c.spoil(s)
		for range 2 {
			func() {
				defer func() { _ = recover() }()
				if got := s.AcceptsJSON(value); got != c.want {
					t.Errorf("%s: accepted %v", name, got)
				}
				if got := s.WithinJSON(value, func(string, string) bool { return true }); got != c.want {
					t.Errorf("%s: within %v", name, got)
				}
			}()
		}
	}
}
