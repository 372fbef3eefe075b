package schema

import (
	"bytes"
	"encoding/json"
	"testing"
)

func seedSchemas(f *testing.F, add func(schema, value []byte)) {
	add([]byte(benchSchema), []byte(benchArguments))
	add([]byte(`{"$defs":{"n":{"type":"object","properties":{"c":{"$ref":"#/$defs/n"}}}},"properties":{"x":{"$ref":"#/$defs/n"}}}`), []byte(`{"x":{"c":{"d":1}}}`))
	add([]byte(`{"oneOf":[{"required":["a"]},{"properties":{"b":{"const":1.0}}}],"unevaluatedProperties":false}`), []byte(`{"a":1,"b":1}`))
	add([]byte(`{"if":{"properties":{"a":{"enum":[1,null]}}},"then":{"patternProperties":{"^b":{"multipleOf":0.1}}},"else":{"not":{"contains":{}}}}`), []byte(`{"a":1e0,"bc":0.3}`))
	add([]byte(`{"prefixItems":[{"type":"integer"}],"contains":{"minLength":2},"unevaluatedItems":false,"uniqueItems":true}`), []byte(`[1,"ab"]`))
	add([]byte(`{"$id":"https://x.invalid/a","$anchor":"b","allOf":[{"$ref":"#b/c"}]}`), []byte(`{}`))
	add([]byte(`{"dependentSchemas":{"a":{"minProperties":2}},"dependentRequired":{"b":["a"]},"propertyNames":{"maxLength":1}}`), []byte(`{"b":0}`))
}

// FuzzEvaluate compares, for any schema that loads and any value, the verdict with the
// oracle's, on the schema as written and on the closed one.
func FuzzEvaluate(f *testing.F) {
	seedSchemas(f, func(schema, value []byte) { f.Add(schema, value) })
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if len(schema) > 4<<10 || len(value) > 4<<10 || !json.Valid(value) {
			return
		}
		d := json.NewDecoder(bytes.NewReader(value))
		d.UseNumber()
		var v any
		if d.Decode(&v) != nil {
			return
		}
		if !wellFormed(v, 1) {
			return
		}
		if s, faults := read(schema, Options{Authored: true, formatAnnotations: true}); len(faults) == 0 {
			o, err := oracleFor(schema)
			if err != nil {
				t.Fatalf("loaded what the oracle refuses: %v", err)
			}
			if len(s.Evaluate("tool", v)) == 0 && o.Validate(v) != nil {
				t.Fatal("accepted; refused by the oracle")
			}
		}
		if stated, n := withMembersStated(t, schema); n > 0 {
			if _, repeated := withMembersStated(t, stated); repeated > 0 {
				t.Fatalf("%d places are stated twice", repeated)
			}
		}
		args, ok := v.(map[string]any)
		if !ok {
			return
		}
		s, faults := read(schema, Options{formatAnnotations: true})
		if len(faults) > 0 {
			return
		}
		if _, faults := read(s.Closed(), Options{formatAnnotations: true}); len(faults) > 0 {
			t.Fatalf("what is shown does not load: %s: %v", s.Closed(), faults)
		}
		found := s.Evaluate("tool", args)
		checkViolations(t, args, found)
		if len(found) > 0 {
			return
		}
		o, err := oracleFor(schema)
		if err != nil {
			t.Fatalf("loaded what the oracle refuses: %v", err)
		}
		if err := o.Validate(v); err != nil {
			t.Fatalf("closing accepts what the author refuses: %v", err)
		}
	})
}

// FuzzPlain compares, for any plain schema and any text, the program with both libraries.
func FuzzPlain(f *testing.F) {
	seedSchemas(f, func(schema, value []byte) { f.Add(schema, value) })
	for seed := range uint64(20) {
		a := newAuthor(seed)
		schema := a.definition()
		if s, faults := read(schema, Options{}); len(faults) == 0 {
			f.Add(schema, a.json(nil, a.value(s.library().root, 0)))
		}
	}
	f.Fuzz(func(t *testing.T, schema, value []byte) {
		if len(schema) > 4<<10 || len(value) > 4<<10 {
			return
		}
		s, faults := read(schema, Options{})
		if len(faults) > 0 || s.plain == nil {
			return
		}
		o, err := oracleFor(s.closed)
		if err != nil {
			t.Fatal(err)
		}
		e := &evaluators{s, o}
		if wrong := e.check(); wrong != "" {
			t.Fatalf("%s\nschema %s", wrong, schema)
		}
		if _, wrong := e.compare(value); wrong != "" {
			t.Fatalf("%s\nschema %s\nvalue %s", wrong, s.closed, value)
		}
	})
}
