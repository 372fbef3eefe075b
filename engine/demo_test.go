package engine_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func builtIn(name, arguments string) tool.Call {
	return tool.Call{Tool: name, Effect: "read", ID: "call-1", Arguments: []byte(arguments), Run: tool.Run{Type: "demo"}}
}

func fixedClock() time.Time {
	return time.Date(2026, 3, 4, 5, 6, 7, 8, time.FixedZone("east", 3600))
}

func TestDemoTools(t *testing.T) {
	e := newEngine(t, engine.Options{Now: fixedClock})
	for _, c := range []struct {
		tool, arguments, want string
		code                  refusal.Code
	}{
		{"time.now", `{}`, `{"time":"2026-03-04T04:06:07Z"}`, ""},
		{"math.evaluate", `{"expression":"(2 + 3) * 4"}`, `{"value":20}`, ""},
		{"math.evaluate", `{"expression":"1/0"}`, "", refusal.ToolFailed},
		{"math.evaluate", `{"expression":5}`, "", refusal.ToolFailed},
		{"math.evaluate", `{"expression":null}`, "", refusal.ToolFailed},
		{"math.evaluate", `{"Expression":"1"}`, "", refusal.ToolFailed},
		{"math.evaluate", `{}`, "", refusal.ToolFailed},
		{"files.delete", `{"path":"notes.md"}`, `{"echo":{"path":"notes.md"}}`, ""},
		{"payments.refund", `{ "amount": 12345678901234567890.10, "amount2":1e2 }`, `{"echo":{"amount":12345678901234567890.10,"amount2":1e2}}`, ""},
		{"notes.label", `{"n":"<b>&\u2028\u200b"}`, `{"echo":{"n":"<b>&\u2028\u200b"}}`, ""},
		{"Web.Search", `{"query":"x"}`, `{"echo":{"query":"x"}}`, ""},
		{"web.search", `[]`, "", refusal.Internal},
		{"web.search", `null`, "", refusal.Internal},
		{"any", `{`, "", refusal.Internal},
		{"any", ``, "", refusal.Internal},
	} {
		result, err := e.Run(t.Context(), builtIn(c.tool, c.arguments))
		if got := code(t, err); got != c.code || string(result.Body) != c.want {
			t.Errorf("%s %s: got %q %s", c.tool, c.arguments, got, result.Body)
		}
		if c.code == "" && (!result.JSON || result.Attempts != 1) {
			t.Errorf("%s: %+v", c.tool, result)
		}
	}
}

type results struct {
	Results []struct{ Title, URL, Snippet string }
}

func search(t testing.TB, e *engine.Engine, arguments string) results {
	t.Helper()
	result, got := run(t, e, builtIn("web.search", arguments))
	if got != "" {
		t.Fatalf("%s: %q", arguments, got)
	}
	if !strings.HasPrefix(string(result.Body), `{"results":[`) {
		t.Fatalf("%s: %s", arguments, result.Body)
	}
	var r results
	if err := json.Unmarshal(result.Body, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSearch(t *testing.T) {
	e := newEngine(t, engine.Options{})
	for _, c := range []struct {
		arguments, first string
		count            int
	}{
		{`{"query":"AI agent memory issues"}`, "https://example.com/agents/memory-issues", 5},
		{`{"query":"AI agent memory issues","num_results":1}`, "https://example.com/agents/memory-issues", 1},
		{`{"query":"AI agent memory issues","num_results":2.0}`, "https://example.com/agents/memory-issues", 2},
		{`{"query":"agent","site":"docs.example.org"}`, "https://docs.example.org/guides/agent-memory", -1},
		{`{"query":"AGENT","site":"DOCS.example.org","lang":"en"}`, "https://docs.example.org/guides/agent-memory", -1},
		{`{"query":"gedächtnis"}`, "https://docs.example.org/de/gedaechtnis", 1},
		{`{"query":"agent","lang":"fr"}`, "https://docs.example.org/fr/memoire", 1},
		{`{"query":"marées","lang":"fr"}`, "https://example.com/fr/marees", 1},
		{`{"query":"tides!!! (moon)"}`, "https://example.com/science/tides", -1},
		{`{"query":"agent","site":"elsewhere.example"}`, "", 0},
		{`{"query":"agent","lang":"xx"}`, "", 0},
		{`{"query":"xyzzy"}`, "", 0},
		{`{"query":"..."}`, "", 0},
		{`{"query":""}`, "", 0},
		{`{"query":"agent","num_results":0}`, "", 0},
		{`{"query":"agent","num_results":-3}`, "", 0},
		{`{"query":"the","num_results":1e300}`, "", -1},
	} {
		r := search(t, e, c.arguments)
		if c.count >= 0 && len(r.Results) != c.count {
			t.Errorf("%s: %d results, want %d", c.arguments, len(r.Results), c.count)
		}
		if c.first != "" && (len(r.Results) == 0 || r.Results[0].URL != c.first) {
			t.Errorf("%s: got %+v", c.arguments, r.Results)
		}
		for _, f := range r.Results {
			if f.Title == "" || f.Snippet == "" || len(f.Snippet) > 220 || strings.ContainsRune(f.Snippet, '\uFFFD') {
				t.Errorf("%s: %+v", c.arguments, f)
			}
		}
	}
	r := search(t, e, `{"query":"fifteen minutes crust"}`)
	if len(r.Results) == 0 || !strings.Contains(r.Results[0].Snippet, "fifteen minutes") {
		t.Errorf("the snippet does not show the words: %+v", r)
	}
	for _, arguments := range []string{`{"query":5}`, `{"query":"x","num_results":1.5}`, `{"query":"x","num_results":"5"}`, `{"query":"x","lang":1}`, `{"query":"x","site":[]}`} {
		if _, got := run(t, e, builtIn("web.search", arguments)); got != refusal.ToolFailed {
			t.Errorf("%s: got %q", arguments, got)
		}
	}
}

func TestDemoResultsAreBounded(t *testing.T) {
	e := newEngine(t, engine.Options{})
	call := builtIn("any", `{"a":"`+strings.Repeat("x", 100)+`"}`)
	for limit, want := range map[int64]refusal.Code{50: refusal.ResultTooLarge, 116: refusal.ResultTooLarge, 117: "", 0: ""} {
		call.Run.MaxResultBytes = limit
		if _, got := run(t, e, call); got != want {
			t.Errorf("limit %d: got %q", limit, got)
		}
	}
}

func TestTypesThatAreNotRun(t *testing.T) {
	var none *engine.Engine
	none.Close()
	e := newEngine(t, engine.Options{})
	for _, c := range []struct {
		e    *engine.Engine
		kind string
	}{{none, "demo"}, {none, "http"}, {e, "client"}, {e, ""}, {e, "mcp"}, {e, "HTTP"}, {e, "Demo"}} {
		call := builtIn("time.now", `{}`)
		call.Run.Type = c.kind
		result, err := c.e.Run(t.Context(), call)
		if got := code(t, err); got != refusal.ToolUnavailable || result.Attempts != 0 || result.Body != nil {
			t.Errorf("%q: got %q %+v", c.kind, got, result)
		}
	}
	_, err := e.Run(t.Context(), tool.Call{Tool: "x", Arguments: []byte(`{}`), Run: tool.Run{Type: "client"}})
	expectSome(t, err, "run by the application")
}
