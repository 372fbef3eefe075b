package chat_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// TestStreamsAtOnce: streams that are relayed at the same time share buffers one after the
// other, and each gets its own text alone.
func TestStreamsAtOnce(t *testing.T) {
	h := open(t, func(turn int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 60 {
			event(w, fmt.Sprintf(`{"index":0,"delta":{"content":"%c%d "},"finish_reason":null}`, 'a'+turn%26, i))
		}
		event(w, `{"index":0,"delta":{},"finish_reason":"stop"}`)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}, plan{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				got := reads(t, h.post(asks(`"stream":true`)))
				want := ""
				for i := range 60 {
					want += fmt.Sprintf("%c%d ", (got.text() + " ")[0], i)
				}
				if !got.done || got.text() != want {
					t.Errorf("got %q, want %q", got.text(), want)
				}
			}
		})
	}
	all.Wait()
}

// TestAllocationsPerChunk: a chunk of a long stream costs no allocation of its own, from the
// model's connection to the application's.
func TestAllocationsPerChunk(t *testing.T) {
	allocations := func(chunks int) float64 {
		stream := strings.Repeat(`data: {"id":"c","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"some more words "},"finish_reason":null}]}`+"\n\n", chunks) +
			`data: {"id":"c","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
		h := open(t, inTurn(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, stream)
		}), plan{})
		body := asks(`"stream":true`)
		return testing.AllocsPerRun(5, func() {
			r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(&discarded{header: http.Header{}}, r)
		})
	}
	const fewer, more = 200, 2200
	if each := (allocations(more) - allocations(fewer)) / (more - fewer); each > 0.3 {
		t.Errorf("%.2f allocations a chunk, want at most 0.3", each)
	}
}
