package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// TestOrchestrate: Callgate runs the tools until the model answers in text.
func TestOrchestrate(t *testing.T) {
	calls := map[string][]string{
		"native": {toolCalls("c1", "web_search", search, "c2", "time_now", ""), toolCalls("c3", "time_now", "{}")},
		"text":   {content(`{"tool":{"name":"web.search","arguments":{"query":"x"}}}`), content(` {"tool":{"name":"time.now","arguments":{}}}`)},
	}
	for protocol, messages := range calls {
		for _, streamed := range []string{"", `"stream":true,"stream_options":{"include_usage":true}`} {
			ran := make(chan string, 10)
			rules := orchestrate
			if protocol == "text" {
				rules = all(orchestrate, textProtocol)
			}
			h := open(t, inTurn(says(messages[0], "stop"), says(messages[1], "stop"), says(content("It is noon."), "stop")), plan{rules: rules, engine: func(task tool.Call) (tool.Result, error) {
				ran <- task.Tool + string(task.Arguments)
				return tool.Result{Body: []byte("done\u200b"), JSON: false}, nil
			}})
			w := h.post(asks(streamed))
			got := reads(t, w)
			if w.Code != 200 || got.text() != "It is noon." || got.call() != "" || got.Choices[0].FinishReason != "stop" || got.Usage["total_tokens"] != 45.0 || got.done != (streamed != "") {
				t.Errorf("%s, %s: %d %s", protocol, streamed, w.Code, w.Body)
			}
			close(ran)
			var all []string
			for r := range ran {
				all = append(all, r)
			}
			want := "web.search" + search + " time.now{} time.now{}"
			results := 3
			if protocol == "text" {
				want, results = "web.search"+search+" time.now{}", 2
			}
			if strings.Join(all, " ") != want {
				t.Errorf("%s: ran %v", protocol, all)
			}
			last := string(h.model.body(t, 2))
			if strings.Count(last, `\"output\":{\"value\":\"done\\u200b\"}`) != results {
				t.Errorf("%s: the model was told %s", protocol, last)
			}
			records := strings.Join(h.settled(t), ", ")
			if strings.Count(records, "decision call tool_call") != results || strings.Count(records, "outcome call tool_call result") != results || !strings.HasSuffix(records, "decision call text") {
				t.Errorf("%s: %s", protocol, records)
			}
			if streamed != "" && (len(got.comments) < 2 || !strings.HasPrefix(got.comments[0], "running web.search")) {
				t.Errorf("%s: the comments are %v", protocol, got.comments)
			}
		}
	}
}

