package chat_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/upstream"
)

func fromRequest(r *upstream.Rules) { r.Tools = upstream.FromRequest }

// brought is a configuration for applications with tools of their own: one registered tool
// with a boundary, and a policy for tools that only requests bring.
func brought() map[string]string {
	return map[string]string{
		"tools.yaml": `
tools:
  - name: Edit
    input_schema:
      type: object
      properties:
        file_path: {type: string, x-boundary: path}
        text: {type: string}
      required: [file_path, text]
    run: {type: client}
  - name: web.search
    input_schema: {type: object, properties: {q: {type: string}}, required: [q]}
    run: {type: client}
`,
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst], roots: [/project]}}}}\n",
		"policy.csv": `p, Analyst, *, Read, , allow
p, Analyst, *, Edit, , allow
p, Analyst, *, web.search, , allow
p, Analyst, *, Bash, "args.command.matches('^git (status|diff)$')", allow
`,
		"limits.yaml": "agents: {Analyst: {tools: {Read: {rate: 1/h, burst: 1}}}}\n",
	}
}

// define is one tool of a request.
func define(name, parameters string) string {
	return fmt.Sprintf(`{"type":"function","function":{"name":%q,"description":"d","parameters":%s}}`, name, parameters)
}

const (
	bashSchema = `{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`
	readSchema = `{"type":"object","properties":{"file_path":{"type":"string"}},"required":["file_path"],"additionalProperties":true}`
	editSchema = `{"type":"object","properties":{"file_path":{"type":"string"},"text":{"type":"string"}},"required":["file_path","text"]}`
)

// TestToolsOfTheRequest: a tool that the registry does not have is judged in every stage under the
// name that it has.
func TestToolsOfTheRequest(t *testing.T) {
	offered := `"tools":[` + strings.Join([]string{define("Bash", bashSchema), define("Read", readSchema), define("Edit", editSchema), define("Write", editSchema), define("Ping", "null")}, ",") + `]`
	c := facetest.Config(t, brought())
	for name, x := range map[string]struct {
		tool, arguments, code string
	}{
		"free":                       {"Read", `{"file_path":"/etc/passwd"}`, ""},
		"closed":                     {"Read", `{"file_path":"/a","more":1}`, "unexpected_argument"},
		"a type":                     {"Read", `{"file_path":1}`, "wrong_type"},
		"a duplicate":                {"Read", `{"file_path":"/a","file_path":"/b"}`, "duplicate_key"},
		"a condition that holds":     {"Bash", `{"command":"git status"}`, ""},
		"a condition that does not":  {"Bash", `{"command":"git status; rm -rf /"}`, "permission_denied"},
		"no row":                     {"Write", `{"file_path":"/project/a","text":""}`, "permission_denied"},
		"no row, no schema":          {"Ping", `{}`, "permission_denied"},
		"registered, within":         {"Edit", `{"file_path":"/project/a","text":""}`, ""},
		"registered, outside":        {"Edit", `{"file_path":"/etc/passwd","text":""}`, "boundary_violation"},
		"neither has it":             {"Grep", `{}`, "unknown_tool"},
		"registered and not offered": {"web_search", `{"q":"x"}`, "unknown_tool"},
	} {
		for _, streamed := range []string{"", `,"stream":true`} {
			h := openWith(t, c, inTurn(says(toolCalls("c1", x.tool, x.arguments), "tool_calls")), plan{rules: all(fromRequest, noRepairs)})
			w := h.post(asks(offered + streamed))
			got := reads(t, w)
			if got.Error.Code != x.code || x.code == "" && got.call() != x.tool+x.arguments {
				t.Errorf("%s%s: %d %s", name, streamed, w.Code, w.Body)
			}
			if replaced := w.Header().Get(server.HeaderToolsReplaced); replaced != "" {
				t.Errorf("%s: replaced %s", name, replaced)
			}
			if records := h.settled(t); x.code == "" && records[len(records)-1] != "outcome enforce tool_call handed_over" {
				t.Errorf("%s: %v", name, records)
			}
			// A tool that the agent may not use is not offered to the model.
			if body := string(h.model.body(t, 0)); strings.Contains(body, `"Write"`) || !strings.Contains(body, `"name":"Bash"`) || !strings.Contains(body, `"additionalProperties":false`) {
				t.Errorf("%s: the model was asked %s", name, body)
			}
		}
	}
}

