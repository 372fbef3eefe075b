package registry_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// compiled is a call schema, compiled by an evaluator that is not ours.
func compiled(t *testing.T, tools []*registry.Entry, form registry.CallForm) *jsonschema.Schema {
	t.Helper()
	text, err := registry.CallSchema(tools, form)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("calls.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("calls.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCallSchema: each public vector that is a call keeps the schema of calls, and none does that is
// JSON and refused for its shape or its arguments.
func TestCallSchema(t *testing.T) {
	loaded, err := configs.Load(corpora.Testdata("vectors", "config", "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s := compiled(t, loaded.Tools.Entries(), registry.CallForm{Agent: "Analyst"})
	calls, refused := 0, 0
	for _, v := range corpora.Vectors(t) {
		shape := v.Expect.Stage == "parse" || v.Expect.Stage == "schema"
		if v.Completion == nil || v.Agent != "Analyst" || v.FinishReason != "" || v.Expect.Verdict != "tool_call" && !shape {
			continue
		}
		switch v.Expect.Code {
		case "duplicate_key", "invalid_number", "too_deep", "output_too_large": // no schema can say these
			continue
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(*v.Completion))
		if err != nil || strings.Contains(*v.Completion, `\ud8`) { // encoding/json takes lone surrogates
			continue
		}
		keeps := s.Validate(value) == nil
		if call := v.Expect.Verdict == "tool_call"; keeps != call {
			t.Errorf("%s: kept %v, verdict %s %s", v.ID, keeps, v.Expect.Verdict, v.Expect.Code)
		} else if call {
			calls++
		} else {
			refused++
		}
	}
	if calls < 10 || refused < 20 {
		t.Errorf("compared only %d calls and %d refused completions", calls, refused)
	}
}

func TestCallSchemaForms(t *testing.T) {
	r, err := registry.New([]registry.Tool{
		{Name: "web.search", Run: tool.Run{Type: "client"}, InputSchema: []byte(`{"type":"object","required":["q"],"properties":{"q":{"$ref":"#/$defs/text"}},"$defs":{"text":{"type":"string"}}}`)},
		{Name: "time.now", Run: tool.Run{Type: "client"}, InputSchema: []byte(`{"type":"object","properties":{"zone":{"$ref":"#/$defs/text"}},"$defs":{"text":{"type":"integer"}}}`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	names, err := registry.NewNameMap([]string{"web.search", "time.now"}, registry.OpenAI())
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tools []*registry.Entry
		form  registry.CallForm
		keeps map[string]bool
	}{
		"strict": {r.Entries(), registry.CallForm{}, map[string]bool{
			`{"tool":{"name":"web.search","arguments":{"q":"x"}}}`:             true,
			`{"tool":{"name":"time.now","arguments":{"zone":1}}}`:              true,
			`{"tool":{"name":"time.now","arguments":{"zone":"x"}}}`:            false,
			`{"tool":{"name":"web.search","arguments":{"q":"x"}},"agent":"A"}`: false,
			`{"name":"web_search","arguments":{"q":"x"}}`:                      false,
			`{"tool":{"name":"web.search","arguments":[]}}`:                    false,
		}},
		"agent": {r.Entries(), registry.CallForm{Agent: "A", AgentRequired: true}, map[string]bool{
			`{"tool":{"name":"web.search","arguments":{"q":"x"}},"agent":"A"}`: true,
			`{"tool":{"name":"web.search","arguments":{"q":"x"}},"agent":"B"}`: false,
			`{"tool":{"name":"web.search","arguments":{"q":"x"}}}`:             false,
		}},
		"native": {r.Entries(), registry.CallForm{Names: names}, map[string]bool{
			`{"name":"web_search","arguments":{"q":"x"}}`:           true,
			`{"name":"web.search","arguments":{"q":"x"}}`:           false,
			`{"name":"web_search","arguments":{"q":"x","extra":1}}`: false,
		}},
		"no tool": {nil, registry.CallForm{}, map[string]bool{`{"tool":{"name":"web.search","arguments":{"q":"x"}}}`: false, `{}`: false}},
	} {
		s := compiled(t, c.tools, c.form)
		for text, want := range c.keeps {
			value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Validate(value) == nil; got != want {
				t.Errorf("%s: %s: got %v, want %v", name, text, got, want)
			}
		}
	}
}
