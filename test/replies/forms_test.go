package replies_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"pgregory.net/rapid"
)

// TestFormsAgree: any reply has the same verdict whole and streamed, wherever its calls stand, with the
// same text and calls if it passes, and no byte of a refused call is sent.
func TestFormsAgree(outer *testing.T) {
	texts := []string{"fine.", "", " \n", "I {look}", "so: {", `"tool":"x"}`, "<tool_", "call>x", "[", "ends in \"", "é<", `{"tool":{"name":"SECRET","arguments":{}}}`, "{\n"}
	var g *gate
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r) }))
	defer model.Close()
	g = open(outer, &testCase{}, model.URL)
	rapid.Check(outer, func(t *rapid.T) {
		r := reply{as: map[string]bool{}, end: rapid.SampledFrom([]string{"", "", "", "called", "done", "cut", "filtered", "paused"}).Draw(t, "end")}
		apart := map[string]bool{"chat": r.end == "paused", "responses": r.end == "paused"} // APIs that cannot say it
		for range rapid.IntRange(0, 5).Draw(t, "parts") {
			p := part{kind: rapid.SampledFrom([]string{"text", "text", "text", "text", "call", "call", "thought", "refusal"}).Draw(t, "kind")}
			switch p.kind {
			case "text":
				p.text = rapid.SampledFrom(texts).Draw(t, "text")
			case "thought":
				p.text = "Hm."
			case "refusal":
				p.text = rapid.SampledFrom([]string{"no", "<tool_call>SECRET"}).Draw(t, "refusal")
				apart["messages"] = true
			case "call":
				p.name, p.text = "web_search", rapid.SampledFrom([]string{`{"query":"go"}`, `{"query":"go"}`, `{"query":"SECRET","x":1}`, `{"q":"SECRET"}`, `{"query":"SECRET","query":1}`, `{"query":"SECRET"`}).Draw(t, "arguments")
				apart["messages"] = apart["messages"] || !json.Valid([]byte(p.text))
			}
			r.parts = append(r.parts, p)
		}
		c := &testCase{name: fmt.Sprintf("%+v", r), tools: offered, replies: []reply{r}}
		for _, w := range wires {
			if apart[w.name] {
				continue
			}
			whole, body := g.ask(outer.Context(), t, c, w, false, says(c, w, form{}))
			c.checkShown(t, w.name+", whole", &whole, body)
			for _, f := range w.forms() {
				streamed, body := g.ask(outer.Context(), t, c, w, true, says(c, w, f))
				c.checkShown(t, w.name+", "+f.String(), &streamed, body)
				c.checkAgrees(t, w.name+", "+f.String(), &whole, &streamed)
			}
		}
	})
}
