package messages_test

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// changing is a request whose messages change the tools.
func changing(block string, more ...string) string {
	return strings.Replace(asks(more...), `"content":"hi"}`, `"content":"hi"},{"role":"system","content":[`+block+`]}`, 1)
}

// TestAM12Definitions: a tool that stands in a message needs the same switches as one of tools. The
// provider would run it, and a refusal of its reply would come too late.
func TestAM12Definitions(t *testing.T) {
	for definition, allow := range map[string]func(*upstream.MessagesRules){
		`{"type":"web_search_20250305","name":"web_search"}`:                              func(r *upstream.MessagesRules) { r.ServerTools = []string{"web_search"} },
		`{"type":"mcp_toolset","mcp_server_name":"docs"}`:                                 func(r *upstream.MessagesRules) { r.MCPServers = []string{"docs"} },
		`{"name":"mine","input_schema":{},"allowed_callers":["code_execution_20260120"]}`: func(r *upstream.MessagesRules) { r.ProgrammaticCalls = true },
	} {
		body := changing(`{"type":"tool_addition","tool":{"type":"tool_definition","definition":` + definition + `}}`)
		for _, switched := range []bool{false, true} {
			h := open(t, says(message("end_turn", textOf("ok"))), plan{rules: func(r *upstream.Rules) {
				r.Messages.ToolDefinitions, r.Tools = true, upstream.FromRequest
				if switched {
					allow(&r.Messages)
				}
			}})
			if w := h.create(body); (w.Code == 200) != switched || (h.model.times() == 1) != switched || !switched && w.Code != 400 {
				t.Errorf("%s, switched: %v: found %d %s", definition, switched, w.Code, w.Body)
			}
		}
	}
}

// TestAM12Removal: a message takes a tool away also where the request has no tools, and the model
// gets all that the agent may use.
func TestAM12Removal(t *testing.T) {
	for removed, runs := range map[string]int{"web_search": 0, "time_now": 1} {
		h := open(t, says(message("tool_use", toolUse("toolu_1", "web_search", `{"query":"go"}`)), message("end_turn", textOf("ok"))), plan{rules: orchestrate})
		w := h.create(changing(`{"type":"tool_removal","tool":{"type":"tool_reference","name":"` + removed + `"}}`))
		if w.Code != 200 || len(*h.ran) != runs {
			t.Errorf("without %s: ran %v, found %d %s", removed, *h.ran, w.Code, w.Body)
		}
	}
}
