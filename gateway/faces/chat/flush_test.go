package chat_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// flushed is a response whose client sees only what was flushed.
type flushed struct {
	*httptest.ResponseRecorder
	seen func(body string)
}

func (f *flushed) Flush() {
	f.ResponseRecorder.Flush()
	f.seen(f.Body.String())
}

// TestBurstIsFlushed: what came at once is sent before the model is waited for again, also if
// its last chunk shows nothing.
func TestBurstIsFlushed(t *testing.T) {
	chunk := func(delta string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n\n"
	}
	shown := make(chan struct{})
	h := open(t, inTurn(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, chunk(`{"content":"first "}`)+chunk(`{"content":"`+strings.Repeat("more ", 5<<10)+`last "}`)+chunk(`{"content":""}`))
		w.(http.Flusher).Flush()
		wait(t, shown, "the last text is not shown before the end")
		stream(w, 9, "stop", content("end"))
	}), plan{})
	once := false
	w := &flushed{httptest.NewRecorder(), func(body string) {
		if !once && strings.Contains(body, "last ") {
			once = true
			close(shown)
		}
	}}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(asks(`"stream":true`)))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	if got := reads(t, w.ResponseRecorder); !got.done || !strings.HasSuffix(got.text(), "more last end") {
		t.Errorf("%d bytes of text, done %t", len(got.text()), got.done)
	}
}
