package toolimport_test

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolfile"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/wrapper"
)

// foreign is a tool as its server publishes it.
type foreign struct {
	Server      string          `json:"server,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

func published(t *testing.T, corpus string) []foreign {
	t.Helper()
	data, err := os.ReadFile(corpora.Path(t, corpus, corpus+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var tools []foreign
	if err := json.Unmarshal(data, &tools); err != nil {
		t.Fatal(err)
	}
	return tools
}

func imported(t *testing.T, tools any) *toolimport.Result {
	t.Helper()
	data, err := json.Marshal(tools)
	if err != nil {
		t.Fatal(err)
	}
	im, err := toolimport.MCP("tools.json", data, "")
	if err != nil {
		t.Fatal(err)
	}
	return im
}

func TestImportGitHub(t *testing.T) {
	const corpus = "registry_github_mcp"
	tools := published(t, corpus)
	im := imported(t, tools)
	if want := corpora.Count(corpus, 117, 24); len(tools) != want || len(im.Names) != want || len(im.Refused) != 0 {
		t.Fatalf("%d of %d tools are imported, %d refused; expected %d: %v", len(im.Names), len(tools), len(im.Refused), want, im.Refused)
	}
	readsBack(t, im, tools)
}

func TestImportDocker(t *testing.T) {
	servers := map[string][]foreign{}
	const corpus = "registry_docker_mcp"
	for _, tool := range published(t, corpus) {
		servers[tool.Server] = append(servers[tool.Server], tool)
	}
	if want := corpora.Count(corpus, 28, 6); len(servers) != want {
		t.Fatalf("found %d servers; expected %d", len(servers), want)
	}
	loaded, noSchema, badName := 0, 0, 0
	for _, server := range slices.Sorted(maps.Keys(servers)) {
		im := imported(t, servers[server])
		loaded += len(im.Names)
		for _, f := range im.Refused {
			switch {
			case strings.Contains(f.Message, "has no inputSchema"):
				noSchema++
			case strings.Contains(f.Message, "expected a name of letters"):
				badName++
			default:
				t.Errorf("%s: %v", server, f)
			}
			if f.Line < 1 || f.Column < 1 {
				t.Errorf("%s: a refusal has no place: %v", server, f)
			}
		}
		if len(im.Names)+len(im.Refused) != len(servers[server]) {
			t.Errorf("%s: %d tools are imported and %d refused, of %d", server, len(im.Names), len(im.Refused), len(servers[server]))
		}
		if len(im.Names) == 0 {
			if im.YAML != nil {
				t.Errorf("%s: a file is written without a tool", server)
			}
			continue
		}
		readsBack(t, im, servers[server])
	}
	if loaded != corpora.Count(corpus, 434, 13) || noSchema != corpora.Count(corpus, 319, 4) || badName != 2 {
		t.Errorf("%d load, %d have no schema, %d a bad name", loaded, noSchema, badName)
	}
}

// readsBack loads what was imported as part of a configuration, and compares it
// with what was published: equal schemas, but for what Changed names.
func readsBack(t *testing.T, im *toolimport.Result, tools []foreign) {
	t.Helper()
	c := loads(t, with(t, map[string]string{"tools/web.yaml": string(im.YAML), "limits.yaml": "# limits\nreplicas: 1\n# end\n", "policy.csv": "# end\n"}))
	byName := map[string]foreign{}
	for _, tool := range tools {
		byName[tool.Name] = tool
	}
	added := 0
	for _, name := range im.Names {
		e, ok := c.Tools.Lookup(name)
		if !ok {
			t.Errorf("%s is not in the configuration", name)
			continue
		}
		if e.Effect() != "once" || e.Run().Type != "client" {
			t.Errorf("%s: found effect %s and type %s; expected once and client", name, e.Effect(), e.Run().Type)
		}
		if e.Description() != byName[name].Description {
			t.Errorf("%s: found the description %q; expected %q", name, e.Description(), byName[name].Description)
		}
		found, expected := decode(t, e.InputSchema()), decode(t, byName[name].InputSchema)
		added += unstate(found, expected)
		if !reflect.DeepEqual(found, expected) {
			t.Errorf("%s: found the schema %v; expected %v", name, found, expected)
		}
	}
	if added != len(im.Changed) {
		t.Errorf("%d schemas were opened, and %d are said to be: %v", added, len(im.Changed), im.Changed)
	}
	if len(c.Tools.Entries()) != len(im.Names)+1 {
		t.Errorf("found %d tools; expected those imported and notes.add", len(c.Tools.Entries()))
	}
}

// unstate takes additionalProperties: true out of found where expected does not
// have it, and counts how often.
func unstate(found, expected any) int {
	count := 0
	switch f := found.(type) {
	case map[string]any:
		e, ok := expected.(map[string]any)
		if !ok {
			return 0
		}
		if _, has := e["additionalProperties"]; !has && f["additionalProperties"] == true {
			delete(f, "additionalProperties")
			count++
		}
		for key := range f {
			count += unstate(f[key], e[key])
		}
	case []any:
		e, ok := expected.([]any)
		for i := range f {
			if ok && i < len(e) {
				count += unstate(f[i], e[i])
			}
		}
	}
	return count
}

func TestImportForms(t *testing.T) {
	const tool = `{"name":"a","inputSchema":{"type":"object"}}`
	for why, c := range map[string]struct {
		data, prefix string
		names        []string
	}{
		"a list":                    {`[` + tool + `]`, "", []string{"a"}},
		"an object with tools":      {`{"tools":[` + tool + `]}`, "", []string{"a"}},
		"a response":                {`{"jsonrpc":"2.0","id":1,"result":{"tools":[` + tool + `],"nextCursor":null}}`, "", []string{"a"}},
		"a prefix":                  {`[` + tool + `]`, "server.", []string{"server.a"}},
		"an empty list":             {`[]`, "", nil},
		"an unknown member of MCP":  {`[{"name":"a","title":"A","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]`, "", []string{"a"}},
		"no output schema":          {`[{"name":"a","outputSchema":null,"inputSchema":{"type":"object"}}]`, "", []string{"a"}},
		"a tool that stands twice":  {`[` + tool + `,` + tool + `]`, "", []string{"a"}},
		"names that a face joins":   {`[{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a_b","inputSchema":{"type":"object"}}]`, "", []string{"a.b"}},
		"a tool that is no object":  {`["a",` + tool + `]`, "", []string{"a"}},
		"a schema that is faulty":   {`[{"name":"b","inputSchema":{"type":"objekt"}},` + tool + `]`, "", []string{"a"}},
		"a name with a line break":  {`[{"name":"b\nc","inputSchema":{"type":"object"}},` + tool + `]`, "", []string{"a"}},
		"a name that is a number":   {`[{"name":7,"inputSchema":{"type":"object"}},` + tool + `]`, "", []string{"a"}},
		"a name like YAML's true":   {`[{"name":"true","inputSchema":{"type":"object"}},{"name":"1.5","inputSchema":{"type":"object"}}]`, "", []string{"true", "1.5"}},
		"an escape in a schema":     {`[{"name":"a","description":"\u2028 \u0085 \ufeff\n# end\n\u0000 tab\t","inputSchema":{"type":"object","description":"- a\n\n  b: c\r\n"}}]`, "", []string{"a"}},
		"numbers of many digits":    {`[{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"number","maximum":12345678901234567890.5e3,"const":1.0}}}}]`, "", []string{"a"}},
		"a key that is YAML's null": {`[{"name":"a","inputSchema":{"type":"object","properties":{"null":{"type":"string"},"~":{"const":"~"},"<<":{"enum":["yes","0o7","=",""]}}}}]`, "", []string{"a"}},
	} {
		t.Run(why, func(t *testing.T) {
			im, err := toolimport.MCP("tools.json", []byte(c.data), c.prefix)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(im.Names, c.names) {
				t.Errorf("found %v; expected %v; refused: %v", im.Names, c.names, im.Refused)
			}
			for _, f := range im.Refused {
				if strings.ContainsAny(f.Error(), "\n\r") {
					t.Errorf("a refusal is not one line: %q", f.Error())
				}
			}
			if len(c.names) == 0 {
				return
			}
			loaded := loads(t, with(t, map[string]string{"tools/web.yaml": string(im.YAML), "limits.yaml": "{}\n# end\n", "policy.csv": "# end\n"}))
			var tools []foreign
			if err := json.Unmarshal([]byte(c.data), &tools); err != nil {
				return // another form of the list, or one with a fault: its names are judged above
			}
			for _, tool := range tools {
				if e, ok := loaded.Tools.Lookup(c.prefix + tool.Name); ok {
					if want := wrapper.EscapeHidden(tool.Description); e.Description() != want {
						t.Errorf("found the description %q; expected %q", e.Description(), want)
					}
					found, expected := decode(t, e.InputSchema()), decode(t, tool.InputSchema)
					if unstate(found, expected); !reflect.DeepEqual(found, expected) {
						t.Errorf("found the schema %v; expected %v", found, expected)
					}
				}
			}
		})
	}
}

// TestImportNamesEveryRefusal leaves no tool out without saying so.
func TestImportNamesEveryRefusal(t *testing.T) {
	tools := make([]foreign, 3*document.MaxFaults)
	for i := range tools {
		tools[i] = foreign{Name: "no schema", InputSchema: json.RawMessage("null")}
	}
	if im := imported(t, tools); len(im.Refused) != len(tools) || im.YAML != nil {
		t.Errorf("%d of %d are refused", len(im.Refused), len(tools))
	}
}

func TestImportFaults(t *testing.T) {
	for data, want := range map[string]string{
		``:                       `tools.json:1:1: not strict JSON: found the end of the file; expected no comments, no trailing commas, each key once`,
		`{"tools":{}}`:           `tools.json:1:10: found a mapping; expected a list of tools, or an object with the member tools`,
		`"tools"`:                `tools.json:1:1: found a string; expected a list of tools, or an object with the member tools`,
		"[\n{\"a\\nb\": 1,}]":    `tools.json:2:11: not strict JSON: found an invalid character ',' at start of value at /0; expected no comments, no trailing commas, each key once`,
		`{"a\nb":{"x":1,"x":2}}`: `tools.json:1:16: not strict JSON: found a duplicate key at /a\nb/x; expected no comments, no trailing commas, each key once`,
	} {
		im, err := toolimport.MCP("tools.json", []byte(data), "")
		if err == nil || im != nil || err.Error() != want {
			t.Errorf("%s\nfound    %v\nexpected %s", data, err, want)
		}
	}
}

// TestImportReadsBack imports texts that YAML finds hard: what the file says is
// what was published, with what hides in a text written out.
func TestImportReadsBack(t *testing.T) {
	hard := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune("#:-?!&*%@`|>'\"\\{}[], \n\r\t\u0085\u2028\ufeff\u00a0ab01.~=<\U0001F600"))))
	rapid.Check(t, func(t *rapid.T) {
		text := func(what string) string { return strings.ToValidUTF8(hard.Draw(t, what), "") }
		description, note := text("description"), text("note")
		key, word := wrapper.EscapeHidden(text("key")), wrapper.EscapeHidden(text("word")) // else the tool is left out
		schema, err := json.Marshal(map[string]any{
			"type": "object", "description": note,
			"properties": map[string]any{key: map[string]any{"enum": []any{word, rapid.Float64().Draw(t, "number"), rapid.Int64().Draw(t, "count"), nil, true}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal([]foreign{{Name: "a", Description: description, InputSchema: schema}})
		if err != nil {
			t.Fatal(err)
		}
		im, err := toolimport.MCP("tools.json", data, "")
		if err != nil || len(im.Names) != 1 {
			t.Fatalf("%s is not imported: %v, %v", data, err, im)
		}
		var r document.Report
		back := toolfile.Read(&r, "tools.yaml", im.YAML)
		if len(r.Faults) > 0 || len(back) != 1 {
			t.Fatalf("%s does not load: %v", im.YAML, r.Err())
		}
		var found, expected map[string]any
		if json.Unmarshal(back[0].Definition.InputSchema, &found) != nil || json.Unmarshal(schema, &expected) != nil {
			t.Fatalf("found the schema %s", back[0].Definition.InputSchema)
		}
		expected["description"] = wrapper.EscapeHidden(note)
		if !reflect.DeepEqual(found, expected) {
			t.Fatalf("found the schema %s; expected %s", back[0].Definition.InputSchema, schema)
		}
		if want := wrapper.EscapeHidden(description); back[0].Definition.Description != want {
			t.Fatalf("found the description %q; expected %q", back[0].Definition.Description, want)
		}
	})
}
