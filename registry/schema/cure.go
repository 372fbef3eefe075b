package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry/format"
)

// Change is one thing that Cure changed in a definition: a member of one of its objects was left
// out, renamed or stated. Each holds in the definition that the changes before it have made.
type Change struct {
	Pointer string          // of the object
	Key     string          // of its member
	Rename  string          // the member's new name, in the same place
	Value   json.RawMessage // what the member states now; nil, without a new name: it was left out
	Note    string          // what was found and what became of it, for the operator
}

// At is the place that the note is about.
func (c *Change) At() string {
	if c.Key == "additionalProperties" && c.Value != nil {
		return c.Pointer // it was not there
	}
	return child(c.Pointer, c.Key)
}

// Cure changes what a definition says in the words of another dialect, or of a library, into words of
// JSON Schema 2020-12, where one meaning is left. With results nothing is opened, since results are not
// closed. What it does not know stays: Compile reports it. Without changes the definition comes back as
// it was.
//
// A cured definition accepts what the author's accepts by the rules of its dialect, but for what its
// notes say: formats and annotations that JSON Schema does not know assert nothing, and nullable adds null.
func Cure(raw json.RawMessage, results bool) (json.RawMessage, []Change) {
	value, unreadable := decodeSchema(raw)
	root, ok := value.(map[string]any)
	if unreadable != nil || !ok {
		return raw, nil
	}
	c := &curer{}
	c.dialect(root)
	c.schema("", root)
	if !results {
		c.open(root)
	}
	if len(c.changes) == 0 {
		return raw, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(root) != nil {
		return raw, nil
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), c.changes
}

type curer struct {
	changes []Change
	keepOld bool // the words of old dialects stay, since another keyword would change its meaning
}

func (c *curer) remove(pointer string, s map[string]any, key, note string) {
	delete(s, key)
	c.changes = append(c.changes, Change{Pointer: pointer, Key: key, Note: note + "; it was left out"})
}

func (c *curer) rename(pointer string, s map[string]any, key, name string) {
	s[name] = s[key]
	delete(s, key)
	c.changes = append(c.changes, Change{Pointer: pointer, Key: key, Rename: name,
		Note: fmt.Sprintf("JSON Schema 2020-12 writes this as %s; it was renamed", name)})
}

func (c *curer) state(pointer string, s map[string]any, key string, value any, note string) {
	text, err := json.Marshal(value)
	if err != nil {
		return
	}
	s[key] = value
	c.changes = append(c.changes, Change{Pointer: pointer, Key: key, Value: text, Note: note})
}

// dialect leaves out a $schema that names another dialect than those that are read, or draft-07 where
// it has words that 2020-12 writes otherwise, if 2020-12 reads the definition as the dialect does.
func (c *curer) dialect(root map[string]any) {
	uri, _ := root["$schema"].(string)
	known, exact := dialectOf(uri)
	if uri == "" || exact && known == draft2020 {
		return
	}
	var oldWords, newWords, besideRef, unevaluated, nestedID bool
	eachObject("", root, func(pointer string, s map[string]any) {
		_, refers := s["$ref"]
		for name, value := range s {
			def, isKeyword := keywords[name]
			_, isList := value.([]any)
			oldWords = oldWords || name == "additionalItems" || name == "dependencies" || name == "items" && isList
			newWords = newWords || def.only == draft2020
			besideRef = besideRef ||
				refers && isKeyword && name != "$ref" && name != "$schema" && def.shape != annotation && def.shape != definitions
			unevaluated = unevaluated || name == "unevaluatedItems"
			if id, ok := value.(string); ok && name == "id" && pointer != "" && !strings.HasPrefix(id, "#") {
				nestedID = true
			}
		}
	})
	name := uri
	for _, scheme := range []string{"https://", "http://"} {
		name = strings.TrimPrefix(name, scheme)
	}
	switch strings.TrimRight(name, "#/") {
	case "json-schema.org/draft/2020-12/schema", "json-schema.org/schema", "spec.openapis.org/oas/3.1/dialect/base":
	case "json-schema.org/draft/2019-09/schema":
		if c.keepOld = unevaluated; c.keepOld {
			return // it does not count the items that contains matches
		}
	case "json-schema.org/draft-07/schema", "json-schema.org/draft-06/schema", "json-schema.org/draft-04/schema":
		if exact && !oldWords {
			return
		}
		// These dialects pass over keywords beside $ref, and over newer ones; 2020-12 asserts them.
		if c.keepOld = newWords || besideRef || nestedID; c.keepOld {
			return
		}
	default:
		return
	}
	eachObject("", root, func(pointer string, s map[string]any) {
		if s["$schema"] == uri {
			c.remove(pointer, s, "$schema", "the dialect "+parser.Quote(uri)+" is read as JSON Schema 2020-12")
		}
	})
}

// eachObject visits a schema and all below it, parents first.
func eachObject(pointer string, s map[string]any, visit func(pointer string, s map[string]any)) {
	visit(pointer, s)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		eachChild(pointer, name, s[name], func(pointer string, s map[string]any) { eachObject(pointer, s, visit) })
	}
}

