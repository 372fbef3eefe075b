package chat_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// providerSide are members by which providers and proxies run tools, fetch, or answer
// for another model on their own, and members that nobody knows.
var providerSide = map[string]string{
	"web_search_options":       `{}`, // OpenAI, Perplexity
	"plugins":                  `[{"id":"web"}]`,
	"preset":                   `"research"`,
	"models":                   `["x:online"]`,
	"route":                    `"fallback"`,
	"mcp_servers":              `[{"url":"http://evil.example"}]`,
	"search_parameters":        `{"mode":"on"}`, // xAI
	"deferred":                 `true`,
	"enable_search":            `true`, // Qwen
	"search_options":           `{"forced_search":true}`,
	"enable_code_interpreter":  `true`,
	"web_search":               `{"enable":true}`,
	"code_interpreter":         `{}`,
	"connectors":               `[1]`, // Cohere
	"agent_id":                 `"ag_1"`,
	"compound_custom":          `{"tools":{"enabled_tools":["web_search"]}}`, // Groq
	"search_settings":          `{}`,
	"data_sources":             `[{"type":"azure_search"}]`, // Azure
	"extra_body":               `{"google":{"tools":[]}}`,
	"google":                   `{}`,
	"providerOptions":          `{}`,  // Vercel
	"guardrails":               `[1]`, // LiteLLM
	"fallbacks":                `[1]`,
	"api_base":                 `"http://evil.example"`,
	"previous_response_id":     `"r"`,
	"conversation":             `"c"`,
	"background":               `true`,
	"tool_resources":           `{}`,
	"server_tools":             `[1]`,
	"built_in_tools":           `[1]`,
	"logits_processors":        `["os.system"]`, // vLLM: names of code
	"chat_template":            `"{{ x }}"`,
	"kv_transfer_params":       `{}`,
	"custom_logit_processor":   `"x"`,                     // SGLang
	"Tools":                    `[{"type":"web_search"}]`, // some servers fold case
	"TOOL_CHOICE":              `"auto"`,
	"Functions":                `[1]`,
	"invented_tomorrow":        `1`,
	"":                         `1`,
	"a\u202e\"]":               `1`,
	"temperature ":             `1`,
	strings.Repeat("m", 2_000): `1`,
}

// bothProtocols are the ways to speak to a model.
var bothProtocols = map[string]func(*upstream.Rules){"native": func(*upstream.Rules) {}, "text": textProtocol}

// TestProviderSideMembers: a member that may have the provider call tools is refused,
// before the model is asked, whatever its value, and sent on where the upstream's entry
// names it.
func TestProviderSideMembers(t *testing.T) {
	for protocol, rules := range bothProtocols {
		closed := open(t, inTurn(says(content("hi"), "stop")), plan{rules: rules})
		for _, mode := range []string{"enforce", "orchestrate"} {
			for name, value := range providerSide {
				body := asks(quoted(name) + ":" + value)
				w := closed.post(body, "Callgate-Mode", mode)
				got := reads(t, w).Error
				if w.Code != 400 || got.Code != "bad_request" || got.Param != name && len(name) <= upstream.MaxMemberName {
					t.Errorf("%s, %s, %.40q: %d %.300s", protocol, mode, name, w.Code, w.Body)
				}
				if len(got.Message) > 600 || len(name) < 40 && name != "" && !strings.ContainsAny(name, "\u202e") &&
					!strings.Contains(got.Message, `request_members: [`+quoted(name)+`] at the upstream sample`) {
					t.Errorf("%.40q: the message does not say what to do: %s", name, got.Message)
				}
			}
		}
		if requests := closed.model.times(); requests != 0 {
			t.Errorf("%s: the model was asked %d times", protocol, requests)
		}
	}
	for name, value := range providerSide {
		if name == "" || len(name) > 64 || strings.ContainsAny(name, "\u202e ") {
			continue // no name of an entry
		}
		for protocol, rules := range bothProtocols {
			h := open(t, inTurn(says(content("hi"), "stop")), plan{rules: all(rules, func(r *upstream.Rules) { r.RequestMembers = []string{"other", name} })})
			for _, mode := range []string{"enforce", "orchestrate"} {
				w := h.post(asks(quoted(name)+":"+value), "Callgate-Mode", mode)
				if w.Code != 200 || !strings.Contains(string(h.model.body(t, h.model.times()-1)), quoted(name)+":"+value) {
					t.Errorf("%s, %s, %s: %d %s", protocol, mode, name, w.Code, w.Body)
				}
			}
			questions := h.model.times()
			if w := h.post(asks(`"plugins2":1`)); w.Code != 400 || h.model.times() != questions {
				t.Errorf("%s: another member: %d %s", name, w.Code, w.Body)
			}
		}
	}
}

