package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/testkit/facetest"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/upstream"
)

// confirming is a configuration by which the caller is asked about pay and about move, whose account is
// secret, approvers are about hire, and nobody is about look.
func confirming(t testing.TB) *configs.Config {
	t.Helper()
	const schema = `run: {type: demo}, input_schema: {type: object, properties: {amount: {type: number}, account: {type: string, x-secret: true}}}`
	list := "tools:\n"
	for _, name := range []string{"pay", "bank.move", "hire", "look"} {
		list += "  - {name: " + name + ", version: 1.0.0, description: Does it., kind: execute, effect: once, " + schema + "}\n"
	}
	return facetest.Config(t, map[string]string{
		"callgate.yaml":  "registry: {files: [tools.yaml]}\napprovals: approvals.yaml\n",
		"approvals.yaml": "rules:\n  mine: {by: caller}\n  theirs: {}\nwait: 0s\n",
		"policy.csv":     "p, Analyst, *, pay, , ask:mine\np, Analyst, *, bank.move, , ask:mine\np, Analyst, *, hire, , ask:theirs\np, Analyst, *, look, , allow\n",
		"tools.yaml":     list,
	})
}

func openConfirming(t testing.TB, rules func(*upstream.Rules), script ...answer) *fixture {
	t.Helper()
	return open(t, plan{config: confirming(t), rules: all(orchestrate, rules), state: func(_ *gateway.Config, p *calls.Deps) {
		kept := store.NewMemory(time.Now)
		p.Store, p.Approvals = kept, kept
	}}, script...)
}

func asIs(*upstream.Rules) {}

// own is the entry by which a client says that it can be asked, with more members.
func own(more string) string {
	return `{"type":"mcp","server_label":"callgate","server_url":"https://gate.example/v1"` + more + `}`
}

