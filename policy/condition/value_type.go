package condition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/callgate/callgate/internal/decimal"
	"github.com/callgate/callgate/refusal"
)

// typeKind is the kind of type that a schema gives a place.
type typeKind int

const (
	anyType typeKind = iota // not known, or several types
	boolean
	numeric // integer, number
	text
	array
	object  // an object whose members are declared
	mapping // an object whose members all have one shape
)

// maxTypeDepth is how deep a schema is followed; below it anything goes.
const maxTypeDepth = 64

// valueType is the type of one place in a tool's arguments.
type valueType struct {
	kind       typeKind
	nullable   bool
	name       string // of the CEL type, for closed
	members    map[string]*valueType
	additional *valueType // members that are not declared; nil: there are none
	items      *valueType
	maxSize    uint64 // elements, members or characters; 0: unbounded
}

// celType is the CEL type that a condition is checked with. Numbers are dyn,
// because CEL's checker does not compare ints with doubles for equality; they
// are checked apart.
func (s *valueType) celType() *cel.Type {
	switch {
	case s.kind == boolean && s.nullable:
		return types.NewNullableType(types.BoolType)
	case s.kind == boolean:
		return types.BoolType
	case s.kind == text && s.nullable:
		return types.NewNullableType(types.StringType)
	case s.kind == text:
		return types.StringType
	case s.kind == object:
		return types.NewObjectType(s.name)
	case s.kind == array && !s.nullable:
		return types.NewListType(s.items.celType())
	case s.kind == mapping && !s.nullable:
		return types.NewMapType(types.StringType, s.additional.celType())
	}
	return types.DynType
}

// member is the shape of a member, nil where the closed schema has none.
func (s *valueType) member(name string) *valueType {
	if m, declared := s.members[name]; declared {
		return m
	}
	return s.additional
}

// typeReader reads shapes out of one schema document.
type typeReader struct {
	root    any
	byRef   map[string]*valueType
	objects map[string]*valueType // closed shapes by the name of their CEL type
}

// argumentType reads a tool's input schema. The root is an object, and closed unless
// the tool is open.
func argumentType(t Tool) (*valueType, map[string]*valueType, error) {
	root := any(map[string]any{})
	if len(bytes.TrimSpace(t.InputSchema)) > 0 {
		if err := decimal.Unmarshal(t.InputSchema, &root); err != nil {
			return nil, nil, fmt.Errorf("the input schema of %s is not JSON", t.Name)
		}
	}
	sh := &typeReader{root: root, byRef: map[string]*valueType{}, objects: map[string]*valueType{}}
	members, _ := root.(map[string]any)
	s := &valueType{}
	sh.objectType(s, members, "#"+varArgs, 0, !t.Open)
	if s.kind == anyType {
		s.kind, s.members, s.additional = object, map[string]*valueType{}, &valueType{}
		sh.register(s, "#"+varArgs)
	}
	return s, sh.objects, nil
}

func (sh *typeReader) register(s *valueType, at string) {
	s.name = at
	sh.objects[at] = s
}

// read reads the schema of one place.
func (sh *typeReader) read(schema any, at string, depth int) *valueType {
	members, isObject := schema.(map[string]any)
	if !isObject || depth > maxTypeDepth {
		return &valueType{}
	}
	if ref, ok := members["$ref"].(string); ok {
		if constrains(members) {
			return &valueType{}
		}
		return sh.followRef(ref, at, depth)
	}
	s := &valueType{}
	kind := ""
	for _, name := range typeNames(members) {
		if name == "integer" {
			name = "number"
		}
		switch {
		case name == "null":
			s.nullable = true
		case kind != "" && kind != name:
			return &valueType{}
		default:
			kind = name
		}
	}
	switch kind {
	case "":
		return &valueType{}
	case "boolean":
		s.kind = boolean
	case "number":
		s.kind = numeric
	case "string":
		s.kind, s.maxSize = text, size(members["maxLength"])
	case "array":
		s.kind, s.maxSize, s.items = array, size(members["maxItems"]), &valueType{}
		if items, found := members["items"]; found && members["prefixItems"] == nil {
			s.items = sh.read(items, at+"[]", depth+1)
		}
	case "object":
		sh.objectType(s, members, at, depth, false)
	}
	return s
}

// followRef reads the target of a reference inside the document.
func (sh *typeReader) followRef(ref, at string, depth int) *valueType {
	if known := sh.byRef[ref]; known != nil {
		return known
	}
	target := sh.root
	if ref != "#" {
		pointer, local := strings.CutPrefix(ref, "#/")
		if !local || strings.Contains(pointer, "%") {
			return &valueType{}
		}
		for _, token := range strings.Split(pointer, "/") {
			members, ok := target.(map[string]any)
			if !ok {
				return &valueType{}
			}
			token = refusal.UnescapePointer(token)
			target = members[token]
		}
	}
	// A schema that refers to itself meets its own shape, filled in later.
	s := &valueType{}
	sh.byRef[ref] = s
	*s = *sh.read(target, at, depth+1)
	if s.kind == object {
		sh.objects[s.name] = s
	}
	return s
}

// objectType fills in the shape of an object schema.
func (sh *typeReader) objectType(s *valueType, schema map[string]any, at string, depth int, closed bool) {
	s.maxSize = size(schema["maxProperties"])
	rest, stated := schema["additionalProperties"]
	if !stated {
		rest = schema["unevaluatedProperties"]
	}
	if !closed && rest != nil && rest != false {
		s.additional = sh.read(rest, at+".*", depth+1)
	}
	if patterns, _ := schema["patternProperties"].(map[string]any); len(patterns) > 0 || declaresElsewhere(schema) {
		s.additional = &valueType{}
	}
	declared, _ := schema["properties"].(map[string]any)
	if len(declared) == 0 && s.additional != nil {
		s.kind = mapping
		return
	}
	s.kind, s.members = object, map[string]*valueType{}
	sh.register(s, at)
	for name, sub := range declared {
		if sub == false {
			s.members[name] = nil
			continue
		}
		s.members[name] = sh.read(sub, at+"."+name, depth+1)
	}
}

// declaresElsewhere reports whether members may be declared in a branch.
func declaresElsewhere(schema map[string]any) bool {
	elsewhere := []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "then", "else", "dependentSchemas"}
	return slices.ContainsFunc(elsewhere, func(keyword string) bool {
		_, stated := schema[keyword]
		return stated
	})
}

// constrains reports whether a schema says more than its reference.
func constrains(schema map[string]any) bool {
	for keyword := range schema {
		switch keyword {
		case "$ref", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly":
		default:
			if !strings.HasPrefix(keyword, "x-") {
				return true
			}
		}
	}
	return false
}

// typeNames lists the types that a schema allows; none when it does not say.
func typeNames(schema map[string]any) []string {
	switch t := schema["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var names []string
		for _, v := range t {
			if name, ok := v.(string); ok {
				names = append(names, name)
			}
		}
		return names
	}
	values, _ := schema["enum"].([]any)
	if v, found := schema["const"]; found {
		values = []any{v}
	}
	var names []string
	for _, v := range values {
		switch v.(type) {
		case nil:
			names = append(names, "null")
		case bool:
			names = append(names, "boolean")
		case string:
			names = append(names, "string")
		case json.Number:
			names = append(names, "number")
		default:
			return nil
		}
	}
	return names
}

// size reads a bound; 0 where there is none.
func size(v any) uint64 {
	n, ok := v.(json.Number)
	if !ok {
		return 0
	}
	i, err := n.Int64()
	if err != nil || i < 0 {
		return 0
	}
	return uint64(i) + 1 // so that a bound of zero is one
}
