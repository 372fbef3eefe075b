package mcp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// asking is a registry of tools whose server may ask, and of one whose may not.
var asking = map[string]string{
	"tools/core.yaml": `tools:
  - {name: book, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: mcp, url: "http://127.0.0.1:1/mcp", tool: book, input_requests: [form, url, sampling, roots]}}
  - {name: other, input_schema: {type: object, properties: {n: {type: integer}}}, run: {type: mcp, url: "http://127.0.0.1:1/mcp", tool: other, input_requests: [form]}}
  - {name: mute, input_schema: {type: object}, run: {type: mcp, url: "http://127.0.0.1:1/mcp", tool: mute}}
# end
`,
	"policy.csv": "p, Analyst, acme/alpha, *, , allow\np, Intern, acme/alpha, *, , allow\n# end\n",
}

// who is a question, and serverState what the tool gives to be given back.
const (
	serverState = "the state of a server"
	whoParams   = `{"message":"Who are you?","requestedSchema":{"type":"object","properties":{"zone":{"type":"string"},"name":{"type":"string","title":"Na\u200bme"}},"required":["name"]}}`
)

func who() tool.Question {
	return tool.Question{Name: "who", Kind: "form", Method: "elicitation/create", Params: json.RawMessage(whoParams)}
}

// asker is a tool that asks unless it is answered, and keeps its tasks.
type asker struct {
	questions []tool.Question
	tasks     []tool.Call
}

func (a *asker) run(t tool.Call) (tool.Result, error) {
	a.tasks = append(a.tasks, t)
	if t.Answers != nil {
		return says(`{"booked":true}`)(t)
	}
	state := serverState
	return tool.Result{InputRequired: &tool.InputRequired{Questions: a.questions, State: &state}}, refusal.New(refusal.ToolFailed, "The tool asks.")
}

