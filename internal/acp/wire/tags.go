package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/callgate/callgate/internal/rawjson"
)

// A struct is read by the tags of its fields, in their order. Beside json, which has the member's name:
//
//	wire:"required"  the member must be there
//	wire:"notnull"   it may be absent, and is not null; as are truth values, structs, lists and maps
//	wire:"null"      it may be absent or null; as are all others, and the members of an embedded struct
//	wire:"id"        a string of 1 to MaxID bytes
//	wire:"path"      a string that is an absolute path; "reported" is one of a reported tool call
//	wire:"request"   the id of a request
//	wire:"kind"      a string that says of which kind the object is
//	wire:"-"         the struct reads it itself
//	of:"a b!"        a member of the kinds a and b, and required of b
//	enum:"a b"       one of these strings
//	min:"1"          the least whole number
//
// What holds of strings holds of those in a list, too.
type tags struct {
	name                string // empty: it is no member
	words, kinds, enums []string
	least               uint64
	embedded            bool
}

func tagsOf(tag reflect.StructTag) tags {
	name, _, _ := strings.Cut(tag.Get("json"), ",")
	t := tags{
		name: strings.TrimPrefix(name, "-"), words: strings.Fields(tag.Get("wire")),
		kinds: strings.Fields(tag.Get("of")), enums: strings.Fields(tag.Get("enum")),
	}
	t.least, _ = strconv.ParseUint(tag.Get("min"), 10, 64)
	return t
}

// known are the tags of all fields, by the type of the struct.
var known sync.Map

func fieldsOf(t reflect.Type) []tags {
	if all, ok := known.Load(t); ok {
		return all.([]tags)
	}
	all := make([]tags, t.NumField())
	for i := range all {
		f := t.Field(i)
		all[i] = tagsOf(f.Tag)
		all[i].embedded = f.Anonymous
	}
	known.Store(t, all)
	return all
}

func (t *tags) is(word string) bool { return slices.Contains(t.words, word) }

// of reports whether an object of a kind has the member, and whether it must.
func (t *tags) of(kind string) (has, required bool) {
	if len(t.kinds) == 0 {
		return true, t.is("required")
	}
	for _, k := range t.kinds {
		if name, must := strings.CutSuffix(k, "!"); name == kind {
			return true, must
		}
	}
	return false, false
}

// absent reports whether null is the same as no member.
func (t *tags) absent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Bool, reflect.Struct, reflect.Map:
		return t.is("null")
	case reflect.Slice:
		return t.is("null") || v.Type() == rawType
	case reflect.Pointer: // to a pointer, which null clears
		return v.Type().Elem().Kind() != reflect.Pointer
	}
	return !t.is("notnull")
}

var (
	rawType    = reflect.TypeFor[json.RawMessage]()
	numberType = reflect.TypeFor[json.Number]()
)

// reader is a struct that its tags do not describe whole. It reads them by object.fields.
type reader interface{ read(*object) }

// read reads the members of a struct.
func (o *object) read(v reflect.Value) {
	if r, ok := v.Addr().Interface().(reader); ok {
		r.read(o)
	} else {
		o.tagged(v, false)
	}
}

// fields reads the tagged members of a struct.
func (o *object) fields(into any) { o.tagged(reflect.ValueOf(into).Elem(), false) }

func (o *object) tagged(v reflect.Value, nullable bool) {
	kind := ""
	all := fieldsOf(v.Type())
	for i := range all {
		t := &all[i]
		has, required := t.of(kind)
		switch {
		case t.embedded:
			o.tagged(v.Field(i), t.is("null"))
		case has && t.name != "" && !t.is("-"):
			o.member(v.Field(i), t, required, nullable)
		}
		if t.is("kind") {
			kind = v.Field(i).String()
		}
	}
}

// take reads one member by the tags of a field.
func (o *object) take(name string, into any, tag reflect.StructTag) {
	t := tagsOf(tag)
	t.name = name
	o.member(reflect.ValueOf(into).Elem(), &t, t.is("required"), false)
}

func (o *object) member(v reflect.Value, t *tags, required, nullable bool) {
	var raw json.RawMessage
	switch {
	case required:
		raw = o.required(t.name)
	case nullable || t.absent(v):
		raw = o.nullable(t.name)
	default:
		raw = o.optional(t.name)
	}
	if raw != nil {
		o.at(t.name).decode(raw, v, t)
	}
}

// decode reads a value.
func (p *place) decode(raw json.RawMessage, v reflect.Value, t *tags) {
	switch {
	case p.err != nil:
	case v.Type() == rawType:
		v.SetBytes(p.raw(raw, t))
	case v.Type() == numberType:
		v.SetString(p.number(raw))
	default:
		p.decodeKind(raw, v, t)
	}
}

