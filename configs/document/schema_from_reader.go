package document

import (
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"
)

// description is what readers tell of the nodes of one call of it; see Describe.
type description struct {
	schemas map[*yaml.Node]*Schema
	// discriminators are keys whose value a reader wanted to know before it read a mapping.
	discriminators map[*yaml.Node]string
}

// Describe returns the schema of what read accepts. It calls read with empty nodes of each kind:
// the methods of Node then note what they would accept, and read nothing. So a schema cannot say
// something else than the reader does, and a key stands in one place. A reader states its own
// checks by Matching, Among, Requires and NotEmpty.
func Describe(read func(Node)) *Schema {
	alternatives := describeMapping(read)
	for _, empty := range []yaml.Node{{Kind: yaml.SequenceNode, Tag: "!!seq"}, {Kind: yaml.ScalarNode, Tag: "!!str"}} {
		if s, _ := describeBy(read, &empty); s.Type != "" {
			alternatives = append(alternatives, s)
		}
	}
	return anyOf(alternatives)
}

// describeBy calls read with a node, and returns what it told of it, and the key that it asked for.
func describeBy(read func(Node), n *yaml.Node) (schema *Schema, discriminator string) {
	d := &description{schemas: map[*yaml.Node]*Schema{n: {}}, discriminators: map[*yaml.Node]string{}}
	read(Node{Node: n, Report: &Report{describing: d}, File: "schema"})
	return d.schemas[n], d.discriminators[n]
}

// describeMapping is Describe for mappings. Where a reader decides by the value of one key which
// others there are, each value is tried.
func describeMapping(read func(Node)) []*Schema {
	s, key := describeBy(read, &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
	if s.Type == "" {
		return nil
	}
	if key == "" || s.Properties[key] == nil {
		return []*Schema{s}
	}
	var all []*Schema
	for _, word := range s.Properties[key].Enum {
		with := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
			{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, {Kind: yaml.ScalarNode, Tag: "!!str", Value: word},
		}}
		one, _ := describeBy(read, with)
		one.Properties[key].Enum = []string{word}
		all = append(all, one)
	}
	return all
}

// described returns what is known of a node that is described, if it is of one of the kinds, to be
// completed. describing says that nothing must be read: the node is there to be described.
func (n Node) described(kind yaml.Kind) (s *Schema, describing bool) {
	if !n.Describing() {
		return nil, false
	}
	if n.Kind != kind {
		return nil, true
	}
	return n.Report.describing.schemas[n.Node], true
}

// Describing reports whether nothing is read, but what would be is described.
func (n Node) Describing() bool { return n.Report != nil && n.Report.describing != nil }

// tell describes a scalar of a type, and returns whether nothing must be read.
func (n Node) tell(kind, of string, more func(*Schema)) bool {
	s, describing := n.described(yaml.ScalarNode)
	if s != nil {
		s.Type = kind
		if of != "" {
			s.Description = of
		}
		if more != nil {
			more(s)
		}
	}
	return describing
}

// tellObject describes a mapping of known keys.
func (n Node) tellObject(fields []FieldReader) (describing bool) {
	s, describing := n.described(yaml.MappingNode)
	if s == nil {
		return describing
	}
	s.Type, s.AdditionalProperties = "object", False
	if s.Properties == nil {
		s.Properties = map[string]*Schema{}
	}
	for _, f := range fields {
		s.Properties[f.key] = Describe(f.read)
	}
	return true
}

// sampleKeys are keys of an operator's own for readers that look at them: the first that the
// reader takes describes them.
var sampleKeys = []string{"name", "workspace/project"}

// tellMembers describes a mapping whose keys are the operator's own.
func (n Node) tellMembers(of string, read func(key, value Node)) (describing bool) {
	s, describing := n.described(yaml.MappingNode)
	if s == nil {
		return describing
	}
	s.Type, s.Description = "object", of
	for _, name := range sampleKeys {
		var names *Schema
		values := Describe(func(value Node) {
			names, _ = describeBy(func(key Node) { read(key, value) }, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name})
		})
		if values.IsZero() {
			continue
		}
		s.AdditionalProperties = values
		if names.Type != "" {
			s.PropertyNames = names
		}
		break
	}
	return true
}

// tellList describes a list.
func (n Node) tellList(of string, read func(i int, item Node)) (describing bool) {
	s, describing := n.described(yaml.SequenceNode)
	if s != nil {
		s.Type, s.Description = "array", of
		s.Items = Describe(func(item Node) { read(0, item) })
	}
	return describing
}

