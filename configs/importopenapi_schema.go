package configs

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/registry/format"
)

// schemas translates the schemas of one operation into JSON Schema 2020-12. What
// they refer to is collected under $defs.
type schemas struct {
	*operation
	left     int               // of maxOperation
	names    map[string]string // of definitions, by the pointer in the document
	used     map[string]bool   // names
	queue    []referred
	spent    bool            // of left
	readOnly map[string]bool // members that are no part of a request
	demands  []demand
}

// demand is what one schema requires.
type demand struct{ required, schema *yaml.Node }

// referred is a schema that others refer to.
type referred struct {
	name string
	node node
}

func newSchemas(o *operation) *schemas {
	return &schemas{operation: o, left: maxOperation, names: map[string]string{}, used: map[string]bool{}, readOnly: map[string]bool{}}
}

// definitions are the schemas that were referred to, each under its name.
func (s *schemas) definitions() (all []*yaml.Node) {
	for len(s.queue) > 0 {
		d := s.queue[0]
		s.queue = s.queue[1:]
		all = append(all, d.node.word(d.name), s.translate(d.node, 0))
	}
	return all
}

// How keywords hold schemas.
var (
	holdsOne  = []string{"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
	holdsList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	holdsMap  = []string{"properties", "patternProperties", "dependentSchemas"}
	// silent are those that OpenAPI adds, which assert nothing, or which hold what is
	// collected anyway.
	silent = []string{"discriminator", "xml", "externalDocs", "example", "readOnly", "writeOnly", "$defs", "definitions"}
)

// translate makes a schema of the registry's dialect of one of the document's. What
// the registry refuses it leaves: the registry says so.
func (s *schemas) translate(n node, depth int) *yaml.Node {
	if n.Kind != yaml.MappingNode || depth > maxNesting {
		return s.copy(n)
	}
	out := n.mapping()
	add := func(key node, value *yaml.Node) { out.Content = append(out.Content, key.word(key.Value), value) }
	_, _, refers := n.child("$ref")
	n.members("keywords", func(key, value node) {
		switch name := key.Value; {
		case !s.afford(key):
		case name == "$ref":
			add(key, s.reference(value))
		case strings.HasPrefix(name, "x-") && name != "x-boundary" && name != "x-secret", slices.Contains(silent, name):
		case refers && s.old:
			if name != "description" && name != "summary" && name != "title" {
				s.changed(key, "%s beside a $ref means nothing in OpenAPI 3.0; it was left out", name)
			}
		case name == "$id" || name == "$anchor":
			s.fail(key, "found %s in a schema; expected references by their place in the document alone", name)
		case name == "$schema":
			if !isDraft2020(value.Value) && !strings.HasPrefix(value.Value, "https://spec.openapis.org/oas/3.") {
				s.fail(value, "found the dialect %s; expected JSON Schema 2020-12", value.excerpt())
			}
		case name == "format":
			s.format(out, n, key, value)
		case s.old && s.translated(out, n, key, value):
		case slices.Contains(holdsOne, name):
			add(key, s.translate(value, depth+1))
		case slices.Contains(holdsList, name) && value.Kind == yaml.SequenceNode:
			list := value.sequence()
			for _, c := range value.Content {
				list.Content = append(list.Content, s.translate(value.with(c), depth+1))
			}
			add(key, list)
		case slices.Contains(holdsMap, name) && value.Kind == yaml.MappingNode:
			members := value.mapping()
			value.members("schemas", func(key, schema node) {
				if name == "properties" && s.answerOnly(schema) {
					s.readOnly[key.Value] = true
					return
				}
				members.Content = append(members.Content, key.word(key.Value), s.translate(schema, depth+1))
			})
			add(key, members)
		case name == "required" && value.Kind == yaml.SequenceNode:
			required := s.copy(value)
			s.demands = append(s.demands, demand{required, out})
			add(key, required)
		default:
			add(key, s.copy(value))
		}
	})
	return out
}

// afford counts a value, and reports the one that is too much.
func (s *schemas) afford(n node) bool {
	s.left--
	s.document.left--
	switch {
	case s.spent:
	case s.left <= 0:
		s.fail(n, "found more than %d values in the schemas of the operation; expected less", maxOperation)
	case s.document.left <= 0:
		s.fail(n, "found more than %d values in the schemas of the operations up to this; expected less: import the document in parts", maxImported)
	default:
		return true
	}
	s.spent = true
	return false
}

// copy takes a value as it is.
func (s *schemas) copy(n node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: n.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle), Value: n.Value, Line: n.Line, Column: n.Column}
	for _, child := range n.Content {
		if !s.afford(n) {
			break
		}
		c.Content = append(c.Content, s.copy(n.with(child)))
	}
	return c
}

