package parser

import (
	"bytes"
	"sync"
	"unicode/utf8"
)

// fewNames is how many names of one object are compared one by one; beyond it
// they are looked up in a set.
const fewNames = 16

// nameSet finds names that stand twice in one object. Its scopes nest as the
// objects do. Names are compared as they decode.
type nameSet struct {
	stack [][]byte // the names, decoded, of the objects that are being read
	base  int      // where those of the innermost object start
	many  map[string]struct{}
	room  *nameRoom
}

// nameRoom keeps the first names without an allocation. It is apart from the reader, which would
// otherwise not fit on the stack.
type nameRoom [32][]byte

// nameRooms have no names. One of a text that has a fault is not given back.
var nameRooms = sync.Pool{New: func() any { return new(nameRoom) }}

// nameScope is what enter saves and leave restores.
type nameScope struct {
	base int
	many map[string]struct{}
}

func (s *nameSet) enter() nameScope {
	if s.stack == nil {
		s.room = nameRooms.Get().(*nameRoom)
		s.stack = s.room[:0]
	}
	outer := nameScope{s.base, s.many}
	s.base, s.many = len(s.stack), nil
	return outer
}

func (s *nameSet) leave(outer nameScope) {
	s.stack = s.stack[:s.base]
	if s.base == 0 { // the outermost object ends
		clear(s.room[:])
		nameRooms.Put(s.room)
		s.stack, s.room = nil, nil
	}
	s.base, s.many = outer.base, outer.many
}

// add adds a raw name, and reports whether it is new in this object. A name with
// escapes is decoded once and kept decoded.
func (s *nameSet) add(raw []byte) bool {
	name := raw
	if escaped(raw) {
		name = []byte(unquote(raw))
	}
	if s.many == nil {
		own := s.stack[s.base:]
		for _, other := range own {
			if string(name) == string(other) {
				return false
			}
		}
		if len(own) < fewNames {
			s.stack = append(s.stack, name)
			return true
		}
		s.many = make(map[string]struct{}, 2*fewNames)
		for _, other := range own {
			s.many[string(other)] = struct{}{}
		}
	}
	if _, twice := s.many[string(name)]; twice {
		return false
	}
	s.many[string(name)] = struct{}{}
	return true
}

func escaped(raw []byte) bool { return bytes.IndexByte(raw, '\\') >= 0 }

// unquote decodes the bytes between the quotes of a string whose grammar has
// been read. In a string that was only searched, not read, a lone surrogate
// decodes to U+FFFD.
func unquote(raw []byte) string {
	if !escaped(raw) {
		return string(raw)
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			out = append(out, c)
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			unit := hexUnit(raw[i+1:])
			i += 4
			if unit >= 0xD800 && unit < 0xDC00 && i+6 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if low := hexUnit(raw[i+3:]); low >= 0xDC00 && low <= 0xDFFF {
					unit = 0x10000 + (unit-0xD800)<<10 + (low - 0xDC00)
					i += 6
				}
			}
			out = utf8.AppendRune(out, rune(unit))
		default: // a quote, a backslash or a slash
			out = append(out, raw[i])
		}
	}
	return string(out)
}
