package mcp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

func names(list []listed) []string {
	out := []string{}
	for _, l := range list {
		out = append(out, l.Name)
	}
	return out
}

// TestMCP08List: each agent is shown what it may use, under wire names and with closed
// schemas.
func TestMCP08List(t *testing.T) {
	h := open(t, plan{})
	for agent, want := range map[string]string{
		"Analyst": "data_vector_search files_read notes_label payments_refund time_now web_search",
		"Intern":  "data_vector_search files_read notes_label time_now web_search",
	} {
		r := h.ask(t, "tools/list", "", "Callgate-Agent", agent)
		if got := strings.Join(names(r.Result.Tools), " "); got != want || r.Result.Cursor != "" {
			t.Errorf("%s: %s", agent, got)
		}
		for _, l := range r.Result.Tools {
			var schema map[string]any
			if err := json.Unmarshal(l.InputSchema, &schema); err != nil || schema["type"] != "object" || schema["additionalProperties"] != false {
				t.Errorf("%s: %s", l.Name, l.InputSchema)
			}
			if strings.Contains(string(l.InputSchema), "x-boundary") {
				t.Errorf("%s shows where its arguments must stay: %s", l.Name, l.InputSchema)
			}
		}
	}
	r := h.ask(t, "tools/list", "")
	hints := map[string]map[string]bool{}
	for _, l := range r.Result.Tools {
		hints[l.Name] = l.Annotations
	}
	want := map[string]map[string]bool{
		"web_search":      {"readOnlyHint": true, "idempotentHint": true, "destructiveHint": false},
		"notes_label":     {"readOnlyHint": false, "idempotentHint": true, "destructiveHint": true},
		"payments_refund": {"readOnlyHint": false, "idempotentHint": false, "destructiveHint": true},
	}
	for name, w := range want {
		if fmt.Sprint(hints[name]) != fmt.Sprint(w) {
			t.Errorf("%s: %v", name, hints[name])
		}
	}
	// An agent without permissions sees no tools.
	if r := h.ask(t, "tools/list", "", "Callgate-Agent", "Intern", "Callgate-Project", "beta"); r.status != 200 || len(r.Result.Tools) == 0 && !strings.Contains(r.raw, `"tools":[]`) {
		t.Errorf("%s", r.raw)
	}
}

// many is a registry of n tools, in no order.
func many(n int) string {
	var b strings.Builder
	b.WriteString("tools:\n")
	for i := range n {
		fmt.Fprintf(&b, "  - {name: t%03d, input_schema: {type: object}, run: {type: demo}}\n", (i*7)%n)
	}
	return b.String() + "# end\n"
}

func TestMCP09PagesAndCursors(t *testing.T) {
	allow := "p, Analyst, acme/alpha, *, , allow\np, Intern, acme/alpha, *, , allow\n# end\n"
	h := open(t, plan{files: map[string]string{"tools/core.yaml": many(250), "policy.csv": allow}})
	var got []string
	params, pages, cursors := "", 0, []string{}
	for ; pages < 10; pages++ {
		r := h.ask(t, "tools/list", params)
		got = append(got, names(r.Result.Tools)...)
		if second := h.ask(t, "tools/list", params); second.raw != r.raw {
			t.Errorf("asked twice, it differs:\n%s\n%s", r.raw, second.raw)
		}
		if r.Result.Cursor == "" {
			break
		}
		cursors = append(cursors, r.Result.Cursor)
		params = fmt.Sprintf(`"cursor":%q`, r.Result.Cursor)
	}
	if pages != 2 || len(got) != 250 || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 250 {
		t.Fatalf("%d pages, %d tools", pages+1, len(got))
	}
	good := cursors[0]
	for _, cursor := range []string{`""`, `"x"`, `"` + good[1:] + `"`, `"` + good + `A"`, `"` + good + `="`, `"t099"`, `1`, `[]`, `"` + strings.Repeat("A", 4096) + `"`} {
		if r := h.ask(t, "tools/list", `"cursor":`+cursor); r.Error.Code != -32602 || r.status != 200 {
			t.Errorf("%s: %d %s", cursor, r.status, r.raw)
		}
	}
	// One that another agent was given is not this one's.
	if r := h.ask(t, "tools/list", fmt.Sprintf(`"cursor":%q`, good), "Callgate-Agent", "Intern"); r.Error.Code != -32602 {
		t.Errorf("%s", r.raw)
	}
	for _, method := range []string{"prompts/list", "resources/list", "resources/templates/list"} {
		if r := h.ask(t, method, fmt.Sprintf(`"cursor":%q`, good)); r.Error.Code != -32602 {
			t.Errorf("%s: %s", method, r.raw)
		}
	}
	if r := h.ask(t, "tools/list", `"limit":5`); r.Error.Code != -32602 || r.status != 400 {
		t.Errorf("%s", r.raw)
	}
}

