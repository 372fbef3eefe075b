package compare

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strings"
)

// sampler makes values that a schema is likely to accept. They are guesses: the schema's own
// evaluators say whether they hold.
type sampler struct{ depth int }

const maxSampleDepth = 8

// value makes a value for a schema, with the members that it requires.
func (s *sampler) value(schema map[string]any) any {
	if s.depth++; s.depth > maxSampleDepth {
		s.depth--
		return nil
	}
	defer func() { s.depth-- }()
	if value, ok := schema["const"]; ok {
		return value
	}
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	for _, keyword := range []string{"oneOf", "anyOf", "allOf"} {
		if list, ok := schema[keyword].([]any); ok && len(list) > 0 && schema["type"] == nil {
			if first, isObject := list[0].(map[string]any); isObject {
				return s.value(first)
			}
		}
	}
	kind, _ := schema["type"].(string)
	if kinds := texts(schema["type"]); kind == "" && len(kinds) > 0 {
		kind = kinds[0]
	}
	switch kind {
	case "string":
		return s.text(schema)
	case "integer", "number":
		return number(schema, kind == "integer")
	case "boolean":
		return false
	case "array":
		items, _ := schema["items"].(map[string]any)
		size, _ := exactNumber(numberOf(schema["minItems"]))
		return listOf(min(int(size), maxSize), func(i int) any { return s.item(items, i) })
	case "object":
		return s.object(schema)
	}
	return nil
}

func (s *sampler) object(schema map[string]any) map[string]any {
	object := map[string]any{}
	declared, _ := schema["properties"].(map[string]any)
	for _, name := range texts(schema["required"]) {
		of, _ := declared[name].(map[string]any)
		object[name] = s.value(of)
	}
	return object
}

// item makes the i-th of a list's elements, which differ where they are texts or numbers.
func (s *sampler) item(items map[string]any, i int) any {
	value := s.value(items)
	switch {
	case items == nil:
		return "other" + strings.Repeat("-", i)
	case i == 0 || items["enum"] != nil || items["pattern"] != nil || items["format"] != nil:
		return value
	}
	switch v := value.(type) {
	case string:
		return v + strings.Repeat("-", i)
	case json.Number:
		if n, exact := exactNumber(v); exact {
			return jsonNumber(n + float64(i))
		}
	}
	return value
}

// formats have a text each that they accept.
var formats = map[string]string{
	"date": "2026-01-01", "date-time": "2026-01-01T00:00:00Z", "time": "00:00:00Z", "duration": "P1D",
	"email": "a@example.com", "hostname": "example.com", "ipv4": "192.0.2.1", "ipv6": "2001:db8::1",
	"uri": "https://example.com/", "uri-reference": "/", "uuid": "00000000-0000-4000-8000-000000000000",
}

func (s *sampler) text(schema map[string]any) string {
	if pattern, ok := schema["pattern"].(string); ok {
		if text, ok := matching(pattern); ok {
			return text
		}
	}
	if format, ok := schema["format"].(string); ok && formats[format] != "" {
		return formats[format]
	}
	size, _ := exactNumber(numberOf(schema["minLength"]))
	text := "other"
	if longest, ok := exactNumber(numberOf(schema["maxLength"])); ok && schema["maxLength"] != nil && longest < float64(len(text)) {
		text = text[:int(max(longest, 0))]
	}
	return text + strings.Repeat("x", max(0, min(int(size), 1<<10)-len(text)))
}

func numberOf(value any) json.Number {
	if n, ok := value.(json.Number); ok {
		return n
	}
	return "0"
}

// number is the least that is accepted, or 0, or the most.
func number(schema map[string]any, whole bool) json.Number {
	p := readProperty(map[string]any{"properties": map[string]any{"n": schema}}, "n")
	v := max(0, p.low)
	if _, exclusive := schema["exclusiveMinimum"]; exclusive && v == p.low || whole && v != float64(int64(v)) {
		v = wholeAbove(v)
	}
	if v > p.high {
		v = p.high
	}
	return jsonNumber(v)
}

// matching makes a short text that matches a pattern; ok is false where the pattern is not
// RE2's, or cannot be met at once. Anchors are taken to hold.
func matching(pattern string) (text string, ok bool) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", false
	}
	var b strings.Builder
	if !writeMatching(&b, parsed.Simplify()) {
		return "", false
	}
	return b.String(), true
}

// maxMatching bounds the texts that are made for patterns.
const maxMatching = 1 << 10

func writeMatching(b *strings.Builder, re *syntax.Regexp) bool {
	if b.Len() > maxMatching {
		return false
	}
	switch re.Op {
	case syntax.OpNoMatch:
		return false
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		if len(re.Rune) == 0 {
			return false
		}
		b.WriteRune(runeOf(re.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('x')
	case syntax.OpPlus, syntax.OpCapture, syntax.OpAlternate:
		return writeMatching(b, re.Sub[0])
	case syntax.OpRepeat:
		for range re.Min {
			if !writeMatching(b, re.Sub[0]) {
				return false
			}
		}
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !writeMatching(b, sub) })
	}
	return true
}

// runeOf is a letter or digit of a class where it has one.
func runeOf(class []rune) rune {
	for _, wanted := range "a0A" {
		for i := 0; i+1 < len(class); i += 2 {
			if class[i] <= wanted && wanted <= class[i+1] {
				return wanted
			}
		}
	}
	return class[0]
}
