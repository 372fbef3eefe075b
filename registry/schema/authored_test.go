package schema

import "testing"

// TestAuthored: the author's words stay where they stand, and the root is closed.
func TestAuthored(t *testing.T) {
	for _, c := range []struct {
		written, want string
		open          bool
	}{
		{written: `{"type":"object"}`, want: `{"additionalProperties":false,"type":"object"}`},
		{written: `{"properties":{"a":{"type":"string"}}}`, want: `{"additionalProperties":false,"properties":{"a":{"type":"string"}},"type":"object"}`},
		{written: `{"type":"object","additionalProperties":false}`, want: `{"additionalProperties":false,"type":"object"}`},
		{written: `{"type":"object","additionalProperties":true}`, want: `{"additionalProperties":false,"type":"object"}`},
		{written: `{"type":"object","additionalProperties":{"type":"string"}}`, want: `{"additionalProperties":false,"type":"object"}`},
		{written: `{"type":"object","additionalProperties":{"type":"string"}}`, open: true, want: `{"additionalProperties":{"type":"string"},"type":"object"}`},
		{written: `{"type":"object","unevaluatedProperties":true,"properties":{"a":{}}}`, want: `{"additionalProperties":false,"properties":{"a":{}},"type":"object"}`},
		{
			written: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"d":{"$anchor":"x","type":"object","properties":{"b":{}}}},"properties":{"a":{"$ref":"#x"}},"allOf":[{"required":["a"]}]}`,
			want:    `{"$defs":{"d":{"$anchor":"x","properties":{"b":{}},"type":"object"}},"$schema":"https://json-schema.org/draft/2020-12/schema","allOf":[{"required":["a"]}],"properties":{"a":{"$ref":"#x","unevaluatedProperties":false}},"type":"object","unevaluatedProperties":false}`,
		},
		{
			written: `{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string","x-boundary":"path","x-secret":true,"x-other":1}}}}}`,
			want:    `{"additionalProperties":false,"properties":{"a":{"additionalProperties":false,"properties":{"b":{"type":"string","x-other":1}},"type":"object"}},"type":"object"}`,
		},
		{written: `{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}}`, want: `{"additionalProperties":false,"properties":{"n":{"maximum":9007199254740993,"type":"integer"}},"type":"object"}`},
	} {
		s, err := compile(c.written, Options{Open: c.open})
		if err != nil {
			t.Fatalf("%s: %v", c.written, err)
		}
		if got := string(s.Authored()); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.written, got, c.want)
		}
	}
}
