package schema

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// schemaCase is a schema and its faults, or the values that it accepts and refuses.
type schemaCase struct {
	Why    string          `json:"why"`
	Schema json.RawMessage `json:"schema"`
	Want   []struct {
		Pointer string `json:"pointer"`
		Message string `json:"message"`
	} `json:"want"`
	Valid   []json.RawMessage `json:"valid"`
	Invalid []json.RawMessage `json:"invalid"`
}

func schemaCases(t *testing.T, file string) []schemaCase {
	t.Helper()
	var cases []schemaCase
	readJSON(t, filepath.Join("testdata", "load", file), &cases)
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", file)
	}
	return cases
}

func TestSchemaFaults(t *testing.T) {
	for _, c := range schemaCases(t, "schema.json") {
		t.Run(c.Why, func(t *testing.T) {
			s, found := NewCompiler().Compile(c.Schema, Options{})
			if s != nil || len(found) == 0 {
				t.Fatal("compiled")
			}
			if len(found) != len(c.Want) {
				t.Errorf("%d faults; expected %d: %v", len(found), len(c.Want), found)
			}
			for i, f := range found {
				if i < len(c.Want) && (f.Pointer != c.Want[i].Pointer || !strings.Contains(f.Message, c.Want[i].Message)) {
					t.Errorf("found %q %q; expected %q %q", f.Pointer, f.Message, c.Want[i].Pointer, c.Want[i].Message)
				}
			}
		})
	}
}

func TestAcceptedSchemas(t *testing.T) {
	for _, c := range schemaCases(t, "accepted.json") {
		t.Run(c.Why, func(t *testing.T) {
			e, err := compile(string(c.Schema), Options{})
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range c.Valid {
				if found := e.Evaluate("web.search", arguments(t, string(v))); found != nil {
					t.Errorf("%s: %v", v, found)
				}
			}
			for _, v := range c.Invalid {
				if found := e.Evaluate("web.search", arguments(t, string(v))); found == nil {
					t.Errorf("%s is accepted", v)
				}
			}
			if _, err := oracleFor(e.Closed()); err != nil {
				t.Errorf("the closed schema does not compile: %v", err)
			}
		})
	}
}

// TestUnreadableSchemas holds what no JSON corpus can hold.
func TestUnreadableSchemas(t *testing.T) {
	for why, c := range map[string]struct{ raw, pointer, message string }{
		"absent":           {"", "", "found no schema"},
		"not JSON":         {"{", "", "invalid JSON"},
		"two documents":    {"{}{}", "", "invalid JSON"},
		"a key twice":      {`{"type":"object","properties":{"a":{"type":"string","type":"integer"}}}`, "/properties/a/type", "second time"},
		"an escaped twin":  {`{"type":"object","t\u0079pe":"object"}`, "/type", "second time"},
		"invalid UTF-8":    {"{\"title\":\"\xff\"}", "", "UTF-8"},
		"a lone surrogate": {`{"title":"\ud800"}`, "", "surrogate"},
		"a low surrogate":  {`{"title":"\udc00"}`, "", "surrogate"},
		"two high ones":    {`{"title":"\ud83d\ud83d"}`, "", "surrogate"},
		"deep nesting":     {strings.Repeat(`{"not":`, 200) + "true" + strings.Repeat("}", 200), strings.Repeat("/not", 129), "nesting"},
		"a long key":       {`{"properties":{"` + strings.Repeat("k", maxSchemaBytes/2) + `":{"allOf":[` + strings.Repeat("true,", 200) + `true]}}}`, "", "long keys"},
		"a huge document":  {`{"title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "", "bytes"},
	} {
		t.Run(why, func(t *testing.T) {
			_, faults := NewCompiler().Compile(json.RawMessage(c.raw), Options{})
			if len(faults) != 1 || faults[0].Pointer != c.pointer || !strings.Contains(faults[0].Message, c.message) {
				t.Errorf("found %v", faults)
			}
		})
	}
	for _, raw := range []string{`{"title":"\ud83d\ude00 \\ud800 \\\\ud800"}`, `{"title":"\\\ud83d\ude00"}`} {
		if _, err := compile(raw, Options{}); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":"object"`)
	for i := range 5_000 {
		b.WriteString(`,"k` + strings.Repeat("x", i%50) + string(rune('a'+i%26)) + `":1`)
		b.WriteString(``)
		if i == 40 {
			break
		}
	}
	b.WriteString("}")
	_, faults := NewCompiler().Compile(json.RawMessage(b.String()), Options{})
	if n := len(faults); n != maxFaults {
		t.Errorf("%d faults are reported; expected %d", n, maxFaults)
	}
}
