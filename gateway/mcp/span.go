package mcp

import "encoding/json"

// argumentsOf finds the bytes of params.arguments within a message: from its first
// byte to behind its last. It is empty where there are none. Nothing is judged here
// but where strings and brackets end, so that what is no JSON is still given to who
// can say why. Where a name stands twice, the first is found; the reader of what is
// around it refuses the second.
func argumentsOf(body []byte) (from, to int) {
	s := scanner{b: body}
	params, _ := s.member(0, len(body), "params")
	if params < 0 {
		return 0, 0
	}
	from, to = s.member(params, len(body), "arguments")
	if from < 0 {
		return 0, 0
	}
	return from, to
}

// scanner finds the ends of values. It is linear in what it passes.
type scanner struct{ b []byte }

// member finds a member of the object that begins at from; -1 where there is none.
func (s scanner) member(from, end int, name string) (start, behind int) {
	i := s.space(from)
	if i >= end || s.b[i] != '{' {
		return -1, -1
	}
	for i = s.space(i + 1); i < end && s.b[i] == '"'; {
		key := i
		i = s.text(i)
		found := named(s.b[key:i], name)
		if i = s.space(i); i >= end || s.b[i] != ':' {
			return -1, -1
		}
		start = s.space(i + 1)
		behind = s.value(start)
		if found {
			return start, behind
		}
		if i = s.space(behind); i >= end || s.b[i] != ',' {
			return -1, -1
		}
		i = s.space(i + 1)
	}
	return -1, -1
}

// named tells whether a JSON string says a name.
func named(quoted []byte, name string) bool {
	var said string
	return json.Unmarshal(quoted, &said) == nil && said == name
}

func (s scanner) space(i int) int {
	for i < len(s.b) && (s.b[i] == ' ' || s.b[i] == '\t' || s.b[i] == '\n' || s.b[i] == '\r') {
		i++
	}
	return i
}

// text is behind the string that begins at i.
func (s scanner) text(i int) int {
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
func (s scanner) value(i int) int {
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