// asks sends a call of 2026-07-28 by a client of these capabilities; more are
// parameters beside the name.
func (h *fixture) asks(t testing.TB, tool, capabilities, more string, headers ...string) reply {
	t.Helper()
	if more != "" {
		more = "," + more
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}%s}}`, tool, capabilities, more)
	r := h.post(t, body, append(modern("tools/call", tool), headers...)...)
	if strings.Contains(r.raw, serverState) {
		t.Errorf("what the server keeps for itself: %s", r.raw)
	}
	return r
}

// answered are the parameters of a call that answers.
func answered(state, responses string) string {
	quoted, _ := json.Marshal(state)
	return fmt.Sprintf(`"requestState":%s,"inputResponses":%s`, quoted, responses)
}

const forms = `{"elicitation":{}}`

// TestMCP20InputRequired is a call whose tool asks, and the same call with the answer.
func TestMCP20InputRequired(t *testing.T) {
	a := &asker{questions: []tool.Question{who()}}
	h := open(t, plan{files: asking, engine: a.run})
	r := h.asks(t, "book", forms, `"arguments":{"n":1}`)
	if r.status != 200 || r.Result.Type != "input_required" || r.Result.State == "" || r.Result.State != r.Result.Meta["callgate/callId"] || r.Result.State != r.header.Get("Callgate-Call-Id") || r.Result.Meta["io.modelcontextprotocol/serverInfo"] == nil {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	for _, none := range []string{"content", "isError", "structuredContent", "ttlMs", "cacheScope"} {
		if strings.Contains(r.raw, `"`+none+`"`) {
			t.Errorf("a question has the member %s: %s", none, r.raw)
		}
	}
	var requests map[string]struct {
		Method string
		Params struct {
			Message string
			Schema  json.RawMessage `json:"requestedSchema"`
		}
	}
	if err := json.Unmarshal(r.Result.Requests, &requests); err != nil {
		t.Fatal(err)
	}
	q := requests["who"]
	schema := string(q.Params.Schema)
	if len(requests) != 1 || q.Method != "elicitation/create" || q.Params.Message != "Who are you?" || !strings.Contains(schema, `"Na\\u200bme"`) || strings.Index(schema, "zone") > strings.Index(schema, `"name"`) {
		t.Errorf("%s", r.Result.Requests)
	}
	if task := a.tasks[0]; fmt.Sprint(task.QuestionKinds) != "[form]" || task.State != nil || task.Answers != nil {
		t.Errorf("the tool was given %v %v %v", task.QuestionKinds, task.State, task.Answers)
	}
	// Other answers than those to what was asked do not count, whatever they are.
	r = h.asks(t, "book", forms, `"arguments":{"n":1},`+answered(r.Result.State, `{"who":{"action":"accept","content":{"name":"Ann"}},"more":{"action":"steal"},"":{}}`))
	if r.status != 200 || r.Result.Type != "complete" || r.Result.IsError || string(r.Result.Structured) != `{"booked":true}` {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	task := a.tasks[1]
	if len(a.tasks) != 2 || task.State == nil || *task.State != serverState || len(task.Answers) != 1 || string(task.Answers["who"]) != `{"action":"accept","content":{"name":"Ann"}}` {
		t.Errorf("%d runs; the tool was given %v %s", len(a.tasks), task.State, task.Answers)
	}
	if got := fmt.Sprint(h.ledger.lines()); got != "[decision call tool_call outcome call tool_call error tool_failed decision call tool_call outcome call tool_call result]" {
		t.Errorf("%s", got)
	}
}

// TestMCP20Capabilities: a tool may ask what it may ask, and its client has declared
// in this request; a client is shown nothing else.
func TestMCP20Capabilities(t *testing.T) {
	for capabilities, want := range map[string]string{
		`{}`:                          "[]",
		`{"elicitation":{}}`:          "[form]",
		`{"elicitation":{"form":{}}}`: "[form]",
		`{"elicitation":{"url":{}}}`:  "[url]",
		`{"elicitation":{"form":{"applyDefaults":true},"url":{}}}`:             "[form url]",
		`{"elicitation":null,"sampling":null,"roots":null}`:                    "[]",
		`{"elicitation":{"voice":{}}}`:                                         "[]",
		`{"sampling":{}}`:                                                      "[sampling]",
		`{"roots":{"listChanged":true}}`:                                       "[roots]",
		`{"sampling":{"tools":{}},"elicitation":{},"roots":{},"other":1}`:      "[form sampling roots]",
		`{"experimental":{},"extensions":{"a/b":{}},"Sampling":{},"ROOTS":{}}`: "[]",
	} {
		a := &asker{questions: []tool.Question{who()}}
		h := open(t, plan{files: asking, engine: a.run})
		r := h.asks(t, "book", capabilities, "")
		if got := fmt.Sprint(a.tasks[0].QuestionKinds); got != want {
			t.Errorf("%s: the tool may ask %s", capabilities, got)
		}
		// It asks all the same.
		switch {
		case strings.Contains(want, "form"):
			if r.Result.Type != "input_required" {
				t.Errorf("%s: %s", capabilities, r.raw)
			}
		case r.Result.Type != "complete" || r.code() != "tool_failed" || strings.Contains(r.raw, "Who are you"):
			t.Errorf("%s: %s", capabilities, r.raw)
		}
	}
	for _, capabilities := range []string{
		`{"elicitation":true}`, `{"elicitation":[]}`, `{"elicitation":"form"}`, `{"elicitation":{"form":true}}`, `{"elicitation":{"url":null}}`,
		`{"sampling":true}`, `{"roots":[]}`, `{"roots":1}`,
	} {
		h := open(t, plan{files: asking, engine: (&asker{}).run})
		if r := h.asks(t, "book", capabilities, ""); r.status != 400 || r.Error.Code != -32602 || len(h.ledger.lines()) != 0 {
			t.Errorf("%s: %d %s", capabilities, r.status, r.raw)
		}
	}
	for _, name := range []string{"mute", "other"} {
		a := &asker{questions: []tool.Question{{Name: "r", Kind: "roots", Method: "roots/list", Params: json.RawMessage(`{}`)}}}
		h := open(t, plan{files: asking, engine: a.run})
		if r := h.asks(t, name, `{"elicitation":{},"roots":{}}`, ""); r.Result.Type != "complete" || r.code() != "tool_failed" {
			t.Errorf("%s: %s", name, r.raw)
		}
		// Nobody of an older revision is asked anything.
		if r := h.old(t, "tools/call", `"name":"book","_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{},"elicitation":{}}}`); r.code() != "tool_failed" || len(a.tasks[1].QuestionKinds) != 0 {
			t.Errorf("%s", r.raw)
		}
	}
	// An answer that was kept is shown to nobody who has not declared so.
	h := open(t, plan{files: asking, engine: (&asker{questions: []tool.Question{who()}}).run})
	first := h.asks(t, "book", forms, "", "Idempotency-Key", "k")
	second := h.asks(t, "book", forms, "", "Idempotency-Key", "k")
	if first.Result.State == "" || second.raw != first.raw {
		t.Errorf("%s\n%s", first.raw, second.raw)
	}
	if r := h.asks(t, "book", `{}`, "", "Idempotency-Key", "k"); r.Result.Type != "complete" || r.code() != "tool_failed" || strings.Contains(r.raw, "Who are you") {
		t.Errorf("%s", r.raw)
	}
	if r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book"}}`, "Idempotency-Key", "k"); r.code() != "tool_failed" || strings.Contains(r.raw, "Who are you") {
		t.Errorf("%s", r.raw)
	}
}