// TestMembersAreReadDecoded: neither an escape nor a second member of the same name
// brings a member past the list.
func TestMembersAreReadDecoded(t *testing.T) {
	h := open(t, inTurn(says(content("hi"), "stop")), plan{})
	for _, more := range []string{
		`"mcp\u005fservers":[1]`, `"\u0070lugins":[1]`, `"\u0077eb_search_options":{}`,
		`"temperature":1,"plugins":[],"plugins":[]`, `"plug\u0069ns":1,"plugins":1`, `"seed":1,"se\u0065d":2`,
	} {
		if w := h.post(asks(more)); w.Code != 400 || h.model.times() != 0 {
			t.Errorf("%s: %d %s", more, w.Code, w.Body)
		}
	}
	w := h.post(asks(`"plugins":[1],"mcp_servers":[1],"user":"u"`))
	if got := reads(t, w).Error; got.Param != "plugins" || !strings.Contains(got.Message, `request_members: ["plugins", "mcp_servers"]`) {
		t.Errorf("several members: %s", w.Body)
	}
	var many []string
	for i := range 5_000 {
		many = append(many, fmt.Sprintf(`"invented%d":1`, i))
	}
	if w := h.post(asks(strings.Join(many, ","))); w.Code != 400 || w.Body.Len() > 4_000 {
		t.Errorf("many members: %d, %d bytes", w.Code, w.Body.Len())
	}
	// What asks for nothing is not sent on.
	if w := h.post(asks(`"plugins":null,"mcp_servers":[ ],"functions":[],"user":"u"`)); w.Code != 200 || regexp.MustCompile("null|plugins|servers|functions").Match(h.model.body(t, 0)) {
		t.Errorf("members without anything in them: %d %s, sent on %s", w.Code, w.Body, h.model.body(t, 0))
	}
	for _, choice := range []string{`"none"`, `"auto"`, "null"} {
		h := open(t, inTurn(says(content("hi"), "stop")), plan{})
		if w := h.post(asks(`"functions":null,"function_call":` + choice)); w.Code != 200 || strings.Contains(string(h.model.body(t, 0)), "function") {
			t.Errorf("a choice of %s among no functions: %d %s", choice, w.Code, w.Body)
		}
	}
	// The caller learns nothing of it before it was let in.
	if w := h.post(asks(`"plugins":[1]`), "Callgate-Agent", "Nobody"); w.Code != 403 {
		t.Errorf("an agent of no name: %d %s", w.Code, w.Body)
	}
}

// TestKnownMembers: what clients send every day is sent on as it was written.
func TestKnownMembers(t *testing.T) {
	const more = `"frequency_penalty":0.1,"logit_bias":{"1":2},"logprobs":true,"top_logprobs":2,"max_completion_tokens":9,"max_tokens":9,` +
		`"metadata":{"a":"b"},"modalities":["text"],"audio":{"voice":"alloy","format":"wav"},"prediction":{"type":"content","content":"x"},` +
		`"presence_penalty":0,"prompt_cache_key":"k","reasoning_effort":"low","response_format":{"type":"json_object"},"safety_identifier":"s",` +
		`"seed":7,"service_tier":"auto","stop":["x"],"store":true,"temperature":0.10,"top_p":1,"user":"u","verbosity":"low",` +
		`"top_k":1,"min_p":0,"repetition_penalty":1,"guided_json":{},"chat_template_kwargs":{"enable_thinking":false},"thinking":{"type":"enabled"},` +
		`"provider":{"order":["a"]},"transforms":[],"reasoning":{"effort":"low"},"safe_prompt":true,"keep_alive":"5m","cache_prompt":true`
	for protocol, rules := range bothProtocols {
		h := open(t, inTurn(says(content(`{}`), "stop")), plan{rules: rules})
		if w := h.post(asks(more)); w.Code != 200 || !strings.Contains(string(h.model.body(t, 0)), more) {
			t.Errorf("%s: %d %s", protocol, w.Code, w.Body)
		}
	}
}

