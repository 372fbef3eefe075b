package registry

import (
	"cmp"
	"encoding/json"
	"github.com/callgate/callgate/tool"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLookup(t *testing.T) {
	schema := json.RawMessage(`{"type":"object"}`)
	var tools []Tool
	for _, v := range []string{"1.9.0", "1.10.0", "1.10.0-rc.1", "0.9.99", "1.10.0-rc.2"} {
		tools = append(tools, Tool{Name: "web.search", Version: v, InputSchema: schema, Run: tool.Run{Type: "demo"}})
	}
	tools = append(tools, Tool{Name: "b", InputSchema: schema, Run: tool.Run{Type: "demo"}})
	r, err := New(tools)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := r.Lookup("web.search"); !ok || e.Version() != "1.10.0" {
		t.Errorf("the highest version is not found")
	}
	if e, ok := r.LookupVersion("web.search", "0.9.99"); !ok || e.Version() != "0.9.99" {
		t.Errorf("a version is not found")
	}
	for _, name := range []string{"", "Web.Search", "web_search", "web.search ", "web.search\x00", "web.search@1.9.0"} {
		if _, ok := r.Lookup(name); ok {
			t.Errorf("%q resolves", name)
		}
	}
	if _, ok := r.LookupVersion("web.search", ""); ok {
		t.Error("no version is a version")
	}
	var order []string
	for _, e := range r.Entries() {
		order = append(order, e.Name()+" "+e.Version())
	}
	want := []string{"b 0.0.0", "web.search 0.9.99", "web.search 1.9.0", "web.search 1.10.0-rc.1", "web.search 1.10.0-rc.2", "web.search 1.10.0"}
	if !slices.Equal(order, want) {
		t.Errorf("found %v; expected %v", order, want)
	}
	for _, none := range []*Registry{nil, {}} {
		if _, ok := none.Lookup("b"); ok || len(none.Entries()) != 0 {
			t.Error("an empty registry holds a tool")
		}
	}
	if none, err := New(nil); err != nil || len(none.Entries()) != 0 {
		t.Errorf("no tools: %v", err)
	}
}

func TestDefaults(t *testing.T) {
	addresses := []string{"127.0.0.1/32"}
	schema := []byte(`{"type":"object","title":"T","$comment":"c","properties":{"a":{"type":"string","x-secret":true,"description":"d"}}}`)
	r, err := New([]Tool{{Name: "a", Description: "D", InputSchema: schema, Run: tool.Run{Type: "http", URL: "http://x/", Addresses: addresses}}})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := r.Lookup("a")
	addresses[0], schema[0] = "0.0.0.0/0", 'x'
	run := e.Run()
	if e.Version() != "0.0.0" || e.Kind() != "other" || e.Effect() != "once" || e.Description() != "D" || run.Timeout != 10*time.Second || run.MaxResultBytes != 1<<20 || run.Addresses[0] != "127.0.0.1/32" {
		t.Errorf("found %+v", e.tool)
	}
	run.Addresses[0] = "0.0.0.0/0"
	e.InputSchema()[0], e.ClosedSchema()[0] = 'y', 'y'
	if e.Run().Addresses[0] != "127.0.0.1/32" || e.InputSchema()[0] != '{' {
		t.Error("an entry can be changed")
	}
	const shown = `{"additionalProperties":false,"properties":{"a":{"description":"d","type":"string"}},"title":"T","type":"object"}`
	if got := string(e.ClosedSchema()); got != shown {
		t.Errorf("a model is shown %s", got)
	}
	if found := e.Evaluate(map[string]any{}); found != nil {
		t.Errorf("no arguments: found %v", found)
	}
	if e.OutputSchema() != nil || e.HasOutputSchema() {
		t.Error("there is a schema of results")
	}
}

func TestJudgeOutput(t *testing.T) {
	tool := Tool{Name: "a", InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), Run: tool.Run{Type: "demo"}}
	r, err := New([]Tool{tool})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := r.Lookup("a")
	for raw, valid := range map[string]bool{`{"n":1,"more":true}`: true, `{"n":"1"}`: false, `[]`: false, `null`: false} {
		if got := e.JudgeOutput([]byte(raw), func() any { return decodeJSON(t, []byte(raw)) }) == nil; got != valid {
			t.Errorf("%s: found %v", raw, got)
		}
	}
	tool.OutputSchema = json.RawMessage(`{"type":"objekt"}`)
	if _, err := New([]Tool{tool}); err == nil || loadErrors(t, err)[0].Field[0] != "output_schema" {
		t.Errorf("found %v", err)
	}
}