// refusedAt tells where a call was refused, for what its client says to questions.
func (r reply) refusedAt(t *testing.T) string {
	t.Helper()
	var data struct {
		Code       string
		Message    string
		Violations []struct{ Path string }
	}
	if err := json.Unmarshal(r.Error.Data, &data); err != nil || r.status != 200 || r.Error.Code != -32602 || r.Error.Message != data.Message {
		t.Fatalf("%d %s", r.status, r.raw)
	}
	paths := []string{data.Code}
	for _, v := range data.Violations {
		paths = append(paths, v.Path)
	}
	return strings.Join(paths, " ")
}

// TestMCP19State: a state is worth something to who was given it, for the same call,
// once.
func TestMCP19State(t *testing.T) {
	a := &asker{questions: []tool.Question{who()}}
	h := open(t, plan{files: asking, engine: a.run, state: func(s *gateway.Config, _ *calls.Deps) { s.Identity = keys{} }})
	both := []string{"Authorization", "Bearer both", "Callgate-Agent", "Analyst"}
	const ann = `{"who":{"action":"accept","content":{"name":"Ann"}}}`
	state := h.asks(t, "book", forms, `"arguments":{"n":1}`, both...).Result.State
	same := `"arguments":{"n":1},`
	for name, c := range map[string]struct {
		tool, params string
		headers      []string
	}{
		"tampered":          {"book", same + answered(state+"-TAMPERED", ann), both},
		"another":           {"book", same + answered("call_00000000000000000000000000", ann), both},
		"no id":             {"book", same + answered("é \u0000", ann), both},
		"as long as may be": {"book", same + answered(strings.Repeat("s", 256), ann), both},
		"other arguments":   {"book", `"arguments":{"n":2},` + answered(state, ann), both},
		"no arguments":      {"book", answered(state, ann), both},
		"another tool":      {"other", same + answered(state, ann), both},
		"another agent":     {"book", same + answered(state, ann), []string{"Authorization", "Bearer both", "Callgate-Agent", "Intern"}},
		"another principal": {"book", same + answered(state, ann), []string{"Authorization", "Bearer one"}},
	} {
		if got := h.asks(t, c.tool, forms, c.params, c.headers...).refusedAt(t); got != "invalid_value /requestState" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if len(a.tasks) != 1 {
		t.Fatalf("%d runs", len(a.tasks))
	}
	first := h.asks(t, "book", forms, same+answered(state, ann), both...)
	second := h.asks(t, "book", forms, same+answered(state, ann), both...)
	if first.Result.IsError || first.Result.Type != "complete" || second.raw != first.raw || len(a.tasks) != 2 {
		t.Errorf("%d runs:\n%s\n%s", len(a.tasks), first.raw, second.raw)
	}
	if r := h.asks(t, "book", forms, same+answered(state, strings.Replace(ann, "Ann", "Eve", 1)), both...); r.code() != "idempotency_conflict" || len(a.tasks) != 2 {
		t.Errorf("%d runs: %s", len(a.tasks), r.raw)
	}
}

// TestAnswers: what is no answer is refused, with its place; what is missing is asked
// for again, with the same state.
func TestAnswers(t *testing.T) {
	a := &asker{questions: []tool.Question{who(), {Name: "a/b", Kind: "sampling", Method: "sampling/createMessage", Params: json.RawMessage(`{"maxTokens":10,"messages":[{"role":"user","content":{"type":"text","text":"Hi"}}]}`)}}}
	h := open(t, plan{files: asking, engine: a.run})
	const client = `{"elicitation":{},"sampling":{}}`
	first := h.asks(t, "book", client, "")
	state := first.Result.State
	const said = `"a/b":{"role":"assistant","content":{"type":"text","text":"Hello"},"model":"m"}`
	for responses, want := range map[string]string{
		`{"who":{"action":"accept","content":{"name":1}},` + said + `}`:       "wrong_type /inputResponses/who/content/name",
		`{"who":{"action":"steal"},` + said + `}`:                             "invalid_value /inputResponses/who/action",
		`{"who":{"action":"decline"},"a/b":{"role":"assistant","model":"m"}}`: "missing_argument /inputResponses/a~1b/content",
	} {
		if got := h.asks(t, "book", client, answered(state, responses)).refusedAt(t); got != want {
			t.Errorf("%s: %s", responses, got)
		}
	}
	for _, responses := range []string{`{}`, `{"wrong":{}}`, `{` + said + `}`} {
		r := h.asks(t, "book", client, answered(state, responses))
		if r.Result.Type != "input_required" || r.Result.State != state || string(r.Result.Requests) != string(first.Result.Requests) || r.header.Get("Callgate-Call-Id") == state {
			t.Errorf("%s: %s", responses, r.raw)
		}
	}
	if r := h.asks(t, "book", client, answered(state, `{"who":{"action":"decline"},`+said+`}`)); r.Result.IsError || r.Result.Type != "complete" {
		t.Errorf("%s", r.raw)
	}
	if len(a.tasks) != 2 {
		t.Errorf("%d runs", len(a.tasks))
	}
}

// TestAnswersBeforeQuestions: answers without a state are to what the tool asks then.
func TestAnswersBeforeQuestions(t *testing.T) {
	for responses, want := range map[string]string{
		`{"who":{"action":"accept","content":{"name":"Ann"}},"more":{}}`: "complete",
		`{"who":{"action":"accept","content":{"name":1}}}`:               "input_required",
		`{"wrong":{"action":"accept"}}`:                                  "input_required",
		`{}`:                                                             "input_required",
	} {
		a := &asker{questions: []tool.Question{who()}}
		r := open(t, plan{files: asking, engine: a.run}).asks(t, "book", forms, `"inputResponses":`+responses)
		if runs := len(a.tasks); r.Result.Type != want || r.Result.IsError || (runs == 2) != (want == "complete") {
			t.Errorf("%s: %d runs, %s", responses, runs, r.raw)
		}
	}
}

// TestAnswersThatAreNone: what no call can have is refused before it is one.
func TestAnswersThatAreNone(t *testing.T) {
	var runs atomic.Int32
	h := open(t, plan{files: asking, engine: func(task tool.Call) (tool.Result, error) {
		runs.Add(1)
		return says(`{}`)(task)
	}})
	entries := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"a%d":{}`, i))
		}
		return `{` + strings.Join(list, ",") + `}`
	}
	long := func(n int) string { return `{"a":{"t":"` + strings.Repeat("x", n-len(`{"a":{"t":""}}`)) + `"}}` }
	for params, want := range map[string]string{
		`"requestState":""`: "/requestState",
		`"requestState":1`:  "/requestState",
		`"requestState":"` + strings.Repeat("s", 257) + `"`: "/requestState",
		`"inputResponses":[]`:                               "/inputResponses",
		`"inputResponses":"x"`:                              "/inputResponses",
		`"inputResponses":{"b":{},"a/~":12345,"c":null}`:    "/inputResponses/a~1~0 /inputResponses/c",
		`"inputResponses":` + entries(65):                   "/inputResponses",
		`"inputResponses":` + long(256<<10+1):               "/inputResponses",
	} {
		r := h.asks(t, "book", forms, params)
		var data struct{ Violations []struct{ Path string } }
		if err := json.Unmarshal(r.Error.Data, &data); err != nil {
			t.Fatalf("%.300s", r.raw)
		}
		var paths []string
		for _, v := range data.Violations {
			paths = append(paths, v.Path)
		}
		if got := strings.Join(paths, " "); r.status != 400 || r.Error.Code != -32602 || r.code() != "bad_request" || got != want {
			t.Errorf("%.60s: %d %s: %.300s", params, r.status, got, r.raw)
		}
	}
	for _, twice := range []string{`"inputResponses":{"a":{},"a":{}}`, `"inputResponses":{"a":{"b":1,"b":2}}`, `"inputResponses":{},"inputResponses":{}`, `"inputResponses":{"a":{"b":"\ud800"}}`, `"inputResponses":{"a":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 70) + `}`} {
		if r := h.asks(t, "book", forms, twice); r.status != 400 || r.Error.Code != -32700 {
			t.Errorf("%s: %d %s", twice, r.status, r.raw)
		}
	}
	if runs.Load() != 0 || len(h.ledger.lines()) != 0 {
		t.Errorf("%d runs, %q", runs.Load(), h.ledger.lines())
	}
	for _, params := range []string{`"inputResponses":` + entries(64), `"inputResponses":` + long(256<<10)} {
		if r := h.asks(t, "book", forms, params); r.status != 200 || r.Result.IsError || r.Result.Type != "complete" {
			t.Errorf("%.60s: %d %.300s", params, r.status, r.raw)
		}
	}
	// Before 2026-07-28 there are no such parameters.
	for _, params := range []string{`"requestState":"s"`, `"inputResponses":{}`} {
		if r := h.old(t, "tools/call", `"name":"book",`+params); r.Error.Code != -32602 || !strings.Contains(r.Error.Message, "unknown parameter") {
			t.Errorf("%s: %s", params, r.raw)
		}
	}
}

// TestStdioInputRequired: over standard input and output it is the same.
func TestStdioInputRequired(t *testing.T) {
	a := &asker{questions: []tool.Question{who()}}
	h := open(t, plan{files: asking, engine: a.run})
	call := func(more string) reply {
		line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + forms + `}` + more + `}}`
		return repliesTo(t, h, gateway.Subject{}, line)["1"]
	}
	r := call("")
	if r.Result.Type != "input_required" {
		t.Fatalf("%s", r.raw)
	}
	if r = call("," + answered(r.Result.State, `{"who":{"action":"cancel"}}`)); r.Result.Type != "complete" || string(a.tasks[1].Answers["who"]) != `{"action":"cancel"}` {
		t.Errorf("%s", r.raw)
	}
}
