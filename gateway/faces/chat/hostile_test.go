package chat_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/upstream"
)

// sends answers a request for a stream with bytes, and then its end.
func sends(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
}

// answersBody answers a request with a body.
func answersBody(body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

// TestStreamOfOneLine: what an event of several lines held is passed on as one
// line, so that no reader finds another event, or a comment, within it.
func TestStreamOfOneLine(t *testing.T) {
	const lines = "data: {\"id\":\"c\",\"citations\":[\ndata: 1],\"choices\":[{\"index\":0,\"delta\":{\"reasoning_details\":[\rdata: {\"a\"\ndata:  :1},\n" +
		"data:\ndata: 2]},\"finish_reason\":null}]}\n\ndata: {\"choices\":[],\"usage\":{\ndata: \"total_tokens\"\ndata: :3}}\n\n"
	h := open(t, inTurn(sends(lines+`data: {"choices":[{"index":0,"delta":{"content":"hi"}}]}`+"\n\n")), plan{})
	w := h.post(asks(`"stream":true,"stream_options":{"include_usage":true}`))
	for event := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || strings.ContainsAny(data, "\r\n") || data != "[DONE]" && !json.Valid([]byte(data)) {
			t.Errorf("found the event %q", event)
		}
	}
	for _, want := range []string{`"reasoning_details":[`, `"citations":[`, `"total_tokens"`, "[DONE]"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("found no %s in %s", want, w.Body)
		}
	}
}

// TestStreamHidesNothing: what does not show stands as an escape, in a stream as
// in a body. Some readers of events take U+2028 and U+0085 for ends of lines.
func TestStreamHidesNothing(t *testing.T) {
	const hidden = "a\u2028data: x\u0085\u202e\U000e0041\ufeffb"
	h := open(t, inTurn(says(content(hidden), "stop")), plan{})
	for _, more := range []string{"", `"stream":true`} {
		w := h.post(asks(more))
		if got := reads(t, w).text(); got != hidden || strings.ContainsAny(w.Body.String(), "\u2028\u0085\u202e\U000e0041\ufeff") {
			t.Errorf("%s: found %q in %q", more, got, w.Body)
		}
	}
}

