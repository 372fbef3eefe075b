package registry

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

type wantFault struct {
	Field   string `json:"field"`
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

type loadCase struct {
	Why     string            `json:"why"`
	Schema  json.RawMessage   `json:"schema"`
	Want    []wantFault       `json:"want"`
	Valid   []json.RawMessage `json:"valid"`
	Invalid []json.RawMessage `json:"invalid"`
	Tool    *struct {
		Name, Version, Kind, Effect string
		Run                         *struct {
			Type, URL      string
			Timeout        time.Duration
			MaxResultBytes int64 `json:"max_result_bytes"`
			Addresses      []string
			Tool           string
			Asks           []string
		}
	} `json:"tool"`
}

func loadCases(t *testing.T, file string) []loadCase {
	t.Helper()
	var cases []loadCase
	readJSON(t, filepath.Join("testdata", "load", file), &cases)
	if len(cases) == 0 {
		t.Fatalf("%s holds no case", file)
	}
	return cases
}

func TestSchemaFaults(t *testing.T) {
	for _, c := range loadCases(t, "schema.json") {
		t.Run(c.Why, func(t *testing.T) {
			r, err := New([]Tool{{Name: "ok", InputSchema: json.RawMessage(`{"type":"object"}`), Run: Run{Type: "demo"}}, {Name: "web.search", InputSchema: c.Schema, Run: Run{Type: "demo"}}})
			if err == nil || r != nil {
				t.Fatal("loaded")
			}
			found := loadErrors(t, err)
			if len(found) != len(c.Want) {
				t.Errorf("%d faults; expected %d: %v", len(found), len(c.Want), err)
			}
			for i, f := range found {
				if f.Tool != 1 || f.Name != "web.search" || strings.Join(f.Field, ".") != "input_schema" {
					t.Errorf("fault of %d %s %v", f.Tool, f.Name, f.Field)
				}
				if i < len(c.Want) && (f.Pointer != c.Want[i].Pointer || !strings.Contains(f.Message, c.Want[i].Message)) {
					t.Errorf("found %q %q; expected %q %q", f.Pointer, f.Message, c.Want[i].Pointer, c.Want[i].Message)
				}
			}
		})
	}
}

func TestSoundSchemas(t *testing.T) {
	for _, c := range loadCases(t, "sound.json") {
		t.Run(c.Why, func(t *testing.T) {
			r, err := New([]Tool{{Name: "web.search", InputSchema: c.Schema, Run: Run{Type: "demo"}}})
			if err != nil {
				t.Fatal(err)
			}
			e, _ := r.Lookup("web.search")
			for _, v := range c.Valid {
				if found := e.Evaluate(arguments(t, string(v))); found != nil {
					t.Errorf("%s: %v", v, found)
				}
			}
			for _, v := range c.Invalid {
				if found := e.Evaluate(arguments(t, string(v))); found == nil {
					t.Errorf("%s is accepted", v)
				}
			}
			if _, err := oracleFor(e.ClosedSchema()); err != nil {
				t.Errorf("the closed schema does not compile: %v", err)
			}
		})
	}
}

func TestDefinitionFaults(t *testing.T) {
	for _, c := range loadCases(t, "tool.json") {
		t.Run(c.Why, func(t *testing.T) {
			tool := Tool{Name: c.Tool.Name, Version: c.Tool.Version, Kind: c.Tool.Kind, Effect: c.Tool.Effect, InputSchema: json.RawMessage(`{"type":"object"}`), Run: Run{Type: "demo"}}
			if r := c.Tool.Run; r != nil {
				tool.Run = Run{Type: r.Type, URL: r.URL, Timeout: r.Timeout, MaxResultBytes: r.MaxResultBytes, Addresses: r.Addresses, Tool: r.Tool, Asks: r.Asks}
			}
			_, err := New([]Tool{tool})
			if len(c.Want) == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil {
				t.Fatal("loaded")
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error repeats a secret: %v", err)
			}
			found := loadErrors(t, err)
			if len(found) != len(c.Want) {
				t.Fatalf("found %v; expected %v", found, c.Want)
			}
			for i, f := range found {
				if got := strings.Join(f.Field, "."); got != c.Want[i].Field || f.Message == "" {
					t.Errorf("found %s: %s; expected %s", got, f.Message, c.Want[i].Field)
				}
			}
		})
	}
}

// TestUnreadableSchemas holds what no JSON corpus can hold.
func TestUnreadableSchemas(t *testing.T) {
	for why, c := range map[string]struct{ raw, pointer, message string }{
		"absent":           {"", "", "found no schema"},
		"not JSON":         {"{", "", "not JSON"},
		"two documents":    {"{}{}", "", "not JSON"},
		"a key twice":      {`{"type":"object","properties":{"a":{"type":"string","type":"integer"}}}`, "/properties/a/type", "second time"},
		"an escaped twin":  {`{"type":"object","t\u0079pe":"object"}`, "/type", "second time"},
		"invalid UTF-8":    {"{\"title\":\"\xff\"}", "", "UTF-8"},
		"a lone surrogate": {`{"title":"\ud800"}`, "", "surrogate"},
		"a low surrogate":  {`{"title":"\udc00"}`, "", "surrogate"},
		"two high ones":    {`{"title":"\ud83d\ud83d"}`, "", "surrogate"},
		"deep nesting":     {strings.Repeat(`{"not":`, 200) + "true" + strings.Repeat("}", 200), strings.Repeat("/not", 129), "nesting"},
		"a huge document":  {`{"title":"` + strings.Repeat("x", maxSchemaBytes) + `"}`, "", "bytes"},
	} {
		t.Run(why, func(t *testing.T) {
			_, err := New([]Tool{{Name: "a", InputSchema: json.RawMessage(c.raw), Run: Run{Type: "demo"}}})
			var f *LoadError
			if !errors.As(err, &f) || f.Pointer != c.pointer || !strings.Contains(f.Message, c.message) {
				t.Errorf("found %v", err)
			}
		})
	}
	for _, raw := range []string{`{"title":"\ud83d\ude00 \\ud800 \\\\ud800"}`, `{"title":"\\\ud83d\ude00"}`} {
		if _, err := New([]Tool{{Name: "a", InputSchema: json.RawMessage(raw), Run: Run{Type: "demo"}}}); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestSameNames(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	tool := func(name, version string) Tool {
		return Tool{Name: name, Version: version, InputSchema: schema, Run: Run{Type: "demo"}}
	}
	for why, c := range map[string]struct {
		tools   []Tool
		at      int
		message string
	}{
		"name and version twice": {[]Tool{tool("a", "1.0.0"), tool("b", ""), tool("a", "1.0.0")}, 2, "number 1 of the list"},
		"no version twice":       {[]Tool{tool("a", ""), tool("a", "0.0.0")}, 1, "second time"},
		"one name on a face":     {[]Tool{tool("web.search", ""), tool("web_search", "")}, 1, `like "web.search"`},
	} {
		_, err := New(c.tools)
		var f *LoadError
		if !errors.As(err, &f) || f.Tool != c.at || !strings.Contains(f.Message, c.message) || f.Field[0] != "name" {
			t.Errorf("%s: found %v", why, err)
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
	_, err := New([]Tool{{Name: "a", InputSchema: json.RawMessage(b.String()), Run: Run{Type: "demo"}}})
	if n := len(loadErrors(t, err)); n != maxFaults {
		t.Errorf("%d faults are reported; expected %d", n, maxFaults)
	}
}
