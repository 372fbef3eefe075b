package responses_test

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/upstream"
)

// TestRequests: what the face does not take, the model is not asked; and which switch takes it.
func TestRequests(t *testing.T) {
	hosted := func(names ...string) func(*upstream.Rules) {
		return func(r *upstream.Rules) { r.Responses.HostedTools = names }
	}
	mcp := func(r *upstream.Rules) { r.Responses.MCPServers = []string{"docs"} }
	input := func(items ...string) string { return `"input":[` + strings.Join(items, ",") + `]` }
	const (
		call   = `{"type":"function_call","call_id":"c1","name":"web_search","arguments":"{}"}`
		result = `{"type":"function_call_output","call_id":"c1","output":"done"}`
	)
	for name, c := range map[string]struct {
		more  string
		param string                // of the refusal
		rules func(*upstream.Rules) // that let it pass; nil: none do
		asked string                // what the model is asked then
	}{
		"a member that nobody knows":     {`"plugins":[1]`, "plugins", func(r *upstream.Rules) { r.RequestMembers = []string{"plugins"} }, `"plugins":[1]`},
		"context_management":             {`"context_management":[{"type":"compaction"}]`, "context_management", nil, ""},
		"a conversation":                 {`"conversation":"conv_1"`, "conversation", nil, ""},
		"no earlier response":            {`"previous_response_id":""`, "", nil, ""},
		"an earlier response":            {`"previous_response_id":"resp_0"`, "previous_response_id", nil, ""},
		"background":                     {`"background":true`, "background", func(r *upstream.Rules) { r.Responses.Background = true }, `"background":true`},
		"no background":                  {`"background":false`, "", nil, `"background":false`},
		"a prompt":                       {`"prompt":{"id":"p"}`, "prompt", func(r *upstream.Rules) { r.Responses.Prompt = true }, `"prompt":{"id":"p"}`},
		"store of another type":          {`"store":"no"`, "store", nil, ""},
		"no store":                       {`"store":false`, "", nil, `"store":false`},
		"token probabilities":            {`"include":["message.output_text.logprobs"]`, "include", nil, ""},
		"encrypted reasoning":            {`"include":["reasoning.encrypted_content"]`, "", nil, `"include":["reasoning.encrypted_content"]`},
		"instructions of items":          {`"instructions":[]`, "instructions", nil, ""},
		"stream options without stream":  {`"stream_options":{}`, "stream_options", nil, ""},
		"members of Codex":               {`"client_metadata":{"a":"b"},"prompt_cache_key":"x"`, "", nil, `"client_metadata":{"a":"b"}`},
		"tools that are no list":         {`"tools":{}`, "tools", nil, ""},
		"a tool without a type":          {`"tools":[{"name":"web_search"}]`, "tools.0", nil, ""},
		"a tool without a name":          {`"tools":[{"type":"function"}]`, "tools.0", nil, ""},
		"the form of chat completions":   {`"tools":[{"type":"function","function":{"name":"web_search"}}]`, "tools.0", nil, ""},
		"a tool of nobody":               {`"tools":[{"type":"function","name":"nothing"}]`, "tools.0.parameters", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"name":"nothing"`},
		"two tools of one name":          {tools("web_search", "web_search"), "tools.1", nil, ""},
		"a custom tool of one name":      {`"tools":[{"type":"function","name":"web_search"},{"type":"custom","name":"web_search"}]`, "tools.1", nil, ""},
		"a shell of nobody":              {`"tools":[{"type":"shell","environment":{"type":"local"}}]`, "tools.0", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"type":"shell"`},
		"a patch of nobody":              {`"tools":[{"type":"apply_patch"}]`, "tools.0", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"type":"apply_patch"`},
		"a custom tool of nobody":        {`"tools":[{"type":"custom","name":"sql"}]`, "tools.0", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"name":"sql"`},
		"a shell at the provider":        {`"tools":[{"type":"shell","environment":{"type":"container_auto"}}]`, "tools.0", hosted("shell"), `"container_auto"`},
		"a namespace":                    {`"tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"b"}]}]`, "tools.0.tools.0.parameters", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"name":"b"`},
		"a hosted tool in a namespace":   {`"tools":[{"type":"namespace","name":"a","tools":[{"type":"web_search"}]}]`, "tools.0.tools.0", nil, ""},
		"web search":                     {`"tools":[{"type":"web_search"}]`, "tools.0", hosted("web_search"), `{"type":"web_search"}`},
		"web search with its date":       {`"tools":[{"type":"web_search_2025_08_26"}]`, "tools.0", hosted("web_search"), `web_search_2025_08_26`},
		"another hosted tool":            {`"tools":[{"type":"code_interpreter"}]`, "tools.0", hosted("code_interpreter"), `code_interpreter`},
		"a hosted tool of tomorrow":      {`"tools":[{"type":"robot"}]`, "tools.0", hosted("robot"), `robot`},
		"programs":                       {`"tools":[{"type":"programmatic_tool_calling"}]`, "tools.0", func(r *upstream.Rules) { r.Responses.ProgrammaticCalls = true }, `programmatic_tool_calling`},
		"a tool for programs":            {`"tools":[{"type":"function","name":"web_search","allowed_callers":["programmatic"]}]`, "tools.0.allowed_callers", func(r *upstream.Rules) { r.Responses.ProgrammaticCalls = true }, `"allowed_callers":["programmatic"]`},
		"an async tool":                  {`"tools":[{"type":"function","name":"web_search","async":true}]`, "tools.0.async", func(r *upstream.Rules) { r.Responses.Async = true }, `"async":true`},
		"MCP of the provider":            {`"tools":[{"type":"mcp","server_label":"docs","require_approval":"never"}]`, "tools.0", mcp, `"require_approval":"always"`},
		"another server":                 {`"tools":[{"type":"mcp","server_label":"other"}]`, "tools.0", nil, ""},
		"MCP without a question":         {`"tools":[{"type":"mcp","server_label":"docs","Require_approval":"never","x":1}]`, "tools.0", mcp, `"tools":[{"type":"mcp","server_label":"docs","require_approval":"always"}]`},
		"a shell of nobody, anywhere":    {`"tools":[{"type":"shell","skills":[],"x":1}]`, "tools.0", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"tools":[{"type":"shell","environment":{"type":"local"}}]`},
		"a shell of nobody, in null":     {`"tools":[{"type":"shell","environment":null}]`, "tools.0", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"tools":[{"type":"shell","environment":{"type":"local"}}]`},
		"a shell of nobody, with more":   {`"tools":[{"type":"shell","environment":{"type":"local","x":1,"skills":[]}}]`, "tools.0", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"tools":[{"type":"shell","environment":{"type":"local","skills":[]}}]`},
		"a custom tool of nobody, more":  {`"tools":[{"type":"custom","name":"sql","server_url":"http://evil","format":{"type":"text"}}]`, "tools.0", func(r *upstream.Rules) { r.Tools = upstream.FromRequest }, `"tools":[{"type":"custom","name":"sql","format":{"type":"text"}}]`},
		"a prompt without input":         {`"input":null,"prompt":{"id":"p"}`, "prompt", func(r *upstream.Rules) { r.Responses.Prompt = true }, `"prompt":{"id":"p"}`},
		"two servers of one label":       {`"tools":[{"type":"mcp","server_label":"docs","server_url":"http://a"},{"type":"mcp","server_label":"docs","server_url":"http://b"}]`, "tools.0", nil, ""},
		"strict as it was sent":          {`"tools":[{"type":"function","name":"web_search","strict":false}]`, "", nil, `"strict":false`},
		"a choice without tools":         {`"tool_choice":"required"`, "tool_choice", nil, ""},
		"a choice of nobody":             {tools("web_search") + `,"tool_choice":{"type":"function","name":"files_read"}`, "tool_choice", nil, ""},
		"a choice of another kind":       {tools("web_search") + `,"tool_choice":{"type":"custom","name":"web_search"}`, "tool_choice", nil, ""},
		"the choice of chat completions": {tools("web_search") + `,"tool_choice":{"type":"function","function":{"name":"web_search"}}`, "tool_choice", nil, ""},
		"a word that is no choice":       {tools("web_search") + `,"tool_choice":"any"`, "tool_choice", nil, ""},
		"a choice of a hosted tool":      {`"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, "tools.0", hosted("web_search"), `"tool_choice":{"type":"web_search"}`},
		"parallel calls":                 {tools("web_search") + `,"parallel_tool_calls":1`, "parallel_tool_calls", nil, ""},

		"input of another type":         {`"input":7`, "input", nil, ""},
		"an item that is no object":     {input(`"x"`), "input.0", nil, ""},
		"a role of nobody":              {input(`{"role":"robot","content":"x"}`), "input.0.role", nil, ""},
		"a message without content":     {input(`{"role":"user"}`), "input.0.content", nil, ""},
		"a message":                     {input(`{"role":"user","content":[{"type":"input_text","text":"x"}]}`), "", nil, `"input_text"`},
		"a call without a result":       {input(call), "input", nil, ""},
		"an async call without one":     {input(`{"type":"function_call","call_id":"c1","name":"web_search","arguments":"{}","async":true}`), "input", func(r *upstream.Rules) { r.Responses.Async = true }, `"async":true`},
		"a result without a call":       {input(result), "input.0.call_id", nil, ""},
		"a result before its call":      {input(result, call), "input.0.call_id", nil, ""},
		"two results":                   {input(call, result, result), "input.2.call_id", nil, ""},
		"an id again in a later turn":   {input(call, result, call, result), "", nil, `"output"`},
		"two results of a custom call":  {input(`{"type":"custom_tool_call","call_id":"c1","name":"x","input":""}`, `{"type":"custom_tool_call_output","call_id":"c1","output":"a"}`, `{"type":"custom_tool_call_output","call_id":"c1","output":"b"}`), "", nil, `custom_tool_call_output`},
		"encrypted arguments":           {input(`{"type":"function_call","call_id":"c1","name":"x","encrypted_function_args":"g"}`), "input.0.encrypted_function_args", nil, ""},
		"a summary":                     {input(`{"type":"context_compaction","encrypted_content":"x"}`), "input.0.type", hosted("compaction"), `context_compaction`},
		"a summary by another name":     {input(`{"type":"compaction_summary","encrypted_content":"x"}`), "input.0.type", hosted("compaction"), `compaction_summary`},
		"a message of an agent":         {input(`{"type":"agent_message","id":"a"}`), "input.0.type", func(r *upstream.Rules) { r.Responses.UnknownItems = upstream.Pass }, `agent_message`},
		"a call of MCP":                 {input(`{"type":"mcp_call","id":"w","server_label":"docs","name":"a","arguments":"{}"}`), "input.0.type", mcp, `mcp_call`},
		"a disguised item":              {input(`{"type":"Function_call ","call_id":"c1","name":"x","arguments":"{}"}`), "input.0.type", nil, ""},
		"two calls of one id":           {input(call, call, result), "input.1.call_id", nil, ""},
		"a result of another type":      {input(call, `{"type":"custom_tool_call_output","call_id":"c1","output":"x"}`), "input.1.type", nil, ""},
		"a result without an id":        {input(call, `{"type":"function_call_output","output":"x"}`), "input.1.call_id", nil, ""},
		"a result that is an object":    {input(call, `{"type":"function_call_output","call_id":"c1","output":{}}`), "input.1.output", nil, ""},
		"a call without an id":          {input(`{"type":"function_call","id":"c1","name":"x","arguments":"{}"}`), "input.0.call_id", nil, ""},
		"arguments that are no JSON":    {input(`{"type":"function_call","call_id":"c1","name":"x","arguments":"{"}`), "input.0.arguments", nil, ""},
		"a call and its result":         {input(call, result), "", nil, `"output":"done"`},
		"a result that is null":         {input(call, `{"type":"function_call_output","call_id":"c1","output":null}`), "", nil, `"output":""`},
		"a call with null as arguments": {input(strings.Replace(call, `"arguments":"{}"`, `"arguments":"null"`, 1), result), "", nil, `"arguments":"null"`},
		"a result that hides":           {input(call, `{"type":"function_call_output","call_id":"c1","output":"a\u200bb"}`), "", nil, `"output":"a\\u200bb"`},
		"a part that hides":             {input(call, `{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"a\u202eb"}]}`), "", nil, `"text":"a\\u202eb"`},
		"a result of parts":             {input(call, `{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"do"},{"type":"input_text","text":"ne"}]}`), "", nil, `"output":[{"type":"input_text","text":"do"},{"type":"input_text","text":"ne"}]`},
		"a result with a picture":       {input(call, `{"type":"function_call_output","call_id":"c1","output":[{"type":"input_image","image_url":"data:x"}]}`), "", nil, `"image_url":"data:x"`},
		"a shell call and its result":   {input(`{"type":"shell_call","call_id":"c1","action":{"commands":[]}}`, `{"type":"shell_call_output","call_id":"c1","output":[]}`), "", nil, `"shell_call_output"`},
		"a local result by its id":      {input(`{"type":"local_shell_call","call_id":"c1","action":{}}`, `{"type":"local_shell_call_output","id":"c1","output":"x"}`), "", nil, `local_shell_call_output`},
		"reasoning":                     {input(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}`), "", nil, `"encrypted_content":"x"`},
		"an item of the provider's":     {input(`{"type":"web_search_call","id":"w"}`), "input.0.type", hosted("web_search"), `web_search_call`},
		"a kept item":                   {input(`{"type":"item_reference","id":"rs_1"}`), "input.0", nil, ""},
		"an approval":                   {input(`{"type":"mcp_approval_response","approval_request_id":"m","approve":true}`), "input.0", nil, ""},
		"an item of tomorrow":           {input(`{"type":"robot_call","id":"w"}`), "input.0.type", func(r *upstream.Rules) { r.Responses.UnknownItems = upstream.Pass }, `robot_call`},
		"tools in the input":            {input(`{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"web_search"}]}`), "input.0", func(r *upstream.Rules) { r.Responses.AdditionalTools = true }, `"query"`},
		"tools of nobody in the input":  {input(`{"type":"additional_tools","tools":[{"type":"function","name":"x"}]}`), "input.0", nil, ""},
		"tools that a search has found": {input(`{"type":"tool_search_output","call_id":"s","tools":[{"type":"function","name":"web_search"}]}`), "input.0.type", hosted("tool_search"), `"query"`},
	} {
		body := asks(c.more)
		if strings.HasPrefix(c.more, `"input"`) {
			body = `{"model":"m",` + c.more + `}`
		}
		h := open(t, plan{rules: noRepairs}, says(message("ok")))
		w := h.post(body)
		if c.param != "" {
			if r := reads(t, w); w.Code != http.StatusBadRequest || r.Error == nil || r.Error.Code != "bad_request" || !strings.HasPrefix(c.param, r.Error.Param) || r.Error.Param == "" || h.model.times() != 0 {
				t.Errorf("%s: %d %s, asked %d times", name, w.Code, w.Body, h.model.times())
			}
			if c.rules == nil {
				continue
			}
			p := plan{rules: all(noRepairs, c.rules)}
			if strings.Contains(name, "of nobody") || name == "a namespace" { // the policy of the vectors knows no such tool
				p.config = anyTools(t)
			}
			h = open(t, p, says(message("ok")))
			w = h.post(body)
		}
		if w.Code != 200 || h.model.times() != 1 || !strings.Contains(string(h.model.requests[0]), c.asked) {
			t.Errorf("%s: %d %s, after %s", name, w.Code, w.Body, h.model.requests)
		}
	}
}