// eachChild visits the objects that a keyword holds as schemas, in the words of any dialect.
func eachChild(pointer, name string, value any, visit func(pointer string, s map[string]any)) {
	at := child(pointer, name)
	shape := keywords[name].shape
	switch value := value.(type) {
	case map[string]any:
		switch {
		case shape == oneSchema || name == "additionalItems":
			visit(at, value)
		case shape == schemaMap || shape == definitions || name == "dependencies":
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if s, ok := value[key].(map[string]any); ok {
					visit(child(at, key), s)
				}
			}
		}
	case []any:
		if shape != schemaList && name != "items" {
			return
		}
		for i := range value {
			if s, ok := value[i].(map[string]any); ok {
				visit(childIndex(at, i), s)
			}
		}
	}
}

// schema cures what stands below a schema, and then its own members.
func (c *curer) schema(pointer string, s map[string]any) {
	required := c.requiredMembers(pointer, s)
	for _, name := range slices.Sorted(maps.Keys(s)) {
		eachChild(pointer, name, s[name], c.schema)
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		c.keyword(pointer, s, name)
	}
	if len(required) > 0 {
		list, _ := s["required"].([]any)
		for _, name := range required {
			if !slices.Contains(list, any(name)) {
				list = append(slices.Clip(list), name)
			}
		}
		c.state(pointer, s, "required", list, "members say of themselves that they are required; they were listed")
	}
	c.oldWords(pointer, s)
}

// requiredMembers takes required: true and false out of members that say it of themselves, and returns
// those that are required.
func (c *curer) requiredMembers(pointer string, s map[string]any) (required []string) {
	if own := s["required"]; own != nil {
		if _, ok := own.([]any); !ok {
			return nil
		}
	}
	members, _ := s["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		member, _ := members[name].(map[string]any)
		is, ok := member["required"].(bool)
		if !ok {
			continue
		}
		if is {
			required = append(required, name)
		}
		c.remove(child(child(pointer, "properties"), name), member, "required", "JSON Schema lists required members beside properties")
	}
	return required
}

// keyword cures one member of a schema.
func (c *curer) keyword(pointer string, s map[string]any, name string) {
	value := s[name]
	def, known := keywords[name]
	switch {
	case strings.HasPrefix(name, "x-"):
	case name == "nullable":
		c.nullable(pointer, s)
	case !known:
		if misspelt(name, value) == "" {
			c.remove(pointer, s, name, name+" is no keyword of JSON Schema")
		}
	case value == nil && name != "const" && name != "default" && name != "type" && def.shape != unsupported:
		c.remove(pointer, s, name, name+" is null, which states nothing")
	case name == "required" && value == false:
		c.remove(pointer, s, name, "required: false requires nothing")
	case name == "format":
		if f, ok := value.(string); ok && !format.Known(f) {
			c.remove(pointer, s, name, "the format "+parser.Quote(f)+" is not judged")
		}
	}
}

// nullable adds null to the types of a schema. Without types, as OpenAPI says, it means nothing; and
// arguments are never null.
func (c *curer) nullable(pointer string, s map[string]any) {
	var types []any
	switch t := s["type"].(type) {
	case string:
		types = []any{t}
	case []any:
		types = t
	}
	if s["nullable"] == true && pointer != "" && len(types) > 0 && !slices.Contains(types, any("null")) {
		c.state(pointer, s, "type", append(slices.Clip(types), "null"), "nullable: true stands beside it; the type null was added")
	}
	c.remove(pointer, s, "nullable", "nullable is no keyword of JSON Schema")
}