// TestTemplateVariables: a template cannot be sent in as one of its own variables, nor
// can tools; the operator may allow even that.
func TestTemplateVariables(t *testing.T) {
	for variables, status := range map[string]int{
		`{}`:                         200,
		`null`:                       200,
		`{"enable_thinking":false}`:  200,
		`{"reasoning_effort":"low"}`: 200,
		`{"thinking_budget":10,"add_vision_id":null}`: 200,
		`{"chat_template":"{{ x }}"}`:                 400,
		`{"chat_template":null}`:                      400,
		`{"chat\u005ftemplate":"{{ x }}"}`:            400,
		`{"a":1,"tokenize":false}`:                    400,
		`{"tools":[{"type":"function"}]}`:             400,
		`{"builtin_tools":["browser"]}`:               400,
		`{"conversation":{"messages":[]}}`:            400,
		`[]`:                                          400,
		`"x"`:                                         400,
	} {
		for protocol, rules := range bothProtocols {
			h := open(t, inTurn(says(content("hi"), "stop")), plan{rules: rules})
			w := h.post(asks(`"chat_template_kwargs":` + variables))
			if got := reads(t, w); w.Code != status || status == 400 && (got.Error.Param != "chat_template_kwargs" || h.model.times() != 0) {
				t.Errorf("%s, %s: %d %s", protocol, variables, w.Code, w.Body)
			}
			h = open(t, inTurn(says(content("hi"), "stop")), plan{rules: all(rules, func(r *upstream.Rules) { r.RequestMembers = []string{"chat_template_kwargs"} })})
			if w := h.post(asks(`"chat_template_kwargs":` + variables)); w.Code != 200 {
				t.Errorf("%s, %s, allowed: %d %s", protocol, variables, w.Code, w.Body)
			}
		}
	}
}

// TestToolChoiceOfResponses: a tool that is named as Responses have it is sent as this API has it.
func TestToolChoiceOfResponses(t *testing.T) {
	const function, flat = `{"type":"function","function":{"name":"time_now"}}`, `{"type":"function","name":"time_now"}`
	for _, choice := range []string{flat, `{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[` + flat + `]}}`} {
		h := open(t, inTurn(says(toolCalls("c1", "time_now", "{}"), "tool_calls")), plan{})
		w := h.post(asks(tools("time_now") + `,"tool_choice":` + choice))
		if sent := string(h.model.body(t, 0)); w.Code != 200 || !strings.Contains(sent, `"tool_choice":`+strings.Replace(choice, flat, function, 1)) {
			t.Errorf("%s: %d %s, sent %s", choice, w.Code, w.Body, sent)
		}
	}
}

// TestToolChoiceIsSentAsRead: what stands beside the name of a tool in tool_choice was
// not read, and is not sent on.
func TestToolChoiceIsSentAsRead(t *testing.T) {
	h := open(t, inTurn(says(toolCalls("a", "time_now", "{}"), "tool_calls")), plan{})
	w := h.post(asks(tools("time_now") + `,"tool_choice":{"web_search":{},"type":"function","function":{"name":"time_now","mcp":1}}`))
	var sent struct {
		Choice json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal(h.model.body(t, 0), &sent); w.Code != 200 || err != nil || string(sent.Choice) != `{"type":"function","function":{"name":"time_now"}}` {
		t.Errorf("%d %s: sent %s", w.Code, w.Body, sent.Choice)
	}
}

// TestModelsThatSearch: a name by which a provider runs its own tools is for the
// operator to list, as a whole.
func TestModelsThatSearch(t *testing.T) {
	for model, status := range map[string]int{
		"x-gpt": 200, "x-gpt:free": 200, "x-gpt:online": 400, "x-gpt:free:ONLINE": 400, "x-gpt@preset/own": 400, "x-listed:online": 200,
		"x-gpt:online:nitro": 400, "x-gpt:online ": 400, "x-gpt:onlineish": 200,
	} {
		h := open(t, inTurn(says(content("hi"), "stop")), plan{definition: func(d *upstream.Definition) {
			d.Models = append(d.Models, upstream.Model{ID: "x-listed:online"})
		}})
		w := h.post(`{"model":` + quoted(model) + `,"messages":[{"role":"user","content":"hi"}]}`)
		if got := reads(t, w); w.Code != status || status == 400 && (got.Error.Param != "model" || h.model.times() != 0) {
			t.Errorf("%s: %d %s", model, w.Code, w.Body)
		}
	}
}