// reference leads to a definition, which it asks for.
func (s *schemas) reference(ref node) *yaml.Node {
	target, pointer, problem := s.find(ref)
	if problem != "" {
		s.fail(ref, "%s", problem)
		return ref.word("#")
	}
	name, known := s.names[pointer]
	if !known {
		name = strings.ReplaceAll(strings.Trim(strings.TrimPrefix(pointer, "/components/schemas"), "/"), "/", ".")
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		for free := name; ; name = fmt.Sprintf("%s.%d", free, len(s.used)) {
			if !s.used[name] {
				break
			}
		}
		s.names[pointer], s.used[name] = name, true
		s.queue = append(s.queue, referred{name, target})
	}
	return ref.word("#/$defs/" + strings.ReplaceAll(strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1"), "%", "%25"))
}

// answerOnly tells of a member that stands in answers alone.
func (s *schemas) answerOnly(n node) bool {
	for range maxHops {
		if _, flag, ok := n.child("readOnly"); ok && n.Kind == yaml.MappingNode && flag.Value == "true" {
			return true
		}
		_, ref, ok := n.child("$ref")
		if !ok {
			return false
		}
		var problem string
		if n, _, problem = s.find(ref); problem != "" {
			return false
		}
	}
	return false
}

// finish takes members that are no part of a request out of what is required.
func (s *schemas) finish() {
	for _, d := range s.demands {
		_, declared, has := node{Node: d.schema}.child("properties")
		d.required.Content = slices.DeleteFunc(d.required.Content, func(name *yaml.Node) bool {
			return s.readOnly[name.Value] && !(has && declared.states(name.Value))
		})
	}
}

// bounds are what the formats of numbers say.
var bounds = map[string][2]string{
	"int32": {"-2147483648", "2147483647"},
	"int64": {"-9223372036854775808", "9223372036854775807"},
}

// format translates a format. One of OpenAPI's own says how a number is kept, one
// of the registry's is asserted, and any other is only said.
func (s *schemas) format(out *yaml.Node, n, key, value node) {
	add := func(name, tag, text string) {
		if !n.states(name) {
			w := key.word(text)
			w.Tag = tag
			out.Content = append(out.Content, key.word(name), w)
		}
	}
	switch name := value.Value; {
	case format.Known(name):
		out.Content = append(out.Content, key.word("format"), s.copy(value))
	case name == "int32" || name == "int64":
		if _, kind, ok := n.child("type"); ok && kind.Value == "integer" {
			add("minimum", "!!int", bounds[name][0])
			add("maximum", "!!int", bounds[name][1])
		}
	case name == "password":
		add("x-secret", "!!bool", "true")
	case name == "byte":
		add("contentEncoding", "!!str", "base64")
	case name == "float" || name == "double":
	default:
		s.changed(key, "the format %s is not judged; it was left out", value.excerpt())
	}
}

// translated writes what OpenAPI 3.0 says in another way than JSON Schema does.
func (s *schemas) translated(out *yaml.Node, n, key, value node) bool {
	switch key.Value {
	case "nullable":
	case "type":
		if _, nullable, ok := n.child("nullable"); !ok || nullable.Value != "true" || value.Kind != yaml.ScalarNode {
			return false
		}
		out.Content = append(out.Content, key.word("type"), value.sequence(s.copy(value), value.word("null")))
	case "exclusiveMinimum", "exclusiveMaximum":
		if value.ShortTag() != "!!bool" {
			return false
		}
		if _, bound, ok := n.child(plainBound(key.Value)); ok && value.Value == "true" {
			out.Content = append(out.Content, key.word(key.Value), s.copy(bound))
		}
	case "minimum", "maximum":
		_, exclusive, ok := n.child("exclusive" + strings.ToUpper(key.Value[:1]) + key.Value[1:])
		return ok && exclusive.ShortTag() == "!!bool" && exclusive.Value == "true"
	default:
		return false
	}
	return true
}

// plainBound is the bound that an exclusive one of OpenAPI 3.0 changes.
func plainBound(exclusive string) string {
	return strings.ToLower(strings.TrimPrefix(exclusive, "exclusive"))
}