// anyTools is a configuration whose agent may use every tool that a request brings.
func anyTools(t testing.TB) *configs.Config {
	return withTools(t, "\n  - {name: other, description: x, run: {type: client}, input_schema: {type: object, properties: {a: {type: string}}}}\n")
}

// TestBodies: bodies that are no requests, and models that are not served here.
func TestBodies(t *testing.T) {
	h := open(t, plan{}, says(message("ok")))
	for body, want := range map[string]int{
		`[]`: 400, `{`: 400, `{}`: 400, `{"model":"m","model":"x"}`: 400, `{"model":7}`: 400, `{"model":"other","input":"x"}`: 404, `{"model":"m"}`: 400,
		`{"model":"m","input":"x","stream":1}`: 400,
	} {
		if w := h.post(body); w.Code != want || reads(t, w).Error == nil {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	h = open(t, plan{rules: func(r *upstream.Rules) { r.Speaks = []upstream.Wire{upstream.ChatWire} }}, says(message("ok")))
	if w := h.post(asks()); w.Code != 404 || !strings.Contains(w.Body.String(), "POST /v1/chat/completions") || h.model.times() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestState: a stored response is continued by the caller who began it, and by nobody else
// (RS-72); an item that the provider keeps likewise.
func TestState(t *testing.T) {
	bound := func(r *upstream.Rules) { r.Responses.State = upstream.BindState }
	h := open(t, plan{rules: bound}, says(reasoning, message("ok")))
	if w := h.post(asks(`"previous_response_id":"resp_1"`)); w.Code != 400 {
		t.Errorf("a response of nobody is continued: %d", w.Code)
	}
	_ = h.post(asks())
	const output = `"input":[{"type":"item_reference","id":"rs_1"},{"type":"function_call_output","call_id":"unseen","output":"x"}]`
	w := h.post(`{"model":"m","previous_response_id":"resp_1",` + output + `}`)
	if w.Code != 200 || string(h.model.asked(t, 1)["previous_response_id"]) != `"resp_1"` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if r := reads(t, h.post(asks(`"previous_response_id":"msg_2"`, `"store":false`))); r.Error != nil {
		t.Errorf("%+v", r.Error)
	}
	h = open(t, plan{rules: bound}, says(message("ok")))
	_ = h.post(asks(`"store":false`))
	if w := h.post(asks(`"previous_response_id":"resp_1"`)); w.Code != 400 {
		t.Errorf("a response that was not stored is continued: %d", w.Code)
	}
}

// TestInputTokens: a request is counted after the checks that it would meet itself (RS-70).
func TestInputTokens(t *testing.T) {
	h := open(t, plan{}, func(w http.ResponseWriter, _ bool) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"response.input_tokens","input_tokens":12,"output":["x"]}`)
	})
	w := h.postTo("/v1/responses/input_tokens", asks(tools("web_search")))
	if w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"object":"response.input_tokens","input_tokens":12}` || h.model.paths[0] != "/v1/responses/input_tokens" || !strings.Contains(string(h.model.requests[0]), `"query"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := h.postTo("/v1/responses/input_tokens", asks(`"conversation":"c"`)); w.Code != 400 || h.model.times() != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestCodex: the requests that Codex sends pass by the switches that they need, and their calls
// are judged by the tools that they bring (RS-92).
func TestCodex(t *testing.T) {
	for name, c := range map[string]struct {
		call, code string
	}{
		"functions": {function("call_1", "exec_command", `{"cmd":"cat notes.md"}`), ""},
		"patches":   {`{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_1","name":"apply_patch","input":"*** Begin Patch"}`, ""},
		"code-mode": {`{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_1","namespace":"functions","name":"exec","input":"text(1)"}`, ""},
	} {
		body, err := os.ReadFile(corpora.Testdata("agents", "codex", name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		// A keyword that is not one of JSON Schema: such a tool is refused.
		body = bytes.ReplaceAll(body, []byte(`"encrypted":true`), []byte(`"x-encrypted":true`))
		h := open(t, plan{config: anyTools(t), definition: func(d *upstream.Definition) {
			d.Models[0].ID = "*"
			d.Rules.Tools, d.Rules.MaxRepairs = upstream.FromRequest, 0
			d.Rules.Responses.HostedTools, d.Rules.Responses.AdditionalTools = []string{"web_search", "tool_search"}, true
		}}, says(c.call))
		w := h.post(string(body))
		if w.Code != 200 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		if r := reads(t, w); len(r.Output) != 1 || r.Output[0].CallID != "call_1" {
			t.Errorf("%s: %s", name, w.Body)
		}
		h.model.requests = nil
	}
}

// TestToolsLeftOut: a tool that cannot be judged costs no other tool and not the request; a tool of a
// namespace has a name of up to 128 bytes, with that of the namespace.
func TestToolsLeftOut(t *testing.T) {
	c := facetest.Config(t, map[string]string{
		"tools.yaml":      "tools: [{name: own, input_schema: {type: object, properties: {}}, run: {type: client}}]\n",
		"policy.csv":      "p, Analyst, *, *, , allow\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n",
	})
	rules := all(noRepairs, func(r *upstream.Rules) { r.Tools = upstream.FromRequest })
	const mail = `{"type":"function","name":"mail","parameters":{"type":"object","properties":{"to":{"type":"string","pattern":"(a)\\1"}}}}`
	named := func(name string) string {
		return `{"type":"function","name":"` + name + `","parameters":{"type":"object","properties":{"n":{"type":"integer","format":"int64"}}}}`
	}
	space := strings.Repeat("s", 60)
	for name, x := range map[string]struct{ tools, leftOut, replaced, asked string }{
		"a pattern":                {mail + `,` + named("good"), "mail", "good", `"name":"good"`},
		"a long name":              {named(strings.Repeat("x", 65)) + `,` + named("good"), strings.Repeat("x", 65), "good", `"name":"good"`},
		"a long name in one":       {`{"type":"namespace","name":"` + space + `","tools":[` + named("good") + `]}`, "", space + ".good", `"name":"good"`},
		"one that is too long":     {`{"type":"namespace","name":"` + space + `","tools":[` + named(strings.Repeat("y", 68)) + `,` + named("good") + `]}`, (space + "_" + strings.Repeat("y", 68))[:128], space + ".good", `"name":"good"`},
		"one of a namespace alone": {`{"type":"namespace","name":"a","tools":[` + mail + `]},` + named("good"), "a_mail", "good", `"name":"good"`},
		"all of them":              {mail, "mail", "", ""},
	} {
		h := open(t, plan{config: c, rules: rules}, says(message("ok")))
		w := h.post(asks(`"tools":[` + x.tools + `]`))
		if w.Code != 200 || w.Header().Get(server.HeaderToolsLeftOut) != x.leftOut || w.Header().Get(server.HeaderToolsReplaced) != x.replaced {
			t.Errorf("%s: found %d %v %s", name, w.Code, w.Header(), w.Body)
			continue
		}
		if asked := string(h.model.asked(t, 0)["tools"]); !strings.Contains(asked, x.asked) || strings.Contains(asked, "mail") {
			t.Errorf("%s: the model was asked %s", name, asked)
		}
	}
	h := open(t, plan{config: c, rules: rules}, says(function("c1", "mail", `{"to":"aa"}`)))
	if w := h.post(asks(`"tools":[` + mail + `,` + named("good") + `]`)); !strings.Contains(w.Body.String(), "unknown_tool") {
		t.Errorf("found %d %s", w.Code, w.Body)
	}
	h = open(t, plan{config: c, rules: rules}, says(message("ok")))
	if w := h.post(asks(`"tools":[` + mail + `],"tool_choice":{"type":"function","name":"mail"}`)); w.Code != 400 || !strings.Contains(w.Body.String(), `\"mail\", which is left out of the offer`) {
		t.Errorf("found %d %s", w.Code, w.Body)
	}
}
