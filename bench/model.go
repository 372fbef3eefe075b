package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// The mock model's names for what it answers.
const (
	textModel  = "text"  // about 400 bytes of text
	callModel  = "call"  // one call
	longModel  = "long"  // a stream of longChunks pieces
	shortModel = "short" // a stream of shortChunks pieces
)

const (
	longChunks  = 200
	shortChunks = 4
	piece       = "some more words "
)

// mock serves a model whose answers are ready made, so that what is measured is
// what stands in front of it.
func mock() error {
	const head = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"mock","choices":[{"index":0,"message":{"role":"assistant","refusal":null,`
	const tail = `}],"usage":{"prompt_tokens":20,"completion_tokens":100,"total_tokens":120}}`
	answers := map[string][]byte{
		textModel: []byte(head + `"content":"` + strings.Repeat(piece, 25) + `"},"logprobs":null,"finish_reason":"stop"` + tail),
		callModel: []byte(head + `"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bench_echo","arguments":` + strconv.Quote(arguments) + `}}]},"logprobs":null,"finish_reason":"tool_calls"` + tail),
	}
	streams := map[string][][]byte{longModel: events(longChunks), shortModel: events(shortChunks)}
	return listen("model", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		for name, answer := range answers {
			if bytes.Contains(body, []byte(`"model":"`+name+`"`)) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(answer)
				return
			}
		}
		for name, stream := range streams {
			if bytes.Contains(body, []byte(`"model":"`+name+`"`)) {
				w.Header().Set("Content-Type", "text/event-stream")
				flusher := http.NewResponseController(w)
				for _, event := range stream {
					if _, err := w.Write(event); err != nil || flusher.Flush() != nil {
						return
					}
				}
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}))
}

// events is a stream of so many pieces of text.
func events(chunks int) [][]byte {
	event := func(delta, finish string) []byte {
		return fmt.Appendf(nil, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mock","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}`+"\n\n", delta, finish)
	}
	all := [][]byte{event(`{"role":"assistant"}`, "null")}
	for range chunks {
		all = append(all, event(`{"content":"`+piece+`"}`, "null"))
	}
	return append(all, event("{}", `"stop"`), []byte("data: [DONE]\n\n"))
}
