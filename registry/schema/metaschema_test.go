package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	oracle "github.com/santhosh-tekuri/jsonschema/v6"
)

// TestMetaschema gives every keyword values of many forms, in both dialects, and compares what is refused
// with an implementation of the metaschemas.
func TestMetaschema(t *testing.T) {
	forms := []string{
		`null`, `true`, `false`, `0`, `-1`, `-0`, `1.5`, `2.0`, `1e2`, `15e-1`, `""`, `"a"`, `"a b"`, `"1a"`, `"#x"`, `"x#"`, `"a\\b"`, `"%zz"`, `"string"`, `"strin"`, `"^a("`, `"date"`,
		`[]`, `["string"]`, `["string","string"]`, `["string","strin"]`, `["a",1]`, `[1,1.0]`, `[0,-0]`, `[{"a":[1]},{"a":[1.0]}]`, `["1",1]`, `[{}]`, `[true]`, `[1]`, `[{"type":1}]`, `[[]]`,
		`{}`, `{"a":1}`, `{"a":{}}`, `{"a":{"minLength":-1}}`, `{"a":["b"]}`, `{"a":["b","b"]}`, `{"a":[1]}`, `{"type":"strin"}`, `{"properties":{"a":[]}}`, `{"^a(":{}}`,
	}
	for _, dialect := range []string{draft2020, draft7} {
		meta, err := oracle.NewCompiler().Compile(dialect)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(maps.Keys(keywords)) {
			for _, form := range forms {
				raw := fmt.Sprintf(`{"$schema":%q,%q:%s}`, dialect, name, form)
				value, unreadable := decodeSchema([]byte(raw))
				if name == "$schema" {
					raw = fmt.Sprintf(`{%q:%s}`, name, form)
					value, unreadable = decodeSchema([]byte(raw))
				}
				if unreadable != nil {
					t.Fatal(unreadable)
				}
				l := newResolver(Options{})
				doc := l.add(value, baseURI)
				l.checkForms(doc)
				byForm := len(l.faults)
				l.lint(doc)
				l.references(doc)
				allowed := meta.Validate(decoded(t, []byte(raw))) == nil
				switch {
				case len(l.faults) == 0 && !allowed:
					t.Errorf("%s loads; the metaschema forbids it", raw)
				case byForm > 0 && allowed && !stricter(dialect, name):
					t.Errorf("%s: %v; the metaschema allows it", raw, l.faults[:byForm])
				}
			}
		}
	}
}

// stricter reports whether a keyword may be refused where the metaschema allows it: an identifier of
// another base, items as 2020-12 does not have them, and what draft-07 does not know.
func stricter(dialect, name string) bool {
	return name == "$id" || dialect == draft7 && (name == "items" || name == "$defs" || keywords[name].only == draft2020)
}

// TestFormsAreReportedAtOnce: each fault has its place, says what is there and what belongs there.
func TestFormsAreReportedAtOnce(t *testing.T) {
	_, faults := read(json.RawMessage(`{"type":"object","properties":{"a":{"type":"strin","minLength":-1},"b":{"enum":5},"c":{"contentSchema":{"required":[1]}}}}`), Options{})
	var lines []string
	for _, f := range faults {
		lines = append(lines, f.Pointer+" "+f.Message)
	}
	want := `/properties/a/minLength found -1; expected a whole number from 0
/properties/a/type found "strin"; expected a type, or a list of types: string, integer, number, boolean, array, object or null
/properties/b/enum found 5; expected a list
/properties/c/contentSchema/required/0 found 1; expected a name, as a string`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("found\n%s\nexpected\n%s", got, want)
	}
}