// TestMCP11UnknownTool: a name that stands for nothing is a fault of the protocol; it
// names what this agent may use and is near, and is written down.
func TestMCP11UnknownTool(t *testing.T) {
	h := open(t, plan{})
	for name, near := range map[string]string{"web_serch": "web_search", "Web.Search": "web_search", "web.search": "web_search", "": "", "nothing.like.it": "", "payments_refund\u0000": "payments_refund"} {
		r := h.call(t, name, `{}`)
		if strings.Contains(name, "\x00") {
			// No header holds it as it is.
			r = h.old(t, "tools/call", `"name":"payments_refund\u0000"`)
		}
		var data struct {
			Code string
			Near []string `json:"did_you_mean"`
		}
		_ = json.Unmarshal(r.Error.Data, &data)
		if r.status != 200 || r.Error.Code != -32602 || data.Code != "unknown_tool" || strings.Join(data.Near, " ") != near {
			t.Errorf("%q: %d %s", name, r.status, r.raw)
		}
	}
	for _, line := range h.ledger.lines() {
		if line != "decision call refused  unknown_tool" {
			t.Errorf("%q", line)
		}
	}
	if r := h.call(t, "payments_refun", `{}`, "Callgate-Agent", "Intern"); strings.Contains(r.raw, "did_you_mean") {
		t.Errorf("an agent is offered what it may not use: %s", r.raw)
	}
}

