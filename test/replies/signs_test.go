package replies_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/facetest"
)

// TestSignsOfLife: while nothing can be sent, comments or pings are, whether the model is silent or what it
// sends is held; and the text before a held call is there already.
func TestSignsOfLife(t *testing.T) {
	long := strings.Repeat("All is well. ", 60)
	text, called := part{kind: "text", text: long}, []part{{kind: "text", text: "I look."}, {kind: "call", name: "web_search", text: `{"query":"` + long[:390] + `"}`}}
	for name, s := range map[string]struct {
		on     []string
		rules  []string
		parts  []part
		silent string // the model is silent behind the first event with this; empty: it never is
		code   string
	}{
		"before the first event":                     {parts: []part{text}, silent: "-"},
		"before the first text":                      {parts: []part{text}, silent: "model-1"},
		"white space":                                {parts: []part{{kind: "text", text: " \n  \n "}, text}, silent: `\n`},
		"the whole is held":                          {rules: []string{"stream_buffer=whole"}, parts: []part{text}, silent: "All"},
		"the whole is written":                       {rules: []string{"stream_buffer=whole"}, parts: []part{text}},
		"a call has begun":                           {parts: called, silent: "web_search"},
		"a call is written":                          {parts: called},
		"a call of a run is written":                 {rules: []string{"mode=orchestrate"}, parts: called},
		"text that is refused":                       {parts: []part{{kind: "text", text: "So: <tool_call>"}, text}, code: "foreign_call_syntax"},
		"thoughts that are not shown":                {on: []string{"chat", "responses"}, rules: []string{"reasoning=drop"}, parts: []part{{kind: "thought", text: long}, text}},
		"thoughts that are not shown, behind a text": {on: []string{"chat"}, rules: []string{"reasoning=drop"}, parts: []part{{kind: "text", text: "So."}, {kind: "thought", text: long}}},
		"a call as text, behind a thought":           {on: []string{"chat"}, rules: []string{"protocol=text"}, parts: []part{{kind: "thought", text: "Hm."}, {kind: "text", text: `{"tool":{"name":"web.search","arguments":{"query":"` + long[:390] + `"}}}`}}},
		"a call as text, and then silence":           {on: []string{"chat"}, rules: []string{"protocol=text"}, parts: []part{{kind: "thought", text: "Hm."}, {kind: "text", text: `{"tool":{"name":"web.search","arguments":{"query":"` + long[:390] + `"}}}`}}, silent: "eb."},
	} {
		c := &testCase{name: name, on: s.on, rules: s.rules, tools: offered, beat: 40 * time.Millisecond, replies: []reply{{parts: s.parts}, {parts: []part{{kind: "text", text: "Done."}}}}}
		if !slices.Contains(s.rules, "mode=orchestrate") {
			c.replies = c.replies[:1]
		}
		var g *gate
		model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r) }))
		g = open(t, c, model.URL)
		for _, w := range wires {
			if s.on != nil && !slices.Contains(s.on, w.name) {
				continue
			}
			alive := make(chan struct{})
			g.script, g.asked = func(turn int, to http.ResponseWriter, _ *http.Request) {
				to.Header().Set("Content-Type", "text/event-stream")
				to.(http.Flusher).Flush()
				waited, deadline := turn > 0, time.After(time.Minute)
				for _, event := range append([]string{": -\n\n"}, w.wire.events(&c.replies[turn], form{size: 3})...) {
					_, _ = io.WriteString(to, event)
					to.(http.Flusher).Flush()
					patience := time.After(time.Millisecond)
					if s.silent != "" {
						if waited || !strings.Contains(event, s.silent) {
							continue
						}
						waited, patience = true, nil
					}
					select {
					case <-alive:
					case <-patience:
					case <-deadline:
					}
				}
			}, nil
			seen := sync.OnceFunc(func() { close(alive) })
			signs := func(body string) int {
				return strings.Count("\n"+body, "\n: ") + strings.Count(body, "event: ping\n")
			}
			got := &facetest.Recorder{ResponseRecorder: httptest.NewRecorder(), Seen: func(body string) {
				if signs(body) > 1 {
					seen()
				}
			}}
			request := httptest.NewRequest(http.MethodPost, w.wire.path(), strings.NewReader(w.wire.request(c)+`,"stream":true}`))
			request.Header.Set("Content-Type", "application/json")
			g.ServeHTTP(got, request)
			body := got.Body.String()
			a, err := w.wire.read(body, true)
			if err != nil || signs(body) < 2 || a.code != s.code || a.done != (s.code == "") {
				t.Errorf("%s: %s: %d signs of life, and %s, %v: %.300s", w.name, name, signs(body), &a, err, body)
			}
			shown, sign := strings.Index(body, "I l"), max(strings.LastIndex(body, "\n: "), strings.LastIndex(body, "event: ping\n"))
			if len(s.parts) == len(called) && s.parts[1].kind == "call" && (shown < 0 || shown > sign) {
				t.Errorf("%s: %s: the text does not come before the signs: %.300s", w.name, name, body)
			}
		}
		model.Close()
	}
}
