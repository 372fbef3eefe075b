package rawjson_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/rawjson"
)

// values are JSON values, some of them none.
var values = []string{
	`{}`, ` { } `, `[]`, "[\n]", `{"a":1}`, ` { "a" : [ 1 , "]" , { "}" : "\"" } ] , "\u0062" : "x\\" , "":null , "é":-1.5e3 } `, `[1,2,[3,[4]],"a,b",true ,false, null]`,
	`{"a":{"b":{"c":[{"d":"{[\"\\"}]}}}}`, `"a"`, `1`, `null`, `{"a":"\\\\\"","b":"\"\\"}`, `{"a":"` + strings.Repeat(`\\`, 100) + `"}`,
	`{"role":{"content":"x"},"name":"\\"}`, "{\"\xf1\":\"\"}", `{"a":]`, `{"a":}}`, `[}]`, `[:]`,
	``, ` `, `{`, `[`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `[1,`, `[1,]`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":"b`, `{"a":"b\`, `[}`, `{]`, `[1 2]`, `{"a":1]`, `["a"`, `[[]`,
}

// parts are those of a value by EachMember and EachOf.
func parts(b []byte) (members, elements []string, errs [2]error) {
	errs[0] = rawjson.EachMember(b, func(name []byte, start, end int) error {
		members = append(members, fmt.Sprintf("%q %q", name, b[start:end]))
		return nil
	})
	rawjson.TooManyMembers(b)
	errs[1] = rawjson.EachOf(b, func(value []byte) error {
		elements = append(elements, string(value))
		return nil
	})
	return members, elements, errs
}

// sameParts holds that a value is split as the reader reads it.
func sameParts(t *testing.T, b []byte) {
	t.Helper()
	members, elements, errs := parts(b)
	object, isObject := rawjson.Members(b)
	byName, _ := rawjson.Map(b)
	list, isList := rawjson.Elements(b)
	var taken, listed []string
	for _, m := range object {
		taken = append(taken, fmt.Sprintf("%q %q", m.Name, m.Value))
	}
	if isList {
		for i, value := range list {
			if listed = append(listed, string(value)); len(listed) != i+1 {
				t.Errorf("%s: element %d is number %d", b, len(listed), i)
			}
		}
	}
	if rawjson.Check(b, rawjson.AnyDepth) != nil {
		return // nothing is said of it, but that it does not panic
	}
	for _, m := range object {
		if !bytes.Equal(m.Value, byName[m.Name]) {
			t.Errorf("%s: %q is %s by name", b, m.Name, byName[m.Name])
		}
	}
	if !slices.Equal(taken, members) || len(byName) != len(object) || isObject != (errs[0] == nil) {
		t.Errorf("%s: the object is %s, and has %s", b, taken, members)
	}
	if !slices.Equal(listed, elements) || isList != (errs[1] == nil) {
		t.Errorf("%s: the array is %s, and has %s", b, listed, elements)
	}
	var read []string
	r := rawjson.NewReader(b)
	switch r.Kind() {
	case '{':
		_ = r.Object(func(name []byte) error {
			kept := string(name)
			value, err := r.Value()
			read = append(read, fmt.Sprintf("%q %q", kept, value))
			return err
		})
		if !slices.Equal(members, read) || errs[0] != nil || errs[1] == nil {
			t.Errorf("%s:\nfound    %s, %v\nexpected %s", b, members, errs, read)
		}
	case '[':
		_ = r.Array(func() error {
			value, err := r.Value()
			read = append(read, string(value))
			return err
		})
		if !slices.Equal(elements, read) || errs[1] != nil || errs[0] == nil {
			t.Errorf("%s:\nfound    %s, %v\nexpected %s", b, elements, errs, read)
		}
	default:
		if errs[0] == nil || errs[1] == nil {
			t.Errorf("%s is split: %v", b, errs)
		}
	}
}

func TestSplit(t *testing.T) {
	for _, value := range values {
		for i := range len(value) + 1 {
			sameParts(t, []byte(value[:i]))
			sameParts(t, []byte(value[i:]))
		}
	}
	stop := fmt.Errorf("stop")
	if err := rawjson.EachMember([]byte(`{"a":1,"b":2}`), func([]byte, int, int) error { return stop }); err != stop {
		t.Error(err)
	}
	if err := rawjson.EachOf([]byte(`[1,2]`), func([]byte) error { return stop }); err != stop {
		t.Error(err)
	}
}

// deeper is Deeper byte by byte.
func deeper(data []byte, maxDepth int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

func FuzzSplit(f *testing.F) {
	for _, value := range values {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		sameParts(t, b)
		for depth := range 4 {
			if got, want := rawjson.Deeper(b, depth), deeper(b, depth); got != want {
				t.Errorf("%q, deeper than %d: %t; expected %t", b, depth, got, want)
			}
		}
	})
}