// TestBounds: a run ends where it may not go on, and says so.
func TestBounds(t *testing.T) {
	repeat := says(toolCalls("c1", "time_now", "{}"), "stop")
	refused := says(toolCalls("c1", "files_delete", `{"path":"x"}`), "stop")
	silent := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"x","created":1,"model":"m","choices":[{"index":0,"message":`+toolCalls("c1", "time_now", "{}")+`,"finish_reason":"stop"}]}`)
	}
	alternately := inTurn(refused, repeat, refused, repeat, refused, repeat, repeat)
	for name, c := range map[string]struct {
		script   func(int, http.ResponseWriter, *http.Request)
		rules    func(*upstream.Rules)
		code     string
		requests int
		runs     int
	}{
		"steps":               {inTurn(repeat), func(r *upstream.Rules) { r.MaxTurns = 3 }, "bound_reached", 4, 3},
		"time":                {inTurn(repeat), func(r *upstream.Rules) { r.RunTimeout = time.Nanosecond }, "bound_reached", 0, 0},
		"tokens":              {inTurn(repeat), func(r *upstream.Rules) { r.TokenBudget = 30 }, "bound_reached", 2, 2},
		"tokens, not counted": {inTurn(silent), func(r *upstream.Rules) { r.TokenBudget = 30 }, "bound_reached", 1, 1},
		"repairs":             {inTurn(refused), nil, "permission_denied", 3, 0},
		"a loop":              {alternately, nil, "loop_detected", 5, 2},
		"a loop in a row":     {inTurn(refused), func(r *upstream.Rules) { r.MaxRepairs = 9 }, "loop_detected", 3, 0},
		"the last repair":     {alternately, func(r *upstream.Rules) { r.MaxRepairs = 0 }, "permission_denied", 1, 0},
	} {
		runs := 0
		h := open(t, c.script, plan{
			rules: all(orchestrate, func(r *upstream.Rules) {
				if c.rules != nil {
					c.rules(r)
				}
			}),
			engine: func(tool.Call) (tool.Result, error) {
				runs++
				return tool.Result{Body: []byte("{}"), JSON: true}, nil
			},
		})
		w := h.post(asks(""))
		if got := reads(t, w); got.Error.Code != c.code || w.Header().Get("X-Should-Retry") != "false" || h.model.times() != c.requests || runs != c.runs || w.Code != 422 && w.Code != 403 {
			t.Errorf("%s: %d %s; asked %d times, ran %d", name, w.Code, w.Body, h.model.times(), runs)
		}
		// Every decision is executed or refused: none stays open.
		records := strings.Join(h.settled(t), ", ")
		if strings.Count(records, "decision call tool_call") != strings.Count(records, "outcome call tool_call result") {
			t.Errorf("%s: %s", name, records)
		}
	}
}

// TestGrowth: results that would make the conversation too long end the run.
func TestGrowth(t *testing.T) {
	h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop")), plan{rules: all(orchestrate, func(r *upstream.Rules) { r.MaxTurns = 100 }), engine: func(tool.Call) (tool.Result, error) {
		return tool.Result{Body: []byte(strings.Repeat("x", 1<<20)), JSON: false}, nil
	}})
	if w := h.post(asks("")); w.Code != 422 || reads(t, w).Error.Code != "bound_reached" || h.model.times() > 9 {
		t.Errorf("%d %.300s, asked %d times", w.Code, w.Body, h.model.times())
	}
}

// TestChoiceIsMet: what tool_choice asks for is asked for once.
func TestChoiceIsMet(t *testing.T) {
	for _, more := range []string{`"tool_choice":"required"`, `"tool_choice":{"type":"function","function":{"name":"time_now"}}`} {
		h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop"), says(content("noon"), "stop")), plan{rules: orchestrate})
		if w := h.post(asks(tools("time_now", "web_search") + "," + more)); w.Code != 200 || reads(t, w).text() != "noon" {
			t.Errorf("%s: %d %s", more, w.Code, w.Body)
		}
		if first, second := string(h.model.body(t, 0)), string(h.model.body(t, 1)); !strings.Contains(first, more) || strings.Contains(second, "tool_choice") {
			t.Errorf("the model was asked %s, then %s", first, second)
		}
	}
}

// TestSomeChoiceIsMet: of a list of tools to choose from, what stays is the list.
func TestSomeChoiceIsMet(t *testing.T) {
	const mode, list = `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"`, `","tools":[{"type":"function","function":{"name":"time_now"}}]}}`
	h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop"), says(content("noon"), "stop")), plan{rules: orchestrate})
	if w := h.post(asks(tools("time_now", "web_search") + "," + mode + "required" + list)); w.Code != 200 || reads(t, w).text() != "noon" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if second := string(h.model.body(t, 1)); !strings.Contains(second, mode+"auto"+list) {
		t.Errorf("then the model was asked %s", second)
	}
}

// TestAgain: a client is told not to send again what was refused, or had an
// effect.
func TestAgain(t *testing.T) {
	fails := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }
	call := says(toolCalls("c1", "time_now", "{}"), "stop")
	for name, c := range map[string]struct {
		script func(int, http.ResponseWriter, *http.Request)
		want   string
	}{
		"nothing happened":     {inTurn(fails), ""},
		"a tool ran":           {inTurn(call, fails), "false"},
		"a completion refused": {inTurn(says(content(""), "stop")), "false"},
	} {
		h := open(t, c.script, plan{rules: orchestrate})
		if w := h.post(asks("")); w.Code == 200 || w.Header().Get("X-Should-Retry") != c.want {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
	}
}

// TestToolsThatFail: the model reads the failure of a tool, and continues.
func TestToolsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		engine  facetest.ToolFunc
		message string
	}{
		"an error": {func(tool.Call) (tool.Result, error) {
			return tool.Result{}, refusal.New(refusal.ToolFailed, "It is broken.")
		}, "tool_failed"},
		"a panic":      {func(tool.Call) (tool.Result, error) { panic("secret") }, "internal"},
		"other errors": {func(tool.Call) (tool.Result, error) { return tool.Result{}, errors.New("secret") }, "internal"},
		"later":        {func(tool.Call) (tool.Result, error) { return tool.Result{Pending: true}, nil }, "outcome_unknown"},
	} {
		for _, streamed := range []string{"", `"stream":true`} {
			h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop"), says(content("Sorry."), "stop")), plan{rules: orchestrate, engine: c.engine})
			w := h.post(asks(streamed))
			if w.Code != 200 || reads(t, w).text() != "Sorry." || !strings.Contains(string(h.model.body(t, 1)), `\"code\":\"`+c.message+`\"`) || strings.Contains(string(h.model.body(t, 1))+w.Body.String()+h.log.String(), "secret") {
				t.Errorf("%s: %d %s; told %s", name, w.Code, w.Body, h.model.body(t, 1))
			}
		}
	}
}

