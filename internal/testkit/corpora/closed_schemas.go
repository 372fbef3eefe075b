package corpora

import (
	"testing"
)

// Closed is Definitions where every object holds declared members alone, so that what we
// send is held against the letter of a protocol whose schemas let other members pass. The
// definitions are changed first, for members that the protocol has got since.
func Closed(t testing.TB, change func(definitions map[string]any), elements ...string) *Components {
	t.Helper()
	document := read(t, elements)
	definitions, ok := document["$defs"].(map[string]any)
	if !ok {
		t.Fatalf("%v has no definitions", elements)
	}
	change(definitions)
	closed := map[string]any{}
	for name, definition := range definitions {
		closeValues(definition)
		closed[name] = map[string]any{"$ref": "#/$defs/" + name, unevaluated: false}
	}
	document["closed"] = closed
	return compiled(t, "#/closed/", document)
}

const unevaluated = "unevaluatedProperties"

// closeValues closes the schemas of the values in a schema. The schema itself stays open:
// it may be one of several for the same value, each of which has seen some of the members.
func closeValues(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	for _, name := range []string{"allOf", "anyOf", "oneOf"} {
		of, _ := s[name].([]any)
		for _, other := range of {
			closeValues(other)
		}
	}
	values, _ := s["properties"].(map[string]any)
	for _, value := range values {
		closeValue(value)
	}
	closeValue(s["items"])
	closeValue(s["additionalProperties"])
}

// closeValue closes the schema of a whole value, unless it takes any member.
func closeValue(schema any) {
	s, ok := schema.(map[string]any)
	if !ok {
		return
	}
	closeValues(s)
	for _, name := range []string{"$ref", "allOf", "anyOf", "oneOf", "properties"} {
		_, others := s["additionalProperties"]
		if _, has := s[name]; has && !others {
			s[unevaluated] = false
		}
	}
}
