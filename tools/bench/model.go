package main

import (
	"bytes"
	"io"
	"net/http"
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
	someText    = piece + piece + piece + piece + piece + piece + piece + piece + piece + piece + piece + piece +
		piece + piece + piece + piece + piece + piece + piece + piece + piece + piece + piece + piece + piece
)

// mock serves a model whose answers are ready made, so that what is measured is
// what stands in front of it.
func mock() error {
	answers, streams := map[string][]byte{}, map[string][][]byte{}
	for _, w := range wires {
		answers[w.path+textModel], answers[w.path+callModel] = []byte(w.text), []byte(w.call)
		streams[w.path+longModel], streams[w.path+shortModel] = w.stream(longChunks), w.stream(shortChunks)
	}
	return listen("model", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		path := strings.TrimPrefix(r.URL.Path, "/v1")
		for _, name := range []string{textModel, callModel, longModel, shortModel} {
			if !bytes.Contains(body, []byte(`"model":"`+name+`"`)) {
				continue
			}
			if answer := answers[path+name]; answer != nil {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(answer)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			flusher := http.NewResponseController(w)
			for _, event := range streams[path+name] {
				if _, err := w.Write(event); err != nil || flusher.Flush() != nil {
					return
				}
			}
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
}
