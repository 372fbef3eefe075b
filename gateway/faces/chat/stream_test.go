package chat_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/internal/testkit/ports"
	"github.com/callgate/callgate/upstream"
)

// TestStreamCuts: a stream in pieces of any size is the same answer.
func TestStreamCuts(t *testing.T) {
	for name, c := range map[string]struct {
		message, text, call, code string
		rules                     func(*upstream.Rules)
	}{
		"text":         {content("Hellö 🌍, {x} is <tool> and [TOOL"), "Hellö 🌍, {x} is <tool> and [TOOL", "", "", textProtocol},
		"white space":  {content(" \n Hello \n"), " \n Hello \n", "", "", textProtocol},
		"a call":       {content("\n" + `{"tool":{"name":"web.search","arguments":{"query":"x"}}} `), "", "web_search" + search, "", textProtocol},
		"late JSON":    {content(`So: {"tool":1}`), "So: ", "", "mixed_output", textProtocol},
		"a late mark":  {content(`So: <tool_call>`), "So: ", "", "foreign_call_syntax", textProtocol},
		"a bad call":   {content(`{"tool":{"name":"web.search"}}`), "", "", "missing_field", textProtocol},
		"prose":        {content(`{"a": [1]} is JSON`), `{"a": [1]} is JSON`, "", "", nil},
		"native":       {strings.Replace(toolCalls("c1", "web_search", search), "null", `"So: "`, 1), "So: ", "web_search" + search, "", nil},
		"native, bad":  {strings.Replace(toolCalls("c1", "web_search", `{}`), "null", `"So: "`, 1), "So: ", "", "missing_argument", nil},
		"native, none": {strings.Replace(toolCalls("c1", "web_search", ""), "null", `" "`, 1), "", "", "missing_argument", nil},
	} {
		for _, piece := range []int{1, 2, 3, 7, 1000} {
			for _, buffer := range []upstream.Buffer{upstream.Parser, upstream.Whole} {
				h := open(t, inTurn(func(w http.ResponseWriter, _ *http.Request) { stream(w, piece, "stop", c.message) }), plan{rules: all(noRepairs, func(r *upstream.Rules) {
					r.StreamBuffer = buffer
					if c.rules != nil {
						c.rules(r)
					}
				})})
				w := h.post(asks(`"stream":true,` + tools("web_search")))
				got := reads(t, w)
				text := c.text
				if c.code != "" && buffer == upstream.Whole {
					text = ""
				}
				if got.text() != text || got.call() != c.call || got.Error.Code != c.code || got.done != (c.code == "") || (w.Code == 200) != (c.code == "" || text != "") {
					t.Errorf("%s, in pieces of %d, %s: %d %s", name, piece, buffer, w.Code, w.Body)
				}
				if records := h.settled(t); len(records) == 0 || (c.code == "") == strings.Contains(records[0], "refused") {
					t.Errorf("%s, in pieces of %d, %s: %v", name, piece, buffer, records)
				}
			}
		}
	}
}

// TestFirstToken: text goes out as it comes, before the model has ended.
func TestFirstToken(t *testing.T) {
	for _, mode := range []string{"enforce", "orchestrate"} {
		shown := make(chan struct{})
		h := open(t, inTurn(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, `{"index":0,"delta":{"role":"assistant","content":"Hel"},"finish_reason":null}`)
			wait(t, shown, "nothing is shown before the end")
			stream(w, 9, "stop", content("lo"))
		}), plan{})
		var once bool
		w := &facetest.Recorder{ResponseRecorder: httptest.NewRecorder(), Seen: func(body string) {
			if !once && strings.Contains(body, `"content":"Hel"`) {
				once = true
				close(shown)
			}
		}}
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(asks(`"stream":true`)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Callgate-Mode", mode)
		if h.ServeHTTP(w, r); reads(t, w.ResponseRecorder).text() != "Hello" {
			t.Errorf("%s: %s", mode, w.Body)
		}
	}
}

// TestSN41Reasoning: what a model thinks is never read for calls, and passes or not.
func TestSN41Reasoning(t *testing.T) {
	const message = `{"role":"assistant","content":"Noon.","reasoning_content":"{\"tool\":{}} <tool_call>","trace":{"tool_call":{"name":"web_search"}}}`
	for _, streamed := range []string{"", `"stream":true`} {
		for treatment, want := range map[upstream.Treatment]string{upstream.Pass: `{"tool":{}} <tool_call>`, upstream.Drop: ""} {
			for _, buffer := range []upstream.Buffer{upstream.Parser, upstream.Whole} {
				h := open(t, inTurn(says(message, "stop")), plan{rules: func(r *upstream.Rules) { r.Reasoning, r.StreamBuffer = treatment, buffer }})
				w := h.post(asks(streamed))
				got := reads(t, w)
				if len(got.Choices) == 0 || got.Choices[0].Message.Reasoning != want || got.text() != "Noon." || strings.Contains(w.Body.String(), `"tool_call":`) {
					t.Errorf("%s, %s, %s: %d %s", treatment, buffer, streamed, w.Code, w.Body)
				}
			}
		}
	}
}

