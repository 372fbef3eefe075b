package plain

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/registry/format"
)

const (
	// Boundary is the keyword that names what a text must stay within. It asserts nothing:
	// see Program.Within.
	Boundary = "x-boundary"
)

// Compile compiles a closed document, as package schema makes it: objects as
// map[string]any, numbers as json.Number, every $ref to #/$defs. A program that takes more
// than maxSteps for a value accepts nothing. If the schema
// is not plain, there is no program, and reason says which keyword is in the way.
func Compile(document any, maxSteps int) (p *Program, reason string) {
	c := &compiler{p: &Program{nodes: []node{anything: {kinds: anyKind, steps: 4}, nothing: {}}, maxSteps: maxSteps},
		shared: map[string]int{}}
	root, _ := document.(map[string]any)
	c.definitions, _ = root["$defs"].(map[string]any)
	c.p.root = c.schema(document)
	if c.reason != "" {
		return nil, c.reason
	}
	return c.p, ""
}

// maxNodes bounds a program, and maxReferences the references that lead from one schema to
// the next for one value.
const (
	maxNodes      = 10_000
	maxReferences = 8
)

type compiler struct {
	p           *Program
	definitions map[string]any
	shared      map[string]int // nodes of schemas with $ref, by their text, or beingCompiled
	reason      string         // why the schema is not plain
}

const beingCompiled = -1

// refuse keeps the first reason.
func (c *compiler) refuse(reason string) int {
	if c.reason == "" {
		c.reason = reason
	}
	return nothing
}

// schema returns the node of a schema.
func (c *compiler) schema(v any) int {
	object, ok := v.(map[string]any)
	switch {
	case v == true:
		return anything
	case !ok:
		return nothing
	case c.reason != "":
		return nothing
	case len(c.p.nodes) > maxNodes:
		return c.refuse("size")
	}
	if _, refers := object["$ref"].(string); !refers {
		return c.node(object, 0)
	}
	raw, err := json.Marshal(object)
	if err != nil {
		return c.refuse("$ref")
	}
	key := string(raw)
	at, known := c.shared[key]
	switch {
	case known && at == beingCompiled:
		return c.refuse("recursion")
	case !known:
		c.shared[key] = beingCompiled
		at = c.node(c.merge(object, 0))
		c.shared[key] = at
	}
	return at
}

func isExtension(keyword string) bool {
	return strings.HasPrefix(keyword, "x-")
}

