package chat_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/upstream"
)

// TestBadRequests: what is not a request is refused before the model is asked, and
// says which part is wrong.
func TestBadRequests(t *testing.T) {
	message := `"messages":[{"role":"user","content":"hi"}]`
	history := func(m string) string { return `{"model":"m","messages":[` + m + `]}` }
	const called = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}}]}`
	const answered = `{"role":"tool","tool_call_id":"a","content":"x"}`
	with := func(more string) string { return asks(more) }
	for name, c := range map[string]struct {
		body, param string
		status      int
	}{
		"nothing":                     {"", "", 400},
		"a list":                      {"[]", "", 400},
		"more behind":                 {with("") + "x", "", 400},
		"cut":                         {`{"model":"m"`, "", 400},
		"a name twice":                {`{"model":"m","model":"m",` + message + `}`, "", 400},
		"a name twice, deep within":   {with(`"x":{"y":[{"a":1,"a":2}]}`), "", 400},
		"a name twice, escaped":       {with(`"x":{"a":1,"\u0061":2}`), "", 400},
		"no UTF-8":                    {with("\"x\":\"\xff\""), "", 400},
		"half a character":            {with(`"x":"\ud800"`), "", 400},
		"no model":                    {`{` + message + `}`, "model", 400},
		"a model that is no name":     {`{"model":1,` + message + `}`, "model", 400},
		"an unknown model":            {`{"model":"y",` + message + `}`, "model", 404},
		"no messages":                 {`{"model":"m"}`, "messages", 400},
		"none":                        {`{"model":"m","messages":[]}`, "messages", 400},
		"a role of nobody":            {history(`{"role":"function","name":"f","content":"x"}`), "messages.0.role", 400},
		"a message that is none":      {history(`1`), "messages.0", 400},
		"a role that is none":         {history(`{"content":"x"}`), "messages.0.role", 400},
		"a legacy call":               {history(`{"role":"assistant","function_call":{"name":"f","arguments":"{}"}}`), "messages.0.function_call", 400},
		"legacy tools":                {with(`"functions":[{"name":"f"}]`), "functions", 400},
		"a legacy choice":             {with(`"function_call":{"name":"f"}`), "function_call", 400},
		"calls that are none":         {history(`{"role":"assistant","tool_calls":1}`), "messages.0.tool_calls", 400},
		"a call without an id":        {history(strings.Replace(called, `"id":"a",`, "", 1) + "," + answered), "messages.0.tool_calls.0.id", 400},
		"an empty id":                 {history(strings.Replace(called, `"a"`, `""`, 1) + "," + answered), "messages.0.tool_calls.0.id", 400},
		"two ids alike":               {history(strings.Replace(called, `[{`, `[{"id":"a","type":"function","function":{"name":"time_now","arguments":"{}"}},{`, 1) + "," + answered), "messages.0.tool_calls.1.id", 400},
		"a custom call":               {history(strings.Replace(called, `"function"`, `"custom"`, 1) + "," + answered), "messages.0.tool_calls.0", 400},
		"a call of nothing":           {history(strings.Replace(called, `"time_now"`, `""`, 1) + "," + answered), "messages.0.tool_calls.0", 400},
		"arguments that are no text":  {history(strings.Replace(called, `"{}"`, `{}`, 1) + "," + answered), "messages.0.tool_calls.0.function.arguments", 400},
		"arguments that are no JSON":  {history(strings.Replace(called, `"{}"`, `"{"`, 1) + "," + answered), "messages.0.tool_calls.0.function.arguments", 400},
		"arguments, twice":            {history(strings.Replace(called, `"{}"`, `"{\"a\":1,\"a\":2}"`, 1) + "," + answered), "messages.0.tool_calls.0.function.arguments", 400},
		"arguments in a list":         {history(strings.Replace(called, `"{}"`, `"[]"`, 1) + "," + answered), "messages.0.tool_calls.0.function.arguments", 400},
		"a call without an answer":    {history(called), "messages", 400},
		"one too late":                {history(called + `,{"role":"user","content":"x"},` + answered), "messages.1", 400},
		"an answer to nothing":        {history(answered), "messages.0.tool_call_id", 400},
		"an answer twice":             {history(called + "," + answered + "," + answered), "messages.2.tool_call_id", 400},
		"an answer to no call":        {history(called + `,{"role":"tool","content":"x"}`), "messages.1.tool_call_id", 400},
		"an answer that is a number":  {history(called + `,{"role":"tool","tool_call_id":"a","content":1}`), "messages.1.content", 400},
		"an answer that is an object": {history(called + `,{"role":"tool","tool_call_id":"a","content":{"type":"text"}}`), "messages.1.content", 400},
		"a stream of words":           {with(`"stream":"yes"`), "stream", 400},
		"options of no stream":        {with(`"stream_options":{"include_usage":true}`), "stream_options", 400},
		"options that are none":       {with(`"stream":true,"stream_options":1`), "stream_options", 400},
		"an option of words":          {with(`"stream":true,"stream_options":{"include_usage":"yes"}`), "include_usage", 400},
		"parallel of words":           {with(`"parallel_tool_calls":1`), "parallel_tool_calls", 400},
		"n of nothing":                {with(`"n":0`), "n", 400},
		"n of a half":                 {with(`"n":1.5`), "n", 400},
		"n of very many":              {with(`"n":1000000`), "n", 400},
		"tools that are none":         {with(`"tools":{}`), "tools", 400},
		"a custom tool":               {with(`"tools":[{"type":"custom","custom":{"name":"x"}}]`), "tools.0", 400},
		"a tool of the provider":      {with(`"tools":[{"type":"web_search"}]`), "tools.0", 400},
		"a tool without a name":       {with(`"tools":[{"type":"function","function":{}}]`), "tools.0", 400},
		"a tool twice":                {with(tools("time_now", "time_now")), "tools", 400},
		"an unknown tool":             {with(tools("time_now", "nothing_like_it")), "tools.1.function.name", 400},
		"a tool by another name":      {with(tools("time.now")), "tools.0.function.name", 400},
		"a choice of words":           {with(`"tool_choice":"some"`), "tool_choice", 400},
		"a choice of a number":        {with(`"tool_choice":1`), "tool_choice", 400},
		"a custom choice":             {with(`"tool_choice":{"type":"custom","custom":{"name":"x"}}`), "tool_choice", 400},
		"a choice of nothing":         {with(`"tool_choice":"required"`), "tool_choice", 400},
		"any of nothing":              {with(`"tool_choice":"any"`), "tool_choice", 400},
		"a choice without anything":   {with(tools("time_now") + `,"tool_choice":{}`), "tool_choice", 400},
		"a tool without anything":     {with(`"tools":[{}]`), "tools.0", 400},
		"a tool of no type":           {with(`"tools":[{"type":"","function":{"name":"time_now"}}]`), "tools.0", 400},
		"a choice of no tool":         {with(tools("time_now") + `,"tool_choice":{"type":"function","function":{"name":"web_search"}}`), "tool_choice", 400},
		"a choice without a mode":     {with(tools("time_now") + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"function","function":{"name":"time_now"}}]}}`), "tool_choice", 400},
		"a choice among none":         {with(tools("time_now") + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`), "tool_choice", 400},
		"a choice that is denied":     {with(tools("files_delete", "time_now") + `,"tool_choice":{"type":"function","function":{"name":"files_delete"}}`), "tool_choice", 403},
		"any of what is denied":       {with(tools("files_delete") + `,"tool_choice":"required"`), "tool_choice", 403},
	} {
		h := open(t, inTurn(says(content("hi"), "stop")), plan{})
		w := h.post(c.body)
		got := reads(t, w)
		if w.Code != c.status || got.Error.Param != c.param || got.Error.Message == "" || h.model.times() != 0 || w.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	h := open(t, inTurn(says(content("hi"), "stop")), plan{})
	if w := h.post(asks(tools("nothing_like_it"))); !strings.Contains(reads(t, w).Error.Message, "callgate tools import openai FILE") {
		t.Errorf("an unknown tool: %s", w.Body)
	}
}

// TestPassedOn: the model is sent what the application wrote, byte for byte and in
// its order, but for what this face answers for.
func TestPassedOn(t *testing.T) {
	h := open(t, inTurn(says(content("hi"), "stop")), plan{})
	const before = `{"temperature":0.10,"model":"m","metadata":{"b":1e2,"a":[ 1 , 2 ]},"messages":[{"role":"user","content":"a\u0062","name":"n"}`
	const after = `],"stop":null,"response_format":{"type":"text"}}`
	w := h.post(before+after, "Authorization", "Bearer secret", "Cookie", "c=1", "X-Own", "y", "Callgate-User", "u")
	if want := strings.Replace(before, `"m"`, `"model-1"`, 1) + after; w.Code != 200 || string(h.model.body(t, 0)) != want {
		t.Errorf("%d; the model was asked %s", w.Code, h.model.body(t, 0))
	}
	head := h.model.heads[0]
	if head.Get("Authorization") != "Bearer upstream-own-key" || head.Get("Cookie") != "" || head.Get("X-Own") != "" || head.Get("Callgate-User") != "" || head.Get("Traceparent") != "" {
		t.Errorf("the model was sent the head %v", head)
	}
	// A name that the operator left to the application stays what it is.
	if w := h.post(`{"model":"x-1","messages":[{"role":"user","content":"hi"}]}`); w.Code != 200 || !strings.Contains(string(h.model.body(t, 1)), `"model":"x-1"`) {
		t.Errorf("%d %s", w.Code, h.model.body(t, 1))
	}
}

// TestOffered: the tools are the registry's definitions, of those that the agent
// may use, under names of OpenAI's alphabet.
func TestOffered(t *testing.T) {
	send := func(h *fixture, body string, headers ...string) map[string]json.RawMessage {
		t.Helper()
		if w := h.post(body, headers...); w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		var sent map[string]json.RawMessage
		if err := json.Unmarshal(h.model.body(t, h.model.times()-1), &sent); err != nil {
			t.Fatal(err)
		}
		return sent
	}
	names := func(raw json.RawMessage) string {
		var list []struct {
			Function struct {
				Name, Description string
				Parameters        struct{ AdditionalProperties *bool }
			}
		}
		_ = json.Unmarshal(raw, &list)
		var out []string
		for _, tool := range list {
			if tool.Function.Description == "" || tool.Function.Parameters.AdditionalProperties == nil || *tool.Function.Parameters.AdditionalProperties {
				t.Errorf("the tool %+v is not the registry's", tool)
			}
			out = append(out, tool.Function.Name)
		}
		return strings.Join(out, " ")
	}
	h := open(t, inTurn(says(content("hi"), "stop")), plan{})
	sent := send(h, asks(`"tools":[{"type":"function","function":{"name":"web_search","description":"lies","parameters":{}}},{"type":"function","function":{"name":"files_delete"}},{"type":"function","function":{"name":"time_now"}}],"tool_choice":"auto"`))
	if got := names(sent["tools"]); got != "time_now web_search" || strings.Contains(string(sent["tools"]), "lies") || string(sent["tool_choice"]) != `"auto"` {
		t.Errorf("offered %s: %s", got, sent["tools"])
	}
	if sent := send(h, asks("")); sent["tools"] != nil {
		t.Errorf("without tools offered %s", sent["tools"])
	}
	if sent := send(h, asks(tools("files_delete")+`,"tool_choice":"auto","parallel_tool_calls":true`)); sent["tools"] != nil || sent["tool_choice"] != nil || sent["parallel_tool_calls"] != nil {
		t.Errorf("of nothing offered %v", sent)
	}
	sent = send(h, asks(""), "Callgate-Mode", "orchestrate")
	if got := names(sent["tools"]); got != "data_vector_search files_read notes_label payments_refund time_now web_search" {
		t.Errorf("a run is offered %s", got)
	}
	if got := names(send(h, asks(""), "Callgate-Mode", "orchestrate", "Callgate-Agent", "Intern")["tools"]); strings.Contains(got, "payments_refund") || !strings.Contains(got, "web_search") {
		t.Errorf("the intern is offered %s", got)
	}
	choice := string(send(open(t, inTurn(says(toolCalls("c", "time_now", "{}"), "stop")), plan{}), asks(tools("web_search", "time_now", "files_delete")+`,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"files_delete"}},{"type":"function","function":{"name":"time_now"}}]}}`))["tool_choice"])
	if choice != `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"time_now"}}]}}` {
		t.Errorf("the choice is sent on as %s", choice)
	}
}

// TestFormsOfMistral: "any" is "required", and a tool, a call or a choice with a function and without a
// type is a function.
func TestFormsOfMistral(t *testing.T) {
	const untyped = `"tools":[{"function":{"name":"time_now"}},{"type":null,"function":{"name":"web_search"}}]`
	for choice, sent := range map[string]string{
		`"any"`:                            `"any"`,
		`{"function":{"name":"time_now"}}`: `{"type":"function","function":{"name":"time_now"}}`,
		`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"function":{"name":"time_now"}}]}}`: `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"time_now"}}]}}`,
	} {
		for answer, status := range map[string]int{toolCalls("c", "time_now", "{}"): 200, content("hi"): 422} {
			h := open(t, inTurn(says(answer, "stop")), plan{rules: noRepairs})
			w := h.post(asks(untyped + `,"tool_choice":` + choice))
			if body := string(h.model.body(t, 0)); w.Code != status || !strings.Contains(body, `"tool_choice":`+sent) || strings.Count(body, `{"type":"function","function":{"name":"`) < 2 {
				t.Errorf("%s, %s: %d %s, sent on %s", choice, answer, w.Code, w.Body, body)
			}
		}
	}
}

