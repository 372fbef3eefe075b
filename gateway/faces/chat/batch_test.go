package chat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/facetest"
)

// TestTogether: what the model has sent at once goes out in few pieces, and all of
// it while the model is waited for, whatever else has begun to come.
func TestTogether(t *testing.T) {
	const texts = 100
	for _, mode := range []string{"enforce", "orchestrate"} {
		shown := make(chan struct{})
		h := open(t, inTurn(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			one := `data: {"id":"chatcmpl-1","created":7,"model":"model-1","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
			last := `data: {"id":"chatcmpl-1","created":7,"model":"model-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
			_, _ = io.WriteString(w, strings.Repeat(one, texts)+": a comment\n\n"+last[:40])
			_ = http.NewResponseController(w).Flush()
			wait(t, shown, "what has come is held back while the model is waited for")
			_, _ = io.WriteString(w, last[40:]+"data: [DONE]\n\n")
		}), plan{})
		var pieces int
		var once bool
		w := &facetest.Recorder{ResponseRecorder: httptest.NewRecorder(), Seen: func(body string) {
			pieces++
			if !once && strings.Count(body, `"content":"word "`) == texts {
				once = true
				close(shown)
			}
		}}
		r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(asks(`"stream":true`)))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Callgate-Mode", mode)
		if h.ServeHTTP(w, r); reads(t, w.ResponseRecorder).text() != strings.Repeat("word ", texts) {
			t.Errorf("%s: %s", mode, w.Body)
		}
		if pieces > texts/2 {
			t.Errorf("%s: %d texts went out in %d pieces", mode, texts, pieces)
		}
	}
}

// TestShownBeforeFault: text that was released before a fault is shown, however
// soon the fault comes behind it.
func TestShownBeforeFault(t *testing.T) {
	for why, behind := range map[string]string{
		"a fault of the stream": "data: {]\n\n",
		"a cut":                 "data: {",
		"a refusal":             `data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"nothing","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n",
	} {
		h := open(t, inTurn(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			one := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"word "},"finish_reason":null}]}` + "\n\n"
			_, _ = io.WriteString(w, one+one+one+behind)
		}), plan{rules: noRepairs})
		w := h.post(asks(`"stream":true,` + tools("web_search")))
		if got := reads(t, w); got.text() != "word word word " || got.Error.Code == "" || got.done {
			t.Errorf("%s: %d %s", why, w.Code, w.Body)
		}
	}
}
