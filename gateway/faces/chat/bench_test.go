package chat_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// streams is a model that streams n pieces of text, each of which leaves by itself.
func streams(n int) func(http.ResponseWriter, *http.Request) {
	event := func(delta, finish string) string {
		return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mock","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":` + finish + `}]}` + "\n\n"
	}
	events := slices.Concat([]string{event(`{"role":"assistant"}`, "null")}, slices.Repeat([]string{event(`{"content":"some more words "}`, "null")}, n),
		[]string{event("{}", `"stop"`), "data: [DONE]\n\n"})
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range events {
			_, _ = io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}
}

// BenchmarkChat asks for a text, for a call, and for streams of 5 and of 200 pieces of text.
func BenchmarkChat(b *testing.B) {
	const prompt = `"messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"What is the audit log of a gateway?"}]}`
	for _, c := range []struct {
		name, body string
		answer     func(http.ResponseWriter, *http.Request)
	}{
		{"text", `{"model":"m",` + prompt, says(`{"role":"assistant","content":"It is the record of all that was decided."}`, "stop")},
		{"call", `{"model":"m",` + tools("web_search") + "," + prompt, says(toolCalls("call_1", "web_search", `{"query":"agent memory"}`), "tool_calls")},
		{"stream/5", `{"model":"m","stream":true,` + prompt, streams(5)},
		{"stream/200", `{"model":"m","stream":true,` + prompt, streams(200)},
	} {
		b.Run(c.name, func(b *testing.B) {
			h := open(b, inTurn(c.answer), plan{})
			b.ReportAllocs()
			flushes := 0
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(c.body))
				r.Header.Set("Content-Type", "application/json")
				w := &discarded{header: http.Header{}}
				h.ServeHTTP(w, r)
				if w.status != http.StatusOK {
					b.Fatal(w.status)
				}
				flushes += w.flushes
			}
			b.ReportMetric(float64(flushes)/float64(b.N), "flushes/op")
		})
	}
}

// discarded is a response that nobody reads.
type discarded struct {
	header  http.Header
	status  int
	flushes int
}

func (d *discarded) Header() http.Header { return d.header }

func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }

func (d *discarded) WriteHeader(status int) { d.status = status }

func (d *discarded) Flush() { d.flushes++ }
