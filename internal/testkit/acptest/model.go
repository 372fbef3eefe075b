package acptest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
)

// Reply is one answer of a scripted model.
type Reply struct {
	Thought string // what it thinks first
	Content string
	Finish  string // empty: stop
	Hang    bool   // it says nothing until its client leaves
}

// Calling is a Reply that calls a tool, in the text protocol.
func Calling(name, arguments string) Reply {
	return Reply{Content: fmt.Sprintf(`{"tool":{"name":%q,"arguments":%s}}`, name, arguments)}
}

// Afterwards is the text of a Model that has nothing else to say.
const Afterwards = "Done."

// Model is a scripted upstream of chat completions, which streams its replies in order.
type Model struct {
	mu       sync.Mutex
	replies  []Reply
	requests []string
	hangs    chan struct{}
}

// Say sets the next replies, and forgets the requests so far.
func (m *Model) Say(replies ...Reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.replies, m.requests, m.hangs = replies, nil, make(chan struct{}, len(replies))
}

// Requests are the bodies since Say.
func (m *Model) Requests() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.requests...)
}

// Hangs is told of each reply that begins to hang.
func (m *Model) Hangs() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hangs
}

func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.requests = append(m.requests, string(body))
	reply, hangs := Reply{Content: Afterwards}, m.hangs
	if len(m.replies) > 0 {
		reply, m.replies = m.replies[0], m.replies[1:]
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta map[string]string, finish any) {
		choice := map[string]any{"index": 0, "delta": delta, "finish_reason": finish}
		text, _ := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted",
			"choices": []any{choice}})
		_, _ = fmt.Fprintf(w, "data: %s\n\n", text)
		_ = http.NewResponseController(w).Flush()
	}
	if reply.Thought != "" {
		chunk(map[string]string{"reasoning_content": reply.Thought}, nil)
	}
	if reply.Hang {
		hangs <- struct{}{}
		<-r.Context().Done()
		return
	}
	for rest := []rune(reply.Content); len(rest) > 0; { // in pieces that cut words and names
		n := min(7, len(rest))
		chunk(map[string]string{"content": string(rest[:n])}, nil)
		rest = rest[n:]
	}
	if reply.Finish == "" {
		reply.Finish = "stop"
	}
	chunk(map[string]string{}, reply.Finish)
	_, _ = fmt.Fprint(w, "data: [DONE]\n\n")
}
