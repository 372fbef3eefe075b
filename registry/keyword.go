package registry

import "slices"

// shape says how a keyword holds schemas.
type shape int

const (
	plainValue  shape = iota // no schema inside
	oneSchema                // a schema
	schemaList               // an array of schemas
	schemaMap                // an object of schemas
	container                // an object of schemas that apply only where referred to
	reference                // $ref
	identity                 // names a place, asserts nothing
	annotation               // says something, asserts nothing
	meaningless              // refused: see the reason
)

// scope says where the schemas that a keyword holds apply.
type scope int

const (
	nowhere  scope = iota
	inMember       // to a value inside, and they stand for a place in the arguments
	inBranch       // to the same value, as one of the schemas that judge it
	inTest         // to the same value or to one inside, only to ask a question
)

type keyword struct {
	shape  shape
	scope  scope
	object bool   // makes its schema an object schema
	only   string // "" in every dialect, else the dialect that knows it
	reason string // of meaningless
}

// keywords is the whole vocabulary; read only. What is not here, and does not
// begin with x-, is a load error.
var keywords = map[string]keyword{
	"$schema":  {shape: identity},
	"$id":      {shape: identity},
	"$anchor":  {shape: identity, only: draft2020},
	"$comment": {shape: annotation},
	"$defs":    {shape: container}, "definitions": {shape: container},
	"$ref": {shape: reference, scope: inBranch},

	"title": {shape: annotation}, "description": {shape: annotation}, "default": {shape: annotation},
	"examples": {shape: annotation}, "deprecated": {shape: annotation},
	"readOnly": {shape: annotation}, "writeOnly": {shape: annotation},
	"contentEncoding": {shape: annotation}, "contentMediaType": {shape: annotation}, "contentSchema": {shape: annotation},

	"type": {}, "enum": {}, "const": {},
	"multipleOf": {}, "maximum": {}, "exclusiveMaximum": {}, "minimum": {}, "exclusiveMinimum": {},
	"maxLength": {}, "minLength": {}, "pattern": {}, "format": {},
	"maxItems": {}, "minItems": {}, "uniqueItems": {},
	"maxContains": {only: draft2020}, "minContains": {only: draft2020},
	"maxProperties": {object: true}, "minProperties": {object: true}, "required": {object: true},
	"dependentRequired": {object: true, only: draft2020},

	"properties":            {shape: schemaMap, scope: inMember, object: true},
	"patternProperties":     {shape: schemaMap, scope: inMember, object: true},
	"additionalProperties":  {shape: oneSchema, scope: inMember, object: true},
	"unevaluatedProperties": {shape: oneSchema, scope: inMember, object: true, only: draft2020},
	"propertyNames":         {shape: oneSchema, scope: inTest, object: true},
	"items":                 {shape: oneSchema, scope: inMember},
	"prefixItems":           {shape: schemaList, scope: inMember, only: draft2020},
	"unevaluatedItems":      {shape: oneSchema, scope: inMember, only: draft2020},
	"contains":              {shape: oneSchema, scope: inTest},

	"allOf": {shape: schemaList, scope: inBranch}, "anyOf": {shape: schemaList, scope: inBranch}, "oneOf": {shape: schemaList, scope: inBranch},
	"if": {shape: oneSchema, scope: inBranch}, "then": {shape: oneSchema, scope: inBranch}, "else": {shape: oneSchema, scope: inBranch},
	"dependentSchemas": {shape: schemaMap, scope: inBranch, object: true, only: draft2020},
	"not":              {shape: oneSchema, scope: inTest},

	"$dynamicRef":      {shape: meaningless, reason: "its target is known only while a value is judged; expected $ref"},
	"$dynamicAnchor":   {shape: meaningless, reason: "its meaning depends on who refers to it; expected $anchor"},
	"$recursiveRef":    {shape: meaningless, reason: "its target is known only while a value is judged; expected $ref"},
	"$recursiveAnchor": {shape: meaningless, reason: "its meaning depends on who refers to it; expected $anchor"},
	"$vocabulary":      {shape: meaningless, reason: "only a metaschema has vocabularies; expected none"},
	"dependencies":     {shape: meaningless, reason: "2020-12 ignores it; expected dependentRequired or dependentSchemas"},
	"additionalItems":  {shape: meaningless, reason: "2020-12 ignores it; expected prefixItems with items"},
}

// Dialects, by the URI that $schema gives them.
const (
	draft2020 = "https://json-schema.org/draft/2020-12/schema"
	draft7    = "http://json-schema.org/draft-07/schema"
)

// dialectOf names the dialect of a $schema, with or without an empty fragment.
func dialectOf(uri string) (string, bool) {
	switch uri {
	case draft2020, draft2020 + "#":
		return draft2020, true
	case draft7, draft7 + "#":
		return draft7, true
	}
	return "", false
}

// keywordNear finds the keyword that a misspelt one was meant to be, or "".
func keywordNear(name string) string {
	best, distance := "", 3
	for k, def := range keywords {
		if def.shape == meaningless {
			continue
		}
		d := editDistance(fold(name), fold(k), distance)
		if d < distance || d == distance && best != "" && k < best {
			best, distance = k, d
		}
	}
	return best
}

// sortedKeys keeps every report in one order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
