package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// newModel is a server of the bundled scenarios.
func newModel(t *testing.T) string {
	t.Helper()
	r, err := newRepertoire(defaultScenario)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(newHandler(model{r, func() time.Time { return time.Unix(1700000000, 0) }}))
	t.Cleanup(s.Close)
	return s.URL
}

func post(t *testing.T, url, body string) (int, http.Header, string) {
	t.Helper()
	r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	got, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, r.Header, string(got)
}

// answered is an answer as an application sees it.
type answered struct {
	text   string
	calls  []toolCall
	finish string
	usage  *usage
}

// ask sends a conversation and reads the answer, streamed or not.
func ask(t *testing.T, url, scenario string, native, stream bool, messages []map[string]any) answered {
	t.Helper()
	q := map[string]any{"model": scenario, "messages": messages, "stream": stream}
	if native {
		q["tools"] = []any{map[string]any{"type": "function", "function": map[string]any{"name": "web_search"}}}
	}
	if stream {
		q["stream_options"] = map[string]any{"include_usage": true}
	}
	body, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	status, header, got := post(t, url, string(body))
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", scenario, status, got)
	}
	if stream {
		if media := header.Get("Content-Type"); media != "text/event-stream" {
			t.Fatalf("the content type is %q", media)
		}
		return assemble(t, got)
	}
	var c completion
	if err := json.Unmarshal([]byte(got), &c); err != nil || len(c.Choices) != 1 || c.Object != "chat.completion" || c.Model != scenario || c.Created != 1700000000 {
		t.Fatalf("%v: %s", err, got)
	}
	m := c.Choices[0].Message
	a := answered{calls: m.Calls, finish: c.Choices[0].Finish, usage: c.Usage}
	if m.Content != nil {
		a.text = *m.Content
	}
	return a
}

func assemble(t *testing.T, stream string) (a answered) {
	t.Helper()
	done := false
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || done {
			t.Fatalf("found the event %q", event)
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		var c completionChunk
		if err := json.Unmarshal([]byte(data), &c); err != nil || c.Object != "chat.completion.chunk" {
			t.Fatalf("%v: %s", err, data)
		}
		if c.Usage != nil {
			a.usage = c.Usage
			continue
		}
		p := c.Choices[0]
		a.text += p.Delta.Content
		for _, d := range p.Delta.Calls {
			if d.ID != "" {
				a.calls = append(a.calls, toolCall{ID: d.ID, Type: d.Type, Function: function{Name: d.Function.Name}})
			}
			a.calls[d.Index].Function.Arguments += d.Function.Arguments
		}
		if p.Finish != nil {
			a.finish = *p.Finish
		}
	}
	if !done {
		t.Fatalf("the stream has no end: %s", stream)
	}
	return a
}

// play goes through a scenario: what the tools of an application return follows
// each call.
func play(t *testing.T, url, scenario string, native, stream bool, results ...string) []answered {
	t.Helper()
	messages := []map[string]any{{"role": "user", "content": "Please."}}
	var all []answered
	for {
		a := ask(t, url, scenario, native, stream, messages)
		all = append(all, a)
		if len(results) == 0 {
			return all
		}
		messages = append(messages, map[string]any{"role": "assistant", "content": a.text, "tool_calls": a.calls})
		if !native {
			messages = append(messages, map[string]any{"role": "user", "content": results[0]})
		}
		for _, c := range a.calls {
			messages = append(messages, map[string]any{"role": "tool", "tool_call_id": c.ID, "content": results[0]})
		}
		results = results[1:]
	}
}

func TestAgent(t *testing.T) {
	url := newModel(t)
	found := `{"tool_result":{"tool":"web.search","output":{"results":[{"title":"Two tides","url":"https://example.com/t"}]}}}`
	read := `{"tool_result":{"tool":"files.read","output":{"path":"notes.md","text":"# Notes"}}}`
	const last = `The best page is "Two tides", at https://example.com/t. The notes of this project begin with "# Notes".`
	for _, stream := range []bool{false, true} {
		got := play(t, url, "gpt-x", true, stream, found, read)
		if c := got[0].calls; len(c) != 1 || c[0].ID != "call_0_0" || c[0].Function != (function{"web_search", `{"query":"tides","num_results":1}`}) || got[0].finish != "tool_calls" || got[0].text != "" {
			t.Errorf("first: %+v", got[0])
		}
		if c := got[1].calls; len(c) != 1 || c[0].ID != "call_1_0" || c[0].Function.Name != "files_read" {
			t.Errorf("second: %+v", got[1])
		}
		if got[2].text != last || got[2].calls != nil || got[2].finish != "stop" {
			t.Errorf("last: %+v", got[2])
		}
		if u := got[2].usage; u == nil || u.Completion != tokens(len(last)) || u.Prompt < 100 || u.Total != u.Prompt+u.Completion {
			t.Errorf("usage: %+v", u)
		}
		text := play(t, url, "agent", false, stream, found, read)
		if text[0].text != `{"tool":{"name":"web.search","arguments":{"query":"tides","num_results":1}}}` || text[0].calls != nil || text[0].finish != "stop" || text[2].text != last {
			t.Errorf("as text: %+v", text)
		}
	}
}

