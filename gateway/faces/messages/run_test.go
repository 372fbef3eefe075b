package messages_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/upstream"
)

// TestAM71Orchestrate: Callgate runs the calls; the application sees the texts of all turns with dense
// indexes, and neither the calls nor the thinking that led to them.
func TestAM71Orchestrate(t *testing.T) {
	each(t, func(t *testing.T, in func(...string) script, ask func(...string) string) {
		h := open(t, in(message("tool_use", thinkingBlock, textOf("Let me look."), toolUse("toolu_1", "web_search", `{"query":"go"}`), textOf("And wait.")),
			message("end_turn", thinkingBlock, textOf("Found it."))), plan{rules: orchestrate})
		w := h.create(ask())
		got := reads(t, w)
		want := "Found it."
		if strings.Contains(ask(), streamed) {
			want = "Let me look.And wait.Found it."
		}
		if w.Code != 200 || !got.done || got.text != want || len(got.calls()) > 0 || got.StopReason != "end_turn" || strings.Contains(w.Body.String(), "Hm.") || strings.Contains(w.Body.String(), "toolu_1") {
			t.Errorf("found %d %s", w.Code, w.Body)
		}
		if got.Usage["output_tokens"] != float64(10) || got.Usage["input_tokens"] != float64(20) {
			t.Errorf("the usage is %v", got.Usage)
		}
		if fmt.Sprint(*h.ran) != `[{"query":"go"}]` || h.model.times() != 2 {
			t.Errorf("ran %v, asked %d times", *h.ran, h.model.times())
		}
		for _, want := range []string{`"signature":"c2ln"`, `{"type":"tool_result","tool_use_id":"toolu_1","content":"{\"tool_result\":{\"tool\":\"web.search\"`, `"text":"And wait."`} {
			if !strings.Contains(h.model.body(t, 1), want) {
				t.Errorf("%s is not in %s", want, h.model.body(t, 1))
			}
		}
		if first := h.model.body(t, 0); !strings.Contains(first, `"tools":[{"name":`) || !strings.Contains(first, `"input_schema":{`) {
			t.Errorf("the model was offered %s", first)
		}
	})
}

// TestOrchestrateChoice: a call that tool_choice demands is made once, and the choice is the model's then.
func TestOrchestrateChoice(t *testing.T) {
	h := open(t, says(message("tool_use", toolUse("toolu_1", "web_search", `{"query":"go"}`)), message("end_turn", textOf("Done."))), plan{rules: orchestrate})
	if got := reads(t, h.create(asks(tools("web_search"), `"tool_choice":{"type":"any","disable_parallel_tool_use":true}`))); got.text != "Done." {
		t.Errorf("found %+v", got)
	}
	if body := h.model.body(t, 1); !strings.Contains(body, `"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`) {
		t.Errorf("the model was asked %s", body)
	}
}

// TestTokenBudget: all tokens count, cached ones too (AM-38).
func TestTokenBudget(t *testing.T) {
	h := open(t, says(message("tool_use", toolUse("toolu_1", "web_search", `{"query":"go"}`))), plan{rules: func(r *upstream.Rules) {
		orchestrate(r)
		r.TokenBudget = 200
	}})
	if got := reads(t, h.create(asks())); got.Error.Details.Code != "bound_reached" || got.Error.Type != "api_error" || h.model.times() != 2 {
		t.Errorf("asked %d times, found %+v", h.model.times(), got)
	}
}

// reader reads a stream that is still written.
type reader struct {
	t    *testing.T
	body io.Reader
	seen string
}

// until reads on until a text was seen so many times.
func (r *reader) until(text string, times int) {
	r.t.Helper()
	b := make([]byte, 4<<10)
	for strings.Count(r.seen, text) < times {
		n, err := r.body.Read(b)
		if r.seen += string(b[:n]); err != nil && strings.Count(r.seen, text) < times {
			r.t.Fatalf("found %q without %q: %v", r.seen, text, err)
		}
	}
}

