package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/refusal"
)

// chat is one way to ask the face in front of a model.
type chat struct {
	mode string
	cut  func(string) []string // how the model's answer streams; nil is none
	held bool                  // until it was judged whole
}

// Ways to cut an answer into chunks. A chunk is JSON, so no character is cut.
func whole(s string) []string       { return []string{s} }
func byCharacter(s string) []string { return strings.Split(s, "") }

func atRandom() func(string) []string {
	random := rand.New(rand.NewPCG(3, 4))
	return func(s string) (pieces []string) {
		for rest := []rune(s); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			pieces = append(pieces, string(rest[:n]))
			rest = rest[n:]
		}
		return pieces
	}
}

// model answers with a vector, and a repeated request with a text.
type model struct {
	cut      func(string) []string
	mu       sync.Mutex
	v        corpora.Vector
	requests int
}

func (m *model) say(v corpora.Vector) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.v, m.requests = v, 0
}

func (m *model) requestCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests
}

const afterwards = "Done."

func (m *model) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	m.requests++
	content, finish := afterwards, "stop"
	if m.requests == 1 {
		content = *m.v.Completion
		if m.v.FinishReason != "" {
			finish = m.v.FinishReason
		}
	}
	m.mu.Unlock()
	if m.cut == nil {
		w.Header().Set("Content-Type", "application/json")
		choice := map[string]any{"index": 0, "message": map[string]any{"role": "assistant", "content": content}, "finish_reason": finish}
		json.NewEncoder(w).Encode(map[string]any{
			"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "vectors", "choices": []any{choice},
			"usage": map[string]int{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
		})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta map[string]any, finish any) {
		choice := map[string]any{"index": 0, "delta": delta, "finish_reason": finish}
		text, _ := json.Marshal(map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "vectors", "choices": []any{choice}})
		fmt.Fprintf(w, "data: %s\n\n", text)
		w.(http.Flusher).Flush()
	}
	chunk(map[string]any{"role": "assistant", "content": ""}, nil)
	for _, piece := range m.cut(content) {
		chunk(map[string]any{"content": piece}, nil)
	}
	chunk(map[string]any{}, finish)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// inFrontOf is a configuration of vectors in front of a model of the text protocol, none of whose
// answers is given back to it for repair.
func inFrontOf(t *testing.T, of vectors, model string, held bool) (config, data string) {
	t.Helper()
	config, data = unlimited(t, of.config)
	buffer := "parser"
	if held {
		buffer = "whole"
	}
	upstreams := fmt.Sprintf("upstreams:\n  - {name: vectors, base_url: %q, models: [vectors], protocol: text, modes: [enforce, orchestrate], max_repairs: 0, stream_buffer: %s}\n# end\n", model+"/v1", buffer)
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "upstreams.yaml"), []byte(upstreams), 0o600); err != nil {
		t.Fatal(err)
	}
	main, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	main = append(bytes.TrimSuffix(main, []byte("# end\n")), "upstreams: upstreams.yaml\n# end\n"...)
	if err := os.WriteFile(config, main, 0o600); err != nil {
		t.Fatal(err)
	}
	return config, data
}

