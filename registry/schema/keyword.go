package schema

import (
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/registry/schema/plain"
)

// shape says how a keyword holds schemas.
type shape int

const (
	plainValue  shape = iota // no schema inside
	oneSchema                // a schema
	schemaList               // an array of schemas
	schemaMap                // an object of schemas
	definitions              // an object of schemas that apply only where referred to
	reference                // $ref
	identifier               // names a place, asserts nothing
	annotation               // says something, asserts nothing
	unsupported              // refused: see the reason
)

// scope says to which values the schemas inside a keyword apply.
type scope int

const (
	noApplicator      scope = iota
	childApplicator         // to a value inside, and they stand for a place in the arguments
	inPlaceApplicator       // to the same value
	testApplicator          // to the same value or to one inside, as a condition only
)

type keyword struct {
	shape  shape
	scope  scope
	object bool   // makes its schema an object schema
	only   string // "" in every dialect, else the dialect that knows it
	reason string // of meaningless
}

// keywords is the whole vocabulary; read only. Any other keyword that does not begin
// with x- is a load error.
var keywords = map[string]keyword{
	"$schema":  {shape: identifier},
	"$id":      {shape: identifier},
	"$anchor":  {shape: identifier, only: draft2020},
	"$comment": {shape: annotation},
	"$defs":    {shape: definitions}, "definitions": {shape: definitions},
	"$ref": {shape: reference, scope: inPlaceApplicator},

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

	"properties":            {shape: schemaMap, scope: childApplicator, object: true},
	"patternProperties":     {shape: schemaMap, scope: childApplicator, object: true},
	"additionalProperties":  {shape: oneSchema, scope: childApplicator, object: true},
	"unevaluatedProperties": {shape: oneSchema, scope: childApplicator, object: true, only: draft2020},
	"propertyNames":         {shape: oneSchema, scope: testApplicator, object: true},
	"items":                 {shape: oneSchema, scope: childApplicator},
	"prefixItems":           {shape: schemaList, scope: childApplicator, only: draft2020},
	"unevaluatedItems":      {shape: oneSchema, scope: childApplicator, only: draft2020},
	"contains":              {shape: oneSchema, scope: testApplicator},

	"allOf": {shape: schemaList, scope: inPlaceApplicator}, "anyOf": {shape: schemaList, scope: inPlaceApplicator},
	"oneOf": {shape: schemaList, scope: inPlaceApplicator},
	"if":    {shape: oneSchema, scope: inPlaceApplicator}, "then": {shape: oneSchema, scope: inPlaceApplicator},
	"else":             {shape: oneSchema, scope: inPlaceApplicator},
	"dependentSchemas": {shape: schemaMap, scope: inPlaceApplicator, object: true, only: draft2020},
	"not":              {shape: oneSchema, scope: testApplicator},

	"$dynamicRef":      {shape: unsupported, reason: "its target is known only while a value is evaluated; expected $ref"},
	"$dynamicAnchor":   {shape: unsupported, reason: "its meaning depends on who refers to it; expected $anchor"},
	"$recursiveRef":    {shape: unsupported, reason: "its target is known only while a value is evaluated; expected $ref"},
	"$recursiveAnchor": {shape: unsupported, reason: "its meaning depends on who refers to it; expected $anchor"},
	"$vocabulary":      {shape: unsupported, reason: "only a metaschema has vocabularies; expected none"},
	"dependencies":     {shape: unsupported, reason: "2020-12 ignores it; expected dependentRequired or dependentSchemas"},
	"additionalItems":  {shape: unsupported, reason: "2020-12 ignores it; expected prefixItems with items"},
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

// suggestKeyword finds the keyword that a misspelt one was meant to be, or "".
func suggestKeyword(name string) string {
	best, distance := "", 3
	for k, def := range keywords {
		if def.shape == unsupported {
			continue
		}
		d := similar.Distance(similar.Skeleton(name), similar.Skeleton(k), distance)
		if d < distance || d == distance && best != "" && k < best {
			best, distance = k, d
		}
	}
	return best
}

const (
	boundaryKey = plain.Boundary
	secretKey   = "x-secret"
)
