package responses_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/upstream"
)

// withTools is a configuration of some tools, which the one agent may use.
func withTools(t testing.TB, list string) *configs.Config {
	t.Helper()
	return facetest.Config(t, map[string]string{"tools.yaml": "tools:" + list})
}

// TestOrchestrate: calls run here, and the turns are one response.
func TestOrchestrate(t *testing.T) {
	script := []answer{says(reasoning, message("I look."), function("call_1", "web_search", `{"query":"go"}`)), says(message("Found it all."))}
	for how, body := range map[string]string{"whole": asks(), "streamed": asksStream()} {
		h := open(t, plan{rules: orchestrate}, script...)
		w := h.post(body)
		r := reads(t, w)
		if w.Code != 200 || r.Status != "completed" || r.calls() != "" || r.Usage["total_tokens"] != 14.0 || !strings.HasSuffix(r.text(), "Found it all.") {
			t.Fatalf("%s: %d %s", how, w.Code, w.Body)
		}
		if how == "streamed" && (r.text() != "I look.Found it all." || len(r.Output) != 3) {
			t.Errorf("%s", w.Body)
		}
		asked := h.model.asked(t, 1)
		if !strings.Contains(string(h.model.asked(t, 0)["tools"]), `"name":"web_search"`) || !strings.Contains(string(asked["input"]), `"type":"function_call_output","call_id":"call_1","output":"{\"tool_result\":{\"tool\":\"web.search\"`) {
			t.Errorf("%s: %s", how, asked["input"])
		}
		if lines := strings.Join(h.settled(t), "\n"); !strings.Contains(lines, "result") {
			t.Error(lines)
		}
	}
}

// TestBlankArguments: a call of a tool without parameters may have no arguments, or blank ones.
func TestBlankArguments(t *testing.T) {
	config := withTools(t, `
  - {name: time.now, description: x, run: {type: client}, input_schema: {type: object}}
`)
	for _, arguments := range []string{"", " \n", "{}"} {
		for how, body := range map[string]string{"whole": asks(tools("time_now")), "streamed": asksStream(tools("time_now"))} {
			h := open(t, plan{config: config}, says(function("call_1", "time_now", arguments)))
			w := h.post(body)
			if r := reads(t, w); w.Code != 200 || r.calls() != "function_call call_1 time_now{}" {
				t.Errorf("%q, %s: %d %s", arguments, how, w.Code, w.Body)
			}
		}
	}
}

