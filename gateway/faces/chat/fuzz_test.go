package chat_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// FuzzChat: whatever the application and the model's provider send, there is one
// answer in OpenAI's shape, nothing breaks off, and a tool runs only where the
// provider's answer was whole.
func FuzzChat(f *testing.F) {
	const event = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`
	call := event + `{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n"
	end := event + `{},"finish_reason":"stop"}]}` + "\n\n"
	body := `{"id":"c","created":1,"model":"m","choices":[{"index":0,"message":` + toolCalls("c1", "time_now", "{}") + `,"finish_reason":"stop"}]}`
	for _, request := range []string{
		asks(""), asks(tools("time_now")), asks(`"stream":true`), asks(`"n":2,"tool_choice":"none"`),
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`,
		asks(tools("time_now") + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"time_now"}}]}},"stream":true,"stream_options":{"include_usage":true}`),
	} {
		for _, answer := range []string{body, call + end + "data: [DONE]\n\n", call, call + end, event + `{"content":"hi {\"tool\":`, `{"choices":[{"message":{"content":"{}"}}]}`} {
			f.Add(request, answer, uint8(len(answer)))
		}
	}
	var answer atomic.Value // of the provider, and whether it was broken off
	type said struct {
		body string
		cut  bool
	}
	var ran atomic.Int64
	script := func(_ int, w http.ResponseWriter, r *http.Request) {
		s := answer.Load().(said)
		kind := "application/json"
		if r.Header.Get("Accept") == "text/event-stream" {
			kind = "text/event-stream"
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(s.body))
		if s.cut {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	}
	engine := func(tool.Call) (tool.Result, error) {
		ran.Add(1)
		return tool.Result{Body: []byte("{}"), JSON: true}, nil
	}
	var houses []*fixture
	for _, protocol := range []upstream.Protocol{upstream.Native, upstream.Text} {
		for _, mode := range []upstream.Mode{upstream.Enforce, upstream.Orchestrate} {
			houses = append(houses, open(f, script, plan{engine: engine, rules: func(r *upstream.Rules) {
				r.Protocol, r.Modes, r.MaxRepairs, r.MaxTurns = protocol, []upstream.Mode{mode}, 1, 1
			}}))
		}
	}
	f.Fuzz(func(t *testing.T, request, reply string, how uint8) {
		cut := how&4 != 0
		answer.Store(said{reply, cut})
		h := houses[how&3]
		before := ran.Load()
		w := h.post(request)
		if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
			got := readsStream(t, w.Body.String())
			if got.done == (got.Error.Code != "") {
				t.Fatalf("a stream that neither ended well nor badly: %q", w.Body)
			}
		} else if got := reads(t, w); w.Code == http.StatusOK && len(got.Choices) == 0 || w.Code != http.StatusOK && got.Error.Code == "" || w.Code == http.StatusInternalServerError {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if ran.Load() != before && (cut && !strings.Contains(reply, "[DONE]") || how&1 == 0) {
			t.Fatalf("a tool ran: %q", reply)
		}
		for _, r := range h.Journal.Records() {
			if r.Code == "internal" {
				t.Fatalf("%+v", r)
			}
		}
		h.Journal.Clear()
		h.model.mu.Lock()
		h.model.requests, h.model.heads = nil, nil
		h.model.mu.Unlock()
	})
}
