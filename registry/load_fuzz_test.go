package registry

import (
	"github.com/callgate/callgate/tool"
	"testing"
)

// FuzzLoad: whatever a definition holds, it loads or is refused with a reason,
// and what is shown of it is a schema again.
func FuzzLoad(f *testing.F) {
	for _, schema := range []string{
		toolSchema,
		`{"$defs":{"n":{"type":"object","properties":{"c":{"$ref":"#/$defs/n"}}}},"properties":{"x":{"$ref":"#/$defs/n"}}}`,
		`{"oneOf":[{"required":["a"]},{"properties":{"b":{"const":1.0}}}],"unevaluatedProperties":false}`,
		`{"if":{"properties":{"a":{"enum":[1,null]}}},"then":{"patternProperties":{"^b":{"multipleOf":0.1}}},"else":{"not":{"contains":{}}}}`,
		`{"prefixItems":[{"type":"integer"}],"contains":{"minLength":2},"unevaluatedItems":false,"uniqueItems":true}`,
		`{"$id":"https://x.invalid/a","$anchor":"b","allOf":[{"$ref":"#b/c"}]}`,
		`{"dependentSchemas":{"a":{"minProperties":2}},"dependentRequired":{"b":["a"]},"propertyNames":{"maxLength":1}}`,
	} {
		f.Add("web.search", []byte(schema))
	}
	f.Add("a b", []byte(`{"$ref":"http://127.0.0.1:1/x"}`))
	f.Fuzz(func(t *testing.T, name string, schema []byte) {
		if len(schema) > 16<<10 {
			return
		}
		r, err := New([]Tool{{Name: name, InputSchema: schema, Run: tool.Run{Type: "demo"}}})
		if (r == nil) == (err == nil) {
			t.Fatal("neither loaded nor refused")
		}
		if err != nil {
			for _, f := range loadErrors(t, err) {
				if f.Message == "" {
					t.Fatalf("no reason: %v", f)
				}
			}
		} else {
			e, ok := r.Lookup(name)
			if !ok {
				t.Fatal("not found")
			}
			if _, err := New([]Tool{{Name: name, InputSchema: e.ClosedSchema(), Run: tool.Run{Type: "demo"}}}); err != nil {
				t.Fatalf("what is shown does not load: %s: %v", e.ClosedSchema(), err)
			}
			e.Evaluate(map[string]any{"a": map[string]any{"b": []any{nil}}})
		}
	})
}
