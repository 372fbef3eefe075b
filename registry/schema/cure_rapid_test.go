package schema

import (
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// TestCureAcceptsNoMore: what a cured definition accepts, the author's definition accepts by the rules of
// its dialect, as an independent implementation has them. Formats and nullable are not drawn: there the notes say
// what the cure adds.
func TestCureAcceptsNoMore(t *testing.T) {
	dialects := []string{"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#", draft7 + "#", "https://json-schema.org/draft/2019-09/schema"}
	cured, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		dialect := rapid.SampledFrom(dialects).Draw(t, "dialect")
		root := drawOld(t, 3, dialect == dialects[0])
		root["$schema"], root["type"] = dialect, "object"
		root["properties"] = map[string]any{"a": drawOld(t, 2, dialect == dialects[0]), "b": drawOld(t, 2, dialect == dialects[0])}
		root["definitions"] = map[string]any{"D": drawOld(t, 1, dialect == dialects[0])}
		raw, err := json.Marshal(root)
		if err != nil {
			t.Fatal(err)
		}
		theirs := jsonschema.NewCompiler()
		theirs.UseLoader(noLoader{})
		document, _ := decodeSchema(raw)
		if theirs.AddResource(baseURI, document) != nil {
			t.Skip()
		}
		author, err := theirs.Compile(baseURI)
		if err != nil {
			t.Skip()
		}
		text, changes := Cure(raw, false)
		ours, faults := NewCompiler().Compile(text, Options{})
		if len(faults) > 0 {
			return // left out
		}
		taken++
		if len(changes) > 0 {
			cured++
		}
		for range 8 {
			value := map[string]any{}
			for _, name := range []string{"a", "b", "c"} {
				if rapid.Bool().Draw(t, "has "+name) {
					value[name] = drawOldValue(t, 2)
				}
			}
			if len(ours.Evaluate("t", value)) == 0 && author.Validate(value) != nil {
				t.Fatalf("%s\ncured to %s\naccepts %v: %v", raw, text, value, author.Validate(value))
			}
		}
	})
	if cured < taken/4 || taken == 0 {
		t.Errorf("%d of %d were cured", cured, taken)
	}
}

// drawOld draws a schema with the words of old dialects.
func drawOld(t *rapid.T, depth int, draft4 bool) map[string]any {
	s := map[string]any{}
	words := []string{"type", "enum", "minimum", "required", "minItems", "ref", "annotation", "null"}
	if depth > 0 {
		words = append(words, "items", "tuple", "tuple", "additionalItems", "dependencies", "dependencies", "properties", "additionalProperties", "not", "anyOf", "allOf", "prefixItems", "dependentRequired", "unevaluatedItems", "contains")
	}
	below := func() map[string]any { return drawOld(t, depth-1, draft4) }
	for range rapid.IntRange(0, 4).Draw(t, "words") {
		switch word := rapid.SampledFrom(words).Draw(t, "word"); word {
		case "type":
			s["type"] = rapid.SampledFrom([]any{"integer", "string", "array", "object", "null", []any{"array", "null"}}).Draw(t, "type")
		case "enum":
			s["enum"] = []any{json.Number("1"), "x", nil}
		case "minimum":
			s["minimum"] = json.Number("1")
			if draft4 && rapid.Bool().Draw(t, "exclusive") {
				s["exclusiveMinimum"] = rapid.Bool().Draw(t, "is")
			}
		case "required":
			s["required"] = []any{"a"}
		case "minItems":
			s["minItems"] = json.Number("2")
		case "ref":
			s["$ref"] = "#/definitions/D"
		case "annotation":
			s["markdownDescription"] = "d"
		case "null":
			s["title"] = "t"
		case "items":
			s["items"] = below()
		case "tuple":
			s["items"] = []any{below(), below()}
		case "additionalItems", "additionalProperties":
			s[word] = below()
			if rapid.Bool().Draw(t, "closed") {
				s[word] = false
			}
		case "dependencies":
			s[word] = map[string]any{"a": []any{"b"}, "b": below()}
		case "dependentRequired":
			s[word] = map[string]any{"a": []any{"b"}}
		case "properties":
			s[word] = map[string]any{"a": below(), "b": below()}
		case "not", "contains", "unevaluatedItems":
			s[word] = below()
		case "anyOf", "allOf":
			s[word] = []any{below(), below()}
		case "prefixItems":
			s[word] = []any{below()}
		}
	}
	return s
}

func drawOldValue(t *rapid.T, depth int) any {
	kinds := 5
	if depth == 0 {
		kinds = 3
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return json.Number(rapid.SampledFrom([]string{"0", "1", "2"}).Draw(t, "number"))
	case 1:
		return "x"
	case 3:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			list = append(list, drawOldValue(t, depth-1))
		}
		return list
	case 4:
		object := map[string]any{}
		for _, name := range []string{"a", "b"} {
			if rapid.Bool().Draw(t, "has") {
				object[name] = drawOldValue(t, depth-1)
			}
		}
		return object
	}
	return nil
}
