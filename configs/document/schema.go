package document

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/callgate/callgate/internal/duration"
)

// Schema is a JSON Schema (2020-12) of a configuration file, or of a place in one.
type Schema struct {
	Dialect              string              `json:"$schema,omitempty"`
	ID                   string              `json:"$id,omitempty"`
	Title                string              `json:"title,omitempty"`
	Description          string              `json:"description,omitempty"`
	Type                 string              `json:"type,omitempty"`
	Enum                 []string            `json:"enum,omitempty"`
	Pattern              string              `json:"pattern,omitempty"`
	MinLength            int                 `json:"minLength,omitempty"`
	MaxLength            int                 `json:"maxLength,omitempty"`
	Minimum              *int64              `json:"minimum,omitempty"`
	Maximum              *int64              `json:"maximum,omitempty"`
	MinItems             int                 `json:"minItems,omitempty"`
	UniqueItems          bool                `json:"uniqueItems,omitempty"`
	Items                *Schema             `json:"items,omitempty"`
	Required             []string            `json:"required,omitempty"`
	Properties           map[string]*Schema  `json:"properties,omitempty"`
	PropertyNames        *Schema             `json:"propertyNames,omitempty"`
	AdditionalProperties *Schema             `json:"additionalProperties,omitempty"`
	MaxProperties        *int64              `json:"maxProperties,omitempty"`
	DependentRequired    map[string][]string `json:"dependentRequired,omitempty"`
	AnyOf                []*Schema           `json:"anyOf,omitempty"`
	AllOf                []*Schema           `json:"allOf,omitempty"`
	OneOf                []*Schema           `json:"oneOf,omitempty"`
	Default              any                 `json:"default,omitempty"`
}

// False is the schema that accepts nothing. It must not be changed.
var False = &Schema{Type: "never"}

// MarshalJSON writes False as false.
func (s *Schema) MarshalJSON() ([]byte, error) {
	if s == False {
		return []byte("false"), nil
	}
	type plain Schema
	return json.Marshal((*plain)(s))
}

// IsZero reports whether the schema says nothing.
func (s *Schema) IsZero() bool { return reflect.ValueOf(*s).IsZero() }

// anyOf is the schema of several alternatives.
func anyOf(alternatives []*Schema) *Schema {
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	return &Schema{AnyOf: alternatives}
}

// durationDefault is a default as a schema shows it; none for zero.
func durationDefault(d time.Duration) any {
	if d == 0 {
		return nil
	}
	return duration.Spell(d)
}

// textDefault is a default as a schema shows it; none for an empty text.
func textDefault(s string) any {
	if s == "" {
		return nil
	}
	return s
}