// TestLimitsOfToolsOfTheRequest: the second call of one tool is over its rate.
func TestLimitsOfToolsOfTheRequest(t *testing.T) {
	c := facetest.Config(t, brought())
	h := openWith(t, c, inTurn(says(toolCalls("c1", "Read", `{"file_path":"/a"}`), "tool_calls")), plan{
		rules: all(fromRequest, noRepairs), state: func(s *gateway.Config, _ *calls.Deps) { s.Limits = c.Limits },
	})
	for _, code := range []string{"", "rate_limited"} {
		if got := reads(t, h.post(asks(`"tools":[`+define("Read", readSchema)+`]`))); got.Error.Code != code {
			t.Errorf("found %+v, expected %q", got.Error, code)
		}
	}
}

// TestToolsOfTheRequestAreRefused: at the request, with the place of the fault, and the model is not asked.
func TestToolsOfTheRequestAreRefused(t *testing.T) {
	var many []string
	for i := range 513 {
		many = append(many, define(fmt.Sprint("t", i), `{"type":"object"}`))
	}
	for name, x := range map[string]struct {
		tools, param, message string
		rules                 func(*upstream.Rules)
		mode                  string
	}{
		"the registry alone":     {define("Bash", bashSchema), "tools.0.function.name", "or the operator lets requests bring tools, with tools: request at the upstream", nil, "enforce"},
		"two names that are one": {define("a-b", bashSchema) + "," + define("a-b", bashSchema), "tools", "Two tools have the same name", fromRequest, "enforce"},
		"too many":               {strings.Join(many, ","), "tools", "too many tools: 513 that are not in the registry", fromRequest, "enforce"},
		"orchestrated":           {define("Bash", bashSchema), "tools.0.function.parameters", "Callgate-Mode: enforce", fromRequest, "orchestrate"},
	} {
		h := openWith(t, facetest.Config(t, brought()), inTurn(says(content("x"), "stop")), plan{rules: x.rules})
		w := h.post(asks(`"tools":[`+x.tools+`]`), "Callgate-Mode", x.mode)
		got := reads(t, w)
		if w.Code != 400 || got.Error.Code != "bad_request" || got.Error.Param != x.param || !strings.Contains(got.Error.Message, x.message) || h.model.times() != 0 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// TestToolsLeftOut: a tool that cannot be judged costs no other tool and not the request; the answer and the
// log name it, and a call of it is one of an unknown tool.
func TestToolsLeftOut(t *testing.T) {
	const lookAhead = `{"type":"object","properties":{"to":{"type":"string","pattern":"^(?!\\.)a"}}}`
	for name, x := range map[string]struct{ tools, more, leftOut, why string }{
		"a pattern":     {define("mail", lookAhead) + "," + define("Bash", bashSchema), "", "mail", `\"mail\": input_schema at /properties/to/pattern: found the pattern`},
		"two":           {define("mail", lookAhead) + "," + define("Bash", bashSchema) + "," + define("odd", `{"type":"text"}`), "", "mail, odd", "look-around"},
		"a name":        {define("a.b", bashSchema) + "," + define("Bash", bashSchema), "", "a.b", "not one of letters, digits, _ and -, at most 64"},
		"a strange one": {define("é\u202e", bashSchema) + "," + define("Bash", bashSchema), "", `"\u00e9\u202e"`, "not one of letters"},
		"a long name":   {define(strings.Repeat("x", 65), bashSchema) + "," + define("Bash", bashSchema), "", strings.Repeat("x", 65), "at most 64"},
		"a choice":      {define("mail", lookAhead) + "," + define("Bash", bashSchema), `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"mail"}},{"type":"function","function":{"name":"Bash"}}]}}`, "mail", "look-around"},
		"a cure beside": {define("mail", lookAhead) + "," + define("Bash", strings.Replace(bashSchema, `"string"`, `"string","format":"shell"`, 1)), "", "mail", "look-around"},
	} {
		for _, streamed := range []string{"", `,"stream":true`} {
			h := openWith(t, facetest.Config(t, brought()), inTurn(says(toolCalls("c1", "Bash", `{"command":"git status"}`), "tool_calls")), plan{rules: all(fromRequest, noRepairs)})
			w := h.post(asks(`"tools":[` + x.tools + `]` + x.more + streamed))
			if got := reads(t, w); w.Code != 200 || got.call() != `Bash{"command":"git status"}` || w.Header().Get(server.HeaderToolsLeftOut) != x.leftOut {
				t.Errorf("%s: %d %v %s", name, w.Code, w.Header(), w.Body)
			}
			if replaced := w.Header().Get(server.HeaderToolsReplaced); (replaced == "Bash") != (name == "a cure beside") {
				t.Errorf("%s: replaced %s", name, replaced)
			}
			if body := string(h.model.body(t, 0)); strings.Contains(body, `"mail"`) || !strings.Contains(body, `"name":"Bash"`) {
				t.Errorf("%s: the model was asked %s", name, body)
			}
			if logged := h.log.String(); !strings.Contains(logged, `"tools_left_out":`) || !strings.Contains(logged, x.why) {
				t.Errorf("%s: the log says %s", name, logged)
			}
		}
	}
	// All of them: the request still goes, without tools, and a call of one is of an unknown tool.
	only := `"tools":[` + define("mail", lookAhead) + `]`
	for code, answer := range map[string]func(http.ResponseWriter, *http.Request){"": says(content("x"), "stop"), "unknown_tool": says(toolCalls("c1", "mail", `{"to":"a"}`), "tool_calls")} {
		h := openWith(t, facetest.Config(t, brought()), inTurn(answer), plan{rules: all(fromRequest, noRepairs)})
		w := h.post(asks(only))
		if got := reads(t, w); got.Error.Code != code || h.model.times() != 1 || strings.Contains(string(h.model.body(t, 0)), `"tools"`) {
			t.Errorf("%d %s after %s", w.Code, w.Body, h.model.body(t, 0))
		}
	}
	// One that is left out cannot be asked for.
	for _, choice := range []string{`{"type":"function","function":{"name":"mail"}}`, `"required"`, `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"mail"}}]}}`} {
		h := openWith(t, facetest.Config(t, brought()), inTurn(says(content("x"), "stop")), plan{rules: fromRequest})
		w := h.post(asks(only + `,"tool_choice":` + choice))
		if got := reads(t, w); w.Code != 400 || got.Error.Param != "tool_choice" || !strings.Contains(got.Error.Message, `"mail", which is left out of the offer`) || h.model.times() != 0 {
			t.Errorf("%s: %d %s", choice, w.Code, w.Body)
		}
	}
}

// TestToolsReplaced: a registered tool keeps its schema, and the answer and the log say so where
// the request has another one.
func TestToolsReplaced(t *testing.T) {
	other := `{"type":"object","properties":{"file_path":{"type":"string"}}}`
	for name, x := range map[string]struct {
		tools, replaced string
		status          int
	}{
		"the same":         {define("Edit", editSchema) + "," + define("web_search", `{"type":"object","properties":{"q":{"type":"string"}},"required":["q"]}`), "", 200},
		"none stated":      {define("Edit", "null"), "", 200},
		"another":          {define("Edit", other), "Edit", 200},
		"two others":       {define("web_search", other) + "," + define("Edit", other), "web.search, Edit", 200},
		"one that is none": {define("Edit", `{"type":7}`), "Edit", 200},
	} {
		for _, rules := range []func(*upstream.Rules){nil, fromRequest} {
			for _, streamed := range []string{"", `,"stream":true`} {
				h := openWith(t, facetest.Config(t, brought()), inTurn(says(toolCalls("c1", "Edit", `{"file_path":"/project/a","text":"x"}`), "tool_calls")), plan{rules: rules})
				w := h.post(asks(`"tools":[` + x.tools + `]` + streamed))
				if w.Code != x.status || w.Header().Get(server.HeaderToolsReplaced) != x.replaced {
					t.Errorf("%s: %d %v", name, w.Code, w.Header())
				}
				if logged := strings.Contains(h.log.String(), `"tools_replaced":"`+x.replaced+`"`) && x.replaced != ""; logged != (x.replaced != "") {
					t.Errorf("%s: the log says %s", name, h.log)
				}
			}
		}
	}
	// The registry's schema judges: it requires a text.
	h := openWith(t, facetest.Config(t, brought()), inTurn(says(toolCalls("c1", "Edit", `{"file_path":"/project/a"}`), "tool_calls")), plan{rules: noRepairs})
	if got := reads(t, h.post(asks(`"tools":[`+define("Edit", other)+`]`))); got.Error.Code != "missing_argument" {
		t.Errorf("found %+v", got.Error)
	}
	// Many names are cut.
	var tools, yaml []string
	for i := range 200 {
		name := fmt.Sprintf("a_tool_with_a_long_name_%03d", i)
		tools = append(tools, define(name, other))
		yaml = append(yaml, "  - {name: "+name+", input_schema: {type: object, properties: {}}, run: {type: client}}\n")
	}
	files := brought()
	files["tools.yaml"] = "tools:\n" + strings.Join(yaml, "")
	files["policy.csv"] = "p, Analyst, *, *, , allow\n"
	h = openWith(t, facetest.Config(t, files), inTurn(says(content("x"), "stop")), plan{})
	w := h.post(asks(`"tools":[` + strings.Join(tools, ",") + `]`))
	if found := w.Header().Get(server.HeaderToolsReplaced); w.Code != 200 || len(found) > 1024 || !strings.HasSuffix(found, " others") || !strings.HasPrefix(found, "a_tool_with_a_long_name_000, a_tool_with_a_long_name_001") {
		t.Errorf("%d: found %s", w.Code, found)
	}
}

// TestToolsOfTheRequestInText: a model that writes its calls as text calls them by the same names.
func TestToolsOfTheRequestInText(t *testing.T) {
	h := openWith(t, facetest.Config(t, brought()), inTurn(says(content(`{"tool":{"name":"Read","arguments":{"file_path":"/a"}}}`), "stop")), plan{rules: all(fromRequest, textProtocol)})
	if got := reads(t, h.post(asks(`"tools":[`+define("Read", readSchema)+`]`))); got.call() != `Read{"file_path":"/a"}` {
		t.Errorf("found %+v", got)
	}
}

// TestRepairOfToolsOfTheRequest: a refused call goes back to the model, which corrects it.
func TestRepairOfToolsOfTheRequest(t *testing.T) {
	h := openWith(t, facetest.Config(t, brought()), inTurn(
		says(toolCalls("c1", "Bash", `{"cmd":"git status"}`), "tool_calls"), says(toolCalls("c2", "Bash", `{"command":"git status"}`), "tool_calls"),
	), plan{rules: fromRequest})
	got := reads(t, h.post(asks(`"tools":[`+define("Bash", bashSchema)+`]`)))
	if got.call() != `Bash{"command":"git status"}` || !strings.Contains(string(h.model.body(t, 1)), "unexpected_argument") {
		t.Errorf("found %+v after %s", got, h.model.body(t, 1))
	}
}

// TestDescriptions: the registry's words go to the model, and the request's where it has none.
func TestDescriptions(t *testing.T) {
	files := brought()
	files["tools.yaml"] = strings.Replace(files["tools.yaml"], "  - name: web.search\n", "  - name: web.search\n    description: the registry's\n", 1)
	h := openWith(t, facetest.Config(t, files), inTurn(says(content("x"), "stop")), plan{})
	h.post(asks(`"tools":[` + define("Edit", editSchema) + `,{"type":"function","function":{"name":"web_search","description":"the request's"}}]`))
	if body := string(h.model.body(t, 0)); !strings.Contains(body, `"description":"d"`) || !strings.Contains(body, `"description":"the registry's"`) || strings.Contains(body, "the request's") {
		t.Errorf("the model was asked %s", body)
	}
}