// TestModes: the mode is one that the upstream allows, and the first of them
// unless the request says another.
func TestModes(t *testing.T) {
	only := func(modes ...upstream.Mode) func(*upstream.Rules) {
		return func(r *upstream.Rules) { r.Modes = modes }
	}
	for _, c := range []struct {
		modes    []upstream.Mode
		question string
		status   int
		record   string
	}{
		{[]upstream.Mode{upstream.Enforce, upstream.Orchestrate}, "", 200, "enforce"},
		{[]upstream.Mode{upstream.Orchestrate, upstream.Enforce}, "", 200, "call"},
		{[]upstream.Mode{upstream.Enforce, upstream.Orchestrate}, "orchestrate", 200, "call"},
		{[]upstream.Mode{upstream.Enforce}, "orchestrate", 400, ""},
		{[]upstream.Mode{upstream.Orchestrate}, "enforce", 400, ""},
		{[]upstream.Mode{upstream.Enforce}, "Enforce", 400, ""},
	} {
		h := open(t, inTurn(says(content("hi"), "stop")), plan{rules: only(c.modes...)})
		var headers []string
		if c.question != "" {
			headers = []string{"Callgate-Mode", c.question}
		}
		w := h.post(asks(""), headers...)
		if w.Code != c.status || c.record != "" && string(h.Journal.Records()[0].Mode) != c.record {
			t.Errorf("%v, asked for %q: %d %s, %v", c.modes, c.question, w.Code, w.Body, h.Journal.Lines())
		}
	}
}

