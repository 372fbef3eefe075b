package toolimport

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry/format"
)

// schemaTranslator translates the schemas of one operation into JSON Schema 2020-12. Referenced
// schemas are collected under $defs.
type schemaTranslator struct {
	*operation
	budget       int               // of maxOperation
	names        map[string]string // of definitions, by the pointer in the document
	used         map[string]bool   // names
	queue        []referencedSchema
	spent        bool            // of budget
	readOnly     map[string]bool // members that are no part of a request
	requirements []requirement
}

// requirement holds the required members of one schema.
type requirement struct{ required, schema *yaml.Node }

// referencedSchema is a schema that others refer to.
type referencedSchema struct {
	name string
	node document.Node
}

func newSchemaTranslator(o *operation) *schemaTranslator {
	return &schemaTranslator{operation: o, budget: maxOperation, names: map[string]string{}, used: map[string]bool{},
		readOnly: map[string]bool{}}
}

// definitions are the schemas that were referred to, each under its name.
func (s *schemaTranslator) definitions() (all []*yaml.Node) {
	for len(s.queue) > 0 {
		d := s.queue[0]
		s.queue = s.queue[1:]
		all = append(all, scalarAt(d.node, d.name), s.translate(d.node, 0))
	}
	return all
}

// How keywords hold schemas.
var (
	holdsOne = []string{"items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else", "unevaluatedItems",
		"unevaluatedProperties"}
	holdsList = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	holdsMap  = []string{"properties", "patternProperties", "dependentSchemas"}
	// annotations are those that OpenAPI adds, which assert nothing, or which hold what is
	// collected anyway.
	annotations = []string{"discriminator", "xml", "externalDocs", "example", "readOnly", "writeOnly", "$defs", "definitions"}
)

// translate converts a schema of the document to the registry's dialect. Keywords that the
// registry refuses are left in: the registry reports them.
func (s *schemaTranslator) translate(n document.Node, depth int) *yaml.Node {
	if !n.IsMapping() || depth > document.MaxNesting {
		return s.copy(n)
	}
	out := mappingAt(n)
	add := func(key document.Node, value *yaml.Node) {
		out.Content = append(out.Content, scalarAt(key, key.Value), value)
	}
	_, _, refers := n.Child("$ref")
	n.Members("keywords", func(key, value document.Node) {
		switch name := key.Value; {
		case !s.spend(key):
		case name == "$ref":
			add(key, s.reference(value))
		case strings.HasPrefix(name, "x-") && name != "x-boundary" && name != "x-secret", slices.Contains(annotations, name):
		case refers && s.is30:
			if name != "description" && name != "summary" && name != "title" {
				s.reportChange(key, "%s beside a $ref means nothing in OpenAPI 3.0; it was left out", name)
			}
		case name == "$id" || name == "$anchor":
			s.reportFault(key, "found %s in a schema; expected references only by their place in the document", name)
		case name == "$schema":
			if !isDraft2020(value.Value) && !strings.HasPrefix(value.Value, "https://spec.openapis.org/oas/3.") {
				s.reportFault(value, "found the dialect %s; expected JSON Schema 2020-12", value.Excerpt())
			}
		case name == "format":
			s.format(out, n, key, value)
		case s.is30 && s.translated(out, n, key, value):
		case slices.Contains(holdsOne, name):
			add(key, s.translate(value, depth+1))
		case slices.Contains(holdsList, name) && value.IsList():
			list := sequenceAt(value)
			for _, c := range value.Content {
				list.Content = append(list.Content, s.translate(value.With(c), depth+1))
			}
			add(key, list)
		case slices.Contains(holdsMap, name) && value.IsMapping():
			members := mappingAt(value)
			value.Members("schemas", func(key, schema document.Node) {
				if name == "properties" && s.refuseReadOnly(schema) {
					s.readOnly[key.Value] = true
					return
				}
				members.Content = append(members.Content, scalarAt(key, key.Value), s.translate(schema, depth+1))
			})
			add(key, members)
		case name == "required" && value.IsList():
			required := s.copy(value)
			s.requirements = append(s.requirements, requirement{required, out})
			add(key, required)
		default:
			add(key, s.copy(value))
		}
	})
	return out
}

// spend counts a value, and reports the one that is too much.
func (s *schemaTranslator) spend(n document.Node) bool {
	s.budget--
	s.openAPI.budget--
	switch {
	case s.spent:
	case s.budget <= 0:
		s.reportFault(n, "found more than %d values in the schemas of the operation; expected less", maxOperation)
	case s.openAPI.budget <= 0:
		s.reportFault(n, "found more than %d values in the schemas of the operations up to this; expected less: import the document in parts", maxImported)
	default:
		return true
	}
	s.spent = true
	return false
}

