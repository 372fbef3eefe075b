package responses_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// TestNamespaceOfACall: a call is of the tool that its namespace and its name name together. A
// client that does not know namespaces would run the one of its name alone.
func TestNamespaceOfACall(t *testing.T) {
	const spaced = `"tools":[{"type":"namespace","name":"web","tools":[{"type":"function","name":"search"}]}]`
	in := func(namespace, name string) string {
		return strings.Replace(function("call_1", name, `{"query":"SECRET"}`), `"name":`, `"namespace":`+quoted(namespace)+`,"name":`, 1)
	}
	for name, c := range map[string]struct {
		tools, call string
		passes      bool
	}{
		"a function in no namespace":   {tools("web_search"), function("call_1", "web_search", `{"query":"SECRET"}`), true},
		"one that a search has loaded": {tools("web_search"), in("web_search", "web_search"), true},
		"a name cut in two":            {tools("web_search"), in("web", "search"), false},
		"one of its namespace":         {spaced, in("web", "search"), true},
		"one of a namespace, in none":  {spaced, function("call_1", "web_search", `{"query":"SECRET"}`), false},
		"a name of another namespace":  {spaced, in("web_search", "web_search"), false},
		"without the name's namespace": {spaced, function("call_1", "search", `{"query":"SECRET"}`), false},
	} {
		h := open(t, plan{rules: noRepairs}, says(c.call))
		for how, body := range map[string]string{"whole": asks(c.tools), "streamed": asksStream(c.tools)} {
			w := h.post(body)
			r := reads(t, w)
			if passed := r.Error == nil && r.calls() != ""; passed != c.passes || !passed && (r.Error == nil || r.Error.Code != "unknown_tool" || strings.Contains(w.Body.String(), "SECRET")) {
				t.Errorf("%s, %s: %d %s", name, how, w.Code, w.Body)
			}
		}
	}
}

// TestMembersOfACall: a call carries what was judged, and no member that is of a call of another
// type.
func TestMembersOfACall(t *testing.T) {
	call := strings.Replace(function("call_1", "web_search", `{"query":"go"}`), `"name":`, `"action":{"commands":["SECRET"]},"operation":{"path":"SECRET"},"input":"SECRET","actions":["SECRET"],"x":"SECRET","name":`, 1)
	h := open(t, plan{}, says(call))
	for how, body := range map[string]string{"whole": asks(tools("web_search")), "streamed": asksStream(tools("web_search"))} {
		w := h.post(body)
		if r := reads(t, w); r.calls() == "" || strings.Contains(w.Body.String(), "SECRET") {
			t.Errorf("%s: %d %s", how, w.Code, w.Body)
		}
	}
}

const approval = `{"id":"mcpr_1","type":"mcp_approval_request","server_label":"web","name":"search","arguments":"{\"query\":\"a\"}"}`

// TestApprovalBesideACall: where a reply asks for a call at the provider and has a call of the
// client too, none of them is run.
func TestApprovalBesideACall(t *testing.T) {
	ran := 0
	engine := func(task tool.Call) (tool.Result, error) {
		ran++
		return tool.Result{Body: []byte(`{}`), JSON: true}, nil
	}
	rules := all(orchestrate, noRepairs, func(r *upstream.Rules) { r.Responses.MCPServers = []string{"web"} })
	for how, body := range map[string]string{"whole": asks(), "streamed": asksStream()} {
		h := open(t, plan{rules: rules, engine: engine}, says(message("I look."), function("call_1", "time_now", `{}`), approval), says(message("Done.")))
		w := h.post(body)
		if r := reads(t, w); r.Error == nil || r.Error.Code != "mixed_output" || ran != 0 {
			t.Errorf("%s: %d tools ran: %d %s", how, ran, w.Code, w.Body)
		}
		if lines := strings.Join(h.settled(t), "\n"); strings.Contains(lines, "time.now") {
			t.Errorf("%s: a call of the reply was recorded as passed:\n%s", how, lines)
		}
	}
}

// TestApprovalOfAnotherServer: a call at a server that the upstream's entry does not list is not
// approved, whatever the policy says of a tool of that name.
func TestApprovalOfAnotherServer(t *testing.T) {
	for name, c := range map[string]struct {
		servers  []string
		approval string
		approved bool
	}{
		"listed":     {[]string{"web"}, approval, true},
		"not listed": {[]string{"other"}, approval, false},
		"none is":    {nil, approval, false},
	} {
		h := open(t, plan{rules: all(noRepairs, func(r *upstream.Rules) { r.Responses.MCPServers = c.servers })}, says(c.approval), says(message("Done.")))
		h.post(asks())
		answer := ""
		if h.model.times() > 1 {
			answer = string(h.model.asked(t, 1)["input"])
		}
		if strings.Contains(answer, `"approve":true`) != c.approved {
			t.Errorf("%s: the provider was answered %s", name, answer)
		}
	}
}

// TestApprovalsCount: what the rounds of approvals have taken counts against the bound of tokens.
func TestApprovalsCount(t *testing.T) {
	rules := all(orchestrate, noRepairs, func(r *upstream.Rules) { r.Responses.MCPServers, r.TokenBudget = []string{"web"}, 10 })
	for how, body := range map[string]string{"whole": asks(), "streamed": asksStream()} {
		h := open(t, plan{rules: rules}, says(approval), says(function("call_1", "time_now", `{}`)), says(message("Done.")))
		w := h.post(body)
		if r := reads(t, w); r.Error == nil || r.Error.Code != "bound_reached" || h.model.times() != 2 {
			t.Errorf("%s: asked %d times: %d %s", how, h.model.times(), w.Code, w.Body)
		}
	}
}

// TestApprovalByABroughtTool: a call at the provider is judged by the registry. A tool that the
// request brings under the same name on the wire does not stand for it: another row of the policy
// would hold.
func TestApprovalByABroughtTool(t *testing.T) {
	config := facetest.Config(t, map[string]string{
		"tools.yaml": "tools: [{name: time.now, version: 1.0.0, description: x, run: {type: client}, input_schema: {type: object, properties: {}}}]\n",
		"policy.csv": "p, Analyst, *, *, , allow\np, Analyst, *, web.search, , deny\n",
	})
	rules := all(noRepairs, func(r *upstream.Rules) { r.Responses.MCPServers, r.Tools = []string{"web"}, upstream.FromRequest })
	const parameters = `"parameters":{"type":"object","properties":{"query":{"type":"string"}}}`
	for name, tool := range map[string]string{
		"a function":             `{"type":"function","name":"web_search",` + parameters + `}`,
		"one of a namespace":     `{"type":"namespace","name":"web","tools":[{"type":"function","name":"search",` + parameters + `}]}`,
		"a tool of another name": `{"type":"function","name":"other",` + parameters + `}`,
	} {
		h := open(t, plan{config: config, rules: rules}, says(approval), says(message("Done.")))
		h.post(asks(`"tools":[` + tool + `]`))
		if answer := string(h.model.asked(t, 1)["input"]); !strings.Contains(answer, `"approve":false`) || !strings.Contains(answer, "unknown_tool") {
			t.Errorf("%s: the provider was answered %s", name, answer)
		}
	}
}
