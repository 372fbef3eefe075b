package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/registry/format"
)

// author writes plain schemas, and values that meet them or just do not.
type author struct{ *rand.Rand }

func newAuthor(seed uint64) author { return author{rand.New(rand.NewPCG(seed, 14))} }

func pick[T any](a author, list ...T) T { return list[a.IntN(len(list))] }

func (a author) oneIn(n int) bool { return a.IntN(n) == 0 }

var (
	plainNames   = []string{"a", "b", "c", "name", "é", "a\"b", "x/y", "a-longer-name-of-a-member", "\u2028", "😀", "", "$ref", "$id", "type", "properties", "a.b", "a~b", "%41", "A"}
	plainTexts   = []string{"", "a", "ab", "abc", "é", "😀", "a\"\\\n", "e\u0301", "\x00", "2026-01-31", "10.0.0.1", "a@example.com", "https://example.com/a?b#c", "P3D", "true", "1", strings.Repeat("long ", 30)}
	plainNumbers = []string{"0", "-0", "-0.0", "1", "1.0", "-1", "2", "1.5", "0.1", "0.3", "1e2", "100", "1E-2", "0.01", "1e400", "-1e400", "1e-400", "9007199254740993", "9007199254740992",
		"999999999999999999", "1000000000000000000", "18446744073709551616", "123456789012345678901234567890", "0.000000000000000001", "0.100000000000000000000000001", "1.000000000000000000", "10e-1", "0e5"}
	plainPatterns = []string{"^a", "b$", "^$", "^[a-z]{2,4}$", ".", "é", "^\\d{4}-", "(a|b)+c?$", "😀", "\\p{L}", "^\\w+$", "[^\\s]\\n?", "(?i)^A", "\\/", "^(?:)$"}
)

func (a author) scalar() any {
	switch a.IntN(8) {
	case 0:
		return nil
	case 1:
		return a.oneIn(2)
	case 2, 3, 4:
		return pick(a, plainTexts...)
	}
	return json.Number(pick(a, plainNumbers...))
}

func (a author) list(n int, item func() any) []any {
	list := []any{}
	for range n {
		list = append(list, item())
	}
	return list
}

// schema writes a plain schema. References lead to definitions of a lower level only.
func (a author) schema(depth int) any {
	if a.oneIn(25) {
		return a.oneIn(2)
	}
	s := map[string]any{}
	if a.oneIn(6) && depth > 0 {
		s["$ref"] = fmt.Sprintf("#/$defs/%d", a.IntN(depth))
		if a.oneIn(3) {
			s["minLength"] = json.Number("1")
		}
		if a.oneIn(4) {
			s["x-boundary"] = pick(a, "path", "host")
		}
		if a.oneIn(4) {
			s["unevaluatedProperties"] = a.oneIn(4)
		}
		return s
	}
	kind := pick(a, "object", "object", "array", "string", "string", "integer", "number", "boolean", "null", "any")
	if depth == 0 && (kind == "object" || kind == "array") {
		kind = "string"
	}
	switch {
	case a.oneIn(8):
		s["type"] = []any{pick(a, "null", "object", "array"), pick(a, "string", "integer", "boolean"), "number"}[:1+a.IntN(3)]
	case kind != "any":
		s["type"] = kind
	}
	number := func(keyword string) {
		if a.oneIn(3) {
			s[keyword] = json.Number(pick(a, plainNumbers...))
		}
	}
	count := func(keyword string) {
		if a.oneIn(3) {
			s[keyword] = json.Number(pick(a, "0", "1", "2", "3", "1e1", "1.0", "99999999999999999999"))
		}
	}
	if a.oneIn(6) {
		s["enum"] = a.list(1+a.IntN(12), a.scalar)
	}
	if a.oneIn(20) {
		s["const"] = a.scalar()
	}
	switch kind {
	case "integer", "number", "any":
		for _, keyword := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
			number(keyword)
		}
		if a.oneIn(4) {
			s["multipleOf"] = json.Number(pick(a, "1", "2", "0.1", "0.01", "3", "1e-2", "1e18", "0.000000000000000003", "7e30"))
		}
	case "string":
		count("minLength")
		count("maxLength")
		if a.oneIn(4) {
			s["pattern"] = pick(a, plainPatterns...)
		}
		if a.oneIn(4) {
			s["format"] = pick(a, format.Names()...)
		}
		if a.oneIn(6) && s["type"] != nil {
			s["x-boundary"] = pick(a, "path", "host")
		}
	case "array":
		count("minItems")
		count("maxItems")
		if !a.oneIn(4) {
			s["items"] = a.schema(depth - 1)
		}
		if a.oneIn(8) {
			s["unevaluatedItems"] = a.schema(depth - 1)
		}
		if a.oneIn(8) {
			s["type"], s["items"], s["x-boundary"] = "array", map[string]any{"type": "string"}, "url"
		}
	case "object":
		a.object(s, depth)
		count("minProperties")
		count("maxProperties")
	}
	return s
}

func (a author) object(s map[string]any, depth int) {
	properties := map[string]any{}
	for range 1 + a.IntN(4) {
		properties[pick(a, plainNames...)] = a.schema(depth - 1)
	}
	if a.oneIn(10) {
		for i := range 20 {
			properties[fmt.Sprint("p", i)] = a.schema(0)
		}
	}
	s["properties"] = properties
	if a.oneIn(2) {
		required := map[string]bool{}
		for range 1 + a.IntN(2) {
			required[pick(a, plainNames...)] = true
		}
		var names []any
		for name := range required {
			names = append(names, name)
		}
		s["required"] = names
	}
	for a.oneIn(3) {
		s[pick(a, "additionalProperties", "unevaluatedProperties")] = pick[any](a, true, false, map[string]any{"type": "string"}, a.schema(depth-1))
	}
}

