package wire

import (
	"encoding/json"
	"math"
)

// RequestedSchema is the flat object that a form asks for.
type RequestedSchema struct {
	Type        string                  `json:"type"` // "object"
	Title       string                  `json:"title,omitempty"`
	Description string                  `json:"description,omitempty"`
	Properties  map[string]FormProperty `json:"properties,omitzero"`
	Required    []string                `json:"required,omitzero"`
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
	Type        PropertyType    `json:"type"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"` // of the property's type
	// Of a string:
	MinLength *uint32      `json:"minLength,omitempty"`
	MaxLength *uint32      `json:"maxLength,omitempty"`
	Pattern   string       `json:"pattern,omitempty"`
	Format    string       `json:"format,omitempty"`
	Enum      []string     `json:"enum,omitzero"`
	OneOf     []EnumOption `json:"oneOf,omitzero"`
	// Of a number:
	Minimum json.Number `json:"minimum,omitempty"`
	Maximum json.Number `json:"maximum,omitempty"`
	// Of an array:
	MinItems *uint64    `json:"minItems,omitempty"`
	MaxItems *uint64    `json:"maxItems,omitempty"`
	Items    *FormItems `json:"items,omitempty"`
	Meta     Meta       `json:"_meta,omitempty"`
}

// FormItems is the values that a user may choose several of: either Enum or AnyOf.
type FormItems struct {
	Type  string       `json:"type,omitempty"` // "string" with Enum
	Enum  []string     `json:"enum,omitzero"`
	AnyOf []EnumOption `json:"anyOf,omitzero"`
	Meta  Meta         `json:"_meta,omitempty"`
}

// EnumOption is a value with a title.
type EnumOption struct {
	Const       string `json:"const"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Meta        Meta   `json:"_meta,omitempty"`
}

func readRequestedSchema(o *object) RequestedSchema {
	s := RequestedSchema{Type: "object", Title: o.oText("title"), Description: o.oText("description"), Meta: o.meta()}
	if raw := o.optional("type"); raw != nil {
		enum(o.at("type"), raw, "object")
	}
	s.Required = list(o.at("required"), o.nullable("required"), (*place).text)
	raw := o.optional("properties")
	if raw == nil {
		return s
	}
	properties := o.at("properties").object(raw)
	s.Properties = make(map[string]FormProperty, len(properties.members))
	for name := range properties.members {
		s.Properties[name] = rObject(properties, name, readFormProperty)
	}
	return s
}

func readFormProperty(o *object) FormProperty {
	p := FormProperty{
		Type:  enum(o.at("type"), o.required("type"), StringProperty, NumberProperty, IntegerProperty, BooleanProperty, ArrayProperty),
		Title: o.oText("title"), Description: o.oText("description"), Default: o.any("default"), Meta: o.meta(),
	}
	fallback, given := o.at("default"), p.Default
	switch p.Type {
	case StringProperty:
		fallback.text(given)
		p.MinLength, p.MaxLength, p.Pattern = o.oUint32("minLength", 0), o.oUint32("maxLength", 0), o.oText("pattern")
		p.Format = enum(o.at("format"), o.nullable("format"), "email", "uri", "date", "date-time")
		p.Enum = list(o.at("enum"), o.nullable("enum"), (*place).text)
		p.OneOf = oObjects(o, "oneOf", readEnumOption)
	case NumberProperty, IntegerProperty:
		number := o.number
		if p.Type == IntegerProperty {
			number = o.integer
		}
		if given != nil {
			number("default")
		}
		p.Minimum, p.Maximum = number("minimum"), number("maximum")
	case BooleanProperty:
		fallback.boolean(given)
	case ArrayProperty:
		list(fallback, given, (*place).text)
		p.MinItems, p.MaxItems = o.oWhole("minItems", 0, math.MaxUint64), o.oWhole("maxItems", 0, math.MaxUint64)
		items := rObject(o, "items", readFormItems)
		p.Items = &items
	}
	return p
}

// number reads a number that may be absent or null.
func (o *object) number(name string) json.Number { return o.at(name).number(o.nullable(name)) }

// integer reads a whole number of 64 bits that may be absent or null.
func (o *object) integer(name string) json.Number {
	n := o.number(name)
	if n == "" {
		return ""
	}
	if _, err := n.Int64(); err != nil {
		o.at(name).fail("a whole number of 64 bits", "another number")
	}
	return n
}

func readFormItems(o *object) FormItems {
	items := FormItems{Meta: o.meta()}
	if o.has("anyOf") {
		items.AnyOf = rObjects(o, "anyOf", readEnumOption)
		return items
	}
	items.Type = enum(o.at("type"), o.required("type"), "string")
	items.Enum = list(o.at("enum"), o.required("enum"), (*place).text)
	return items
}

func readEnumOption(o *object) EnumOption {
	return EnumOption{o.rText("const"), o.rText("title"), o.oText("description"), o.meta()}
}