// TestArgumentsInOnePlace: the call that the application gets has its arguments, in whichever place they came.
func TestArgumentsInOnePlace(t *testing.T) {
	h := open(t, plan{}, func(w http.ResponseWriter, streamed bool) {
		const head = `{"id":"resp_1","object":"response","created_at":1,"model":"m","status":`
		item := func(more string) string {
			return `{"id":"fc_1","type":"function_call","call_id":"call_1","name":"web_search"` + more + `}`
		}
		if !streamed {
			_, _ = io.WriteString(w, head+`"completed","output":[`+item(`,"arguments":{"query":"go"}`)+`]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range []string{
			`{"type":"response.created","response":` + head + `"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","output_index":0,"item":` + item(``) + `}`,
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{\"query\":\"go\"}"}`,
			`{"type":"response.output_item.done","output_index":0,"item":` + item(``) + `}`,
			`{"type":"response.completed","response":` + head + `"completed","output":[]}}`,
		} {
			_, _ = io.WriteString(w, "data: "+e+"\n\n")
		}
	})
	for how, body := range map[string]string{"whole": asks(tools("web_search")), "streamed": asksStream(tools("web_search"))} {
		w := h.post(body)
		if r := reads(t, w); w.Code != 200 || r.calls() != `function_call call_1 web_search{"query":"go"}` {
			t.Errorf("%s: %d %s", how, w.Code, w.Body)
		}
	}
}

// TestSameIDs: items of later turns have ids of their own in the stream (RS-61).
func TestSameIDs(t *testing.T) {
	h := open(t, plan{rules: orchestrate}, says(reasoning, function("call_1", "web_search", `{"query":"a"}`)), says(reasoning, message("a")))
	if r := reads(t, h.post(asksStream())); r.Status != "completed" || len(r.Output) != 3 {
		t.Errorf("%+v", r)
	}
}

// TestApprovals: the provider's MCP calls are judged by the policy, and answered (RS-37).
func TestApprovals(t *testing.T) {
	config := withTools(t, `
  - {name: docs.read, description: x, run: {type: client}, input_schema: {type: object, required: [path], properties: {path: {type: string}}}}
`)
	request := func(id, arguments string) string {
		return `{"id":"` + id + `","type":"mcp_approval_request","server_label":"docs","name":"read","arguments":` + quoted(arguments) + `}`
	}
	allowed := func(r *upstream.Rules) { r.Responses.MCPServers = []string{"docs"} }
	const mcp = `"tools":[{"type":"mcp","server_label":"docs","server_url":"https://docs.example.com","require_approval":"never"}]`
	for how, body := range map[string]string{"whole": asks(mcp), "streamed": asksStream(mcp)} {
		h := open(t, plan{config: config, rules: allowed}, says(request("mcpr_1", `{"path":"a"}`), request("mcpr_2", `{"path":7}`)), says(message("Read.")))
		w := h.post(body)
		if r := reads(t, w); r.Status != "completed" || r.text() != "Read." || len(r.Output) != 1 {
			t.Errorf("%s: %d %s", how, w.Code, w.Body)
		}
		if first := string(h.model.asked(t, 0)["tools"]); !strings.Contains(first, `"require_approval":"always"`) {
			t.Errorf("the model got %s", first)
		}
		var input []struct {
			Type, Reason string
			ID           string `json:"approval_request_id"`
			Approve      bool
		}
		if err := json.Unmarshal(h.model.asked(t, 1)["input"], &input); err != nil || len(input) != 5 {
			t.Fatalf("%v %s", err, h.model.asked(t, 1)["input"])
		}
		if yes, no := input[3], input[4]; !yes.Approve || yes.ID != "mcpr_1" || no.Approve || no.ID != "mcpr_2" || !strings.Contains(no.Reason, "wrong_type") {
			t.Errorf("%s: %+v %+v", how, yes, no)
		}
	}
	for _, beside := range []string{message(""), message(" "), `{"id":"msg_0","type":"message","status":"completed","role":"assistant","content":[]}`} {
		for how, body := range map[string]string{"whole": asks(mcp), "streamed": asksStream(mcp)} {
			h := open(t, plan{config: config, rules: all(allowed, noRepairs)}, says(beside, request("mcpr_1", `{"path":"a"}`)), says(message("Read.")))
			if w := h.post(body); reads(t, w).Status != "completed" || h.model.times() != 2 {
				t.Errorf("beside %s, %s: %s", beside, how, w.Body)
			}
		}
	}
	h := open(t, plan{config: config, rules: allowed}, says(request("mcpr_1", `{"path":"a"}`)))
	if r := reads(t, h.post(asks(mcp))); r.Error == nil || r.Error.Code != "bound_reached" || h.model.times() != 17 {
		t.Errorf("%+v, asked %d times", r, h.model.times())
	}
}

// TestRemoteCalls: a call at the provider passes if it is one that was approved, once, under its id, with
// its server, name and arguments, and its events with it. Any other fails the answer and is recorded.
func TestRemoteCalls(t *testing.T) {
	config := withTools(t, `
  - {name: docs.read, description: x, run: {type: client}, input_schema: {type: object, required: [path], properties: {path: {type: string}}}}
`)
	const (
		asked  = `{"id":"mcpr_1","type":"mcp_approval_request","server_label":"docs","name":"read","arguments":"{\"path\":\"a\"}"}`
		called = `{"id":"mcp_1","type":"mcp_call","status":"completed","approval_request_id":"mcpr_1","server_label":"docs","name":"read","arguments":"{\"path\":\"a\"}","error":null,"output":"SECRET"}`
		listed = `{"id":"mcpl_1","type":"mcp_list_tools","server_label":"docs","tools":[{"name":"read"}]}`
		own    = `"tools":[{"type":"mcp","server_label":"docs","server_url":"https://docs.example.com"}]`
	)
	for name, c := range map[string]struct {
		items []string
		more  string
		pass  bool
	}{
		"as approved":            {[]string{listed, called}, own, true},
		"again":                  {[]string{called, strings.Replace(called, "mcp_1", "mcp_2", 1)}, own, false},
		"other arguments":        {[]string{strings.Replace(called, `\"a\"`, `\"b\"`, 1)}, own, false},
		"no arguments":           {[]string{strings.Replace(called, `"{\"path\":\"a\"}"`, `""`, 1)}, own, false},
		"another name":           {[]string{strings.Replace(called, `"read"`, `"wipe"`, 1)}, own, false},
		"no name":                {[]string{strings.Replace(called, `"name":"read",`, ``, 1)}, own, false},
		"another server":         {[]string{strings.Replace(called, `"docs"`, `"other"`, 1)}, own, false},
		"another approval":       {[]string{strings.Replace(called, `"mcpr_1"`, `"mcpr_2"`, 1)}, own, false},
		"no approval":            {[]string{strings.Replace(called, `"mcpr_1"`, `null`, 1)}, own, false},
		"a list of another":      {[]string{strings.Replace(listed, `"docs"`, `"other"`, 1)}, own, false},
		"a list of nobody asked": {[]string{listed}, "", false},
	} {
		for how, body := range map[string]string{"whole": asks(), "streamed": asksStream()} {
			if c.more != "" {
				body = map[string]string{"whole": asks(c.more), "streamed": asksStream(c.more)}[how]
			}
			h := open(t, plan{config: config, rules: all(noRepairs, func(r *upstream.Rules) { r.Responses.MCPServers = []string{"docs", "more"} })},
				says(asked), says(append(c.items, message("Read."))...))
			w := h.post(body)
			r := reads(t, w)
			if c.pass {
				if r.Status != "completed" || len(r.Output) != 3 || !strings.Contains(w.Body.String(), "SECRET") {
					t.Errorf("%s, %s: %d %s", name, how, w.Code, w.Body)
				}
				continue
			}
			if r.Error == nil || r.Error.Code != "permission_denied" || strings.Contains(w.Body.String(), "SECRET") && (name != "again" || strings.Contains(w.Body.String(), "mcp_2")) || h.model.times() != 2 {
				t.Errorf("%s, %s: %d %s", name, how, w.Code, w.Body)
			}
			if lines := strings.Join(h.settled(t), "\n"); !strings.Contains(lines, "permission_denied") {
				t.Errorf("%s, %s: recorded\n%s", name, how, lines)
			}
		}
	}
}

// TestCutHostedItems: an item of the provider that a stream cuts off is checked as a whole one is.
func TestCutHostedItems(t *testing.T) {
	const mcp = `"tools":[{"type":"mcp","server_label":"docs","server_url":"https://docs.example.com"}]`
	rules := all(noRepairs, func(r *upstream.Rules) { r.Responses.MCPServers = []string{"docs"} })
	for name, c := range map[string]struct {
		item string
		pass bool
	}{
		"a call that was not approved": {`{"id":"mcp_1","type":"mcp_call","approval_request_id":null,"server_label":"docs","name":"read","arguments":"SECRET"}`, false},
		"a list of another server":     {`{"id":"mcpl_1","type":"mcp_list_tools","server_label":"SECRET","tools":[]}`, false},
		"a search that no key allows":  {`{"id":"ts_1","type":"tool_search_call","call_id":null,"execution":"server","arguments":{"a":"SECRET"}}`, false},
		"a list":                       {`{"id":"mcpl_1","type":"mcp_list_tools","server_label":"docs","tools":[]}`, true},
	} {
		h := open(t, plan{rules: rules}, func(w http.ResponseWriter, _ bool) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"type":"response.created","response":{"id":"resp_1","status":"in_progress","model":"model-1","output":[]}}`+"\n\n")
			fmt.Fprint(w, `data: {"type":"response.output_item.added","output_index":0,"item":`+c.item+"}\n\n")
			fmt.Fprint(w, `data: {"type":"response.incomplete","response":{"id":"resp_1","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"model":"model-1","output":[]}}`+"\n\n")
		})
		w := h.post(asksStream(mcp))
		if c.pass != (w.Code == http.StatusOK) || !c.pass && (w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "SECRET")) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestMessagesOfNothing: a message without a text stays in its place: an item of reasoning goes back to a provider with
// the item behind it alone.
func TestMessagesOfNothing(t *testing.T) {
	const (
		nothing = `{"id":"msg_0","type":"message","status":"completed","role":"assistant","content":[]}`
		refuses = `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":""},{"type":"refusal","refusal":"No."},{"type":"output_text","annotations":[],"logprobs":[],"text":" "}]}`
	)
	for how, body := range map[string]string{"whole": asks(tools("web_search")), "streamed": asksStream(tools("web_search"))} {
		for _, buffer := range []upstream.Buffer{upstream.Whole, upstream.Parser} {
			for _, items := range [][]string{{reasoning, nothing, message("Read.")}, {reasoning, nothing, function("call_1", "web_search", `{"query":"go"}`)}, {reasoning, refuses, nothing}} {
				h := open(t, plan{rules: all(noRepairs, func(r *upstream.Rules) { r.StreamBuffer = buffer })}, says(items...))
				w := h.post(body)
				if r := reads(t, w); r.Status != "completed" || len(r.Output) != 3 {
					t.Errorf("%s, %s: %s", how, buffer, w.Body)
				}
			}
		}
	}
}

// TestItemsOfRefusedTurns: what was begun of a turn before it was refused, or of a blank text beside a call that ran,
// ends, and the next turn follows.
func TestItemsOfRefusedTurns(t *testing.T) {
	const (
		thought  = `{"id":"rs_1","type":"reasoning","summary":[]}`
		searched = `{"id":"ws_1","type":"web_search_call","status":"in_progress"}`
		opened   = `{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}`
		end      = `{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"model-1","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}`
	)
	event := func(kind string, i int, item string) string {
		return fmt.Sprintf(`{"type":"response.output_item.%s","output_index":%d,"item":%s}`, kind, i, item)
	}
	delta := func(text string) string {
		return `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":` + quoted(text) + `}`
	}
	bad, good := function("call_1", "web_search", `{"x":1}`), function("call_1", "web_search", `{"query":"go"}`)
	search := event("added", 2, strings.Replace(searched, "ws_1", "ws_2", 1))
	for name, c := range map[string][]string{
		"a thought":    {event("added", 0, thought), event("added", 1, bad), event("done", 1, bad), event("done", 0, thought)},
		"a search":     {event("added", 0, searched), event("added", 1, bad), event("done", 1, bad), event("done", 0, searched)},
		"a message":    {event("added", 0, opened), event("added", 1, bad), event("done", 1, bad), search, event("done", 2, strings.Replace(searched, "ws_1", "ws_2", 1)), delta("hi"), event("done", 0, strings.Replace(message("hi"), "msg_2", "msg_1", 1))},
		"a blank text": {event("added", 0, opened), delta(" "), event("added", 1, good), event("done", 1, good), event("done", 0, message(" "))},
	} {
		for mode, rules := range map[string]func(*upstream.Rules){"run": orchestrate, "enforced": func(*upstream.Rules) {}, "refusals": func(r *upstream.Rules) { r.Refusals, r.MaxRepairs = upstream.AsMessage, 0 }} {
			h := open(t, plan{rules: all(rules, func(r *upstream.Rules) { r.Responses.HostedTools = []string{"web_search"} })}, sends(slices.Concat([]string{events("completed")[0]}, c, []string{end})...), says(message("Fine.")))
			w := h.post(asksStream(`"tools":[{"type":"function","name":"web_search","parameters":{}},{"type":"web_search"}]`))
			if r := reads(t, w); r.Status != "completed" || len(r.Output) < 1 { // reads compares the events
				t.Errorf("%s, %s: %s", name, mode, w.Body)
			}
		}
	}
}

// TestStored: responses that the provider keeps are not read here: they were never judged
// (RS-71). Neither is there a WebSocket (RS-73).
func TestStored(t *testing.T) {
	h := open(t, plan{rules: permissive}, says(message("ok")))
	for _, request := range []string{
		"GET /v1/responses/resp_1", "DELETE /v1/responses/resp_1", "POST /v1/responses/resp_1/cancel", "GET /v1/responses/resp_1/input_items", "POST /v1/responses/compact",
	} {
		method, path, _ := strings.Cut(request, " ")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != http.StatusNotFound || h.model.times() != 0 {
			t.Errorf("%s: %d %s", request, w.Code, w.Body)
		}
	}
}

// TestWholeItems: some servers send each item in one event, its end. They are judged and passed on as
// others are.
func TestWholeItems(t *testing.T) {
	call := function("call_1", "web_search", `{"query":"go"}`)
	whole := func(items ...string) func(http.ResponseWriter, bool) {
		return func(w http.ResponseWriter, _ bool) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, `data: {"type":"response.created","response":{"id":"resp_1","object":"response","created_at":7,"status":"in_progress","model":"model-1","output":[]}}`+"\n\n")
			for i, item := range items {
				fmt.Fprintf(w, "data: {\"type\":\"response.output_item.done\",\"output_index\":%d,\"item\":%s}\n\n", i, item)
			}
			fmt.Fprintf(w, "data: {\"type\":\"response.completed\",\"response\":%s}\n\n", `{"id":"resp_1","object":"response","created_at":7,"status":"completed","model":"model-1","output":[`+strings.Join(items, ",")+`]}`)
		}
	}
	h := open(t, plan{rules: noRepairs}, whole(message("I look."), call), whole(message("I look."), strings.Replace(call, `go`, `go\",\"x\":\"SECRET`, 1)))
	if r := reads(t, h.post(asksStream(tools("web_search")))); r.Status != "completed" || r.text() != "I look." || r.calls() == "" {
		t.Errorf("%+v", r)
	}
	w := h.post(asksStream(tools("web_search")))
	if r := reads(t, w); r.Error == nil || r.Error.Code != "unexpected_argument" || strings.Contains(w.Body.String(), "SECRET") {
		t.Errorf("a call that is refused: %s", w.Body)
	}
}

// TestPartsOfMessages: a message is one item with all of its parts, also where the event that ends it brings some of them, and
// where it has none.
func TestPartsOfMessages(t *testing.T) {
	const (
		empty = `{"id":"msg_e","type":"message","status":"completed","role":"assistant","content":[]}`
		text  = `{"type":"output_text","annotations":[],"logprobs":[],"text":"Hi."}`
		two   = `{"id":"msg_2","type":"message","status":"completed","role":"assistant","content":[` + text + `,` + text + `]}`
	)
	late := slices.DeleteFunc(events("completed", two), func(e string) bool { return strings.Contains(e, `"content_index":1`) })
	for name, c := range map[string]struct {
		reply answer
		texts []string
	}{
		"none":                  {says(empty, message("Hi.")), []string{"", "Hi."}},
		"none, cut off":         {sends(events("incomplete", empty)...), []string{""}},
		"none beside a call":    {says(empty, function("call_1", "web_search", `{"query":"go"}`)), []string{"", ""}},
		"none beside a thought": {says(empty, reasoning), []string{"", ""}},
		"one with the end":      {sends(late...), []string{"Hi.Hi."}},
	} {
		h := open(t, plan{}, c.reply)
		bodies := []string{asksStream(tools("web_search"))}
		if name != "one with the end" && name != "none, cut off" {
			bodies = append(bodies, asks(tools("web_search")))
		}
		for _, body := range bodies {
			w := h.post(body)
			r := reads(t, w)
			var texts []string
			for _, it := range r.Output {
				texts = append(texts, response{Output: []item{it}}.text())
			}
			if w.Code != 200 || !slices.Equal(texts, c.texts) {
				t.Errorf("%s: %d %q in %s", name, w.Code, texts, w.Body)
			}
		}
	}
}

// TestBegunInARefusedTurn: an item that was begun in a turn that goes back to the model is ended before the next one.
func TestBegunInARefusedTurn(t *testing.T) {
	list := events("completed", reasoning, function("call_1", "nothing", `{}`))
	at := slices.IndexFunc(list, func(e string) bool { return strings.Contains(e, "output_item.done") })
	list = slices.Insert(slices.Delete(slices.Clone(list), at, at+1), len(list)-2, list[at])
	h := open(t, plan{}, sends(renumber(list)...), says(message("Hi.")))
	w := h.post(asksStream(tools("web_search")))
	if r := reads(t, w); w.Code != 200 || h.model.times() != 2 || len(r.Output) != 2 || r.Output[0].Type != "reasoning" || r.text() != "Hi." {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestUpgrade: a WebSocket is refused by the status at which a client takes HTTP at once, with a
// credential or in front of it; what is no WebSocket is not.
func TestUpgrade(t *testing.T) {
	h := open(t, plan{}, says(message("ok")))
	for name, c := range map[string]struct {
		method, body, upgrade string
		status                int
	}{
		"a handshake":           {http.MethodGet, "", "websocket", 426},
		"in other letters":      {http.MethodGet, "", "WebSocket", 426},
		"of a request":          {http.MethodPost, asks(), "websocket", 426},
		"of a request of none":  {http.MethodPost, "", "websocket", 426},
		"another protocol":      {http.MethodGet, "", "h2c", 405},
		"no upgrade":            {http.MethodGet, "", "", 405},
		"no upgrade, a request": {http.MethodPost, asks(), "", 200},
	} {
		r := httptest.NewRequest(c.method, "/v1/responses", strings.NewReader(c.body))
		if c.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		if c.upgrade != "" {
			r.Header.Set("Connection", "Upgrade")
			r.Header.Set("Upgrade", c.upgrade)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || c.status == 426 && (w.Header().Get("Upgrade") == "" || reads(t, w).Error.Code != "method_not_allowed") {
			t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
		}
	}
	if h.model.times() != 1 {
		t.Errorf("the model was asked %d times", h.model.times())
	}
}
