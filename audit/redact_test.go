package audit

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/refusal"
)

// pointed returns a test for the places that pointers name.
func pointed(pointers ...string) func([]string) bool {
	return func(path []string) bool {
		var b strings.Builder
		for _, p := range path {
			b.WriteString("/" + refusal.EscapePointer(p))
		}
		return slices.Contains(pointers, b.String())
	}
}

func TestRedactCases(t *testing.T) {
	text, err := os.ReadFile("testdata/redact/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, block := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		lines := strings.Split(block, "\n")
		if len(lines) != 3 {
			t.Fatalf("a case has three lines: %q", block)
		}
		cases++
		pointers := strings.Fields(lines[0])
		switch lines[0] {
		case "-":
			pointers = []string{""}
		case "!":
			pointers = nil
		}
		got, err := Redact(json.RawMessage(lines[1]), pointed(pointers...))
		if err != nil || string(got) != lines[2] {
			t.Errorf("%s of %s:\ngot  %s (%v)\nwant %s", lines[0], lines[1], got, err, lines[2])
		}
	}
	if cases == 0 {
		t.Fatal("no cases")
	}
}

func TestInDoubtAllIsRedacted(t *testing.T) {
	none := pointed()
	for name, c := range map[string]struct {
		raw    string
		secret func([]string) bool
	}{
		"empty": {"", none}, "cut short": {`{"a":"canary`, none}, "two values": {`{"a":"canary"} {}`, none}, "no JSON": {`canary`, none},
		"not UTF-8": {"{\"a\xff\":\"canary\"}", none}, "no test": {`{"a":"canary"}`, nil},
		"the test panics": {`{"a":"canary"}`, func(p []string) bool { return p[7] == "canary" }},
		"too deep":        {strings.Repeat("[", 20000) + `"canary"` + strings.Repeat("]", 20000), none},
	} {
		got, err := Redact(json.RawMessage(c.raw), c.secret)
		if string(got) != redacted || err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

// Redact agrees with the plain way: decode, replace, compare the values.
func TestRedactAgreesWithDecoding(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "b", "pass", "é", "x/y", "~", ""})
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		scalars := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) any { return s }),
			rapid.Map(rapid.Float64Range(-1e6, 1e6), func(f float64) any { return f }),
			rapid.SampledFrom([]any{nil, true, false}),
		)
		if depth == 0 {
			return scalars
		}
		return rapid.OneOf(scalars,
			rapid.Map(rapid.SliceOfN(value(depth-1), 0, 4), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(name, value(depth-1), 0, 4), func(m map[string]any) any { return m }),
		)
	}
	rapid.Check(t, func(t *rapid.T) {
		v := value(4).Draw(t, "value")
		secrets := rapid.SliceOfN(name, 0, 3).Draw(t, "secret names")
		secret := func(path []string) bool { return len(path) > 0 && slices.Contains(secrets, path[len(path)-1]) }
		raw, err := json.MarshalIndent(v, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Redact(raw, secret)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.MarshalIndent(plainly(v, nil, secret), " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%s\ngot  %s\nwant %s", raw, got, want)
		}
	})
}

func plainly(v any, path []string, secret func([]string) bool) any {
	if secret(path) {
		return "[redacted]"
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = plainly(e, append(slices.Clone(path), k), secret)
			if strings.ContainsRune(k, '\ufffd') {
				out[k] = "[redacted]"
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = plainly(e, append(slices.Clone(path), string(rune('0'+i))), secret)
		}
		return out
	}
	return v
}

func FuzzRedact(f *testing.F) {
	for _, s := range []string{`{"pass":1}`, `{"a":[{"pass":"x"}]}`, `[[],{}]`, `"a"`, `{"p\u0061ss":{"pass":2}}`, `{"a":1,,}`, " 1 ", strings.Repeat("9", 400)} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		none, err := Redact(raw, func([]string) bool { return false })
		if err != nil {
			if string(none) != redacted {
				t.Fatalf("an error, and %s", none)
			}
			return
		}
		if !bytes.Contains(none, []byte(redacted)) && !bytes.Equal(none, raw) {
			t.Fatalf("%s became %s", raw, none)
		}
		got, err := Redact(raw, func(p []string) bool { return len(p) > 0 && p[len(p)-1] == "pass" })
		if err != nil || !json.Valid(got) {
			t.Fatalf("%s became %s, %v", raw, got, err)
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(got))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		requireHidden(t, v)
	})
}

func requireHidden(t *testing.T, v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if k == "pass" && e != "[redacted]" {
				t.Fatalf("%v is in the clear", e)
			}
			requireHidden(t, e)
		}
	case []any:
		for _, e := range v {
			requireHidden(t, e)
		}
	}
}