// TestUsage: what all turns took is said, at the end of a stream where that is
// asked for.
func TestUsage(t *testing.T) {
	for more, want := range map[string]any{"": nil, `,"stream_options":{"include_usage":true}`: 15.0} {
		h := open(t, inTurn(says(content("hi"), "stop")), plan{})
		got := reads(t, h.post(asks(`"stream":true`+more)))
		if got.Usage["total_tokens"] != want || !got.done {
			t.Errorf("%s: %v", more, got.Usage)
		}
	}
	h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop")), plan{rules: all(orchestrate, func(r *upstream.Rules) { r.TokenBudget = 30 })})
	if got := reads(t, h.post(asks(`"stream":true,"stream_options":{"x":1}`))); got.Error.Code != "bound_reached" || got.Error.Type != "server_error" || h.model.times() != 2 || !strings.Contains(string(h.model.body(t, 0)), `"stream_options":{"x":1,"include_usage":true}`) {
		t.Errorf("%+v; asked %d times, %s", got, h.model.times(), h.model.body(t, 0))
	}
}

// TestEndingsOfStreams: a stream in which every choice has finished is whole, however it ends: by
// silence, shorter or longer than the time that the provider may be silent. A text needs no
// finish_reason before [DONE]; a call does.
func TestEndingsOfStreams(t *testing.T) {
	const (
		head = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,`
		call = head + `"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]}}]}` + "\n\n"
		text = head + `"delta":{"content":"Hel"}}]}` + "\n\n"
		end  = head + `"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		done = "data: [DONE] \n\n"
	)
	for name, c := range map[string]struct {
		body       string
		hangs      bool
		idle       time.Duration
		text, call string
		failed     string
	}{
		"text, then silence":           {text + end, true, patience, "Hel", "", ""},
		"a call, then silence":         {call + end, true, patience, "", "time_now{}", ""},
		"a call, then a short silence": {call + end, true, 100 * time.Millisecond, "", "time_now{}", ""},
		"a call, then usage":           {call + end + "data: {\"usage\":{\"total_tokens\":1}}\n\n", true, patience, "", "time_now{}", ""},
		"arguments as an object":       {strings.Replace(call, `"{}"`, `{}`, 1) + end + done, false, patience, "", "time_now{}", ""},
		"content of parts":             {strings.Replace(text, `"Hel"`, `[{"type":"thinking","thinking":[]},{"type":"text","text":"Hel"}]`, 1) + end + done, false, patience, "Hel", "", ""},
		"text without a reason":        {text + done + done, false, patience, "Hel", "", ""},
		"a call without a reason":      {call + done, false, patience, "", "", "upstream_unavailable"},
		"a call behind its reason":     {text + end + call + done, false, patience, "Hel", "", "upstream_unavailable"},
	} {
		h := open(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, c.body)
			w.(http.Flusher).Flush()
			if c.hangs {
				<-r.Context().Done()
			}
		}), plan{rules: noRepairs, definition: func(d *upstream.Definition) { d.Timeouts.Idle = c.idle }})
		w := h.post(asks(`"stream":true,` + tools("time_now")))
		if got := reads(t, w); got.text() != c.text || got.call() != c.call || got.Error.Code != c.failed || got.done != (c.failed == "") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestUpstreamFaults: whatever becomes of the model's provider has an exact
// answer, and nothing of an incomplete completion is acted on.
func TestUpstreamFaults(t *testing.T) {
	const (
		head = `{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[`
		call = "data: " + head + `{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"
		text = "data: " + head + `{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}` + "\n\n"
		end  = "data: " + head + `{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
		done = "data: [DONE]\n\n"
	)
	sse := func(body string, hang bool) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, body)
			w.(http.Flusher).Flush()
			if hang {
				<-r.Context().Done()
			}
		}
	}
	status := func(code int, headers ...string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for i := 0; i < len(headers); i += 2 {
				w.Header().Set(headers[i], headers[i+1])
			}
			w.WriteHeader(code)
			fmt.Fprint(w, `{"error":{"message":"said upstream","type":"its_type","param":"its_param","code":"its_code"}}`)
		}
	}
	plain := func(kind, body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, body)
		}
	}
	broken := func(body string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, body)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	cutBody := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1000")
		fmt.Fprint(w, `{"id":"c","choices":[{"index":0,"message":`+toolCalls("c1", "time_now", "{}"))
	}
	const json = "application/json"
	whole := `{"id":"c","created":1,"model":"m","choices":[{"index":0,"message":` + toolCalls("c1", "time_now", "{}") + `,"finish_reason":%s}]}`
	for name, c := range map[string]struct {
		model    func(http.ResponseWriter, *http.Request)
		streamed bool
		status   int
		code     string
		text     string // shown before
	}{
		"500":                           {status(500), false, 500, "its_code", ""},
		"503, for a stream":             {status(503, "Retry-After", "7"), true, 503, "its_code", ""},
		"401":                           {status(401), false, 502, "upstream_unavailable", ""},
		"403, for a stream":             {status(403), true, 502, "upstream_unavailable", ""},
		"404":                           {status(404), false, 404, "its_code", ""},
		"429":                           {status(429, "Retry-After", "7"), false, 429, "its_code", ""},
		"429, for a stream":             {status(429, "Retry-After", "7"), true, 429, "its_code", ""},
		"a redirect":                    {status(302, "Location", "http://example.com/"), false, 502, "upstream_unavailable", ""},
		"garbage":                       {plain(json, "<html>"), false, 502, "upstream_unavailable", ""},
		"garbage in a stream":           {sse("data: nonsense\n\n", false), true, 502, "upstream_unavailable", ""},
		"garbage behind text":           {sse(text+"data: nonsense\n\n", false), true, 502, "upstream_unavailable", "Hel"},
		"another type":                  {plain("text/html", "<html>"), false, 502, "upstream_unavailable", ""},
		"another type for a stream":     {plain(json, fmt.Sprintf(whole, `"stop"`)), true, 502, "upstream_unavailable", ""},
		"a name twice":                  {plain(json, strings.Replace(fmt.Sprintf(whole, `"stop"`), `"id":"c"`, `"id":"c","id":"c"`, 1)), false, 502, "upstream_unavailable", ""},
		"no choices":                    {plain(json, `{"id":"c","created":1,"model":"m","choices":[]}`), false, 502, "upstream_unavailable", ""},
		"no end":                        {plain(json, fmt.Sprintf(whole, "null")), false, 502, "upstream_unavailable", ""},
		"cut":                           {cutBody, false, 502, "upstream_unavailable", ""},
		"a call, cut":                   {broken(call), true, 502, "upstream_unavailable", ""},
		"a call, cut before [DONE]":     {broken(call + end), true, 502, "upstream_unavailable", ""},
		"a call, ended without its end": {sse(call+done, false), true, 502, "upstream_unavailable", ""},
		"text, cut":                     {broken(text), true, 502, "upstream_unavailable", "Hel"},
		"text, stalled":                 {sse(text, true), true, 504, "upstream_timeout", "Hel"},
		"a call, stalled":               {sse(call, true), true, 504, "upstream_timeout", ""},
		"after a call, stalled":         {sse(call+end+"data: {", true), true, 504, "upstream_timeout", ""},
		"nothing, stalled":              {sse("", true), true, 504, "upstream_timeout", ""},
		"an endless line":               {sse("data: "+strings.Repeat("x", 2<<20)+"\n\n", false), true, 502, "upstream_unavailable", ""},
		"an error in a stream":          {sse(`data: {"error":{"message":"x"}}`+"\n\n", false), true, 502, "upstream_unavailable", ""},
	} {
		for _, mode := range []string{"enforce", "orchestrate"} {
			more := ""
			if c.streamed {
				more = `"stream":true,`
			}
			var h *fixture
			var w *httptest.ResponseRecorder
			var got completion
			// On a busy machine the text may come after the limit: then the limit was too short.
			for limit := 100 * time.Millisecond; limit < patience; limit *= 10 {
				h = open(t, inTurn(c.model), plan{rules: noRepairs, definition: func(d *upstream.Definition) {
					switch {
					case name == "nothing, stalled":
						d.Timeouts.Response = limit
					case strings.HasSuffix(name, "stalled"):
						d.Timeouts.Idle = limit
					}
				}})
				w = h.post(asks(more+tools("time_now")), "Callgate-Mode", mode)
				if got = reads(t, w); name != "text, stalled" || got.text() == c.text {
					break
				}
			}
			if got.Error.Code != c.code || got.text() != c.text || got.call() != "" || got.done || c.text == "" && w.Code != c.status || c.text != "" && w.Code != 200 {
				t.Errorf("%s, %s: %d %s", name, mode, w.Code, w.Body)
			}
			if c.code == "its_code" && (got.Error.Message != "said upstream" || got.Error.Type != "its_type" || got.Error.Param != "its_param" || (c.status == 429 || c.status == 503) != (w.Header().Get("Retry-After") == "7")) {
				t.Errorf("%s: %v %s", name, w.Header(), w.Body)
			}
			if strings.Contains(w.Body.String()+h.log.String(), "said upstream") && c.code != "its_code" || strings.Contains(h.log.String(), "nonsense") {
				t.Errorf("%s: what the provider said is in %s or in the log %s", name, w.Body, h.log)
			}
			for _, record := range h.settled(t) {
				if c.text != "" && !strings.HasSuffix(record, " text") || c.text == "" && !strings.Contains(record, "refused") {
					t.Errorf("%s, %s: the journal has %q", name, mode, record)
				}
			}
			if c.text != "" && len(h.Journal.Lines()) != 1 {
				t.Errorf("%s, %s: what was shown is written down as %v", name, mode, h.Journal.Lines())
			}
		}
	}
	anonymous := ports.Hold(t)
	h := open(t, nil, plan{definition: func(d *upstream.Definition) { d.BaseURL = "http://" + anonymous }})
	if w := h.post(asks("")); w.Code != 502 || reads(t, w).Error.Code != "upstream_unavailable" {
		t.Errorf("refused: %d %s", w.Code, w.Body)
	}
}

// TestShownIsShown: what is refused after some of it was shown is not asked for
// once more; what must be a call is not shown before it is known to be one.
func TestShownIsShown(t *testing.T) {
	h := open(t, inTurn(says(strings.Replace(toolCalls("c1", "web_search", "{}"), "null", `"So: "`, 1), "stop")), plan{})
	if got := reads(t, h.post(asks(`"stream":true,`+tools("web_search")))); got.text() != "So: " || got.Error.Code != "missing_argument" || got.done || h.model.times() != 1 {
		t.Errorf("%+v, asked %d times", got, h.model.times())
	}
	h = open(t, inTurn(says(content("No."), "stop"), says(toolCalls("c1", "time_now", "{}"), "stop")), plan{})
	if got := reads(t, h.post(asks(`"stream":true,"tool_choice":"required",`+tools("time_now")))); got.text() != "" || got.call() != "time_now{}" || !got.done || h.model.times() != 2 {
		t.Errorf("%+v, asked %d times", got, h.model.times())
	}
}

// TestOneTurnMore: a stream whose first completion is refused before anything of
// it was shown continues with the next.
func TestOneTurnMore(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		piece := 1 + random.IntN(30)
		cut := func(message string) func(http.ResponseWriter, *http.Request) {
			return func(w http.ResponseWriter, _ *http.Request) { stream(w, piece, "stop", message) }
		}
		h := open(t, inTurn(cut(content(`{"tool":{"name":"web.serch","arguments":{}}}`)), cut(content("Hello"))), plan{rules: textProtocol})
		if got := reads(t, h.post(asks(`"stream":true,`+tools("web_search")))); got.text() != "Hello" || !got.done || h.model.times() != 2 {
			t.Errorf("in pieces of %d: %+v", piece, got)
		}
	}
}

// TestTextBeforeARefusedCall: in a stream, a refused call behind text that was sent is not corrected, and the error
// says which key changes that; where nothing was sent, the model is asked again.
func TestTextBeforeARefusedCall(t *testing.T) {
	wrong := strings.Replace(toolCalls("c1", "web_search", `{}`), "null", `"Let me look."`, 1)
	right := toolCalls("c2", "web_search", search)
	const hint = "With stream_buffer: whole at the upstream sample"
	for name, c := range map[string]struct {
		rules    func(*upstream.Rules)
		first    string
		repaired bool
		hint     bool
	}{
		"text before":       {nil, wrong, false, true},
		"no text":           {nil, toolCalls("c1", "web_search", `{}`), true, false},
		"held to the end":   {func(r *upstream.Rules) { r.StreamBuffer = upstream.Whole }, wrong, true, false},
		"nothing to repair": {noRepairs, wrong, false, false},
	} {
		h := open(t, inTurn(says(c.first, "tool_calls"), says(right, "tool_calls")), plan{rules: c.rules})
		w := h.post(asks(`"stream":true,` + tools("web_search")))
		got := reads(t, w)
		if (got.call() == "web_search"+search) != c.repaired || (got.Error.Code == "missing_argument") == c.repaired || strings.Contains(w.Body.String(), hint) != c.hint || strings.Contains(h.log.String(), "stream_buffer: parser") != c.hint {
			t.Errorf("%s: %s, log %s", name, w.Body, h.log)
		}
	}
}