// chatting is the face in front of a model of the text protocol that answers with the
// vectors, none of which is given back to it for repair.
func chatting(t *testing.T, of vectors, c chat) carry {
	m := &model{cut: c.cut}
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	config, data := inFrontOf(t, of, upstream.URL, c.held)
	request := map[string]any{
		"model": "vectors", "messages": []any{map[string]string{"role": "user", "content": "Go on."}}, "tools": offeredTools(t, config), "stream": c.cut != nil,
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	g := serveGate(t, config)
	sent, accepted := 0, 0
	t.Cleanup(func() {
		decisions, outcomes := g.countRecords(t, data)
		judged := sent
		if c.mode == "orchestrate" { // the text behind a call
			judged += accepted
		}
		if decisions != judged || outcomes != accepted {
			t.Errorf("%d decisions and %d outcomes in the log, want %d and %d", decisions, outcomes, judged, accepted)
		}
	})
	return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
		if v.Completion == nil {
			return vectorVerdict{}, false
		}
		m.say(v)
		sent++
		if v.Expect.Verdict == "tool_call" {
			accepted++
		}
		r := g.ask(t, http.MethodPost, "/v1/chat/completions", string(body), "Content-Type", "application/json", "Callgate-Mode", c.mode,
			"Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project, "Callgate-Id", v.ID)
		a := chatAnswer(t, v, r, c.cut != nil)
		return a.verdict(t, v, c, m.requestCount()), true
	}
}

// offeredTools are all tools of a configuration, as a request names them. The model does
// not get the parameters of the request.
func offeredTools(t *testing.T, config string) (tools []any) {
	t.Helper()
	loaded, err := configs.Load(config)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range loaded.Tools.Entries() {
		name := strings.ReplaceAll(tool.Name(), ".", "_")
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": name, "parameters": map[string]string{"type": "object"}}})
	}
	return tools
}

// chatted is what a client of chat completions gets to see.
type chatted struct {
	content string
	calls   []chatCall
	finish  string
	failure *chatFailure
}

type chatCall struct {
	ID, Type string
	Function struct{ Name, Arguments string }
}

type chatFailure struct {
	Message, Type, Code string
	Callgate            struct {
		Result struct {
			Output struct {
				Error struct {
					Code, Stage, Message string
					Violations           []struct {
						Path   string
						Offset *int
					}
				}
			}
		} `json:"tool_result"`
	}
}

// chatAnswer reads an answer as clients do: a refusal may stand in its status, or
// behind what was streamed.
func chatAnswer(t *testing.T, v corpora.Vector, r reply, streamed bool) chatted {
	t.Helper()
	var a chatted
	var whole struct {
		Error   *chatFailure
		Choices []struct {
			Message struct {
				Content *string
				Calls   []chatCall `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if r.status != http.StatusOK || !streamed {
		if err := json.Unmarshal([]byte(r.body), &whole); err != nil || (whole.Error == nil) == (len(whole.Choices) == 0) {
			t.Fatalf("%s: %d %s", v.ID, r.status, r.body)
		}
		if a.failure = whole.Error; a.failure != nil {
			if want := refusal.Code(a.failure.Code).Status(); r.status != want || r.header.Get("X-Should-Retry") != "false" {
				t.Errorf("%s: %s has the status %d and the headers %v", v.ID, a.failure.Code, r.status, r.header)
			}
			return a
		}
		c := whole.Choices[0]
		if c.Message.Content != nil {
			a.content = *c.Message.Content
		}
		a.calls, a.finish = c.Message.Calls, c.FinishReason
		return a
	}
	done := false
	for event := range strings.SplitSeq(strings.TrimSuffix(r.body, "\n\n"), "\n\n") {
		text, isData := strings.CutPrefix(event, "data: ")
		switch {
		case strings.HasPrefix(event, ":"):
		case !isData || done || a.failure != nil:
			t.Fatalf("%s: the stream continues with %q", v.ID, event)
		case text == "[DONE]":
			done = true
		default:
			a.add(t, v, text)
		}
	}
	if done != (a.failure == nil) {
		t.Errorf("%s: a stream ends with %.300s", v.ID, tail(r.body, 300))
	}
	return a
}

// add reads one chunk of a stream.
func (a *chatted) add(t *testing.T, v corpora.Vector, text string) {
	t.Helper()
	var chunk struct {
		Error   *chatFailure
		Choices []struct {
			Delta struct {
				Content *string
				Calls   []struct {
					Index int
					chatCall
				} `json:"tool_calls"`
			}
			FinishReason *string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(text), &chunk); err != nil {
		t.Fatalf("%s: a chunk is %s", v.ID, text)
	}
	a.failure = chunk.Error
	for _, c := range chunk.Choices {
		if c.Delta.Content != nil {
			a.content += *c.Delta.Content
		}
		for _, call := range c.Delta.Calls {
			for len(a.calls) <= call.Index {
				a.calls = append(a.calls, chatCall{})
			}
			into := &a.calls[call.Index]
			into.ID += call.ID
			into.Function.Name += call.Function.Name
			into.Function.Arguments += call.Function.Arguments
		}
		if c.FinishReason != nil {
			a.finish = *c.FinishReason
		}
	}
}

// verdict is the verdict that an answer shows, whose rest must agree with it.
func (a chatted) verdict(t *testing.T, v corpora.Vector, c chat, sent int) vectorVerdict {
	t.Helper()
	if f := a.failure; f != nil {
		e := f.Callgate.Result.Output.Error
		h := vectorVerdict{Verdict: "refused", Code: f.Code, Stage: e.Stage}
		released := len(*v.Completion)
		if len(e.Violations) > 0 {
			h.Path = e.Violations[0].Path
			if at := e.Violations[0].Offset; at != nil {
				released = *at
			}
		}
		if e.Code != f.Code || f.Message == "" || len(a.calls) > 0 || sent > 1 {
			t.Errorf("%s: a refusal comes with %+v, and the model was asked %d times", v.ID, a, sent)
		}
		if c.held {
			released = 0
		}
		if len(a.content) > released || !strings.HasPrefix(*v.Completion, a.content) {
			t.Errorf("%s: released %q of what is refused", v.ID, a.content)
		}
		return h
	}
	var call struct {
		Tool struct {
			Name      string
			Arguments json.RawMessage
		}
	}
	switch {
	case c.mode == "orchestrate" && sent == 2:
		if a.content != afterwards || len(a.calls) > 0 || a.finish != "stop" {
			t.Errorf("%s: after the call comes %+v", v.ID, a)
		}
		return vectorVerdict{Verdict: "tool_call"}
	case len(a.calls) > 0:
		if err := json.Unmarshal([]byte(*v.Completion), &call); err != nil {
			t.Errorf("%s: answered with a call: %v", v.ID, err)
		}
		got := a.calls[0].Function
		if len(a.calls) != 1 || a.calls[0].ID == "" || a.content != "" || a.finish != "tool_calls" || sent != 1 ||
			got.Name != strings.ReplaceAll(call.Tool.Name, ".", "_") || got.Arguments != string(call.Tool.Arguments) {
			t.Errorf("%s: the call comes as %+v, and the model was asked %d times", v.ID, a, sent)
		}
		return vectorVerdict{Verdict: "tool_call"}
	}
	finish := "stop"
	if v.FinishReason != "" {
		finish = v.FinishReason
	}
	if a.content != *v.Completion || a.finish != finish || sent != 1 {
		t.Errorf("%s: the text comes as %+v, and the model was asked %d times", v.ID, a, sent)
	}
	return vectorVerdict{Verdict: "text"}
}
