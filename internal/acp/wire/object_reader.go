package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/strictjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
)

// Error is the first fault of a value. It quotes nothing of it.
type Error struct {
	// Pointer is the JSON Pointer of the faulty value from the params or the result; of a
	// missing or unknown member, that of the object.
	Pointer  string
	Expected string
	Found    string
}

// Error names the place, the expected and the found value.
func (e *Error) Error() string {
	at := e.Pointer
	if at == "" {
		at = "the root"
	}
	return fmt.Sprintf("%s: expected %s, found %s", at, e.Expected, e.Found)
}

// rule says what becomes of members that the protocol does not have.
type rule int

const (
	drop   rule = iota
	refuse      // of the root object alone
)

// read reads an object; absent and null are an empty one.
func read[T any](raw json.RawMessage, unknown rule, members func(*object) T) (T, error) {
	var none T
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := strictjson.Check(raw, MaxDepth); err != nil {
		return none, &Error{Expected: "strict JSON", Found: err.Error()}
	}
	if kindOf(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	s := new(state)
	o := (&place{state: s}).object(raw)
	value := members(o)
	if unknown == refuse {
		o.refuseOthers()
	}
	if s.err != nil {
		return none, s.err
	}
	return value, nil
}

// state keeps the first fault of one value.
type state struct {
	err *Error
	// relative says that the paths of a reported tool call may be relative.
	relative bool
}

// place is where a value stands.
type place struct {
	*state
	parent *place
	name   string
}

func (p *place) pointer() string {
	if p.parent == nil {
		return ""
	}
	return p.parent.pointer() + "/" + refusal.EscapePointer(p.name)
}

func (p *place) fail(expected, found string) {
	if p.err == nil {
		p.err = &Error{p.pointer(), expected, found}
	}
}

func (p *place) element(i int) *place { return &place{p.state, p, strconv.Itoa(i)} }

// object is an object whose members are taken one by one. After a fault it is empty.
type object struct {
	*place
	members map[string]json.RawMessage
	taken   map[string]bool
}

func (p *place) object(raw json.RawMessage) *object {
	o := &object{place: p, members: map[string]json.RawMessage{}, taken: map[string]bool{}}
	if kind := kindOf(raw); kind != "an object" {
		p.fail("an object", kind)
	}
	if p.err != nil {
		return o
	}
	err := strictjson.EachMember(raw, func(name []byte, start, end int) error {
		o.members[string(name)] = raw[start:end:end]
		return nil
	})
	if err != nil {
		p.fail("an object", "another value")
	}
	return o
}

func (o *object) at(name string) *place { return &place{o.state, o.place, name} }

// has reports whether a member is there and not null.
func (o *object) has(name string) bool {
	raw, ok := o.members[name]
	return ok && kindOf(raw) != "null"
}

// required returns a member that must be there; nil after a fault.
func (o *object) required(name string) json.RawMessage {
	o.taken[name] = true
	raw, ok := o.members[name]
	if o.err != nil {
		return nil
	}
	if !ok {
		o.fail(fmt.Sprintf("a member %q", name), "none")
	}
	return raw
}

// optional returns a member; nil if there is none.
func (o *object) optional(name string) json.RawMessage {
	o.taken[name] = true
	if o.err != nil {
		return nil
	}
	return o.members[name]
}

// nullable returns a member; nil if there is none, or null.
func (o *object) nullable(name string) json.RawMessage {
	raw := o.optional(name)
	if raw != nil && kindOf(raw) == "null" {
		return nil
	}
	return raw
}

// refuseOthers refuses members that nothing has taken.
func (o *object) refuseOthers() {
	unknown := 0
	for name := range o.members {
		if !o.taken[name] {
			unknown++
		}
	}
	if unknown > 0 {
		known := make([]string, 0, len(o.taken))
		for name := range o.taken {
			known = append(known, name)
		}
		slices.Sort(known)
		o.fail("no other members than "+strings.Join(known, ", "), fmt.Sprintf("%d more", unknown))
	}
}

// The functions below take a raw value, which may be nil, and then return the zero value.

func (p *place) text(raw json.RawMessage) string {
	if raw == nil || p.err != nil {
		return ""
	}
	if kind := kindOf(raw); kind != "a string" {
		p.fail("a string", kind)
		return ""
	}
	text, err := strictjson.Unquote(raw)
	if err != nil {
		p.fail("a string", "another value")
	}
	return string(text)
}

func (p *place) id(raw json.RawMessage) string {
	s := p.text(raw)
	if raw != nil && (s == "" || len(s) > MaxID) {
		p.fail(fmt.Sprintf("1 to %d bytes", MaxID), strconv.Itoa(len(s)))
	}
	return s
}

func (p *place) path(raw json.RawMessage) string {
	s := p.text(raw)
	if raw != nil && (!filepath.IsAbs(s) || strings.ContainsRune(s, 0)) {
		p.fail("an absolute path", "another string")
	}
	return s
}

// reportedPath reads the path of a reported tool call. A relative one is taken only where it has one
// meaning: below the folder that it starts in.
func (p *place) reportedPath(raw json.RawMessage) string {
	if s := p.text(raw); p.relative && raw != nil && isBelow(s) {
		return s
	}
	return p.path(raw)
}

// isBelow reports whether a path is relative, and leads to a place below the folder that it starts in.
func isBelow(path string) bool {
	return filepath.IsLocal(path) && !slices.Contains(strings.Split(path, "/"), "..") && !strings.ContainsAny(path, "\\\x00") && !strings.Contains(path, "://")
}

func (p *place) boolean(raw json.RawMessage) bool {
	if raw == nil {
		return false
	}
	if kind := kindOf(raw); kind != "true" && kind != "false" {
		p.fail("true or false", kind)
	}
	return raw[0] == 't'
}

// whole reads a whole number from least to most.
func (p *place) whole(raw json.RawMessage, least int64, most uint64) *uint64 {
	if raw == nil || p.err != nil {
		return nil
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || n < uint64(least) || n > most {
		p.fail(fmt.Sprintf("a whole number from %d to %d", least, most), kindOf(raw))
		return nil
	}
	return &n
}

func (p *place) number(raw json.RawMessage) json.Number {
	if raw == nil {
		return ""
	}
	if kind := kindOf(raw); kind != "a number" {
		p.fail("a number", kind)
	}
	if len(raw) > 256 {
		p.fail("a number of at most 256 characters", strconv.Itoa(len(raw)))
		return ""
	}
	return json.Number(raw)
}

func (p *place) meta(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return nil
	}
	if kind := kindOf(raw); kind != "an object" {
		p.fail("an object", kind)
	}
	if len(raw) > MaxMeta {
		return nil
	}
	return bytes.Clone(raw)
}

func enum[T ~string](p *place, raw json.RawMessage, values ...T) T {
	s := T(p.text(raw))
	if raw != nil && p.err == nil && !slices.Contains(values, s) {
		names := make([]string, len(values))
		for i, v := range values {
			names[i] = string(v)
		}
		p.fail("one of "+strings.Join(names, ", "), "another string")
	}
	return s
}

// list reads an array; absent is nil, an empty one is not.
func list[T any](p *place, raw json.RawMessage, element func(*place, json.RawMessage) T) []T {
	if raw == nil || p.err != nil {
		return nil
	}
	if kind := kindOf(raw); kind != "an array" {
		p.fail("an array", kind)
		return nil
	}
	values := []T{}
	err := strictjson.EachElement(raw, func(value []byte) error {
		if len(values) == MaxItems {
			p.fail(fmt.Sprintf("at most %d elements", MaxItems), "more")
		}
		if p.err != nil {
			return p.err
		}
		values = append(values, element(p.element(len(values)), value))
		return nil
	})
	if err != nil {
		p.fail("an array", "another value")
	}
	return values
}

// kindOf names the kind of a value that was checked. White space may precede it.
func kindOf(raw json.RawMessage) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	switch {
	case len(raw) == 0:
		return "nothing"
	case raw[0] == 't':
		return "true"
	case raw[0] == 'f':
		return "false"
	}
	return parser.TypeName(raw[0])
}
