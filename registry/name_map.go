package registry

import (
	"fmt"
	"strings"

	"github.com/callgate/callgate/parser"
)

// Alphabet has the characters that a face allows in a name: bytes of Allowed, at most MaxBytes
// of them. Every other byte of a registry name is written as Substitute.
type Alphabet struct {
	Allowed    string
	Substitute byte
	MaxBytes   int
	// Toolkit, where it is not empty, asks for names of two parts: the first dot of
	// a name is kept, and a name without one is prefixed with this and a dot.
	Toolkit string
}

const lettersAndDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// OpenAI is [A-Za-z0-9_-]{1,64}; RAP and OXP names have the same alphabet.
func OpenAI() Alphabet {
	return Alphabet{Allowed: lettersAndDigits + "_-", Substitute: '_', MaxBytes: 64}
}

// OXP is Toolkit.Tool, each part of [A-Za-z0-9_]+. Tools without a toolkit are
// Callgate's.
func OXP() Alphabet {
	return Alphabet{Allowed: lettersAndDigits + "_", Substitute: '_', MaxBytes: 128, Toolkit: "callgate"}
}

// NameMap maps the names of tools one to one to the names that a face may use.
// It is immutable and safe for concurrent use.
type NameMap struct {
	wire  map[string]string // by registry name
	names map[string]string // by wire name
	base  *NameMap          // of the other tools; nil: these are all
}

// NewNameMap maps names, in their order. Two names that would become one, and a
// name that the face has no room for, are errors; the error names both. A name
// that is given twice is mapped once.
func NewNameMap(names []string, a Alphabet) (*NameMap, error) {
	w := newNameEncoder(a)
	m := &NameMap{wire: make(map[string]string, len(names)), names: w.taken}
	for _, name := range names {
		wire, fault := w.add(name)
		if fault != "" {
			return nil, fmt.Errorf("name map: %s", fault)
		}
		m.wire[name] = wire
	}
	return m, nil
}

// With returns a map of these names too. A name that would become one with another, of m or of
// the list, is an error. m does not change.
func (m *NameMap) With(names []string, a Alphabet) (*NameMap, error) {
	more, err := NewNameMap(names, a)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		wire := more.wire[name]
		if other, taken := m.Name(wire); taken && other != name {
			return nil, fmt.Errorf("name map: found %s, which becomes %s like %s where %s; expected names that stay apart",
				parser.Quote(name), parser.Quote(wire), parser.Quote(other), a.rule())
		}
	}
	more.base = m
	return more, nil
}

// Wire returns the face's name of a tool.
func (m *NameMap) Wire(name string) (string, bool) {
	if m == nil {
		return "", false
	}
	wire, ok := m.wire[name]
	if !ok {
		return m.base.Wire(name)
	}
	return wire, ok
}

// Name returns the tool's name for a name of the face, compared byte for byte.
func (m *NameMap) Name(wire string) (string, bool) {
	if m == nil {
		return "", false
	}
	name, ok := m.names[wire]
	if !ok {
		return m.base.Name(wire)
	}
	return name, ok
}

// nameEncoder is a map under construction.
type nameEncoder struct {
	alphabet Alphabet
	taken    map[string]string
}

func newNameEncoder(a Alphabet) *nameEncoder {
	return &nameEncoder{alphabet: a, taken: map[string]string{}}
}

func (w *nameEncoder) add(name string) (wire, fault string) {
	wire = w.alphabet.encode(name)
	if wire == "" || len(wire) > w.alphabet.MaxBytes {
		return "", fmt.Sprintf("found %s; expected a name of 1 to %d bytes", parser.Quote(name), w.alphabet.MaxBytes)
	}
	if other, taken := w.taken[wire]; taken && other != name {
		return "", fmt.Sprintf("found %s, which becomes %s like %s where %s; expected names that stay apart", parser.Quote(name),
			parser.Quote(wire), parser.Quote(other), w.alphabet.rule())
	}
	w.taken[wire] = name
	return wire, ""
}

// encode is a name in the alphabet.
func (a Alphabet) encode(name string) string {
	toolkit := ""
	if a.Toolkit != "" {
		first, rest, dotted := strings.Cut(name, ".")
		if !dotted {
			first, rest = a.Toolkit, name
		}
		toolkit, name = a.substitute(first)+".", rest
	}
	return toolkit + a.substitute(name)
}

// substitute writes every byte that is not allowed as the substitute.
func (a Alphabet) substitute(name string) string {
	b := []byte(name)
	for i, c := range b {
		if strings.IndexByte(a.Allowed, c) < 0 {
			b[i] = a.Substitute
		}
	}
	return string(b)
}

// rule explains why two names become one.
func (a Alphabet) rule() string {
	if a.Toolkit != "" {
		return "a name is Toolkit.Tool, of letters, digits and _"
	}
	return "dots are not allowed"
}
