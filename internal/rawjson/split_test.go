package rawjson_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/internal/strictjson"
)

// parts takes an object or an array apart, one level deep.
func parts(raw []byte) (names []string, values [][]byte) {
	if o, ok := rawjson.Members(raw); ok {
		for _, m := range o {
			names, values = append(names, m.Name), append(values, m.Value)
		}
	}
	if list, ok := rawjson.Elements(raw); ok {
		for _, v := range list {
			values = append(values, v)
		}
	}
	return names, values
}

// FuzzSplit: what was read strictly is taken apart as another reader does.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		`{}`, `[]`, ` `, `{"a":1}`, `[1,2]`, "{ \"a\" : \"b\\\"}\" ,\t\"b\\u0063\":[{}, [\"]\"]],\"\\\"\":null\r\n}", "[ {\"a\":[1]} ,\"\\\\\", -1.5e3 ,true ]", `{"role":{"content":"x"},"name":"\\"}`,
		"{\"\xf1\":\"\"}", `[[[[]]]]`, `{"a":{"b":{"c":[]}}}`, `"x"`, `12`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if raw = bytes.TrimSpace(raw); !strictjson.Valid(raw) {
			return
		}
		rawjson.TooManyMembers(raw)
		names, values := parts(raw)
		var want []json.RawMessage
		switch raw[0] {
		case '{':
			var object map[string]json.RawMessage
			if err := json.Unmarshal(raw, &object); err != nil || len(object) != len(names) {
				return // a name stands twice, which is refused before
			}
			for _, name := range names {
				want = append(want, object[name])
			}
		case '[':
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
		}
		if len(want) != len(values) {
			t.Fatalf("%s: %d values, want %d", raw, len(values), len(want))
		}
		for i := range want {
			if !bytes.Equal(values[i], bytes.TrimSpace(want[i])) {
				t.Errorf("%s: %s, want %s", raw, values[i], want[i])
			}
		}
	})
}