// merge returns a schema without $ref that says the same as one with it, to which references
// led, and how many there are in all.
func (c *compiler) merge(schema map[string]any, references int) (map[string]any, int) {
	ref, refers := schema["$ref"].(string)
	if !refers {
		return schema, references
	}
	target, ok := c.definitions[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	if !ok || references == maxReferences {
		c.refuse("$ref")
		return nil, 0
	}
	target, references = c.merge(target, references+1)
	if c.reason != "" {
		return nil, 0
	}
	merged := maps.Clone(target)
	for name, value := range schema {
		other, has := merged[name]
		switch {
		case name == "$ref" || isExtension(name) && name != Boundary:
		case name == "unevaluatedProperties" && value == false:
			// The target has evaluated all members if it says anything of the rest.
			if merged["additionalProperties"] == nil && !has {
				merged[name] = value
			}
		case has && !reflect.DeepEqual(other, value), dependsOnNeighbours(name):
			c.refuse(name + " beside $ref")
		default:
			merged[name] = value
		}
	}
	return merged, references
}

// dependsOnNeighbours reports whether a keyword means something else in another schema than
// its own.
func dependsOnNeighbours(keyword string) bool {
	switch keyword {
	case "properties", "additionalProperties", "unevaluatedProperties", "items", "unevaluatedItems":
		return true
	}
	return false
}

// node compiles a schema without $ref.
func (c *compiler) node(schema map[string]any, references int) int {
	foreign := ""
	for name := range schema {
		if !plainKeywords[name] && !isExtension(name) && (foreign == "" || name < foreign) {
			foreign = name
		}
	}
	if foreign != "" {
		return c.refuse(foreign)
	}
	at := len(c.p.nodes)
	c.p.nodes = append(c.p.nodes, node{})
	n := node{kinds: kindsOf(schema["type"])}
	n.steps = 8 + c.enums(&n, schema)
	n.numbers = c.numbers(schema)
	n.texts = c.texts(schema)
	n.boundary, _ = schema[Boundary].(string)
	n.arrays = c.arrays(schema)
	if n.objects = c.objects(schema); n.objects != nil {
		names := len(n.objects.names.list)
		n.steps += names + names*names/256
	}
	n.steps *= 1 + references
	c.p.nodes[at] = n
	return at
}

// plainKeywords may stand in a plain schema; read only.
var plainKeywords = map[string]bool{
	"$defs": true, "type": true, "enum": true, "const": true,
	"minimum": true, "maximum": true, "exclusiveMinimum": true, "exclusiveMaximum": true, "multipleOf": true,
	"minLength": true, "maxLength": true, "pattern": true, "format": true,
	"items": true, "unevaluatedItems": true, "minItems": true, "maxItems": true,
	"properties": true, "required": true, "additionalProperties": true, "unevaluatedProperties": true, "minProperties": true,
	"maxProperties": true,
}

func kindsOf(types any) kinds {
	list, ok := types.([]any)
	if types == nil {
		return anyKind
	}
	if !ok {
		list = []any{types}
	}
	var set kinds
	for _, name := range list {
		switch name {
		case "null":
			set |= kindNull
		case "boolean":
			set |= kindBoolean
		case "integer":
			set |= kindInteger
		case "number":
			set |= kindNumber
		case "string":
			set |= kindString
		case "array":
			set |= kindArray
		case "object":
			set |= kindObject
		}
	}
	return set
}

// enums compiles enum and const, and returns the steps that comparing with them takes.
func (c *compiler) enums(n *node, schema map[string]any) (steps int) {
	add := func(list []any) {
		s := &scalars{}
		var texts []string
		for _, v := range list {
			switch v := v.(type) {
			case nil:
				s.null = true
			case bool:
				s.yes, s.no = s.yes || v, s.no || !v
			case string:
				texts = append(texts, v)
			case json.Number:
				s.numbers = append(s.numbers, c.number(v))
				steps += slowSteps
			default:
				c.refuse("enum of arrays or objects")
			}
		}
		s.texts = newTable(texts)
		n.enums = append(n.enums, s)
	}
	if list, ok := schema["enum"].([]any); ok {
		add(list)
	}
	if value, ok := schema["const"]; ok {
		add([]any{value})
	}
	return steps
}

func (c *compiler) number(v any) number {
	literal, _ := v.(json.Number)
	d, ok := decimal.Parse(string(literal))
	if !ok {
		c.refuse("a number out of range")
	}
	return newNumber(d)
}

// has reports whether a schema has any of some keywords.
func has(schema map[string]any, keywords ...string) bool {
	return slices.ContainsFunc(keywords, func(name string) bool { _, has := schema[name]; return has })
}

func (c *compiler) numbers(schema map[string]any) *numberRules {
	w := &numberRules{fixed: true}
	rules := false
	for _, rule := range []struct {
		keyword string
		into    **number
	}{{"minimum", &w.minimum}, {"maximum", &w.maximum}, {"exclusiveMinimum", &w.above}, {"exclusiveMaximum", &w.below},
		{"multipleOf", &w.multiple}} {
		if value, ok := schema[rule.keyword]; ok {
			n := c.number(value)
			*rule.into, rules, w.fixed = &n, true, w.fixed && n.fits
		}
	}
	if !rules {
		return nil
	}
	return w
}

// most is a count that no value exceeds.
const most = 1 << 40

// count returns the value of a keyword that counts.
func (c *compiler) count(schema map[string]any, keyword string, absent int) int {
	value, ok := schema[keyword]
	if !ok {
		return absent
	}
	n := c.number(value)
	if !n.fits || n.fixed.negative || n.fixed.places > 0 || n.fixed.size > most {
		// kaptinlin/jsonschema takes a count beyond 64 bits for a negative one.
		c.refuse("a huge count")
	}
	return int(n.fixed.size)
}

func (c *compiler) texts(schema map[string]any) *textRules {
	if !has(schema, "minLength", "maxLength", "pattern", "format") {
		return nil
	}
	t := &textRules{minLength: c.count(schema, "minLength", 0), maxLength: c.count(schema, "maxLength", most)}
	if source, ok := schema["pattern"].(string); ok {
		tree, err := syntax.Parse(source, syntax.Perl)
		if err != nil {
			c.refuse("pattern")
			return nil
		}
		program, err := syntax.Compile(tree.Simplify())
		if err != nil {
			c.refuse("pattern")
			return nil
		}
		t.pattern, t.patternSize = regexp.MustCompile(source), len(program.Inst)
	}
	if name, ok := schema["format"].(string); ok {
		if t.format = format.Find(name); t.format == nil {
			c.refuse("format")
		}
	}
	return t
}

func (c *compiler) arrays(schema map[string]any) *arrayRules {
	if !has(schema, "items", "unevaluatedItems", "minItems", "maxItems") {
		return nil
	}
	a := &arrayRules{minItems: c.count(schema, "minItems", 0), maxItems: c.count(schema, "maxItems", most)}
	if kind, bounded := schema[Boundary]; bounded {
		// The boundary of a list is that of its items.
		items, _ := schema["items"].(map[string]any)
		if items == nil || has(items, Boundary) || has(schema, "unevaluatedItems") {
			c.refuse(Boundary)
			return nil
		}
		items = maps.Clone(items)
		items[Boundary] = kind
		a.items = c.schema(items)
		return a
	}
	a.items = c.rest(schema, "items", "unevaluatedItems")
	return a
}

// rest returns the node of the parts of a value that no other keyword names: the first keyword
// that is there says of all of them what they are. The next one applies to none, but package
// schema finds boundaries in it.
func (c *compiler) rest(schema map[string]any, first, next string) int {
	value, has := schema[first]
	beyond, hasNext := schema[next]
	switch {
	case has && hasNext && beyond != false:
		return c.refuse(next + " beside " + first)
	case has:
		return c.schema(value)
	case hasNext:
		return c.schema(beyond)
	}
	return anything
}

func (c *compiler) objects(schema map[string]any) *objectRules {
	if !has(schema, "properties", "required", "additionalProperties", "unevaluatedProperties", "minProperties", "maxProperties") {
		return nil
	}
	o := &objectRules{minProperties: c.count(schema, "minProperties", 0), maxProperties: c.count(schema, "maxProperties", most),
		additional: c.rest(schema, "additionalProperties", "unevaluatedProperties")}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	if len(properties) > maxNames || len(required) > maxNames {
		c.refuse("more than 256 members") // before each of them is looked for among the others
		return nil
	}
	names := slices.Sorted(maps.Keys(properties))
	for _, name := range required {
		if _, declared := properties[name.(string)]; !declared && !slices.Contains(names, name.(string)) {
			names = append(names, name.(string))
		}
	}
	if len(names) > maxNames {
		c.refuse("more than 256 members")
		return nil
	}
	for i, name := range names {
		child := o.additional
		if value, declared := properties[name]; declared {
			child = c.schema(value)
		}
		o.children = append(o.children, child)
		if slices.Contains(required, any(name)) {
			o.required[i/64] |= 1 << (i % 64)
		}
	}
	o.names = newTable(names)
	return o
}