// definition writes a whole definition.
func (a author) definition() []byte {
	root, definitions := map[string]any{"type": "object"}, map[string]any{}
	for level := range 3 {
		definitions[fmt.Sprint(level)] = a.schema(level)
	}
	a.object(root, 3)
	if a.oneIn(8) {
		definitions["object"] = root
		root = map[string]any{"$ref": "#/$defs/object"}
	}
	root["$defs"] = definitions
	return encoded(root)
}

func encoded(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

// value makes a value that mostly meets a node.
func (a author) value(n *node, depth int) any {
	for n.ref != nil && depth < 20 {
		n, depth = n.ref, depth+1
	}
	if a.oneIn(15) || depth >= 20 {
		return a.scalar()
	}
	for _, set := range []*valueSet{n.constant, n.enum} {
		if set != nil {
			return pick(a, set.list...)
		}
	}
	kinds := n.types
	if kinds == 0 {
		switch {
		case n.properties != nil || n.additionalProperties != nil:
			kinds = typeObject
		case n.items != nil:
			kinds = typeArray
		default:
			return a.scalar()
		}
	}
	var shown []typeSet
	for _, t := range typeNames {
		if kinds&t.bit != 0 {
			shown = append(shown, t.bit)
		}
	}
	switch pick(a, shown...) {
	case typeNull:
		return nil
	case typeBoolean:
		return a.oneIn(2)
	case typeString:
		return a.text(n)
	case typeInteger, typeNumber:
		return a.number(n)
	case typeArray:
		items := n.items
		if items == nil {
			items = &node{empty: true}
		}
		size := a.IntN(4)
		if n.minItems < 10 {
			size = max(size, n.minItems)
		}
		return a.list(size, func() any { return a.value(items, depth+1) })
	}
	object := map[string]any{}
	for _, name := range n.sortedProperties {
		if slices.Contains(n.required, name) && !a.oneIn(30) || a.oneIn(2) {
			object[name] = a.value(n.properties[name], depth+1)
		}
	}
	additional := n.additionalProperties
	if additional == nil {
		additional = &node{empty: true}
	}
	for _, name := range n.required {
		if _, has := object[name]; !has && !a.oneIn(30) {
			object[name] = a.value(additional, depth+1)
		}
	}
	if a.oneIn(8) || !additional.never && a.oneIn(2) {
		object[pick(a, plainNames...)] = a.value(additional, depth+1)
	}
	return object
}

func (a author) text(n *node) string {
	if a.oneIn(3) && n.minLength < 200 {
		length := n.minLength
		if n.maxLength >= 0 && n.maxLength < 200 {
			length = n.maxLength
		}
		return strings.Repeat(pick(a, "a", "é", "😀", "\n"), max(0, length+a.IntN(3)-1))
	}
	return pick(a, plainTexts...)
}

func (a author) number(n *node) json.Number {
	for _, bound := range []any{n.minimum, n.maximum, n.exclusiveMinimum, n.exclusiveMaximum} {
		if d := fmt.Sprint(bound); d != "<nil>" && a.oneIn(4) {
			return json.Number(d)
		}
	}
	if a.oneIn(2) {
		return json.Number(fmt.Sprint(a.IntN(200) - 20))
	}
	return json.Number(pick(a, plainNumbers...))
}

// json writes a value as JSON in one of the ways that mean the same.
func (a author) json(b []byte, v any) []byte {
	space := func() {
		if a.oneIn(12) {
			b = append(b, pick(a, " ", "\n\t", "\r")...)
		}
	}
	space()
	switch v := v.(type) {
	case string:
		b = a.quote(b, v)
	case []any:
		b = append(b, '[')
		for i, item := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = a.json(b, item)
		}
		space()
		b = append(b, ']')
	case map[string]any:
		b = append(b, '{')
		first := true
		for name, item := range v {
			if !first {
				b = append(b, ',')
			}
			first = false
			space()
			b = a.quote(b, name)
			space()
			b = append(b, ':')
			b = a.json(b, item)
		}
		space()
		b = append(b, '}')
	default:
		b = append(b, encoded(v)...)
	}
	space()
	return b
}

func (a author) quote(b []byte, s string) []byte {
	if !a.oneIn(6) {
		return rawjson.AppendQuote(b, s)
	}
	b = append(b, '"')
	for _, c := range s {
		switch {
		case c > 0xffff:
			b = fmt.Appendf(b, "\\u%04x\\u%04X", 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff)
		case c < ' ' || c == '"' || c == '\\' || a.oneIn(2):
			b = fmt.Appendf(b, "\\u%04x", c)
		default:
			b = append(b, string(c)...)
		}
	}
	return append(b, '"')
}

// mutated changes, drops or doubles a few bytes.
func (a author) mutated(raw []byte) []byte {
	b := slices.Clone(raw)
	for range 1 + a.IntN(2) {
		i := a.IntN(len(b))
		switch a.IntN(4) {
		case 0:
			b[i] = pick(a, []byte("0123456789eE+-.,:\"\\{}[]tfnu a\x00\x7f\x80\xc3\xff")...)
		case 1:
			b = slices.Delete(b, i, i+1)
		case 2:
			b = slices.Insert(b, i, pick(a, []byte("0123456789eE+-.,:\"\\{}[] ")...))
		case 3:
			j := min(len(b), i+1+a.IntN(4))
			b = slices.Insert(b, i, slices.Clone(b[i:j])...)
		}
		if len(b) == 0 {
			return []byte("{}")
		}
	}
	return b
}