// TestClientTools: what the application runs is not offered to a run.
func TestClientTools(t *testing.T) {
	c := configWith(t, "tools.json", `{"tools":[{"name":"mine","description":"d","input_schema":{"type":"object"},"run":{"type":"client"}},{"name":"ours","description":"d","input_schema":{"type":"object"},"run":{"type":"demo"}}]}`)
	h := openWith(t, c, inTurn(says(content("hi"), "stop")), plan{})
	if w := h.post(asks(""), "Callgate-Mode", "orchestrate"); w.Code != 200 || strings.Contains(string(h.model.body(t, 0)), `"mine"`) || !strings.Contains(string(h.model.body(t, 0)), `"ours"`) {
		t.Errorf("%d %s; asked %s", w.Code, w.Body, h.model.body(t, 0))
	}
	if w := h.post(asks(tools("mine", "ours"))); w.Code != 200 || !strings.Contains(string(h.model.body(t, 1)), `"mine"`) {
		t.Errorf("%d %s; asked %s", w.Code, w.Body, h.model.body(t, 1))
	}
}

// TestLeaving: an application that leaves ends what is asked of the model, and not
// a call that was dispatched.
func TestLeaving(t *testing.T) {
	for _, streamed := range []string{"", `"stream":true`} {
		gone := make(chan struct{})
		h := open(t, func(_ int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if streamed != "" {
				w.Header().Set("Content-Type", "text/event-stream")
			}
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			close(gone)
		}, plan{})
		server := httptest.NewServer(h)
		t.Cleanup(server.Close)
		leave(t, server.URL, asks(streamed), func() bool { return h.model.times() == 1 })
		wait(t, gone, "the model is still asked")
		server.Close() // once every request has its line in the log
		if line := h.log.String(); !strings.Contains(line, `"level":"INFO"`) || !strings.Contains(line, `"stage":"any","code":"canceled"`) || strings.Contains(line, "unavailable") {
			t.Errorf("the log says %s", line)
		}

		started, finish := make(chan struct{}), make(chan struct{})
		h = open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop"), func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done() // it may be asked once more, and that ends too
		}), plan{rules: orchestrate, engine: func(tool.Call) (tool.Result, error) {
			close(started)
			<-finish
			return tool.Result{Body: []byte("{}"), JSON: true}, nil
		}})
		server = httptest.NewServer(h)
		t.Cleanup(server.Close)
		leave(t, server.URL, asks(streamed), func() bool {
			select {
			case <-started:
				return true
			default:
				return false
			}
		})
		close(finish)
		until(t, func() bool {
			return strings.Contains(strings.Join(h.Journal.Lines(), ","), "outcome call tool_call result")
		})
		until(t, func() bool { return h.InFlight() == 0 })
	}
}

