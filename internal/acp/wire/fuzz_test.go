package wire_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/acp/wire"
)

// definition is a definition of the schema with the reader of its values.
type definition struct {
	name string
	read func(json.RawMessage) (any, error)
}

func definitions(t testing.TB) []definition {
	var all []definition
	seen := map[string]bool{}
	for _, c := range whole {
		if !seen[c.definition] {
			seen[c.definition] = true
			all = append(all, definition{c.definition, reader(t, c.method, c.name, c.result)})
		}
	}
	return all
}

// FuzzRead gives any bytes to every reader. A value that a reader accepts is written valid by the schema,
// and reads as the same again.
func FuzzRead(f *testing.F) {
	for _, c := range whole {
		f.Add([]byte(c.text))
	}
	schemas, all := schema(f), definitions(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, d := range all {
			value, err := d.read(raw)
			if err != nil {
				if value != nil {
					t.Fatalf("%s: a value beside %v", d.name, err)
				}
				continue
			}
			written, err := json.Marshal(value)
			if err != nil {
				t.Fatalf("%s: %s is read, and not written: %v", d.name, raw, err)
			}
			if err := schemas.Check(d.name, written); err != nil {
				t.Fatalf("%s: %s is written as %s: %v", d.name, raw, written, err)
			}
			again, err := d.read(written)
			if err != nil {
				t.Fatalf("%s: what was written, %s, is not read: %v", d.name, written, err)
			}
			if twice, err := json.Marshal(again); err != nil || string(twice) != string(written) {
				t.Fatalf("%s: %s becomes %s, %v", d.name, written, twice, err)
			}
		}
	})
}

// mutants are values that one change makes of a value: each member left out, null, or of another
// type, and one added.
func mutants(v any, emit func(any)) {
	others := []any{nil, true, json.Number("7"), json.Number("-1"), json.Number("1.5"), "text", "", []any{}, []any{nil}, map[string]any{}}
	for _, other := range others {
		emit(other)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			without := map[string]any{}
			for other, value := range v {
				without[other] = value
			}
			delete(without, name)
			emit(without)
			mutants(member, func(changed any) {
				with := map[string]any{}
				for other, value := range v {
					with[other] = value
				}
				with[name] = changed
				emit(with)
			})
		}
	case []any:
		for i, element := range v {
			mutants(element, func(changed any) {
				with := append([]any(nil), v...)
				with[i] = changed
				emit(with)
			})
		}
	}
}

// TestMutants: no reader accepts a value that the schema does not, one change away from every
// sample; and what it accepts is written valid by the schema.
func TestMutants(t *testing.T) {
	schemas := schema(t)
	accepted, refused := 0, 0
	for _, c := range whole {
		read := reader(t, c.method, c.name, c.result)
		mutants(value(t, c.text), func(v any) {
			raw, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			got, err := read(raw)
			if err != nil {
				refused++
				return
			}
			accepted++
			// Null as params or as a result is an empty object.
			if err := schemas.Check(c.definition, raw); err != nil && string(raw) != "null" {
				t.Errorf("%s accepts %s: %v", c.definition, raw, err)
			}
			written, err := json.Marshal(got)
			if err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			if err := schemas.Check(c.definition, written); err != nil {
				t.Errorf("%s: %s is written as %s: %v", c.definition, raw, written, err)
			}
		})
	}
	if accepted < 200 || refused < 2000 {
		t.Errorf("%d mutants were accepted and %d refused", accepted, refused)
	}
}

// TestLinear: reading takes time and memory in proportion to the input.
func TestLinear(t *testing.T) {
	for name, part := range map[string]string{
		"elements": `{"type":"text","text":""},`, "strings": `"aaaaaaa",`, "escapes": `"\u0000",`, "objects": `{},`,
	} {
		for _, n := range []int{wire.MaxItems, 200_000} {
			raw := []byte(`{"sessionId":"s","prompt":[` + strings.TrimSuffix(strings.Repeat(part, n), ",") + `]}`)
			_, err := wire.Read[wire.PromptRequest](raw)
			if (err == nil) != (name == "elements" && n == wire.MaxItems) {
				t.Errorf("%d %s: %v", n, name, err)
			}
		}
	}
	deep := strings.Repeat(`{"a":`, wire.MaxDepth) + "1" + strings.Repeat("}", wire.MaxDepth)
	for text, ok := range map[string]bool{
		`{"sessionId":"s","prompt":[],"x":` + deep + `}`:                false,
		`{"sessionId":"s","prompt":[],"x":` + deep[5:len(deep)-1] + `}`: true,
	} {
		if _, err := wire.Read[wire.PromptRequest]([]byte(text)); (err == nil) != ok {
			t.Errorf("%.60s…: %v", text, err)
		}
	}
}
