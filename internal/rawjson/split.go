package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
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

// EachMember calls take for each member of an object, with its decoded name, and with the offsets
// of its value and of the byte behind it. The error is that of take, or ErrNotObject.
func EachMember(checked []byte, take func(name []byte, start, end int) error) error {
	i, ok := opened(checked, '{')
	if !ok {
		return ErrNotObject
	}
	for i < len(checked) && checked[i] != '}' {
		end := parser.StringEnd(checked, i)
		name, _ := Unquote(checked[i:end])
		start := parser.SkipSpace(checked, parser.SkipSpace(checked, end)+1) // behind the colon
		if end = parser.ValueEnd(checked, start); end <= start {
			return ErrSyntax
		}
		if err := take(name, start, end); err != nil {
			return err
		}
		i = next(checked, end)
	}
	return nil
}

// EachElement calls take for each element of an array, with its offset and that of the byte behind it.
// The error is that of take, or says that there is no array.
func EachElement(checked []byte, take func(start, end int) error) error {
	i, ok := opened(checked, '[')
	if !ok {
		return errors.New("a value that is not an array")
	}
	for i < len(checked) && checked[i] != ']' {
		end := parser.ValueEnd(checked, i)
		if end == i {
			return ErrSyntax
		}
		if err := take(i, end); err != nil {
			return err
		}
		i = next(checked, end)
	}
	return nil
}

// opened returns the index of what stands behind an opening bracket.
func opened(b []byte, bracket byte) (int, bool) {
	i := parser.SkipSpace(b, 0)
	if i == len(b) || b[i] != bracket {
		return 0, false
	}
	return parser.SkipSpace(b, i+1), true
}

// next returns the index of the part behind one that ends at i, or of the closing bracket.
func next(b []byte, i int) int {
	if i = parser.SkipSpace(b, i); i < len(b) && b[i] == ',' {
		i = parser.SkipSpace(b, i+1)
	}
	return i
}

// Each calls take for each member of an object, with its decoded name and the bytes of its value. The
// error is that of take, or ErrNotObject.
func Each(object []byte, take func(name, value []byte) error) error {
	return EachMember(object, func(name []byte, start, end int) error { return take(name, object[start:end:end]) })
}

// EachOf calls take for each element of an array. The bytes of an element reach to the end of the
// array. The error is that of take, or says that there is no array.
func EachOf(array []byte, take func(value []byte) error) error {
	return EachElement(array, func(start, end int) error { return take(array[start:end]) })
}

// Members takes apart an object, and reports whether it is one.
func Members(raw []byte) (Object, bool) {
	if _, ok := opened(raw, '{'); !ok {
		return nil, false
	}
	o := make(Object, 0, 4) // as most have no more
	_ = Each(raw, func(name, value []byte) error {
		o = append(o, Member{word(name), value})
		return nil
	})
	return o, true
}

// Map is Members by name; nil is of no object.
func Map(raw []byte) (members map[string]json.RawMessage, ok bool) {
	if _, ok := opened(raw, '{'); !ok {
		return nil, false
	}
	members = map[string]json.RawMessage{}
	_ = Each(raw, func(name, value []byte) error {
		members[string(name)] = value
		return nil
	})
	return members, true
}

// MemberOf is a member of an object; nil if there is none.
func MemberOf(object []byte, wanted string) []byte {
	var found []byte
	_ = Each(object, func(name, value []byte) error { // anything else has none
		if string(name) == wanted {
			found = value
		}
		return nil
	})
	return found
}

// Elements are those of an array; it is not ok where there is none.
func Elements(raw []byte) (_ iter.Seq2[int, []byte], ok bool) {
	if _, ok := opened(raw, '['); !ok {
		return nil, false
	}
	return func(yield func(int, []byte) bool) {
		n := 0
		_ = EachElement(raw, func(start, end int) error {
			if !yield(n, raw[start:end:end]) {
				return errStopped
			}
			n++
			return nil
		})
	}, true
}

var errStopped = errors.New("enough elements")

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
