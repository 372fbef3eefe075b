package schema

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"

	"github.com/callgate/callgate/internal/text"
	"github.com/callgate/callgate/parser"
)

// anchorForm is how the metaschema spells $anchor.
var anchorForm = regexp.MustCompile(`^[A-Za-z_][-A-Za-z0-9._]*$`)

// checkForms reports each value of a keyword that the metaschema of the dialect forbids, apart from what
// walk and lint say of it: what is no schema, of patterns, $schema, and the names of formats.
func (l *resolver) checkForms(d *document) {
	for _, s := range d.all {
		object := s.object()
		for _, name := range s.names {
			l.checkForm(d.dialect, name, object[name], func() string { return child(s.pointer, name) })
		}
	}
}

// checkForm checks the value of a keyword. The pointer to it, at, is only written for a fault.
func (l *resolver) checkForm(dialect, name string, v any, at func() string) {
	switch keywords[name].shape {
	case schemaList:
		if list, is := v.([]any); !is || len(list) == 0 {
			l.unexpectedForm(at(), v, "a list of at least one schema")
		}
		return
	case schemaMap, definitions:
		if _, is := v.(map[string]any); !is {
			l.unexpectedForm(at(), v, "an object of schemas")
		}
		return
	}
	expected := ""
	switch name {
	case "$id", "$comment", "title", "description", "contentEncoding", "contentMediaType", "pattern":
		if _, is := v.(string); !is {
			expected = "a string"
		}
	case "$anchor":
		if text, is := v.(string); !is || !anchorForm.MatchString(text) {
			expected = "a name of letters, digits, -, . and _ that begins with a letter or _"
		}
	case "type":
		l.checkTypes(v, at)
	case "enum":
		if list, is := v.([]any); !is {
			expected = "a list"
		} else if dialect == draft7 {
			l.checkDistinct(list, at)
		}
	case "examples":
		if _, is := v.([]any); !is {
			expected = "a list"
		}
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		if _, is := v.(json.Number); !is {
			expected = "a number"
		}
	case "minLength", "maxLength", "minItems", "maxItems", "minContains", "maxContains", "minProperties", "maxProperties":
		if n, is := numberOf(v); !is || !n.IsInteger() || n.Negative {
			expected = "a whole number from 0"
		}
	case "uniqueItems", "readOnly", "writeOnly":
		if _, is := v.(bool); !is {
			expected = "true or false"
		}
	case "deprecated":
		if _, is := v.(bool); !is && dialect != draft7 { // which does not know it
			expected = "true or false"
		}
	case "required":
		l.checkNames(v, at)
	case "dependentRequired":
		members, is := v.(map[string]any)
		if !is {
			expected = "an object of lists of names"
		}
		for _, member := range slices.Sorted(maps.Keys(members)) {
			l.checkNames(members[member], func() string { return child(at(), member) })
		}
	case "contentSchema":
		if dialect != draft7 {
			l.checkContentSchema(v, at)
		}
	}
	if expected != "" {
		l.unexpectedForm(at(), v, expected)
	}
}

func (l *resolver) unexpectedForm(at string, v any, expected string) {
	found := kindOf(v)
	switch v := v.(type) {
	case string:
		found = parser.Quote(v)
	case json.Number:
		found = text.Shorten(string(v), maxText)
	case bool:
		found = strconv.FormatBool(v)
	case []any:
		if len(v) == 0 {
			found = "an empty list"
		}
	}
	l.report(at, "found "+found+"; expected "+expected)
}

// checkTypes checks the value of type: a name, or a list of different names.
func (l *resolver) checkTypes(v any, at func() string) {
	list, is := v.([]any)
	if !is {
		if !isType(v) {
			l.unexpectedForm(at(), v, "a type, or a list of types: "+allTypes())
		}
		return
	}
	if len(list) == 0 {
		l.unexpectedForm(at(), v, "at least one type: "+allTypes())
	}
	for i, name := range list {
		if !isType(name) {
			l.unexpectedForm(childIndex(at(), i), name, "a type: "+allTypes())
		}
	}
	l.checkDistinct(list, at)
}

func isType(v any) bool {
	for _, t := range typeNames {
		if t.name == v {
			return true
		}
	}
	return false
}

func allTypes() string {
	var names []string
	for _, t := range typeNames {
		names = append(names, t.name)
	}
	return join(names, "or")
}

// checkNames checks a list of different names.
func (l *resolver) checkNames(v any, at func() string) {
	list, is := v.([]any)
	if !is {
		l.unexpectedForm(at(), v, "a list of names")
		return
	}
	for i, name := range list {
		if _, is := name.(string); !is {
			l.unexpectedForm(childIndex(at(), i), name, "a name, as a string")
		}
	}
	l.checkDistinct(list, at)
}

// checkDistinct reports the elements of a list that equal one before.
func (l *resolver) checkDistinct(list []any, at func() string) {
	seen := make(map[string]bool, len(list))
	for i, v := range list {
		text := canonical(v)
		if seen[text] {
			l.unexpectedForm(childIndex(at(), i), v, "each value once")
		}
		seen[text] = true
	}
}

// canonical writes a value so that equal values have equal texts.
func canonical(v any) string {
	return string(appendJSON(nil, withEqualNumbers(v)))
}

func withEqualNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		n, _ := numberOf(v) // the decoder has refused other numbers
		return json.Number(n.String())
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = withEqualNumbers(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for name, member := range v {
			object[name] = withEqualNumbers(member)
		}
		return object
	}
	return v
}

// checkContentSchema checks the schema of a text's content, which asserts nothing and is never
// evaluated.
func (l *resolver) checkContentSchema(v any, at func() string) {
	inside := newResolver(Options{})
	inside.checkForms(inside.add(v, baseURI))
	for _, f := range inside.faults {
		l.report(at()+f.Pointer, f.Message)
	}
}
