package chat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// benchStream is a stream of 200 pieces of text, as a model writes it.
var benchStream = func() string {
	event := func(delta, finish string) string {
		return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mock","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	return event(`{"role":"assistant"}`, "null") + strings.Repeat(event(`{"content":"some more words "}`, "null"), 200) + event("{}", `"stop"`) + "data: [DONE]\n\n"
}()

// BenchmarkChat asks for a call, and for a stream of 200 chunks, which come at once.
func BenchmarkChat(b *testing.B) {
	const prompt = `"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"What is the audit log of a gateway?"}]}`
	call := says(toolCalls("call_1", "web_search", `{"query":"agent memory"}`), "tool_calls")
	for _, c := range []struct {
		name, body string
		answer     func(http.ResponseWriter, *http.Request)
	}{
		{"call", `{"model":"m",` + tools("web_search") + "," + prompt, call},
		{"stream", `{"model":"m","stream":true,` + prompt, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, benchStream)
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b, inTurn(c.answer), plan{})
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(c.body))
				r.Header.Set("Content-Type", "application/json")
				w := &discarded{header: http.Header{}}
				h.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
			}
		})
	}
}

// discarded is a response that nobody reads.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header { return d.header }

func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }

func (d *discarded) WriteHeader(status int) { d.status = status }

func (d *discarded) Flush() {}
