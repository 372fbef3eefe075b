package rawjson

import (
	"bytes"
	"iter"

	"github.com/callgate/callgate/parser"
)

// MaxOpenMembers bounds the members of nested objects that are open at the same time: the
// search for duplicate names remembers all of these.
const MaxOpenMembers = 1 << 14

// TooManyMembers reports whether more than MaxOpenMembers are. Other checks refuse invalid
// JSON.
func TooManyMembers(raw []byte) bool {
	var room [32]int
	counts := room[:0] // of the members before the last, by the brackets that are open
	open := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = parser.StringEnd(raw, i) - 1
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
				if open++; open > MaxOpenMembers {
					return true
				}
			}
		}
	}
	return false
}

// The functions below split JSON that was read strictly already, by its quotes and brackets
// alone.

// Members takes apart an object, and reports whether it is one.
func Members(raw []byte) (Object, bool) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, false
	}
	o := make(Object, 0, 4) // as most have no more
	for i := parser.SkipSpace(raw, 1); raw[i] != '}'; {
		end := parser.StringEnd(raw, i)
		name, _ := String(raw[i:end])
		i = parser.SkipSpace(raw, parser.SkipSpace(raw, end)+1) // behind the colon
		end = parser.ValueEnd(raw, i)
		o = append(o, Member{name, raw[i:end:end]})
		if i = parser.SkipSpace(raw, end); raw[i] == ',' {
			i = parser.SkipSpace(raw, i+1)
		}
	}
	return o, true
}

// Elements are those of an array; it is not ok where there is none.
func Elements(raw []byte) (_ iter.Seq2[int, []byte], ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	return func(yield func(int, []byte) bool) {
		for n, i := 0, parser.SkipSpace(raw, 1); raw[i] != ']'; n++ {
			end := parser.ValueEnd(raw, i)
			if !yield(n, raw[i:end:end]) {
				return
			}
			if i = parser.SkipSpace(raw, end); raw[i] == ',' {
				i = parser.SkipSpace(raw, i+1)
			}
		}
	}, true
}

// MapElements returns an array with each element as a function returns it; the same bytes where none
// has changed, or where there is no array. The error is the function's.
func MapElements(raw []byte, each func(i int, value []byte) ([]byte, error)) ([]byte, error) {
	list, ok := Elements(raw)
	if !ok {
		return raw, nil
	}
	out, changed := []byte{'['}, false
	for i, value := range list {
		left, err := each(i, value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out, changed = append(out, left...), changed || !bytes.Equal(left, value)
	}
	if !changed {
		return raw, nil
	}
	return append(out, ']'), nil
}