// TestAM52Streams: text and thinking arrive with their event, and nothing of a call before the whole
// turn was judged; meanwhile pings keep the stream alive (AM-08).
func TestAM52Streams(t *testing.T) {
	var all strings.Builder
	stream(&all, "deltas", 100, message("tool_use", thinkingBlock, textOf("Let me look."), toolUse("toolu_1", "web_search", `{"query":"go"}`), textOf("And wait.")))
	events := strings.SplitAfter(strings.TrimSuffix(all.String(), "\n\n"), "\n\n")
	next := make(chan string)
	h := open(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for e := range next {
			_, _ = io.WriteString(w, e)
			w.(http.Flusher).Flush()
		}
	}, plan{beat: 20 * time.Millisecond})
	front := httptest.NewServer(h)
	defer front.Close()
	go func() { next <- events[0] + events[1] + events[2] }() // the head goes out with the first block
	response, err := http.Post(front.URL+"/v1/messages?beta=true", "application/json", strings.NewReader(asks(tools("web_search"), streamed)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	r := &reader{t: t, body: response.Body}
	for _, e := range events[3:] {
		next <- e
		switch {
		case strings.Contains(e, "thinking_delta"):
			r.until(`"thinking":"Hm."`, 1)
		case strings.Contains(e, "text_delta") && strings.Contains(e, "look"):
			r.until(`"text":"Let me look."`, 1)
		case strings.Contains(e, "input_json_delta"), strings.Contains(e, `"And wait."`), strings.Contains(e, "message_delta"):
			r.until("event: ping", strings.Count(r.seen, "event: ping")+1)
			if strings.Contains(r.seen, "toolu_1") || strings.Contains(r.seen, "And wait") {
				t.Fatalf("a held block was sent: %s", r.seen)
			}
		}
	}
	close(next)
	rest, _ := io.ReadAll(r.body)
	if seen := r.seen + string(rest); fmt.Sprint(readsStream(t, seen).calls()) != `[toolu_1 web_search {"query":"go"}]` {
		t.Errorf("found %s", seen)
	}
}

// TestAM47MidStream: a stream that fails after something was sent ends in an error event, and closes
// nothing; the provider's own is passed on byte for byte (AM-64).
func TestAM47MidStream(t *testing.T) {
	const own = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_7"}`
	for name, c := range map[string]struct{ end, want string }{
		"the provider's": {"event: error\ndata: " + own + "\n\n", own},
		"broken off":     {"", `"error_code":"upstream_unavailable"`},
		"with our key":   {"event: error\ndata: " + strings.Replace(own, "Overloaded", `upstream-own-\u006bey`, 1) + "\n\n", `Its answer cannot be shown, since it contains the key`},
		"a second start": {"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\n", `"error_code":"upstream_unavailable"`},
	} {
		h := open(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			var b strings.Builder
			stream(&b, "deltas", 100, message("tool_use", textOf("Let me look."), toolUse("toolu_1", "web_search", `{"query":"go"}`)))
			before, _, _ := strings.Cut(b.String(), "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}")
			_, _ = io.WriteString(w, before+c.end)
		}, plan{})
		w := h.create(asks(tools("web_search"), streamed))
		body := w.Body.String()
		_, last, _ := strings.Cut(body, "event: error\ndata: ")
		if !strings.Contains(last, c.want) || !strings.Contains(body, "Let me look.") || strings.Contains(body, "toolu_1") || strings.Contains(body, "message_stop") || strings.Contains(last, "req_7") != (c.want == own) || c.want == own && last != own+"\n\n" {
			t.Errorf("%s: found %s", name, body)
		}
		if records := h.settled(t); strings.Contains(records, "tool_call") {
			t.Errorf("%s: the records are %s", name, records)
		}
	}
	// Before anything was sent, it has a status.
	h := open(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: error\ndata: "+own+"\n\n")
	}, plan{})
	if w := h.create(asks(streamed)); w.Code != 529 || w.Body.String() != own {
		t.Errorf("found %d %s", w.Code, w.Body)
	}
	// What stands beside it is not passed on: nobody has judged it.
	h = open(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Replace(own, `"type":"error",`, `"type":"message","content":[{"type":"text","text":"SECRET"}],"stop_reason":"end_turn",`, 1))
	}, plan{})
	if w := h.create(asks()); w.Code != 529 || w.Body.String() != own {
		t.Errorf("beside content: found %d %s", w.Code, w.Body)
	}
}

// TestAM47NoMessageStop: a stream that lacks nothing but message_stop is whole, whether it closes or not.
func TestAM47NoMessageStop(t *testing.T) {
	for _, closes := range []bool{true, false} {
		h := open(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			var b strings.Builder
			stream(&b, "deltas", 100, message("tool_use", textOf("Let me look."), toolUse("toolu_1", "web_search", `{"query":"go"}`)))
			before, _, _ := strings.Cut(b.String(), "event: message_stop")
			_, _ = io.WriteString(w, before)
			if !closes {
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			}
		}, plan{})
		w := h.create(asks(tools("web_search"), streamed))
		if got := reads(t, w); w.Code != 200 || !got.done || len(got.calls()) != 1 || got.StopReason != "tool_use" {
			t.Errorf("it closes %t: found %d %s", closes, w.Code, w.Body)
		}
	}
}

// TestAM62UpstreamErrors: a provider's refusal goes to the application byte for byte, with its status
// and its headers.
func TestAM62UpstreamErrors(t *testing.T) {
	const body = "{ \"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1: `thinking` blocks cannot be modified\"},\n\"request_id\":\"req_1\"}"
	for _, status := range []int{400, 404, 413, 429, 500, 529} {
		for _, more := range []string{`"stream":false`, streamed} {
			h := open(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Request-Id", "req_1")
				w.Header().Set("Retry-After", "7")
				w.Header().Set("Anthropic-Ratelimit-Unified-Status", "allowed")
				w.Header().Set("Anthropic-Organization-Id", "secret")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, body)
			}, plan{})
			w := h.create(asks(more))
			head := w.Header()
			if w.Code != status || w.Body.String() != body || head.Get("Request-Id") != "req_1" || head.Get("Retry-After") != "7" || head.Get("Anthropic-Ratelimit-Unified-Status") != "allowed" || head.Get("Anthropic-Organization-Id") != "" {
				t.Errorf("%d: found %d %v %s", status, w.Code, head, w.Body)
			}
		}
	}
}
