package clienttools_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/clienttools"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/tool"
)

// every are all tools of both APIs.
func every() []clienttools.Tool {
	var all []clienttools.Tool
	for _, kind := range []string{"bash_20250124", "text_editor_20250124", "text_editor_20250728", "memory_20250818", "computer_20251124", "computer_toolset_20260801", "browser_toolset_20260801"} {
		all = append(all, clienttools.Anthropic(kind)...)
	}
	for _, kind := range []string{"shell", "local_shell", "apply_patch"} {
		t, _ := clienttools.Responses(kind)
		all = append(all, t)
	}
	screen, _ := clienttools.Responses("computer")
	screen.Name = "screen" // beside Anthropic's
	all = append(all, screen)
	return all
}

// TestEveryToolLoads: the registry takes each as it is, all at once.
func TestEveryToolLoads(t *testing.T) {
	for _, set := range [][]clienttools.Tool{every(), {{Name: "custom", Schema: clienttools.Custom}}} {
		var tools []registry.Tool
		for _, c := range set {
			tools = append(tools, registry.Tool{Name: c.Name, Description: c.Description, InputSchema: c.Schema, Run: tool.Run{Type: "client"}})
		}
		r, err := registry.New(tools)
		if err != nil {
			t.Fatal(err)
		}
		if r.Len() != len(set) {
			t.Errorf("found %d tools of %d", r.Len(), len(set))
		}
	}
	if n := len(every()); n != 5+17+31+4 {
		t.Errorf("found %d tools", n)
	}
}

func TestTypes(t *testing.T) {
	for kind, want := range map[string]string{
		"bash_20250124": "bash", "bash_20241022": "bash", "text_editor_20241022": "str_replace_editor", "text_editor_20250429": "str_replace_based_edit_tool",
		"memory_20250818": "memory", "computer_20250124": "computer",
		"bash": "", "bash_2025012": "", "bash_2025012x": "", "web_search_20250305": "", "code_execution_20250825": "", "": "", "_20250124": "", "custom": "", "Bash_20250124": "",
	} {
		var names []string
		for _, found := range clienttools.Anthropic(kind) {
			names = append(names, found.Name)
		}
		if found := strings.Join(names, " "); found != want {
			t.Errorf("%s: found %q, expected %q", kind, found, want)
		}
	}
	for _, kind := range []string{"web_search", "mcp", "function", "custom", "namespace", "tool_search", "code_interpreter", ""} {
		if found, ok := clienttools.Responses(kind); ok {
			t.Errorf("%s: found %s", kind, found.Name)
		}
	}
}

// TestArguments: what a model writes passes, and what no API documents does not.
func TestArguments(t *testing.T) {
	tools := map[string]*registry.Entry{}
	for _, c := range every() {
		r, err := registry.New([]registry.Tool{{Name: c.Name, InputSchema: c.Schema, Run: tool.Run{Type: "client"}}})
		if err != nil {
			t.Fatal(err)
		}
		tools[c.Name], _ = r.Lookup(c.Name)
	}
	for _, c := range []struct {
		tool, arguments string
		valid           bool
	}{
		{"bash", `{"command":"ls"}`, true},
		{"bash", `{"restart":true}`, true},
		{"bash", `{"command":["ls"]}`, false},
		{"bash", `{"command":"ls","sudo":true}`, false},
		{"str_replace_based_edit_tool", `{"command":"view","path":"/a","view_range":[1,-1]}`, true},
		{"str_replace_based_edit_tool", `{"command":"insert","path":"/a","insert_line":0,"insert_text":"x"}`, true},
		{"str_replace_based_edit_tool", `{"command":"delete","path":"/a"}`, false},
		{"str_replace_based_edit_tool", `{"command":"view"}`, false},
		{"memory", `{"command":"rename","old_path":"/memories/a","new_path":"/memories/b"}`, true},
		{"computer.left_click", `{"coordinate":[10,20.5]}`, true},
		{"computer.left_click", `{}`, true},
		{"computer.left_click", `{"coordinate":[10]}`, false},
		{"computer.zoom", `{"region":[0,0,10,10]}`, true},
		{"browser.left_click", `{"target":{"type":"ref","ref":"e1"},"modifiers":"ctrl","tab_id":null}`, true},
		{"browser.left_click", `{"target":{"type":"xpath","ref":"e1"}}`, false},
		{"browser.navigate", `{"url":"https://example.com"}`, true},
		{"browser.navigate", `{}`, false},
		{"shell", `{"commands":["ls"],"max_output_length":null,"timeout_ms":1000}`, true},
		{"shell", `{"commands":"ls"}`, false},
		{"local_shell", `{"type":"exec","command":["ls","-l"],"env":{"A":"b"},"timeout_ms":null,"user":null,"working_directory":"/x"}`, true},
		{"local_shell", `{"type":"exec","command":["ls"],"env":{"A":1}}`, false},
		{"local_shell", `{"type":"spawn","command":["ls"]}`, false},
		{"screen", `{"type":"click","x":1,"y":2.5,"button":"left","keys":null}`, true},
		{"screen", `{"type":"drag","path":[{"x":1,"y":2}]}`, true},
		{"screen", `{"actions":[{"type":"type","text":"a"},{"type":"screenshot"}]}`, true},
		{"screen", `{"actions":[{"type":"run","text":"a"}]}`, false},
		{"screen", `{"actions":[{"text":"a"}]}`, false},
		{"screen", `{"type":"click","x":1,"y":1,"z":1}`, false},
		{"apply_patch", `{"type":"update_file","path":"a.go","diff":"@@\n"}`, true},
		{"apply_patch", `{"type":"delete_file","path":"a.go"}`, true},
		{"apply_patch", `{"type":"move_file","path":"a.go"}`, false},
	} {
		var arguments map[string]any
		decoder := json.NewDecoder(strings.NewReader(c.arguments))
		decoder.UseNumber()
		if err := decoder.Decode(&arguments); err != nil {
			t.Fatal(err)
		}
		if violations := tools[c.tool].Judge(c.tool, []byte(c.arguments), func() map[string]any { return arguments }); (len(violations) == 0) != c.valid {
			t.Errorf("%s %s: found %v", c.tool, c.arguments, violations)
		}
	}
	if !slices.IsSortedFunc(clienttools.Anthropic("browser_toolset_20260801"), func(a, b clienttools.Tool) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the members of a toolset have no fixed order")
	}
}
