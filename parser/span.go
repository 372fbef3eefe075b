package parser

import (
	"bytes"
	"encoding/json"
)

// Span finds the bytes of a value within JSON by the names of the members that lead
// to it: from its first byte to behind its last. It is empty if there is no such value.
// Only the ends of strings and brackets are checked, since another reader judges the
// value and explains its faults. Of two members with one name the first is found; the
// reader of the enclosing object refuses the second. Time is linear in the length of b.
func Span(b []byte, names ...string) (from, to int) {
	for to = len(b); len(names) > 0; names = names[1:] {
		if from, to = memberSpan(b, from, to, names[0]); from < 0 {
			return 0, 0
		}
	}
	return from, to
}

// memberSpan finds a member of the object that begins at from; -1 where there is none.
func memberSpan(b []byte, from, end int, name string) (start, behind int) {
	i := SkipSpace(b, from)
	if i >= end || b[i] != '{' {
		return -1, -1
	}
	for i = SkipSpace(b, i+1); i < end && b[i] == '"'; {
		key := i
		i = StringEnd(b, i)
		found := says(b[key:i], name)
		if i = SkipSpace(b, i); i >= end || b[i] != ':' {
			return -1, -1
		}
		start = SkipSpace(b, i+1)
		behind = ValueEnd(b, start)
		if found {
			return start, behind
		}
		if i = SkipSpace(b, behind); i >= end || b[i] != ',' {
			return -1, -1
		}
		i = SkipSpace(b, i+1)
	}
	return -1, -1
}

// says reports whether a JSON string is a name.
func says(quoted []byte, name string) bool {
	var decoded string
	return json.Unmarshal(quoted, &decoded) == nil && decoded == name
}

// StringEnd returns the index behind the string that begins at i, or len(b) if the string does
// not end. It looks at quotes alone.
func StringEnd(b []byte, i int) int {
	i++
	// Most strings have no escape: what stands between two quotes is searched at once.
	if length := bytes.IndexByte(b[i:], '"'); length >= 0 && bytes.IndexByte(b[i:i+length], '\\') < 0 {
		return i + length + 1
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// ValueEnd returns the index behind the value that begins at i: behind its last bracket or
// quote, or before what can follow a word. It looks at quotes, brackets and white space alone.
func ValueEnd(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i = StringEnd(b, i); depth == 0 {
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
	return len(b)
}
