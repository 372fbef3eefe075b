package toolimport_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

func TestImportOpenAIForms(t *testing.T) {
	const tool = `{"type":"function","function":{"name":"a","description":"A.","parameters":{"type":"object","properties":{"x":{"type":"string"}}}}}`
	for why, c := range map[string]struct {
		data    string
		names   []string
		refused string // part of why one is left out
	}{
		"a list":                     {`[` + tool + `]`, []string{"a"}, ""},
		"a request":                  {`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[` + tool + `],"tool_choice":"auto"}`, []string{"a"}, ""},
		"an empty list":              {`[]`, nil, ""},
		"strict or not":              {`[{"type":"function","function":{"name":"a","strict":true,"parameters":{"type":"object"}}},{"type":"function","function":{"name":"b","strict":false}}]`, []string{"a", "b"}, ""},
		"no parameters":              {`[{"type":"function","function":{"name":"a"}}]`, []string{"a"}, ""},
		"null for parameters":        {`[{"type":"function","function":{"name":"a","parameters":null}}]`, []string{"a"}, ""},
		"a name with each character": {`[{"type":"function","function":{"name":"get_Weather-2"}}]`, []string{"get_Weather-2"}, ""},
		"a custom tool":              {`[{"type":"custom","custom":{"name":"grep","format":{"type":"text"}}},` + tool + `]`, []string{"a"}, `tools.json:1:2: found a custom tool, whose input is free text that no schema can judge; expected type function`},
		"a hosted tool":              {`[{"type":"web_search"},` + tool + `]`, []string{"a"}, `tools.json:1:10: found the string "web_search"; expected the type function`},
		"a type that is no text":     {`[{"type":7},` + tool + `]`, []string{"a"}, `found the whole number 7; expected the type function`},
		"no type":                    {`[{"function":{"name":"b"}},` + tool + `]`, []string{"a"}, `found a tool without a type`},
		"a tool of the Responses":    {`[{"type":"function","name":"b","parameters":{"type":"object"}},` + tool + `]`, []string{"a"}, `found a tool of type function that says nothing of it; expected the member function`},
		"a function that is no one":  {`[{"type":"function","function":"b"},` + tool + `]`, []string{"a"}, `tools.json:1:21: found a tool of type function that says nothing`},
		"a tool of another dialect":  {`[{"name":"b","inputSchema":{"type":"object"}},` + tool + `]`, []string{"a"}, `found a tool without a type`},
		"no name":                    {`[{"type":"function","function":{}},` + tool + `]`, []string{"a"}, `found a tool without a name`},
		"a name with a dot":          {`[{"type":"function","function":{"name":"b.c"}},` + tool + `]`, []string{"a"}, `found the name "b.c"; expected letters, digits, _ and - only`},
		"a name that is too long":    {`[{"type":"function","function":{"name":"` + strings.Repeat("b", 65) + `"}},` + tool + `]`, []string{"a"}, "at most 64 bytes"},
		"a tool that stands twice":   {`[` + tool + `,` + tool + `]`, []string{"a"}, `"a"`},
		"parameters of a list":       {`[{"type":"function","function":{"name":"b","parameters":[]}},` + tool + `]`, []string{"a"}, "input_schema"},
		"strict in the parameters":   {`[{"type":"function","function":{"name":"a","parameters":{"strict":true,"type":"object","properties":{}}}}]`, []string{"a"}, ""},
		"that, but no boolean":       {`[{"type":"function","function":{"name":"b","parameters":{"type":"object","strict":"yes"}}},` + tool + `]`, []string{"b", "a"}, ""},
		"that, below the root":       {`[{"type":"function","function":{"name":"b","parameters":{"type":"object","properties":{"x":{"type":"string","strict":true}}}}},` + tool + `]`, []string{"b", "a"}, ""},
		"a misspelt keyword":         {`[{"type":"function","function":{"name":"b","parameters":{"type":"object","requird":["x"]}}},` + tool + `]`, []string{"a"}, `the unknown keyword "requird"`},
		"functions of old":           {`{"tools":[` + tool + `],"functions":[{"name":"b"}]}`, []string{"a"}, ""},
	} {
		t.Run(why, func(t *testing.T) {
			im, err := toolimport.OpenAI("tools.json", []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(im.Names, c.names) || (len(im.Refused) > 0) != (c.refused != "") {
				t.Fatalf("found %v; expected %v; refused: %v", im.Names, c.names, im.Refused)
			}
			if c.refused != "" && (len(im.Refused) != 1 || !strings.Contains(im.Refused[0].Error(), c.refused)) {
				t.Errorf("refused: %v; expected %s", im.Refused, c.refused)
			}
			if len(c.names) == 0 {
				return
			}
			loaded := loads(t, with(t, map[string]string{"tools/web.yaml": string(im.YAML), "limits.yaml": "{}\n# end\n", "policy.csv": "# end\n"}))
			for _, name := range c.names {
				e, ok := loaded.Tools.Lookup(name)
				if !ok || e.Effect() != "once" || e.Run().Type != "client" {
					t.Errorf("%s is not there, or does not act once at the application", name)
				}
			}
		})
	}
}

// TestImportOpenAIParameters: a function without parameters takes no arguments,
// and what is changed in others is said.
func TestImportOpenAIParameters(t *testing.T) {
	im, err := toolimport.OpenAI("tools.json", []byte(`[{"type":"function","function":{"name":"a"}},
{"type":"function","function":{"name":"b","parameters":{"type":"object","properties":{"deep":{"type":"object"}}}}},
{"type":"function","function":{"name":"c","parameters":{"strict":true,"type":"object"}}}]`))
	if err != nil || len(im.Names) != 3 {
		t.Fatal(err, im)
	}
	var changed []string
	for _, f := range im.Changed {
		changed = append(changed, f.Error())
	}
	if !slices.Equal(changed, []string{
		`tools.json:2:94: tool "b": input_schema at /properties/deep: declares no members; additionalProperties: true was added`,
		`tools.json:3:57: tool "c": input_schema at /strict: strict is no keyword of JSON Schema; it was left out`,
	}) {
		t.Errorf("changed: %q", changed)
	}
	loaded := loads(t, with(t, map[string]string{"tools/web.yaml": string(im.YAML), "limits.yaml": "{}\n# end\n", "policy.csv": "# end\n"}))
	for _, name := range []string{"a", "c"} {
		if e, ok := loaded.Tools.Lookup(name); !ok || string(e.InputSchema()) != `{"type":"object"}` {
			t.Errorf("%s: found the schema %s", name, e.InputSchema())
		}
	}
}

func TestImportOpenAIFaults(t *testing.T) {
	for data, want := range map[string]string{
		`{"tools":{}}`:                 `tools.json:1:10: found a mapping; expected a list of tools, or an object with the member tools`,
		`{"functions":[{"name":"a"}]}`: `tools.json:1:1: found a mapping; expected a list of tools, or an object with the member tools`,
		`{"result":{"tools":[]}}`:      `tools.json:1:1: found a mapping; expected a list of tools, or an object with the member tools`,
		`{"tools":[],"tools":[]}`:      `tools.json:1:13: not strict JSON: found a duplicate key at /tools; expected no comments, no trailing commas, each key once`,
	} {
		im, err := toolimport.OpenAI("tools.json", []byte(data))
		if err == nil || im != nil || err.Error() != want {
			t.Errorf("%s\nfound    %v\nexpected %s", data, err, want)
		}
	}
}

// TestImportOpenAIExchanges imports what real applications offered: all of it
// loads, but for what is named here.
func TestImportOpenAIExchanges(t *testing.T) {
	type offered struct {
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters,omitempty"`
	}
	type exchange struct {
		ID    string
		Style string
		Tools []struct {
			Name        string
			Description string
			Schema      json.RawMessage
		}
	}
	tools, imported := 0, 0
	var refused []string
	for _, x := range corpora.Lines[exchange](t, corpora.Path(t, "native_exchanges", "exchanges.jsonl")) {
		if x.Style != "openai-chat" || len(x.Tools) == 0 {
			continue
		}
		var request struct {
			Tools []any `json:"tools"`
		}
		for _, tool := range x.Tools {
			request.Tools = append(request.Tools, map[string]any{"type": "function", "function": offered{tool.Name, tool.Description, tool.Schema}})
		}
		data, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		im, err := toolimport.OpenAI("request.json", data)
		if err != nil {
			t.Fatalf("%s: %v", x.ID, err)
		}
		tools += len(x.Tools)
		imported += len(im.Names)
		for _, f := range im.Refused {
			refused = append(refused, f.Message)
		}
	}
	count := func(whole, sample int) int { return corpora.Count("native_exchanges", whole, sample) }
	name := "openrouter:web_search"
	if !corpora.Whole("native_exchanges") {
		name = "acme:lookup"
	}
	if tools != count(167, 13) || imported != count(166, 12) || !slices.Equal(refused, []string{`found the name "` + name + `"; expected letters, digits, _ and - only, as the API does`}) {
		t.Errorf("%d of %d tools are imported; refused: %q", imported, tools, refused)
	}
}
