package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/callgate/callgate/internal/rawjson"
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

// Read reads a value of the protocol; absent and null are an empty object. Members that T does not have are
// dropped, or refused where T is closed.
func Read[T any](raw json.RawMessage) (T, error) { return read[T](raw, &state{}) }

// closed marks the params of a request that an agent makes.
type closed struct{}

func read[T any](raw json.RawMessage, s *state) (value T, _ error) {
	var none T
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	if err := rawjson.Check(raw, MaxDepth); err != nil {
		return none, &Error{Expected: "strict JSON", Found: err.Error()}
	}
	if kindOf(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	o := (&place{state: s}).object(raw)
	into := reflect.ValueOf(&value).Elem()
	o.read(into)
	if into.Type().Field(0).Type == reflect.TypeFor[closed]() {
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
	o.members, _ = rawjson.Map(raw)
	return o
}

func (o *object) at(name string) *place { return &place{o.state, o.place, name} }

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