// TestScenariosPlay says of each bundled scenario what it is there to show.
func TestScenariosPlay(t *testing.T) {
	url := newModel(t)
	const value = `{"tool_result":{"tool":"math.evaluate","output":{"value":2.5}}}`
	const refused = `{"tool_result":{"tool":null,"output":{"error":{"code":"mixed_output"}}}}`
	names := func(a answered) string {
		var all []string
		for _, c := range a.calls {
			all = append(all, c.Function.Name)
		}
		return strings.Join(all, " ")
	}
	for _, c := range []struct {
		scenario string
		results  []string
		want     string // the names of the calls, or the text
	}{
		{"text", nil, "rises and falls"},
		{"call", []string{value}, "2.5"},
		{"bytes", []string{value}, "2.5 — exactly"},
		{"prose", nil, "math_evaluate"},
		{"prose", []string{refused, value}, "2.5"},
		{"near-name", nil, "math_evalute"},
		{"near-name", []string{refused}, "math_evaluate"},
		{"near-name", []string{value}, "2.5"},
		{"repair", []string{refused}, "web_search"},
		{"stubborn", []string{refused, refused, refused}, "math_evaluate"},
		{"loop", []string{value, value, value, value}, "math_evaluate"},
		{"parallel", nil, "math_evaluate web_search"},
		{"parallel", []string{refused}, "math_evaluate"},
		{"parallel", []string{value}, "2.5"},
	} {
		for _, stream := range []bool{false, true} {
			all := play(t, url, c.scenario, true, stream, c.results...)
			got := all[len(all)-1]
			for _, c := range got.calls {
				if c.Type != "function" || !json.Valid([]byte(c.Function.Arguments)) {
					t.Errorf("a call: %+v", c)
				}
			}
			if called := names(got); called != c.want && (called != "" || !strings.Contains(got.text, c.want)) {
				t.Errorf("%s after %d results: %+v, want %s", c.scenario, len(c.results), got, c.want)
			}
		}
	}
	if got := play(t, url, "prose", false, false)[0].text; got != "Let me work that out.\n"+`{"tool":{"name":"math.evaluate","arguments":{"expression":"1+1"}}}` {
		t.Errorf("prose and a call: %q", got)
	}
	if got := play(t, url, "prose", false, false, refused)[1].text; !strings.HasPrefix(got, "{") {
		t.Errorf("corrected: %q", got)
	}
}

func TestChoicesAndPieces(t *testing.T) {
	url := newModel(t)
	_, _, got := post(t, url, `{"model":"text","n":2,"messages":[{"role":"user","content":"q"}]}`)
	if strings.Count(got, `"message"`) != 2 || !strings.Contains(got, `"index":1`) || !strings.Contains(got, `"completion_tokens":34,`) {
		t.Errorf("two choices: %s", got)
	}
	_, _, got = post(t, url, `{"model":"bytes","n":2,"stream":true,"messages":[{"role":"user","content":"q"},{"role":"assistant"},{"role":"tool","content":"{\"value\":1}"}]}`)
	if !strings.Contains(got, `"content":"—"`) || strings.Count(got, `"finish_reason":"stop"`) != 2 || strings.Contains(got, "usage") {
		t.Errorf("characters: %s", got)
	}
	if got := pieces("aä€b", 2); !slices.Equal(got, []string{"aä", "€b"}) || pieces("", 1) != nil {
		t.Errorf("pieces: %q", got)
	}
}

func TestNativeNames(t *testing.T) {
	if got := wire("web.search_all-Z9/ä"); got != "web_search_all-Z9__" {
		t.Errorf("got %q", got)
	}
}