// Matching tells the schema that a text is of a form, which the reader checks by itself. It reads
// nothing.
func (n Node) Matching(of, pattern string) {
	n.tell("string", of, func(s *Schema) { s.Pattern = pattern })
}

// Among tells the schema that a text is one of these words, which the reader checks by itself.
func (n Node) Among(of string, words ...string) {
	n.tell("string", of, func(s *Schema) { s.Enum = words })
}

// Free tells the schema that a mapping has keys that no reader here knows.
func (n Node) Free(of string) {
	if s, _ := n.described(yaml.MappingNode); s != nil {
		s.Type, s.Description = "object", of
	}
}

// AnyText tells the schema that a text may be empty, and is not checked before it is used.
func (n Node) AnyText(of string) { n.tell("string", of, nil) }

// Requires reports keys that a mapping lacks, each by a message in which %s is the key. It
// returns whether it has them all.
func (n Node) Requires(message string, keys ...string) bool {
	if s, describing := n.described(yaml.MappingNode); describing {
		if s != nil {
			s.Required = append(s.Required, keys...)
		}
		return true
	}
	ok := true
	if n.IsMapping() {
		for _, key := range keys {
			if !n.Has(key) {
				ok = n.Fail(message, key)
			}
		}
	}
	return ok
}

// NotEmpty reports a list without elements; of names one of them.
func (n Node) NotEmpty(of string) bool {
	return n.NotEmptyAs("found an empty list; expected at least one " + of)
}

// NotEmptyAs is NotEmpty with the whole message.
func (n Node) NotEmptyAs(message string) bool {
	n.HasElements()
	if n.IsList() && len(n.Content) == 0 {
		return n.Fail("%s", message)
	}
	return true
}

// HasElements tells the schema that a list is not empty, which is checked elsewhere.
func (n Node) HasElements() {
	if s, _ := n.described(yaml.SequenceNode); s != nil {
		s.MinItems = 1
	}
}

// Unique tells the schema that no element of a list stands twice, which is checked elsewhere.
func (n Node) Unique() {
	if s, _ := n.described(yaml.SequenceNode); s != nil {
		s.UniqueItems = true
	}
}

// Describes tells the schema of a mapping a rule between its keys, which the reader checks by
// itself.
func (n Node) Describes(rule func(*Schema)) {
	if s, _ := n.described(yaml.MappingNode); s != nil {
		rule(s)
	}
}

// Among is the field with a schema that names the words that it can have, where another package
// checks them.
func (f FieldReader) Among(words ...string) FieldReader {
	return f.describedBy(func(s *Schema) { s.Enum = slices.Clone(words) })
}

// Matching is the field with a schema that has a pattern, where another package checks the text.
func (f FieldReader) Matching(pattern string) FieldReader {
	return f.describedBy(func(s *Schema) { s.Pattern = pattern })
}

// Unique is the field with a schema by which no element of its list stands twice, where another
// package checks that.
func (f FieldReader) Unique() FieldReader {
	read := f.read
	f.read = func(n Node) {
		read(n)
		n.Unique()
	}
	return f
}

// describedBy is the field with more in the schema of its strings, or of those of its list.
func (f FieldReader) describedBy(change func(*Schema)) FieldReader {
	read := f.read
	f.read = func(n Node) {
		read(n)
		if s, _ := n.described(yaml.ScalarNode); s != nil && s.Type == "string" {
			s.MinLength = 0
			change(s)
		}
		if s, _ := n.described(yaml.SequenceNode); s != nil && s.Items != nil && s.Items.Type == "string" {
			s.Items.MinLength = 0
			change(s.Items)
		}
	}
	return f
}

// Walk calls visit with the schema and each below it, with the path of keys to it. An element of
// a list is "-", and a value under a key of the operator's own "*".
func (s *Schema) Walk(visit func(path []string, s *Schema)) { s.walk(nil, visit) }

func (s *Schema) walk(path []string, visit func([]string, *Schema)) {
	visit(path, s)
	for _, alternative := range s.AnyOf {
		alternative.walk(path, visit)
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		s.Properties[key].walk(append(slices.Clone(path), key), visit)
	}
	if s.Items != nil {
		s.Items.walk(append(slices.Clone(path), "-"), visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties != False {
		s.AdditionalProperties.walk(append(slices.Clone(path), "*"), visit)
	}
}