// TestWhoAsks: a credential, and an agent, are asked for before anything else is
// said, in OpenAI's shape.
func TestWhoAsks(t *testing.T) {
	h := open(t, inTurn(says(content("hi"), "stop")), plan{state: func(s *gateway.Config, _ *calls.Deps) { s.Identity = &identity.APIKeys{} }})
	for _, w := range []*httptest.ResponseRecorder{
		h.post(asks("")), h.post(`{"model":"nobody knows","messages":[{"role":"user"}]}`), h.post(asks(""), "Authorization", "Bearer x"),
	} {
		if got := reads(t, w); w.Code != 401 || got.Error.Code != "unauthenticated" || got.Error.Type != "authentication_error" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if w := h.get("/v1/models"); w.Code != 401 || reads(t, w).Error.Code != "unauthenticated" {
		t.Errorf("the models: %d %s", w.Code, w.Body)
	}
	h = open(t, inTurn(says(content("hi"), "stop")), plan{})
	if w := h.post(asks(""), "Callgate-Agent", "Nobody"); w.Code != 403 || reads(t, w).Error.Code != "agent_unknown" {
		t.Errorf("an agent of no name: %d %s", w.Code, w.Body)
	}
	if h.model.times() != 0 {
		t.Errorf("the model was asked %d times", h.model.times())
	}
}

// TestShapes: what the server refuses has OpenAI's shape too.
func TestShapes(t *testing.T) {
	h := open(t, inTurn(says(content("hi"), "stop")), plan{})
	for name, c := range map[string]struct {
		w      *httptest.ResponseRecorder
		status int
		code   string
	}{
		"another method":    {h.get("/v1/chat/completions"), 405, "method_not_allowed"},
		"another type":      {h.post(asks(""), "Content-Type", "text/plain"), 415, "unsupported_media_type"},
		"a misspelt header": {h.post(asks(""), "Callgate-Modus", "x"), 400, "bad_request"},
		"too long":          {h.post(strings.Repeat(" ", 8<<20+1)), 413, "request_too_large"},
		"an unknown path":   {h.get("/v1/chat/completions/x"), 404, "not_found"},
		"another endpoint":  {h.get("/v1/embeddings"), 404, "not_found"},
		"files":             {h.get("/v1/files/file-1/content"), 404, "not_found"},
	} {
		if got := reads(t, c.w); c.w.Code != c.status || got.Error.Code != c.code || got.Error.Message == "" || c.w.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %s, %v", name, c.w.Code, c.w.Body, c.w.Header())
		}
	}
	w := h.get("/v1/models")
	if w.Code != 200 || w.Body.String() != `{"object":"list","data":[{"id":"m","object":"model","created":0,"owned_by":"sample"}]}`+"\n" {
		t.Errorf("the models: %d %s", w.Code, w.Body)
	}
}

// get asks for a path.
func (h *fixture) get(path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}
