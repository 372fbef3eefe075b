package replies_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"
)

// ruled are the rules under which forms are compared.
var ruled = []testCase{
	{}, {}, {hooks: "redact"}, {hooks: "deny"}, {rules: []string{"stream_buffer=whole"}}, {rules: []string{"parallel=refuse"}}, {rules: []string{"native_prose=refuse"}, hooks: "redact"},
	{rules: []string{"native_prose=drop"}, on: []string{"chat"}}, {rules: []string{"reasoning=drop"}, on: []string{"chat"}}, {rules: []string{"call_format=content"}, on: []string{"chat"}},
	{rules: []string{"protocol=text"}, hooks: "redact", on: []string{"chat"}},
}

// TestFormsAgree: any reply has the same verdict whole and streamed, wherever its calls stand, with the
// same text and calls if it passes, and no byte of a refused call, or of what hooks find, is sent.
func TestFormsAgree(outer *testing.T) {
	texts := []string{"fine.", "", " \n", "I {look}", "so: {", `"tool":"x"}`, "<tool_", "call>x", "[", "ends in \"", "é<", `{"tool":{"name":"web.search","arguments":{"query":"SECRET"}}}`, "{\n", "say " + secret, "gh"}
	var g *gate
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r) }))
	defer model.Close()
	var gates []*gate
	for i := range ruled {
		gates = append(gates, open(outer, &ruled[i], model.URL))
	}
	rapid.Check(outer, func(t *rapid.T) {
		under := rapid.IntRange(0, len(ruled)-1).Draw(t, "rules")
		g = gates[under]
		r := reply{as: map[string]bool{}, end: rapid.SampledFrom([]string{"", "", "", "called", "done", "cut", "filtered", "paused"}).Draw(t, "end")}
		apart := map[string]bool{"chat": r.end == "paused", "responses": r.end == "paused", "invented": r.end == "paused"} // APIs that cannot say it
		for range rapid.IntRange(0, 5).Draw(t, "parts") {
			p := part{kind: rapid.SampledFrom([]string{"text", "text", "text", "text", "call", "call", "thought", "refusal"}).Draw(t, "kind")}
			switch p.kind {
			case "text":
				p.text = rapid.SampledFrom(texts).Draw(t, "text")
			case "thought":
				p.text = "Hm."
			case "refusal":
				p.text = rapid.SampledFrom([]string{"no", "<tool_call>SECRET"}).Draw(t, "refusal")
			case "call":
				p.name, p.text = "web_search", rapid.SampledFrom([]string{`{"query":"go"}`, `{"query":"go"}`, `{"query":"SECRET","x":1}`, `{"q":"SECRET"}`, `{"query":"SECRET","query":1}`, `{"query":"SECRET"`}).Draw(t, "arguments")
				apart["messages"] = apart["messages"] || !json.Valid([]byte(p.text))
			}
			r.parts = append(r.parts, p)
		}
		c := ruled[under]
		c.name, c.tools, c.replies = fmt.Sprintf("%v %s %+v", c.rules, c.hooks, r), offered, []reply{r}
		for _, w := range wires {
			if apart[w.name] || !c.isOn(w.name, w.says) {
				continue
			}
			whole, body := g.ask(outer.Context(), t, &c, w, false, says(&c, w, form{}))
			c.checkShown(t, w.name+", whole", &whole, body)
			for _, f := range w.forms() {
				streamed, body := g.ask(outer.Context(), t, &c, w, true, says(&c, w, f))
				c.checkShown(t, w.name+", "+f.String(), &streamed, body)
				c.checkAgrees(t, w.name+", "+f.String(), &whole, &streamed)
			}
		}
	})
}
