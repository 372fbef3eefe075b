package toolimport_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// importCase is what becomes of some definitions.
type importCase struct {
	data    string
	names   []string
	refused string // part of why one is left out
}

// checkImports imports each case, and loads what comes of it.
func checkImports(t *testing.T, read func(file string, data []byte, only ...string) (*toolimport.Result, error), cases map[string]importCase) {
	t.Helper()
	for why, c := range cases {
		t.Run(why, func(t *testing.T) {
			im, err := read("tools.json", []byte(c.data))
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

func TestImportAnthropic(t *testing.T) {
	const tool = `{"name":"a","description":"A.","input_schema":{"type":"object","properties":{"x":{"type":"string"}}}}`
	checkImports(t, toolimport.Anthropic, map[string]importCase{
		"a list":                    {`[` + tool + `]`, []string{"a"}, ""},
		"a request":                 {`{"model":"m","max_tokens":1,"messages":[],"tools":[` + tool + `]}`, []string{"a"}, ""},
		"custom and null":           {`[{"type":"custom","name":"a","input_schema":{"type":"object"}},{"type":null,"name":"b","input_schema":{"type":"object"}}]`, []string{"a", "b"}, ""},
		"members of no concern":     {`[{"name":"a","strict":true,"defer_loading":true,"cache_control":{"type":"ephemeral"},"input_examples":[{"x":"y"}],"input_schema":{"type":"object"}}]`, []string{"a"}, ""},
		"tools of the API":          {`[{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"str_replace_based_edit_tool","max_characters":9},{"type":"memory_20250818","name":"memory"}]`, []string{"bash", "str_replace_based_edit_tool", "memory"}, ""},
		"a toolset":                 {`[{"type":"computer_toolset_20260801","display_width_px":1}]`, []string{"computer.cursor_position", "computer.double_click", "computer.hold_key", "computer.key", "computer.left_click", "computer.left_click_drag", "computer.left_mouse_down", "computer.left_mouse_up", "computer.middle_click", "computer.mouse_move", "computer.right_click", "computer.screenshot", "computer.scroll", "computer.triple_click", "computer.type", "computer.wait", "computer.zoom"}, ""},
		"a server tool":             {`[{"type":"web_search_20250305","name":"web_search"},` + tool + `]`, []string{"a"}, `tools.json:1:10: found the string "web_search_20250305"; expected custom, or a tool that the application runs`},
		"a connector":               {`[{"type":"mcp_toolset","mcp_server_name":"x"},` + tool + `]`, []string{"a"}, "the provider runs others"},
		"a type that is no text":    {`[{"type":7},` + tool + `]`, []string{"a"}, "found the whole number 7"},
		"a date that is none":       {`[{"type":"bash_latest","name":"bash"},` + tool + `]`, []string{"a"}, "the provider runs others"},
		"no schema":                 {`[{"name":"b"},` + tool + `]`, []string{"a"}, `tool "b" has no input_schema`},
		"no name":                   {`[{"input_schema":{"type":"object"}},` + tool + `]`, []string{"a"}, "without a name"},
		"a name with a dot":         {`[{"name":"b.c","input_schema":{"type":"object"}},` + tool + `]`, []string{"a"}, "letters, digits, _ and - only"},
		"a schema that does not do": {`[{"name":"b","input_schema":{"type":"object","properties":{"x":{"type":"text"}}}},` + tool + `]`, []string{"a"}, "tools.json:1:65: "},
		"a library's words":         {`[{"name":"a","input_schema":{"type":"object","strict":true,"properties":{"x":{"type":"integer","format":"int32"},"y":{"type":["number","null"],"format":"double"}}}}]`, []string{"a"}, ""},
		"a format of nobody":        {`[{"name":"b","input_schema":{"type":"object","properties":{"x":{"type":"integer","format":"int33"}}}},` + tool + `]`, []string{"b", "a"}, ""},
		"no object":                 {`["b",` + tool + `]`, []string{"a"}, "found a string; expected a tool"},
		"one name twice":            {`[{"type":"bash_20250124","name":"bash"},{"name":"bash","input_schema":{"type":"object"}}]`, []string{"bash"}, `"bash"`},
	})
}

func TestImportResponses(t *testing.T) {
	const tool = `{"type":"function","name":"a","description":"A.","strict":false,"parameters":{"type":"object","properties":{"x":{"type":"string"}}}}`
	checkImports(t, toolimport.Responses, map[string]importCase{
		"a list":                  {`[` + tool + `]`, []string{"a"}, ""},
		"a request":               {`{"model":"m","input":"hi","tools":[` + tool + `]}`, []string{"a"}, ""},
		"no parameters":           {`[{"type":"function","name":"a"},{"type":"function","name":"b","parameters":null}]`, []string{"a", "b"}, ""},
		"a custom tool":           {`[{"type":"custom","name":"apply_patch","format":{"type":"grammar","syntax":"lark","definition":"start: X"}}]`, []string{"apply_patch"}, ""},
		"a namespace":             {`[{"type":"namespace","name":"clock","description":"d","tools":[` + tool + `,{"type":"custom","name":"b"}]}]`, []string{"clock.a", "clock.b"}, ""},
		"tools of the API":        {`[{"type":"shell"},{"type":"local_shell"},{"type":"apply_patch"},{"type":"computer_use_preview","display_width":1,"display_height":1,"environment":"linux"}]`, []string{"shell", "local_shell", "apply_patch", "computer"}, ""},
		"a local shell":           {`[{"type":"shell","environment":{"type":"local"}}]`, []string{"shell"}, ""},
		"a shell of the provider": {`[{"type":"shell","environment":{"type":"container_auto"}},` + tool + `]`, []string{"a"}, `found the string "shell"`},
		"inside the input":        {`{"input":[{"type":"message"},{"type":"additional_tools","role":"developer","tools":[` + tool + `]},{"type":"additional_tools","tools":[{"type":"local_shell"}]}]}`, []string{"a", "local_shell"}, ""},
		"in both places":          {`{"tools":[{"type":"local_shell"}],"input":[{"type":"additional_tools","tools":[` + tool + `]}]}`, []string{"local_shell", "a"}, ""},
		"a mark of Codex":         {`[{"type":"function","name":"a","parameters":{"type":"object","properties":{"x":{"type":"string","encrypted":true},"y":{"type":"string"}},"required":["x"]}}]`, []string{"a"}, ""},
		"that, but no boolean":    {`[{"type":"function","name":"b","parameters":{"type":"object","properties":{"x":{"type":"string","encrypted":"yes"}}}},` + tool + `]`, []string{"b", "a"}, ""},
		"a hosted tool":           {`[{"type":"web_search"},` + tool + `]`, []string{"a"}, `tools.json:1:10: found the string "web_search"; expected function, custom, namespace`},
		"a server":                {`[{"type":"mcp","server_label":"x","server_url":"https://example.com"},` + tool + `]`, []string{"a"}, "the provider runs others"},
		"no type":                 {`[{"name":"b"},` + tool + `]`, []string{"a"}, "found a tool without a type"},
		"a type that is no text":  {`[{"type":7},` + tool + `]`, []string{"a"}, "found the whole number 7; expected a type"},
		"the form of chat":        {`[{"type":"function","function":{"name":"b"}},` + tool + `]`, []string{"a"}, "found a tool without a name"},
		"a namespace in one":      {`[{"type":"namespace","name":"n","tools":[{"type":"namespace","name":"m","tools":[]},` + tool + `]}]`, []string{"n.a"}, "expected function, custom"},
		"an empty namespace":      {`[{"type":"namespace","name":"n"},` + tool + `]`, []string{"a"}, "without a name or a list of tools"},
		"text in a namespace":     {`[{"type":"namespace","name":"n","tools":["b"]},` + tool + `]`, []string{"a"}, "found a string; expected a tool"},
	})
	for data, want := range map[string]string{
		`{"input":"hi"}`:         `tools.json:1:1: found a mapping; expected a list of tools, or an object with the member tools`,
		`{"tools":7,"input":[]}`: `tools.json:1:10: found a whole number; expected a list of tools`,
		`{"input":[{"type":"additional_tools","tools":7}]}`: `found a whole number; expected a list of tools`,
	} {
		if im, err := toolimport.Responses("tools.json", []byte(data)); im != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: found %v", data, err)
		}
	}
}

// TestImportAgents imports what Claude Code and Codex send: all of it loads, but for the tools
// of the provider.
func TestImportAgents(t *testing.T) {
	for file, c := range map[string]struct {
		read  func(file string, data []byte, only ...string) (*toolimport.Result, error)
		names int
		some  []string
		left  []string
	}{
		"claude-code/first.json": {toolimport.Anthropic, 25, []string{"Bash", "Read", "Edit", "Write", "TaskCreate"}, nil},
		"codex/functions.json":   {toolimport.Responses, 12, []string{"exec_command", "multi_agent_v1.close_agent"}, []string{"web_search"}},
		"codex/patches.json":     {toolimport.Responses, 8, []string{"exec_command", "apply_patch"}, []string{"tool_search", "web_search"}},
		"codex/code-mode.json":   {toolimport.Responses, 11, []string{"functions.exec", "clock.sleep", "collaboration.send_message"}, nil},
	} {
		data, err := os.ReadFile(corpora.Testdata("agents", file))
		if err != nil {
			t.Fatal(err)
		}
		im, err := c.read(file, data)
		if err != nil {
			t.Fatal(err)
		}
		if len(im.Names) != c.names || len(im.Refused) != len(c.left) {
			t.Errorf("%s: found %d tools: %v; refused: %v", file, len(im.Names), im.Names, im.Refused)
		}
		for _, name := range c.some {
			if !slices.Contains(im.Names, name) {
				t.Errorf("%s: %s is not among %v", file, name, im.Names)
			}
		}
		for i, f := range im.Refused {
			if !strings.Contains(f.Message, c.left[i]) {
				t.Errorf("%s: %v; expected %s", file, f, c.left[i])
			}
		}
	}
}

// TestImportRecordings imports the tools of every recorded request of both APIs.
func TestImportRecordings(t *testing.T) {
	if !corpora.Whole("face_recordings") {
		t.Skip("the corpus face_recordings is not here")
	}
	type recorded struct {
		URI     string
		Request json.RawMessage
	}
	requests, tools, imported := 0, 0, 0
	refused := map[string]int{}
	for _, file := range []string{"exchanges.jsonl", "error_replies.jsonl", "other_replies.jsonl", "sse_streams/index.jsonl"} {
		for _, r := range corpora.Lines[recorded](t, corpora.Path(t, "face_recordings", strings.Split(file, "/")...)) {
			var request struct{ Tools []any }
			if json.Unmarshal(r.Request, &request) != nil || len(request.Tools) == 0 {
				continue
			}
			read := toolimport.Responses
			if strings.Contains(r.URI, "/messages") {
				read = toolimport.Anthropic
			}
			im, err := read("request.json", r.Request)
			if err != nil {
				t.Fatalf("%s: %v", r.URI, err)
			}
			requests++
			tools += len(request.Tools)
			imported += len(im.Names)
			for _, f := range im.Refused {
				refused[f.Message]++
			}
		}
	}
	// Tools of the provider are left out, and six schemas that were made to be refused.
	hosted, broken := 0, 0
	for message, n := range refused {
		if strings.Contains(message, "the provider runs others") {
			hosted += n
		} else if broken += n; !strings.Contains(message, `tool "record_`) {
			t.Error(message)
		}
	}
	if requests != 584 || tools != 863 || imported != 836 || hosted != 21 || broken != 6 {
		t.Errorf("%d requests with %d tools: %d imported, %d of the provider, %d that cannot be judged", requests, tools, imported, hosted, broken)
	}
}
