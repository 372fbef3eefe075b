package parser

import "encoding/json"

// Span finds the bytes of a value within JSON by the names of the members that lead
// to it: from its first byte to behind its last. It is empty where there is none.
// Nothing is judged but where strings and brackets end, so that what is no JSON is
// still given to who can say why: it is for a part of a message that another reader
// judges. Where a name stands twice, the first is found; whoever reads what is around
// the value refuses the second. Time is linear in what is passed.
func Span(b []byte, names ...string) (from, to int) {
	s := spanner{b}
	for to = len(b); len(names) > 0; names = names[1:] {
		if from, to = s.member(from, to, names[0]); from < 0 {
			return 0, 0
		}
	}
	return from, to
}

// spanner finds the ends of values that may be none.
type spanner struct{ b []byte }

// member finds a member of the object that begins at from; -1 where there is none.
func (s spanner) member(from, end int, name string) (start, behind int) {
	i := skipSpace(s.b, from)
	if i >= end || s.b[i] != '{' {
		return -1, -1
	}
	for i = skipSpace(s.b, i+1); i < end && s.b[i] == '"'; {
		key := i
		i = s.text(i)
		found := says(s.b[key:i], name)
		if i = skipSpace(s.b, i); i >= end || s.b[i] != ':' {
			return -1, -1
		}
		start = skipSpace(s.b, i+1)
		behind = s.value(start)
		if found {
			return start, behind
		}
		if i = skipSpace(s.b, behind); i >= end || s.b[i] != ',' {
			return -1, -1
		}
		i = skipSpace(s.b, i+1)
	}
	return -1, -1
}

// says tells whether a JSON string says a name.
func says(quoted []byte, name string) bool {
	var said string
	return json.Unmarshal(quoted, &said) == nil && said == name
}

// text is behind the string that begins at i.
func (s spanner) text(i int) int {
	for i++; i < len(s.b); i++ {
		switch s.b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(s.b)
}

// value is behind the value that begins at i: behind its last bracket or quote, or
// before what can follow a word.
func (s spanner) value(i int) int {
	for depth := 0; i < len(s.b); {
		switch s.b[i] {
		case '"':
			if i = s.text(i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(s.b)
}
