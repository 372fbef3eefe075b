package wire

import (
	"bytes"
	"encoding/json"
	"math"
)

// The readers of members: r stands for required, o for optional or null.

func (o *object) rText(name string) string { return o.at(name).text(o.required(name)) }
func (o *object) rID(name string) string   { return o.at(name).id(o.required(name)) }
func (o *object) rPath(name string) string { return o.at(name).path(o.required(name)) }
func (o *object) oText(name string) string { return o.at(name).text(o.nullable(name)) }
func (o *object) oID(name string) string   { return o.at(name).id(o.nullable(name)) }
func (o *object) oPath(name string) string { return o.at(name).path(o.nullable(name)) }

// flag reads a truth value that may be absent, but not null.
func (o *object) flag(name string) bool { return o.at(name).boolean(o.optional(name)) }

// oString is nil for an absent member and null.
func (o *object) oString(name string) *string {
	raw := o.nullable(name)
	if raw == nil {
		return nil
	}
	s := o.at(name).text(raw)
	return &s
}

func (o *object) oWhole(name string, least int64, most uint64) *uint64 {
	return o.at(name).whole(o.nullable(name), least, most)
}

func (o *object) oUint32(name string, least int64) *uint32 {
	n := o.oWhole(name, least, math.MaxUint32)
	if n == nil {
		return nil
	}
	short := uint32(*n)
	return &short
}

func (o *object) rUint64(name string) uint64 {
	n := o.at(name).whole(o.required(name), 0, math.MaxUint64)
	if n == nil {
		return 0
	}
	return *n
}

func (o *object) meta() Meta { return o.at("_meta").meta(o.nullable("_meta")) }

// any reads a member of any type; null is nil.
func (o *object) any(name string) json.RawMessage { return bytes.Clone(o.nullable(name)) }

// texts reads an array of strings that may be absent, but not null.
func (o *object) texts(name string) []string {
	return list(o.at(name), o.optional(name), (*place).text)
}

func (o *object) paths(name string) []string {
	return list(o.at(name), o.optional(name), (*place).path)
}

// objects reads an array of objects from a member that o gave.
func objects[T any](o *object, name string, raw json.RawMessage, element func(*object) T) []T {
	return list(o.at(name), raw, func(p *place, raw json.RawMessage) T { return element(p.object(raw)) })
}

func rObjects[T any](o *object, name string, element func(*object) T) []T {
	return objects(o, name, o.required(name), element)
}

// oObjects reads an array that may be absent or null.
func oObjects[T any](o *object, name string, element func(*object) T) []T {
	return objects(o, name, o.nullable(name), element)
}

// rObject reads an object that must be there.
func rObject[T any](o *object, name string, members func(*object) T) T {
	var none T
	raw := o.required(name)
	if raw == nil {
		return none
	}
	return members(o.at(name).object(raw))
}

// oObject reads an object that may be absent or null, and then is nil.
func oObject[T any](o *object, name string, members func(*object) T) *T {
	raw := o.nullable(name)
	if raw == nil {
		return nil
	}
	value := members(o.at(name).object(raw))
	return &value
}

// dObject reads an object that may be absent, but not null: absent is the zero value.
func dObject[T any](o *object, name string, members func(*object) T) T {
	var none T
	raw := o.optional(name)
	if raw == nil {
		return none
	}
	return members(o.at(name).object(raw))
}