// TestRequestsApproval: what comes before the calls of a turn comes before the items by which the client
// is asked of them, in both forms of the answer; calls that wait for nobody are left out.
func TestRequestsApproval(t *testing.T) {
	turn := says(reasoning, message("I pay."), function("call_1", "pay", `{"amount":1}`), function("call_2", "look", `{}`), function("call_3", "bank_move", `{"amount":2}`))
	const entry = `"tools":[%s]`
	for how, body := range map[string]string{"whole": asks(fmt.Sprintf(entry, own(""))), "streamed": asksStream(fmt.Sprintf(entry, own("")))} {
		h := openConfirming(t, asIs, turn)
		w := h.post(body)
		r := reads(t, w)
		var kinds []string
		for _, item := range r.Output {
			kinds = append(kinds, item.Type)
		}
		if strings.Join(kinds, " ") != "reasoning message mcp_approval_request mcp_approval_request" || r.Status != "completed" || r.text() != "I pay." || strings.Contains(w.Body.String(), "look") {
			t.Fatalf("%s: %d %s", how, w.Code, w.Body)
		}
		if first := string(h.model.asked(t, 0)["tools"]); strings.Contains(first, "mcp") || strings.Count(first, `"function"`) != 4 {
			t.Errorf("%s: the model got %s", how, first)
		}
		if lines := strings.Join(h.settled(t), "\n"); strings.Contains(lines, "result") || strings.Count(lines, "requested") != 2 {
			t.Errorf("%s: %s", how, lines)
		}
		if how == "whole" {
			continue
		}
		for _, kind := range []string{"added", "done"} {
			at := strings.Index(w.Body.String(), `event: response.output_item.`+kind+"\ndata: ")
			if n := strings.Count(w.Body.String(), "event: response.output_item."+kind); at < 0 || n != 4 {
				t.Errorf("%d events %s: %s", n, kind, w.Body)
			}
		}
		for line := range strings.SplitSeq(w.Body.String(), "\n") {
			data, ok := strings.CutPrefix(line, "data: ")
			var e struct {
				Type string
				Item map[string]any
			}
			if !ok || !strings.Contains(line, "output_item") || !strings.Contains(line, "mcp_approval_request") {
				continue
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil || len(e.Item) != 5 || e.Item["server_label"] != "callgate" || !strings.Contains(e.Item["arguments"].(string), "amount") {
				t.Errorf("%v: %s", err, data)
			}
		}
	}
}

// TestApprovalIsNotRequested: a call is told to the model as ever where the client did not say that it
// can be asked, where approvers decide, and where the arguments hold a secret.
func TestApprovalIsNotRequested(t *testing.T) {
	for name, c := range map[string]struct{ tools, call string }{
		"not said":  {`"store":false`, function("call_1", "pay", `{"amount":1}`)},
		"approvers": {`"tools":[` + own("") + `]`, function("call_1", "hire", `{"amount":1}`)},
		"a secret":  {`"tools":[` + own("") + `]`, function("call_1", "bank_move", `{"account":"DE-7"}`)},
	} {
		for _, body := range []string{asks(c.tools), asksStream(c.tools)} {
			h := openConfirming(t, asIs, says(c.call), says(message("It waits.")))
			w := h.post(body)
			if r := reads(t, w); r.Status != "completed" || r.text() != "It waits." || strings.Contains(w.Body.String(), "mcp_approval_request") {
				t.Errorf("%s: %d %s", name, w.Code, w.Body)
			}
			if read := string(h.model.asked(t, 1)["input"]); !strings.Contains(read, "approval_required") {
				t.Errorf("%s: the model read %s", name, read)
			}
		}
	}
}

// TestOwnEntry: the entry is read strictly, adds no tools, and is never the model's.
func TestOwnEntry(t *testing.T) {
	for _, more := range []string{
		`,"require_approval":"never"`, `,"require_approval":{"always":{"tool_names":["pay"]}}`, `,"require_approval":true`, `,"authorization":"x"`,
		`,"headers":{"A":"b"}`, `,"connector_id":"connector_gmail"`, `,"allowed_tools":["pay"]`, `,"server_description":7`, `,"other":1`,
	} {
		h := openConfirming(t, asIs, says(message("ok")))
		if w := h.post(asks(`"tools":[` + own(more) + `]`)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `"param":"tools.0.`) || h.model.times() != 0 {
			t.Errorf("%s: %d %s", more, w.Code, w.Body)
		}
	}
	for name, tools := range map[string]string{
		"twice":            own("") + "," + own(""),
		"no URL":           `{"type":"mcp","server_label":"callgate"}`,
		"no address":       `{"type":"mcp","server_label":"callgate","server_url":"gate"}`,
		"another label":    `{"type":"mcp","server_label":"docs","server_url":"https://gate.example"}`,
		"in a namespace":   `{"type":"namespace","name":"n","tools":[` + own("") + `]}`,
		"beside a choice":  own("") + `],"tool_choice":{"type":"mcp","server_label":"callgate"},"include":[`,
		"two are the same": own("") + `,{"type":"function","name":"pay","parameters":{}},{"type":"function","name":"pay","parameters":{}}`,
	} {
		h := openConfirming(t, asIs, says(message("ok")))
		if w := h.post(asks(`"tools":[` + tools + `]`)); w.Code != http.StatusBadRequest || h.model.times() != 0 {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	for name, c := range map[string]struct {
		tools string
		most  int // functions that the model gets
	}{
		"alone":           {own(`,"require_approval":"always","headers":null,"server_description":"x"`), 4},
		"beside one tool": {`{"type":"function","name":"pay","parameters":{}},` + own(`,"require_approval":null`), 1},
	} {
		h := openConfirming(t, asIs, says(message("ok")))
		w := h.post(asks(`"tools":[` + c.tools + `]`))
		got := string(h.model.asked(t, 0)["tools"])
		if w.Code != http.StatusOK || strings.Count(got, `"type":"function"`) != c.most || strings.Contains(got, "mcp") || !strings.Contains(w.Body.String(), `"server_label":"callgate"`) {
			t.Errorf("%s: %d, the model got %s, the client %s", name, w.Code, got, w.Body)
		}
	}
	// A server of the provider under this label, which the operator allows, stays one.
	h := openConfirming(t, func(r *upstream.Rules) { r.Responses.MCPServers = []string{"callgate"} }, says(message("ok")))
	if w := h.post(asks(`"tools":[` + own("") + `]`)); w.Code != http.StatusOK || !strings.Contains(string(h.model.asked(t, 0)["tools"]), `"mcp"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	h = openConfirming(t, func(r *upstream.Rules) { r.Modes = []upstream.Mode{upstream.Enforce} }, says(message("ok")))
	if w := h.post(asks(`"tools":[` + own("") + `]`)); w.Code != http.StatusBadRequest || h.model.times() != 0 {
		t.Errorf("enforced: %d %s", w.Code, w.Body)
	}
}

// TestAskingIsNotBound: a response that asks its client is continued by its items alone: the provider has
// calls that nothing answers.
func TestAskingIsNotBound(t *testing.T) {
	for _, stream := range []bool{false, true} {
		h := openConfirming(t, func(r *upstream.Rules) { r.Responses.State = upstream.BindState }, says(function("call_1", "pay", `{"amount":1}`)))
		ask := asks
		if stream {
			ask = asksStream
		}
		if w := h.post(ask(`"tools":[` + own("") + `]`)); !strings.Contains(w.Body.String(), "mcp_approval_request") {
			t.Fatal(w.Body)
		}
		if w := h.post(ask(`"previous_response_id":"resp_1","tools":[` + own("") + `]`)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "previous_response_id") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
}