func (p *place) decodeKind(raw json.RawMessage, v reflect.Value, t *tags) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(p.string(raw, t))
	case reflect.Bool:
		kind := kindOf(raw)
		if v.SetBool(kind == "true"); kind != "true" && kind != "false" {
			p.fail("true or false", kind)
		}
	case reflect.Int64:
		v.SetInt(int64(p.whole(raw, t, math.MaxInt64)))
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(p.whole(raw, t, math.MaxUint64>>(64-v.Type().Bits())))
	case reflect.Struct:
		p.object(raw).read(v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		if v.Elem().Kind() != reflect.Pointer || kindOf(raw) != "null" {
			p.decode(raw, v.Elem(), t)
		}
	case reflect.Slice:
		p.list(raw, v, t)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		o := p.object(raw)
		if len(o.members) > MaxItems {
			o.fail(fmt.Sprintf("at most %d members", MaxItems), "more")
		}
		for name, raw := range o.members {
			value := reflect.New(v.Type().Elem()).Elem()
			o.at(name).decode(raw, value, t)
			v.SetMapIndex(reflect.ValueOf(name), value)
		}
	default:
		panic("no value is read into " + v.Type().String())
	}
}

// string reads a string and checks it.
func (p *place) string(raw json.RawMessage, t *tags) string {
	if kind := kindOf(raw); kind != "a string" {
		p.fail("a string", kind)
		return ""
	}
	text, err := rawjson.Unquote(raw)
	s := string(text)
	switch {
	case err != nil:
		p.fail("a string", "another value")
	case t.is("id") && (s == "" || len(s) > MaxID):
		p.fail(fmt.Sprintf("1 to %d bytes", MaxID), strconv.Itoa(len(s)))
	case t.is("reported") && p.relative && isBelow(s):
	case (t.is("path") || t.is("reported")) && (!filepath.IsAbs(s) || strings.ContainsRune(s, 0)):
		p.fail("an absolute path", "another string")
	case len(t.enums) > 0 && !slices.Contains(t.enums, s):
		p.fail("one of "+strings.Join(t.enums, ", "), "another string")
	}
	return s
}

// isBelow reports whether a path is relative, and has one meaning: it leads to a place below the folder that
// it starts in.
func isBelow(path string) bool {
	return filepath.IsLocal(path) && !slices.Contains(strings.Split(path, "/"), "..") && !strings.ContainsAny(path, "\\\x00") &&
		!strings.Contains(path, "://")
}

func (p *place) whole(raw json.RawMessage, t *tags, most uint64) uint64 {
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n < t.least || n > most {
		p.fail(fmt.Sprintf("a whole number from %d to %d", t.least, most), kindOf(raw))
	}
	return n
}

func (p *place) number(raw json.RawMessage) string {
	if kind := kindOf(raw); kind != "a number" {
		p.fail("a number", kind)
	}
	if len(raw) > 256 {
		p.fail("a number of at most 256 characters", strconv.Itoa(len(raw)))
	}
	return string(raw)
}

// raw reads the id of a request, a _meta, of which a long one is dropped, or any value.
func (p *place) raw(raw json.RawMessage, t *tags) json.RawMessage {
	var n int64
	switch kind := kindOf(raw); {
	case t.is("request") && kind == "a string":
		p.string(raw, &tags{words: []string{"id"}})
	case t.is("request") && (kind != "a number" || json.Unmarshal(raw, &n) != nil):
		p.fail("a string, or a whole number of 64 bits", kind)
	case t.name == "_meta" && kind != "an object":
		p.fail("an object", kind)
	case t.name == "_meta" && len(raw) > MaxMeta:
		return nil
	}
	return bytes.Clone(raw)
}

// list reads an array; an empty one is not nil.
func (p *place) list(raw json.RawMessage, v reflect.Value, t *tags) {
	if kind := kindOf(raw); kind != "an array" {
		p.fail("an array", kind)
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	err := rawjson.EachOf(raw, func(value []byte) error {
		n := v.Len()
		if n == MaxItems {
			p.fail(fmt.Sprintf("at most %d elements", MaxItems), "more")
		}
		if p.err != nil {
			return p.err
		}
		v.Grow(1)
		v.SetLen(n + 1)
		p.element(n).decode(value, v.Index(n), t)
		return nil
	})
	if err != nil {
		p.fail("an array", "another value")
	}
}

// written is an object of a kind as JSON: its members, without the empty ones that need not be there.
func written(kind string, object any) ([]byte, error) {
	v, known, b := reflect.ValueOf(object), false, []byte("{")
	for i, t := range fieldsOf(v.Type()) {
		has, required := t.of(kind)
		known = known || has && len(t.kinds) > 0
		if !has || !required && v.Field(i).IsZero() {
			continue
		}
		value, err := json.Marshal(v.Field(i).Interface())
		if err != nil {
			return nil, err
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), t.name...), `":`...)
		b = append(b, value...)
	}
	if !known {
		return nil, fmt.Errorf("%q is no kind of %T", kind, object)
	}
	return append(b, '}'), nil
}