// oldWords writes the words of old dialects as 2020-12 does.
func (c *curer) oldWords(pointer string, s map[string]any) {
	if c.keepOld {
		return
	}
	for _, bound := range []string{"minimum", "maximum"} {
		exclusive := "exclusive" + strings.ToUpper(bound[:1]) + bound[1:]
		is, ok := s[exclusive].(bool)
		if _, number := s[bound].(json.Number); ok && is && number {
			value := s[bound]
			c.remove(pointer, s, bound, "the bound is exclusive, and JSON Schema 2020-12 states it there")
			c.state(pointer, s, exclusive, value, "JSON Schema 2020-12 states the bound itself; it was moved here")
		} else if ok && (!is || s[bound] == nil) {
			c.remove(pointer, s, exclusive, exclusive+" is a bound in JSON Schema 2020-12, and excludes nothing here")
		}
	}
	tuple, isTuple := s["items"].([]any)
	_, newTuple := s["prefixItems"]
	if isTuple && newTuple {
		return // two tuples
	}
	if isTuple && len(tuple) > 0 {
		c.rename(pointer, s, "items", "prefixItems")
	} else if isTuple {
		c.remove(pointer, s, "items", "items lists no schema")
	}
	if _, more := s["additionalItems"]; more && isTuple {
		c.rename(pointer, s, "additionalItems", "items")
	} else if more {
		c.remove(pointer, s, "additionalItems", "additionalItems means nothing without a list of items")
	}
	c.dependencies(pointer, s)
}

// dependencies writes what members require as dependentRequired, and what they demand of the object as
// dependentSchemas.
func (c *curer) dependencies(pointer string, s map[string]any) {
	all, ok := s["dependencies"].(map[string]any)
	if !ok || s["dependentRequired"] != nil || s["dependentSchemas"] != nil {
		return
	}
	required, schemas := map[string]any{}, map[string]any{}
	for name, value := range all {
		switch value.(type) {
		case []any:
			required[name] = value
		case map[string]any, bool:
			schemas[name] = value
		default:
			return
		}
	}
	const note = "JSON Schema 2020-12 writes dependencies so; it was rewritten"
	c.remove(pointer, s, "dependencies", "JSON Schema 2020-12 writes this as dependentRequired and dependentSchemas")
	if len(required) > 0 {
		c.state(pointer, s, "dependentRequired", required, note)
	}
	if len(schemas) > 0 {
		c.state(pointer, s, "dependentSchemas", schemas, note)
	}
}

// open says of each object that declares no members that it may have any: closed, it would take none,
// which nobody means.
func (c *curer) open(root map[string]any) {
	l := newResolver(Options{})
	doc := l.add(root, baseURI)
	if len(doc.all) > maxSchemas {
		return
	}
	targets := l.references(doc)
	b := newBundler(targets)
	if len(l.faults) > 0 || b.rootFault(doc.root) != "" {
		return
	}
	for _, s := range b.undeclaredObjects(doc.root) {
		own := b.definingSchema(s)
		if _, stated := own.object()["additionalProperties"]; !stated && own.object() != nil {
			c.state(own.pointer, own.object(), "additionalProperties", true, "declares no members; additionalProperties: true was added")
		}
	}
}

// misspelt is the keyword that an unknown one was meant to be, or "": its name is near, and the value is
// one that the keyword takes. To pass over such a keyword could leave out what the author demands.
func misspelt(name string, value any) string {
	meant := suggestKeyword(name)
	fits := false
	switch v := value.(type) {
	case bool:
		fits = keywords[meant].shape == oneSchema || meant == "uniqueItems" || meant == "const"
	case json.Number:
		fits = slices.Contains([]string{
			"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength",
			"maxItems", "minItems", "maxContains", "minContains", "maxProperties", "minProperties", "const",
		}, meant)
	case string:
		fits = slices.Contains([]string{"$ref", "const", "pattern", "format"}, meant) || meant == "type" && isTypeName(v)
	case []any:
		fits = keywords[meant].shape == schemaList || meant == "enum" || meant == "required" || meant == "type" || meant == "const" ||
			meant == "items"
	case map[string]any:
		shape := keywords[meant].shape
		fits = shape == oneSchema || shape == schemaMap || meant == "dependentRequired" || meant == "const"
	}
	if meant == "" || !fits {
		return ""
	}
	return meant
}

// isTypeName reports whether a text is a type of JSON Schema.
func isTypeName(name string) bool {
	for _, t := range typeNames {
		if t.name == name {
			return true
		}
	}
	return false
}