func TestVersionOrder(t *testing.T) {
	// The order of Semantic Versioning 2.0.0, section 11.
	order := []string{"0.0.0", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0", "1.0.1", "1.2.0", "1.10.0", "2.0.0", "99999999999999999999999.0.0"}
	for i := range order {
		for j := range order {
			a, ok := parseVersion(order[i])
			b, _ := parseVersion(order[j])
			if !ok {
				t.Fatalf("%s is refused", order[i])
			}
			if got := compareVersions(a, b); cmp.Compare(got, 0) != cmp.Compare(i, j) {
				t.Errorf("%s and %s: %d", order[i], order[j], got)
			}
		}
	}
	for _, bad := range []string{"", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+", "1.0.0-a..b", "v1.0.0", "1.0.x", " 1.0.0", "1.0.0-ä", strings.Repeat("1", 200) + ".0.0"} {
		if _, ok := parseVersion(bad); ok {
			t.Errorf("%q is a version", bad)
		}
	}
}

func TestNameMap(t *testing.T) {
	names := []string{"web.search", "files.read", "a-b", "a.b.c"}
	m, err := NewNameMap(names, OpenAI())
	if err != nil {
		t.Fatal(err)
	}
	for name, wire := range map[string]string{"web.search": "web_search", "files.read": "files_read", "a-b": "a-b", "a.b.c": "a_b_c"} {
		if got, ok := m.Wire(name); !ok || got != wire {
			t.Errorf("%s becomes %s", name, got)
		}
		if got, ok := m.Name(wire); !ok || got != name {
			t.Errorf("%s came from %s", wire, got)
		}
	}
	for _, wire := range []string{"web.search", "Web_search", "", "web_search "} {
		if name, ok := m.Name(wire); ok {
			t.Errorf("%q resolves to %s", wire, name)
		}
	}
	for why, c := range map[string]struct {
		names    []string
		messages []string
	}{
		"a collision":   {[]string{"web.search", "x", "web_search"}, []string{`"web.search"`, `"web_search"`}},
		"no room":       {[]string{strings.Repeat("a", 65)}, []string{"1 to 64 bytes"}},
		"an empty name": {[]string{""}, []string{"1 to 64 bytes"}},
	} {
		_, err := NewNameMap(c.names, OpenAI())
		if err == nil {
			t.Errorf("%s is mapped", why)
			continue
		}
		for _, s := range c.messages {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v does not name %s", why, err, s)
			}
		}
	}
	if _, err := NewNameMap([]string{"a", "a"}, OpenAI()); err != nil {
		t.Errorf("two versions of one tool: %v", err)
	}
}

// TestNameMapOXP: names of OXP have a toolkit and a tool, and no other bytes than
// letters, digits and _.
func TestNameMapOXP(t *testing.T) {
	want := map[string]string{
		"web.search": "web.search", "data": "callgate.data", "a.b.c": "a.b_c", "a-b.c-d.e": "a_b.c_d_e", "a-b": "callgate.a_b", "A_1.b": "A_1.b",
		strings.Repeat("a", 64): "callgate." + strings.Repeat("a", 64),
	}
	var names []string
	for name := range want {
		names = append(names, name)
	}
	m, err := NewNameMap(names, OXP())
	if err != nil {
		t.Fatal(err)
	}
	for name, id := range want {
		if got, ok := m.Wire(name); !ok || got != id {
			t.Errorf("%s becomes %s", name, got)
		}
		if got, ok := m.Name(id); !ok || got != name {
			t.Errorf("%s came from %s", id, got)
		}
	}
	for _, id := range []string{"data", "a.b.c", "a-b.c", "callgate.web.search", "Web.search", ""} {
		if name, ok := m.Name(id); ok {
			t.Errorf("%q resolves to %s", id, name)
		}
	}
	for _, names := range [][]string{{"a.b-c", "a.b_c"}, {"a.b.c", "a.b-c"}, {"data", "callgate.data"}, {"a-b", "a_b"}} {
		if _, err := NewNameMap(names, OXP()); err == nil || !strings.Contains(err.Error(), "Toolkit.Tool") {
			t.Errorf("%v: %v", names, err)
		}
		var tools []Tool
		for _, name := range names {
			tools = append(tools, Tool{Name: name, InputSchema: []byte(`{"type":"object"}`), Run: tool.Run{Type: "demo"}})
		}
		if _, err := New(tools); err == nil || !strings.Contains(err.Error(), "stay apart") {
			t.Errorf("%v load: %v", names, err)
		}
	}
}

// TestRenew: a tool that is defined as before keeps its compiled schemas; another definition, in whatever
// part, has schemas of its own, and a fault of it is reported.
func TestRenew(t *testing.T) {
	define := func(name, input, output string, open bool) Tool {
		return Tool{Name: name, InputSchema: json.RawMessage(input), OutputSchema: json.RawMessage(output), Open: open, Run: tool.Run{Type: "demo"}}
	}
	const text, number = `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"type":"object","properties":{"a":{"type":"number"}}}`
	first, err := New([]Tool{define("same", text, text, false), define("input", text, text, false), define("output", text, text, false), define("open", text, "", false), define("none", text, text, false)})
	if err != nil {
		t.Fatal(err)
	}
	described := define("same", text, text, false)
	described.Description = "New words."
	next, err := first.Renew([]Tool{described, define("input", number, text, false), define("output", text, number, false), define("open", text, "", true), define("none", text, "", false), define("new", text, "", false)})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]struct{ input, output bool }{"same": {true, true}, "input": {false, true}, "output": {true, false}, "open": {false, true}, "none": {true, false}} {
		before, _ := first.Lookup(name)
		now, _ := next.Lookup(name)
		if (before.input == now.input) != want.input || (before.output == now.output) != want.output {
			t.Errorf("%s: input kept: %v, output kept: %v; expected %v", name, before.input == now.input, before.output == now.output, want)
		}
	}
	if e, _ := next.Lookup("same"); e.Description() != "New words." {
		t.Errorf("found %q", e.Description())
	}
	if e, _ := next.Lookup("none"); e.HasOutputSchema() {
		t.Error("a schema of results is kept that the tool no longer has")
	}
	valid := func(r *Registry) bool {
		e, _ := r.Lookup("input")
		raw := []byte(`{"a":1}`)
		return e.Judge("input", raw, func() map[string]any { return map[string]any{"a": json.Number("1")} }) == nil
	}
	if valid(first) || !valid(next) {
		t.Error("arguments are judged by the schema of another registry")
	}
	if _, err := first.Renew([]Tool{define("same", `{"type":"object","properties":{"a":{"type":"strin"}}}`, text, false)}); err == nil {
		t.Error("a broken schema loads in the place of one that was compiled")
	}
}
