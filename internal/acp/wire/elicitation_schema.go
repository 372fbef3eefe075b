package wire

import "encoding/json"

// RequestedSchema is the flat object that a form asks for.
type RequestedSchema struct {
	Type        string                  `json:"type" wire:"notnull" enum:"object"`
	Title       string                  `json:"title,omitempty"`
	Description string                  `json:"description,omitempty"`
	Properties  map[string]FormProperty `json:"properties,omitzero"`
	Required    []string                `json:"required,omitzero" wire:"null"`
	Meta        Meta                    `json:"_meta,omitempty"`
}

// PropertyType is the type of a property of a form.
type PropertyType string

// The types of properties.
const (
	StringProperty  PropertyType = "string"
	NumberProperty  PropertyType = "number"
	IntegerProperty PropertyType = "integer"
	BooleanProperty PropertyType = "boolean"
	ArrayProperty   PropertyType = "array"
)

// FormProperty is one property of a form. Its type says which members it has.
type FormProperty struct {
	Type        PropertyType    `json:"type" wire:"required kind" enum:"string number integer boolean array"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"` // of the property's type
	// Of a string:
	MinLength *uint32      `json:"minLength,omitempty" of:"string"`
	MaxLength *uint32      `json:"maxLength,omitempty" of:"string"`
	Pattern   string       `json:"pattern,omitempty" of:"string"`
	Format    string       `json:"format,omitempty" of:"string" enum:"email uri date date-time"`
	Enum      []string     `json:"enum,omitzero" wire:"null" of:"string"`
	OneOf     []EnumOption `json:"oneOf,omitzero" wire:"null" of:"string"`
	// Of a number:
	Minimum json.Number `json:"minimum,omitempty" of:"number integer"`
	Maximum json.Number `json:"maximum,omitempty" of:"number integer"`
	// Of an array:
	MinItems *uint64    `json:"minItems,omitempty" of:"array"`
	MaxItems *uint64    `json:"maxItems,omitempty" of:"array"`
	Items    *FormItems `json:"items,omitempty" of:"array!"`
	Meta     Meta       `json:"_meta,omitempty"`
}

// FormItems is the values that a user may choose several of: either Enum or AnyOf.
type FormItems struct {
	Type  string       `json:"type,omitempty" wire:"required" enum:"string"` // with Enum
	Enum  []string     `json:"enum,omitzero" wire:"required"`
	AnyOf []EnumOption `json:"anyOf,omitzero" wire:"-"`
	Meta  Meta         `json:"_meta,omitempty"`
}

// EnumOption is a value with a title.
type EnumOption struct {
	Const       string `json:"const" wire:"required"`
	Title       string `json:"title" wire:"required"`
	Description string `json:"description,omitempty"`
	Meta        Meta   `json:"_meta,omitempty"`
}

func (s *RequestedSchema) read(o *object) {
	s.Type = "object"
	o.fields(s)
}

func (p *FormProperty) read(o *object) {
	o.fields(p)
	switch p.Type {
	case StringProperty:
		o.take("default", new(string), "")
	case NumberProperty:
		o.take("default", new(json.Number), "")
	case IntegerProperty:
		for _, name := range []string{"default", "minimum", "maximum"} {
			var n json.Number
			o.take(name, &n, "")
			if _, err := n.Int64(); n != "" && err != nil {
				o.at(name).fail("a whole number of 64 bits", "another number")
			}
		}
	case BooleanProperty:
		o.take("default", new(bool), `wire:"null"`)
	case ArrayProperty:
		o.take("default", new([]string), `wire:"null"`)
	}
}

func (i *FormItems) read(o *object) {
	if o.has("anyOf") {
		o.take("_meta", &i.Meta, `json:"_meta"`)
		o.take("anyOf", &i.AnyOf, "")
		return
	}
	o.fields(i)
}