// copy copies a value unchanged.
func (s *schemaTranslator) copy(n document.Node) *yaml.Node {
	c := &yaml.Node{Kind: n.Kind, Tag: n.Tag, Style: n.Style & (yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle), Value: n.Value,
		Line: n.Line, Column: n.Column}
	for _, child := range n.Content {
		if !s.spend(n) {
			break
		}
		c.Content = append(c.Content, s.copy(n.With(child)))
	}
	return c
}

// reference leads to a definition, which it asks for.
func (s *schemaTranslator) reference(ref document.Node) *yaml.Node {
	target, pointer, problem := s.find(ref)
	if problem != "" {
		s.reportFault(ref, "%s", problem)
		return scalarAt(ref, "#")
	}
	name, known := s.names[pointer]
	if !known {
		name = strings.ReplaceAll(strings.Trim(strings.TrimPrefix(pointer, "/components/schemas"), "/"), "/", ".")
		name = refusal.UnescapePointer(name)
		free := name
		for n := len(s.used); s.used[name]; n++ {
			name = fmt.Sprintf("%s.%d", free, n)
		}
		s.names[pointer], s.used[name] = name, true
		s.queue = append(s.queue, referencedSchema{name, target})
	}
	return scalarAt(ref, "#/$defs/"+strings.ReplaceAll(refusal.EscapePointer(name), "%", "%25"))
}

// refuseReadOnly reports a member that is only in responses.
func (s *schemaTranslator) refuseReadOnly(n document.Node) bool {
	for range maxHops {
		if _, flag, ok := n.Child("readOnly"); ok && n.IsMapping() && flag.Value == "true" {
			return true
		}
		_, ref, ok := n.Child("$ref")
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

// finish removes members that are not part of a request from the required ones.
func (s *schemaTranslator) finish() {
	for _, d := range s.requirements {
		_, declared, has := document.Node{Node: d.schema}.Child("properties")
		d.required.Content = slices.DeleteFunc(d.required.Content, func(name *yaml.Node) bool {
			return s.readOnly[name.Value] && !(has && declared.Has(name.Value))
		})
	}
}

// bounds are the ranges of the number formats.
var bounds = map[string][2]string{
	"int32": {"-2147483648", "2147483647"},
	"int64": {"-9223372036854775808", "9223372036854775807"},
}

// format translates a format. OpenAPI's number formats become bounds, a format of the
// registry is asserted, and any other is left out and reported.
func (s *schemaTranslator) format(out *yaml.Node, n, key, value document.Node) {
	add := func(name, tag, text string) {
		if !n.Has(name) {
			w := scalarAt(key, text)
			w.Tag = tag
			out.Content = append(out.Content, scalarAt(key, name), w)
		}
	}
	switch name := value.Value; {
	case format.Known(name):
		out.Content = append(out.Content, scalarAt(key, "format"), s.copy(value))
	case name == "int32" || name == "int64":
		if _, kind, ok := n.Child("type"); ok && kind.Value == "integer" {
			add("minimum", "!!int", bounds[name][0])
			add("maximum", "!!int", bounds[name][1])
		}
	case name == "password":
		add("x-secret", "!!bool", "true")
	case name == "byte":
		add("contentEncoding", "!!str", "base64")
	case name == "float" || name == "double":
	default:
		s.reportChange(key, "the format %s is not judged; it was left out", value.Excerpt())
	}
}

// translated writes what OpenAPI 3.0 says in another way than JSON Schema does.
func (s *schemaTranslator) translated(out *yaml.Node, n, key, value document.Node) bool {
	switch key.Value {
	case "nullable":
	case "type":
		if _, nullable, ok := n.Child("nullable"); !ok || nullable.Value != "true" || value.Kind != yaml.ScalarNode {
			return false
		}
		out.Content = append(out.Content, scalarAt(key, "type"), sequenceAt(value, s.copy(value), scalarAt(value, "null")))
	case "exclusiveMinimum", "exclusiveMaximum":
		if value.ShortTag() != "!!bool" {
			return false
		}
		if _, bound, ok := n.Child(strings.ToLower(strings.TrimPrefix(key.Value, "exclusive"))); ok && value.Value == "true" {
			out.Content = append(out.Content, scalarAt(key, key.Value), s.copy(bound))
		}
	case "minimum", "maximum":
		_, exclusive, ok := n.Child("exclusive" + strings.ToUpper(key.Value[:1]) + key.Value[1:])
		return ok && exclusive.ShortTag() == "!!bool" && exclusive.Value == "true"
	default:
		return false
	}
	return true
}