func TestRequestsThatAreRefused(t *testing.T) {
	url := newModel(t)
	for body, want := range map[string]string{
		``:   "found no request",
		`[]`: "found no request",
		`{"model":"text","messages":[{"role":"user","content":"q"}],"model":"x"}`: "found no request",
		`{"messages":[{"role":"user","content":"q"}]}`:                            "found no model",
		`{"model":"text"}`:                                    "found no messages",
		`{"model":"text","messages":[]}`:                      "found no messages",
		`{"model":"text","messages":[{"role":"x"}]}`:          "a message of another form",
		`{"model":"text","messages":[{"role":"user"}],"n":0}`: "number of choices",
		`{"model":"text","messages":[{"role":"user"}],"n":9}`: "number of choices",
	} {
		status, _, got := post(t, url, body)
		if status != http.StatusBadRequest || !strings.HasPrefix(got, `{"error":{"message":`) || !strings.Contains(got, want) {
			t.Errorf("%s: %d %s, want 400 with %q", body, status, got, want)
		}
	}
	for _, c := range []struct {
		method, path, media string
		status              int
	}{
		{"GET", "/v1/chat/completions", "", 405},
		{"POST", "/v1/models", "", 405},
		{"POST", "/v1/chat/completions", "text/plain", 415},
		{"POST", "/v1/chat/completions", "", 415},
		{"POST", "/chat/completions", "application/json", 404},
		{"GET", "/", "", 404},
		{"GET", "/healthz", "", 200},
		{"GET", "/v1/models", "", 200},
	} {
		r, err := http.NewRequest(c.method, url+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", c.media)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if response.StatusCode != c.status || !json.Valid(body) {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.media, response.StatusCode, body, c.status)
		}
	}
	status, _, got := post(t, url, `{"model":"text","messages":[{"role":"user","content":"`+strings.Repeat("a", maxBody)+`"}]}`)
	if status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %s", status, got)
	}
}

func TestCut(t *testing.T) {
	url := newModel(t)
	for _, stream := range []string{"true", "false"} {
		r, err := http.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"cut","stream":`+stream+`,"tools":[{}],"messages":[{"role":"user"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r.Body)
		r.Body.Close()
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(string(got), "web_search") || strings.Contains(string(got), "March") {
			t.Errorf("stream %s: %v after %s; want it broken off within the call", stream, err, got)
		}
	}
}

// TestStall waits for the half that is sent, sees that nothing follows until the
// client leaves, and that the server then lets go.
func TestStall(t *testing.T) {
	url := newModel(t)
	for _, stream := range []string{"true", "false"} {
		ctx, disconnect := context.WithTimeout(t.Context(), time.Minute)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"stall","stream":`+stream+`,"tools":[{}],"messages":[{"role":"user"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		read := bufio.NewReader(response.Body)
		var got []byte
		for !bytes.Contains(got, []byte("web_search")) {
			b, err := read.ReadByte()
			if err != nil {
				t.Fatalf("stream %s: %v after %s", stream, err, got)
			}
			got = append(got, b)
		}
		disconnect()
		if _, err := io.Copy(io.Discard, read); !errors.Is(err, context.Canceled) {
			t.Errorf("stream %s: it ended with %v, want to have waited for the client", stream, err)
		}
		response.Body.Close()
	}
}

// written remembers each write, and whether it was flushed.
type written struct {
	http.ResponseWriter
	sizes   []int
	flushed int
}

func (w *written) Write(b []byte) (int, error) {
	w.sizes = append(w.sizes, len(b))
	return len(b), nil
}

func (w *written) FlushError() error {
	w.flushed++
	return nil
}

func TestWritesAtATime(t *testing.T) {
	for write, want := range map[int][]int{0: {5, 2}, 1: {1, 1, 1, 1, 1, 1, 1}, 3: {3, 2, 2}, 9: {5, 2}} {
		w := &written{ResponseWriter: httptest.NewRecorder()}
		delivery{write: write}.send(t.Context(), w, [][]byte{[]byte("hello"), []byte("!\n")})
		if !slices.Equal(w.sizes, want) || w.flushed != len(want) {
			t.Errorf("%d at a time: wrote %v and flushed %d times, want %v each flushed", write, w.sizes, w.flushed, want)
		}
	}
}

// TestScenarioSaysHowItIsSent plays a scenario to a recorder.
func TestScenarioSaysHowItIsSent(t *testing.T) {
	s, err := readScenario([]byte(`{"turns":[{"text":"a"}],"write":1,"pause_ms":10000}`))
	if err != nil {
		t.Fatal(err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	w := &written{ResponseWriter: httptest.NewRecorder()}
	defer func() {
		if recover() != http.ErrAbortHandler {
			t.Error("an answer that could not be sent whole did not break off")
		}
		if !slices.Equal(w.sizes, []int{1}) {
			t.Errorf("wrote %v, want one byte and then a pause", w.sizes)
		}
	}()
	r := httptest.NewRequestWithContext(stopped, http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"x","messages":[{"role":"user"}]}`))
	r.Header.Set("Content-Type", "application/json")
	newHandler(model{&repertoire{other: s}, time.Now}).ServeHTTP(w, r)
}