// TestMCP12Refusals: what is wrong with the call's frame is a fault of the protocol,
// and what is wrong with its arguments is for the model to correct. The refusal is text
// alone: clients hold structuredContent against the tool's outputSchema, which describes
// no refusal.
func TestMCP12Refusals(t *testing.T) {
	h := open(t, plan{})
	for params, want := range map[string]int{
		``: -32602, `"name":1`: -32602, `"name":null`: -32602,
		`"name":"time_now","extra":1`:               -32602,
		`"name":"time_now","inputResponses":{}`:     -32602,
		`"name":"time_now","requestState":"x"`:      -32602,
		`"name":"time_now","task":{"ttl":1}`:        -32602,
		`"name":"time_now","arguments":{},"Name":1`: -32602,
	} {
		if r := h.old(t, "tools/call", params); r.Error.Code != want {
			t.Errorf("%s: %s", params, r.raw)
		}
	}
	if lines := h.ledger.lines(); len(lines) != 0 {
		t.Errorf("%q", lines)
	}
	for _, c := range []struct{ name, arguments, code, stage string }{
		{"web_search", `{}`, "missing_argument", "schema"},
		{"web_search", `{"query":"x","extra":1}`, "unexpected_argument", "schema"},
		{"web_search", `{"query":1}`, "wrong_type", "schema"},
		{"web_search", `{"query":"x","num_results":51}`, "invalid_value", "schema"},
		{"web_search", `[]`, "wrong_type", "parse"},
		{"web_search", `null`, "missing_argument", "schema"},
		{"web_search", `"{}"`, "wrong_type", "parse"},
		{"files_delete", `{"path":"x"}`, "permission_denied", "permission"},
		{"files_delete", `{"nonsense":1}`, "permission_denied", "permission"},
		{"payments_refund", `{"payment_id":"pay_abc123","amount":101}`, "permission_denied", "permission"},
		{"files_read", `{"path":"/etc/passwd"}`, "boundary_violation", "project"},
	} {
		for _, r := range []reply{h.call(t, c.name, c.arguments), h.old(t, "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, c.name, c.arguments))} {
			var response struct {
				Error struct {
					Code, Stage, Message string
					Retryable            bool
				}
			}
			if err := json.Unmarshal([]byte(r.text(t)), &response); err != nil {
				t.Fatal(err)
			}
			if r.status != 200 || !r.Result.IsError || response.Error.Code != c.code || response.Error.Stage != c.stage || response.Error.Message == "" || strings.Contains(r.raw, "structuredContent") {
				t.Errorf("%s %s: %d %s", c.name, c.arguments, r.status, r.raw)
			}
			if r.header.Get("Callgate-Call-Id") == "" || r.Result.Meta["callgate/callId"] != r.header.Get("Callgate-Call-Id") {
				t.Errorf("%s: no call id: %v", c.name, r.header)
			}
		}
	}
	if r := h.call(t, "time_now", ""); r.Result.IsError {
		t.Errorf("a call without arguments: %s", r.raw)
	}
}

func TestMCP13ToolFails(t *testing.T) {
	h := open(t, plan{engine: func(tool.Call) (tool.Result, error) {
		return tool.Result{}, refusal.New(refusal.ToolFailed, "The file is not there.")
	}})
	if r := h.call(t, "time_now", `{}`); r.status != 200 || !r.Result.IsError || r.code() != "tool_failed" || !strings.Contains(r.text(t), "The file is not there.") || r.Result.Structured != nil {
		t.Errorf("%d %s", r.status, r.raw)
	}
	h = open(t, plan{engine: func(tool.Call) (tool.Result, error) { panic("secret of a tool") }})
	if r := h.call(t, "time_now", `{}`); r.status != 200 || !r.Result.IsError || r.code() != "internal" || strings.Contains(r.raw+h.log.String(), "secret") {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestMCP14Output: the output is an object, once as it is and once as text, and is
// what the listed schema says.
func TestMCP14Output(t *testing.T) {
	tools := `tools:
  - {name: plain, input_schema: {type: object}, run: {type: demo}}
  - {name: stated, input_schema: {type: object}, output_schema: {type: object, required: [n], properties: {n: {type: integer}}, additionalProperties: false}, run: {type: demo}}
  - {name: without, input_schema: {type: object}, output_schema: {type: object, properties: {error: false}}, run: {type: demo}}
  - {name: open, input_schema: {type: object}, output_schema: {type: object, properties: {n: {type: integer}}}, run: {type: demo}}
  - {name: patterned, input_schema: {type: object}, output_schema: {type: object, patternProperties: {^e: {type: integer}}, additionalProperties: false}, run: {type: demo}}
  - {name: referring, input_schema: {type: object}, output_schema: {$ref: "#/$defs/a", $defs: {a: {type: object}}, type: object, additionalProperties: false}, run: {type: demo}}
  - {name: listing, input_schema: {type: object}, output_schema: {type: array}, run: {type: demo}}
  - {name: erring, input_schema: {type: object}, output_schema: {type: object, properties: {error: {type: string}}}, run: {type: demo}}
# end
`
	files := map[string]string{"tools/core.yaml": tools, "policy.csv": "p, Analyst, acme/alpha, *, , allow\n# end\n"}
	for _, c := range []struct{ tool, message, want string }{
		{"plain", `{"n":9007199254740993.10}`, `{"n":9007199254740993.10}`},
		{"plain", `[1,2]`, `{"value":[1,2]}`},
		{"plain", `"text"`, `{"value":"text"}`},
		{"plain", `{"error":{"code":"permission_denied"}}`, `{"value":{"error":{"code":"permission_denied"}}}`},
		{"plain", `{"Error":1}`, `{"Error":1}`},
		{"stated", `{"n":1}`, `{"n":1}`},
		{"stated", `{"n":"x"}`, ""},
		{"listing", `[]`, `{"value":[]}`},
		// Those that are listed never stand under value.
		{"stated", `{"n":1,"error":1}`, ""},
		{"without", `{"error":1}`, ""},
		{"without", `{"n":1}`, `{"n":1}`},
		{"open", `{"error":1}`, `{"value":{"error":1}}`},
		{"patterned", `{"error":1}`, `{"value":{"error":1}}`},
	} {
		r := open(t, plan{files: files, engine: says(c.message)}).call(t, c.tool, `{}`)
		if c.want == "" {
			if !r.Result.IsError || r.code() != "invalid_result" || r.Result.Structured != nil {
				t.Errorf("%s: %s", c.message, r.raw)
			}
			continue
		}
		if r.Result.IsError || r.text(t) != c.want || string(r.Result.Structured) != c.want {
			t.Errorf("%s: %s", c.message, r.raw)
		}
	}
	lists := map[string]bool{}
	for _, l := range open(t, plan{files: files}).ask(t, "tools/list", "").Result.Tools {
		lists[l.Name] = l.OutputSchema != nil
	}
	if fmt.Sprint(lists) != "map[erring:false listing:false open:false patterned:false plain:false referring:false stated:true without:true]" {
		t.Errorf("%v", lists)
	}
}

// TestMCP16SchemaAsWritten: the words of a schema's author are kept.
func TestMCP16SchemaAsWritten(t *testing.T) {
	tools := `tools:
  - name: wordy
    input_schema:
      $schema: https://json-schema.org/draft/2020-12/schema
      type: object
      $defs: {address: {$anchor: addressDef, type: object, properties: {city: {type: string}}}}
      properties: {name: {type: string}, phone: {type: string}, address: {$ref: "#/$defs/address"}}
      allOf: [{anyOf: [{required: [phone]}, {required: [name]}]}]
      if: {properties: {name: {const: x}}, required: [name]}
      then: {required: [phone]}
      else: {required: [name]}
      additionalProperties: false
    run: {type: demo}
# end
`
	h := open(t, plan{files: map[string]string{"tools/core.yaml": tools, "policy.csv": "p, Analyst, acme/alpha, *, , allow\n# end\n"}})
	r := h.ask(t, "tools/list", "")
	for _, part := range []string{
		`"$schema":"https://json-schema.org/draft/2020-12/schema"`, `"$defs":{"address":{"$anchor":"addressDef"`, `"additionalProperties":false`,
		`"$ref":"#/$defs/address"`, `"allOf":[{"anyOf":[{"required":["phone"]},{"required":["name"]}]}]`, `"if":`, `"then":`, `"else":`,
	} {
		if !strings.Contains(r.raw, part) {
			t.Errorf("%s is not in %s", part, r.raw)
		}
	}
}

// TestGitHubTools: of all the tools of a server, an agent is shown the ten that it may
// use, and called are no others.
func TestGitHubTools(t *testing.T) {
	data, err := os.ReadFile(corpora.Path(t, "registry_github_mcp", "registry_github_mcp.json"))
	if err != nil {
		t.Fatal(err)
	}
	im, err := toolimport.MCP("github.json", data, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Names) != corpora.Count("registry_github_mcp", 117, 24) {
		t.Fatalf("%d tools were imported", len(im.Names))
	}
	slices.Sort(im.Names)
	allowed, policy := []string{}, ""
	for i := 0; len(allowed) < 10; i += len(im.Names) / 10 {
		allowed = append(allowed, im.Names[i])
		policy += fmt.Sprintf("p, Analyst, acme/alpha, %s, , allow\n", im.Names[i])
	}
	here := strings.ReplaceAll(string(im.YAML), "type: client", "type: demo") // an operator says who runs them
	h := open(t, plan{files: map[string]string{"tools/core.yaml": here, "policy.csv": policy + "# end\n"}})
	r := h.ask(t, "tools/list", "")
	if got := names(r.Result.Tools); !slices.Equal(got, allowed) || r.Result.Cursor != "" {
		t.Fatalf("%v, want %v", got, allowed)
	}
	refused := 0
	for _, name := range im.Names {
		r := h.call(t, name, `{"callgate_extra":1}`)
		switch {
		case !r.Result.IsError:
			t.Errorf("%s: %s", name, r.raw)
		case slices.Contains(allowed, name):
			if r.code() == "permission_denied" {
				t.Errorf("%s: %s", name, r.raw)
			}
		case r.code() != "permission_denied" || strings.Contains(r.raw, "callgate_extra"):
			t.Errorf("%s: %s", name, r.raw)
		default:
			refused++
		}
	}
	if refused != len(im.Names)-10 {
		t.Errorf("%d were refused", refused)
	}
}

// missingCapabilityError is what a tool's own server says when it needs something of the client.
type missingCapabilityError string

func (missingCapabilityError) Error() string                           { return "the server needs a capability" }
func (l missingCapabilityError) RequiredCapabilities() json.RawMessage { return json.RawMessage(l) }

func TestMCP04MissingCapability(t *testing.T) {
	h := open(t, plan{engine: func(tool.Call) (tool.Result, error) {
		return tool.Result{}, refusal.New(refusal.ToolFailed, "The tool's server refused the call.").WithCause(fmt.Errorf("tool: %w", missingCapabilityError(`{"sampling":{},"roots":{}}`)))
	}})
	r := h.call(t, "time_now", `{}`)
	if r.status != 400 || r.Error.Code != -32021 || string(r.Error.Data) != `{"requiredCapabilities":{"roots":{},"sampling":{}}}` {
		t.Errorf("%d %s", r.status, r.raw)
	}
	params := `"name":"time_now","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}%s}}`
	for more, want := range map[string]string{"": `{"requiredCapabilities":{"roots":{}}}`, `,"roots":{}`: ""} {
		r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+fmt.Sprintf(params, more)+`}}`, modern("tools/call", "time_now")...)
		if string(r.Error.Data) != want || want == "" && r.code() != "tool_failed" {
			t.Errorf("%s: %s", more, r.raw)
		}
	}
	if r := h.old(t, "tools/call", `"name":"time_now"`); r.code() != "tool_failed" {
		t.Errorf("%s", r.raw)
	}
}

// TestPending: a call that its tool has not answered in time is told as one of which
// the outcome is not known. So is one that cannot be told of yet, with its id.
func TestPending(t *testing.T) {
	later := plan{
		files: map[string]string{
			"tools/core.yaml": "tools:\n  - {name: later, input_schema: {type: object}, run: {type: http, url: \"http://127.0.0.1:1/\", timeout: 1ms}}\n# end\n",
			"policy.csv":      "p, Analyst, acme/alpha, *, , allow\n# end\n",
		},
		engine: func(tool.Call) (tool.Result, error) { return tool.Result{Pending: true}, nil },
	}
	r := open(t, later).call(t, "later", `{}`)
	if r.status != 200 || !r.Result.IsError || r.code() != "outcome_unknown" {
		t.Errorf("%d %s", r.status, r.raw)
	}
}

// TestKey: a call of a key that was used before is answered as it was then.
func TestKey(t *testing.T) {
	runs := 0
	h := open(t, plan{engine: func(task tool.Call) (tool.Result, error) {
		runs++
		if strings.Contains(string(task.Arguments), "fail") {
			return tool.Result{}, refusal.New(refusal.ToolFailed, "No.")
		}
		return tool.Result{Body: []byte(fmt.Sprint(runs)), JSON: true}, nil
	}})
	keyed := func(key, query string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web_search","arguments":{"query":%q},"_meta":{"callgate/idempotencyKey":%s}}}`, query, key)
	}
	first := h.post(t, keyed(`"k1"`, "x"))
	second := h.post(t, keyed(`"k1"`, "x"))
	if runs != 1 || first.text(t) != `{"value":1}` || second.raw != first.raw {
		t.Errorf("%d runs: %s %s", runs, first.raw, second.raw)
	}
	if r := h.post(t, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"web_search","arguments":{"query":"x"}}}`, "Idempotency-Key", "k1"); r.raw != first.raw {
		t.Errorf("by header: %s", r.raw)
	}
	if r := h.post(t, keyed(`"k1"`, "y")); r.code() != "idempotency_conflict" || !r.Result.IsError {
		t.Errorf("%s", r.raw)
	}
	for range 2 {
		if r := h.post(t, keyed(`"k2"`, "fail")); r.code() != "tool_failed" || !r.Result.IsError {
			t.Errorf("%s", r.raw)
		}
	}
	if runs != 2 {
		t.Errorf("%d runs", runs)
	}
	for _, key := range []string{`""`, `1`, `null`, `"a b"`, `"é"`, `"` + strings.Repeat("k", 256) + `"`} {
		if r := h.post(t, keyed(key, "x")); r.Error.Code != -32600 || r.status != 400 {
			t.Errorf("%s: %s", key, r.raw)
		}
	}
	if r := h.post(t, keyed(`"k1"`, "x"), "Idempotency-Key", "k2"); r.Error.Code != -32600 {
		t.Errorf("%s", r.raw)
	}
}