// TestWhiteSpaceIsReadOnce: a model that says nothing but white space costs what
// it sends, not the square of it.
func TestWhiteSpaceIsReadOnce(t *testing.T) {
	const pieces = 40_000
	h := open(t, inTurn(sends(strings.Repeat(`data: {"choices":[{"index":0,"delta":{"content":" "}}]}`+"\n\n", pieces))), plan{rules: noRepairs})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w := h.post(asks(`"stream":true`))
	runtime.ReadMemStats(&after)
	if got := reads(t, w).Error.Code; got != "empty_output" {
		t.Errorf("found %s", w.Body)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > pieces*4096 {
		t.Errorf("%d pieces took %d bytes", pieces, took)
	}
}

// TestEmptyTools: an empty list of tools is none, in each mode and protocol.
func TestEmptyTools(t *testing.T) {
	const calls = `{"tool":{"name":"time.now","arguments":{}}}`
	for name, c := range map[string]struct {
		message string
		p       plan
	}{
		"native":              {toolCalls("a", "time_now", "{}"), plan{rules: noRepairs}},
		"text":                {content(calls), plan{rules: all(noRepairs, textProtocol)}},
		"natively, a run":     {toolCalls("a", "time_now", "{}"), plan{rules: all(noRepairs, orchestrate)}},
		"by text, a run":      {content(calls), plan{rules: all(noRepairs, orchestrate, textProtocol)}},
		"presented as it was": {content(calls), plan{rules: all(noRepairs, textProtocol, asContent)}},
	} {
		h := open(t, inTurn(says(c.message, "stop")), c.p)
		w := h.post(asks(`"tools":[]`))
		if got := reads(t, w); w.Code != 422 || got.Error.Code != "unknown_tool" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if reported := string(h.model.body(t, 0)); strings.Contains(reported, "time") || strings.Contains(reported, `"tools"`) {
			t.Errorf("%s: the model was told %s", name, reported)
		}
		if w := h.post(asks(`"tools":[],"tool_choice":"required"`)); w.Code != 400 || h.model.times() != 1 {
			t.Errorf("%s: a call is asked for: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestTokensThatAreNotSummed: a provider that leaves total_tokens out does not
// escape the bound, nor does one that says nothing; and no sum turns over.
func TestTokensThatAreNotSummed(t *testing.T) {
	for usage, want := range map[string]int{
		`{"prompt_tokens":20,"completion_tokens":30}`:                  2,
		`{"prompt_tokens":9223372036854775807,"completion_tokens":9}`:  1,
		`{"prompt_tokens":50,"completion_tokens":50,"total_tokens":1}`: 1,
		`{}`:                 1,
		`{"total_tokens":0}`: 1,
	} {
		body := `{"id":"c","choices":[{"index":0,"message":` + toolCalls("a", "time_now", "{}") + `,"finish_reason":"tool_calls"}],"usage":` + usage + `}`
		h := open(t, inTurn(answersBody(body)), plan{rules: all(orchestrate, bound(100))})
		why := "has taken the tokens"
		if want == 1 && !strings.Contains(usage, "prompt") {
			why = "does not say how many"
		}
		w := h.post(asks(""))
		if got := reads(t, w).Error; w.Code != 422 || got.Code != "bound_reached" || !strings.Contains(got.Message, why) || h.model.times() != want {
			t.Errorf("%s: asked %d times: %d %s", usage, h.model.times(), w.Code, w.Body)
		}
	}
	turn := func(message string) func(http.ResponseWriter, *http.Request) {
		return answersBody(`{"id":"c","choices":[{"index":0,"message":` + message + `,"finish_reason":"stop"}],"usage":{"prompt_tokens":9000000000000000000,"total_tokens":1}}`)
	}
	h := open(t, inTurn(turn(toolCalls("a", "time_now", "{}")), turn(content("hi"))), plan{rules: orchestrate})
	if got := reads(t, h.post(asks(""))); got.Usage["prompt_tokens"] != 1.8e19 {
		t.Errorf("found the usage %v", got.Usage)
	}
}

func asContent(r *upstream.Rules) { r.CallFormat = upstream.AsContent }

func bound(tokens int64) func(*upstream.Rules) {
	return func(r *upstream.Rules) { r.TokenBudget = tokens }
}

// TestContentOfASystemMessage: what cannot be told with the prompt is refused, not
// dropped.
func TestContentOfASystemMessage(t *testing.T) {
	for _, rules := range []func(*upstream.Rules){textProtocol, noRepairs} {
		for _, value := range []string{`{"type":"text","text":"Be brief."}`, "1", "true"} {
			h := open(t, inTurn(says(content("hi"), "stop")), plan{rules: rules})
			w := h.post(`{"model":"m","messages":[{"role":"system","content":` + value + `},{"role":"user","content":"hi"}],` + tools("time_now") + `}`)
			if got := reads(t, w); w.Code != 400 || got.Error.Param != "messages.0.content" || h.model.times() != 0 {
				t.Errorf("%s: %d %s", value, w.Code, w.Body)
			}
		}
	}
}

// TestRepairOfANameOfAnotherAlphabet: a provider refuses a history in which a call
// has a name that no function can have, so the model is told in another way.
func TestRepairOfANameOfAnotherAlphabet(t *testing.T) {
	for _, name := range []string{"web.search", "", "web search", "wéb_search", strings.Repeat("a", 65)} {
		for _, prose := range []string{"", "Let me see."} {
			message := strings.Replace(toolCalls("a", name, search), `"content":null`, `"content":`+quoted(prose), 1)
			h := open(t, inTurn(says(message, "tool_calls"), says(content("fine"), "stop")), plan{})
			if w := h.post(asks(tools("web_search"))); w.Code != 200 || reads(t, w).text() != "fine" {
				t.Errorf("%q: %d %s", name, w.Code, w.Body)
				continue
			}
			var sent struct {
				Messages []struct {
					Role, Content string
					ToolCalls     []json.RawMessage `json:"tool_calls"`
				}
			}
			if err := json.Unmarshal(h.model.body(t, 1), &sent); err != nil {
				t.Fatal(err)
			}
			last := sent.Messages[len(sent.Messages)-1]
			for _, m := range sent.Messages {
				if len(m.ToolCalls) > 0 || m.Role == "tool" {
					t.Errorf("%q: the model is reminded of %+v", name, m)
				}
			}
			if last.Role != "user" || !strings.Contains(last.Content, `"tool":`+quoted(name)) || !strings.Contains(last.Content, `"unknown_tool"`) {
				t.Errorf("%q: the model is told %+v", name, last)
			}
		}
	}
}

// TestLateAnswer: an answer that took longer than the server waits for one to be
// written is given all the same.
func TestLateAnswer(t *testing.T) {
	const patience = 200 * time.Millisecond
	for _, late := range []func(http.ResponseWriter, *http.Request){
		says(content("at last"), "stop"), says(content(`{"tool_calls":1}`), "stop"),
	} {
		h := open(t, inTurn(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(2 * patience)
			late(w, r)
		}), plan{rules: noRepairs})
		s := httptest.NewUnstartedServer(h)
		s.Config.WriteTimeout = patience
		s.Start()
		answer, err := s.Client().Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(asks("")))
		if err != nil {
			t.Error(err)
		} else {
			body, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || !json.Valid(body) {
				t.Errorf("found %q, %v", body, err)
			}
		}
		s.Close()
	}
}

// TestEndlessStream: what is kept of a stream is as much as an answer may be long.
func TestEndlessStream(t *testing.T) {
	piece := `data: {"choices":[{"index":0,"delta":{"%s":"` + strings.Repeat("a", 1000) + `"}}]}` + "\n\n"
	for _, member := range []string{"content", "reasoning", "refusal", "not_known"} {
		h := open(t, inTurn(sends(strings.Repeat(fmt.Sprintf(piece, member), 100))), plan{definition: func(d *upstream.Definition) { d.MaxBody = 64 << 10 }})
		w := h.post(asks(`"stream":true`))
		if got := reads(t, w); got.Error.Code != "upstream_unavailable" || got.done {
			t.Errorf("%s: %d %.300s", member, w.Code, w.Body)
		}
	}
}