// leave asks, and goes once something has happened.
func leave(t testing.TB, url, body string, happened func() bool) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return
		}
		r.Header.Set("Content-Type", "application/json")
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if w, err := client.Do(r); err == nil {
			<-ctx.Done()
			w.Body.Close()
		}
	}()
	until(t, happened)
	cancel()
	wait(t, done, "the client does not leave")
}

const patience = 30 * time.Second

func wait(t testing.TB, c <-chan struct{}, otherwise string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal(otherwise)
	}
}

func until(t testing.TB, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not happen")
		}
	}
}

// TestHeartbeat: while a tool runs, or the model is silent, comments keep the
// stream alive and say what is waited for.
func TestHeartbeat(t *testing.T) {
	ran, waited := make(chan struct{}), make(chan struct{})
	h := open(t, func(turn int, w http.ResponseWriter, r *http.Request) {
		if turn == 0 {
			says(toolCalls("c1", "time_now", "{}"), "stop")(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		w.(http.Flusher).Flush()
		wait(t, waited, "no comment while the model is silent")
		stream(w, 1, "stop", content("noon"))
	}, plan{rules: orchestrate, beat: time.Millisecond, engine: func(tool.Call) (tool.Result, error) {
		wait(t, ran, "no comment while the tool runs")
		return tool.Result{Body: []byte("{}"), JSON: true}, nil
	}})
	var toolOnce, modelOnce sync.Once
	w := &facetest.Recorder{ResponseRecorder: httptest.NewRecorder(), Seen: func(body string) {
		if _, rest, ok := strings.Cut(body, strings.Repeat(": running time.now\n\n", 3)); ok {
			toolOnce.Do(func() { close(ran) })
			if strings.Contains(rest, ": waiting for the model\n\n: waiting for the model\n\n") {
				modelOnce.Do(func() { close(waited) })
			}
		}
	}}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(asks(`"stream":true`)))
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	if got := reads(t, w.ResponseRecorder); got.text() != "noon" || !got.done {
		t.Errorf("%s", w.Body)
	}
}

// TestExecutedCallsAreKept: a call of a run can be asked for by its id.
func TestExecutedCallsAreKept(t *testing.T) {
	h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "stop"), says(content("noon"), "stop")), plan{rules: orchestrate})
	h.post(asks(""))
	kept, err := h.Executor.Lookup(context.Background(), gateway.Request{}, h.Journal.Records()[0].CallID)
	if err != nil || !json.Valid(kept.Result.Line) {
		t.Errorf("%+v, %v", kept, err)
	}
}

// TestLimited: a refusal that a wait ends is not sent back to the model, which could only
// spend more; the application may send the request again, unless a call has run.
func TestLimited(t *testing.T) {
	rate, err := ratelimit.ParseRate("1/h")
	if err != nil {
		t.Fatal(err)
	}
	limits := &ratelimit.Limits{Replicas: 1, Tools: map[string]ratelimit.Budget{"web.search": {Rate: rate, Burst: 2}}}
	for name, c := range map[string]struct {
		spent, requests int
		retry           bool
	}{
		"at once":      {2, 1, true},
		"after a call": {1, 2, false},
	} {
		call := says(toolCalls("c1", "web_search", search), "tool_calls")
		h := open(t, inTurn(call, call, call), plan{
			rules:  orchestrate,
			engine: func(tool.Call) (tool.Result, error) { return tool.Result{Body: []byte("done")}, nil },
			state: func(s *gateway.Config, p *calls.Deps) {
				s.Limits = limits
				for range c.spent {
					if _, err := p.Limiter.Take(t.Context(), limits, ratelimit.Key{Agent: "Analyst", Tool: "web.search"}); err != nil {
						t.Fatal(err)
					}
				}
			},
		})
		w := h.post(asks(""))
		got := reads(t, w)
		if w.Code != 429 || got.Error.Code != "rate_limited" || h.model.times() != c.requests {
			t.Errorf("%s: %d %s after asking the model %d times", name, w.Code, w.Body, h.model.times())
		}
		if repeated := w.Header().Get("X-Should-Retry") != "false"; repeated != c.retry || w.Header().Get("Retry-After") == "" {
			t.Errorf("%s: the client may send it again: %v", name, w.Header())
		}
	}
}
