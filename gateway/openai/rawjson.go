package openai

import (
	"iter"
)

// maxOpenMembers is how many members of objects that stand in one another may be open at
// the same time: the search for duplicate names remembers all of these.
const maxOpenMembers = 1 << 14

// tooManyMembers tells whether more than maxOpenMembers are. What is no JSON is for others to
// refuse.
func tooManyMembers(raw []byte) bool {
	var counts []int // of the members before the last, by the brackets that are open
	open := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = stringEnd(raw, i) - 1
		case '{', '[':
			counts = append(counts, 0)
		case '}', ']':
			if last := len(counts) - 1; last >= 0 {
				open -= counts[last]
				counts = counts[:last]
			}
		case ':':
			if last := len(counts) - 1; last >= 0 {
				counts[last]++
				if open++; open > maxOpenMembers {
					return true
				}
			}
		}
	}
	return false
}

// What follows takes apart JSON that was read strictly already, by its quotes and
// brackets alone.

// readMembers takes apart an object, and tells whether it is one.
func readMembers(raw []byte) (object, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	o := object{}
	for i := skipSpace(raw, 1); raw[i] != '}'; {
		end := stringEnd(raw, i)
		name := raw[i:end]
		i = skipSpace(raw, skipSpace(raw, end)+1) // behind the colon
		end = valueEnd(raw, i)
		o = append(o, member{memberName(name), raw[i:end:end]})
		if i = skipSpace(raw, end); raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
	return o, true
}

// memberName is what the name of a member says. Those that every message has take no
// memory of their own.
func memberName(quoted []byte) string {
	switch string(quoted[1 : len(quoted)-1]) {
	case "role":
		return "role"
	case "content":
		return "content"
	case "type":
		return "type"
	case "text":
		return "text"
	case "function":
		return "function"
	case "name":
		return "name"
	case "id":
		return "id"
	case "arguments":
		return "arguments"
	case "tool_calls":
		return "tool_calls"
	case "tool_call_id":
		return "tool_call_id"
	}
	name, _ := stringOf(quoted)
	return name
}

// elements are those of an array; it is not ok where there is none.
func elements(raw []byte) (_ iter.Seq2[int, []byte], ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	return func(yield func(int, []byte) bool) {
		for n, i := 0, skipSpace(raw, 1); raw[i] != ']'; n++ {
			end := valueEnd(raw, i)
			if !yield(n, raw[i:end:end]) {
				return
			}
			if i = skipSpace(raw, end); raw[i] == ',' {
				i = skipSpace(raw, i+1)
			}
		}
	}, true
}

// skipSpace is the first byte from i on that is no whitespace.
func skipSpace(raw []byte, i int) int {
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\t' || raw[i] == '\n' || raw[i] == '\r') {
		i++
	}
	return i
}

// stringEnd is behind the string that begins at i.
func stringEnd(raw []byte, i int) int {
	for i++; i < len(raw); i++ {
		switch raw[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(raw)
}

// valueEnd is behind the value that begins at i.
func valueEnd(raw []byte, i int) int {
	for depth := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			if i = stringEnd(raw, i) - 1; depth == 0 {
				return i + 1
			}
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
	}
	return len(raw)
}
