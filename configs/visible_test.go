package configs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/configs/toolservers/lockfile"
	"github.com/callgate/callgate/internal/testkit/configtest"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// hiddenText stands for a text with a right-to-left override, a zero width space and
// an instruction in tag characters, and shownText for what is shown of it.
const (
	hiddenText = "x \u202e\u200b\U000e0041"
	shownText  = `x \u202e\u200b\udb40\udc41`
)

// TestHiddenCharactersOfToolFiles: no definition of the operator's own files holds a
// character that its reader cannot see, wherever the model would read it.
func TestHiddenCharactersOfToolFiles(t *testing.T) {
	const head, run = "tools:\n  - name: web.search\n", "    run: {type: demo}\n# end\n"
	for name, c := range map[string]struct{ file, data, want string }{
		"a description":             {"tools/web.yaml", head + "    description: \"x \u202e\"\n    input_schema: {type: object}\n" + run, "web.yaml:3:18: found the hidden character U+202E"},
		"an escaped one":            {"tools/web.yaml", head + "    description: \"x \\u200b\"\n    input_schema: {type: object}\n" + run, "web.yaml:3:18: found the hidden character U+200B"},
		"tag characters":            {"tools/web.yaml", head + "    description: x \U000e0041\n    input_schema: {type: object}\n" + run, "web.yaml:3:18: found the hidden character U+E0041"},
		"a block":                   {"tools/web.yaml", head + "    description: |\n      one\n      two \u2066\n    input_schema: {type: object}\n" + run, "web.yaml:3:18: found the hidden character U+2066"},
		"a parameter's description": {"tools/web.yaml", head + "    input_schema:\n      properties:\n        q: {type: string, description: \"\u00ad\"}\n" + run, "web.yaml:5:40: found the hidden character U+00AD"},
		"a title":                   {"tools/web.yaml", head + "    input_schema: {type: object, title: \"\U00013430\"}\n" + run, "web.yaml:3:41: found the hidden character U+13430"},
		"a word of an enum":         {"tools/web.yaml", head + "    input_schema: {properties: {q: {enum: [\"a\u200d\"]}}}\n" + run, "web.yaml:3:44: found the hidden character U+200D"},
		"the name of a parameter":   {"tools/web.yaml", head + "    input_schema: {properties: {\"q\u200b\": {type: string}}}\n" + run, "web.yaml:3:33: found the hidden character U+200B"},
		"an escape of a terminal":   {"tools/web.yaml", head + "    description: \"x \\e[2J\"\n    input_schema: {type: object}\n" + run, "web.yaml:3:18: found the hidden character U+001B"},
		"JSON":                      {"tools/web.json", `{"tools":[{"name":"web.json","description":"\ufeffx","input_schema":{"type":"object"},"run":{"type":"demo"}}]}`, "web.json:1:44: found the hidden character U+FEFF"},
	} {
		dir := t.TempDir()
		_, err := Load(configtest.Write(t, dir, configtest.With(t, map[string]string{c.file: c.data})))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: found %v; expected %s", name, err, c.want)
		}
		if err != nil {
			if r, found := wrapper.Hidden(err.Error()); found {
				t.Errorf("%s: the message holds %U: %q", name, r, err)
			}
		}
	}
	legible := head + "    description: \"tab\\tline\\nend\\r\\n 👩🏽\u200d🚀 \u2764\ufe0f می\u200cخواهم\"\n    input_schema: {type: object, properties: {\"naïve 漢\": {enum: [\"é\", \"👍\"]}}}\n" + run
	loads(t, configtest.With(t, map[string]string{"tools/web.yaml": legible}))
}

// TestImportShowsWhatHides: texts of a foreign definition are written out, which is
// said; a tool that is judged by what hides is left out.
func TestImportShowsWhatHides(t *testing.T) {
	quoted, err := json.Marshal(hiddenText)
	if err != nil {
		t.Fatal(err)
	}
	stated := func(format string) []byte { return []byte(strings.ReplaceAll(format, "HIDDEN", string(quoted))) }
	for name, c := range map[string]struct {
		read func(data []byte) (*toolimport.Result, error)
		data string
	}{
		"mcp": {
			func(data []byte) (*toolimport.Result, error) { return toolimport.MCP("tools.json", data, "") },
			`{"tools":[
 {"name":"shown","description":HIDDEN,"inputSchema":{"type":"object","title":HIDDEN,"properties":{"description":{"type":"string","description":HIDDEN},"enum":{"title":HIDDEN}}}},
 {"name":"word","inputSchema":{"type":"object","properties":{"q":{"enum":[HIDDEN]}}}},
 {"name":"named","inputSchema":{"type":"object","properties":{HIDDEN:{"type":"string"}}}},
 {"name":"data","inputSchema":{"type":"object","properties":{"q":{"const":{"description":HIDDEN}}}}}]}`,
		},
		"openai": {func(data []byte) (*toolimport.Result, error) { return toolimport.OpenAI("tools.json", data) }, `{"tools":[
 {"type":"function","function":{"name":"shown","description":HIDDEN,"parameters":{"type":"object","title":HIDDEN,"properties":{"description":{"type":"string","description":HIDDEN},"enum":{"title":HIDDEN}}}}},
 {"type":"function","function":{"name":"word","parameters":{"type":"object","properties":{"q":{"enum":[HIDDEN]}}}}},
 {"type":"function","function":{"name":"named","parameters":{"type":"object","properties":{HIDDEN:{"type":"string"}}}}},
 {"type":"function","function":{"name":"data","parameters":{"type":"object","properties":{"q":{"const":{"description":HIDDEN}}}}}}]}`},
		"openapi": {func(data []byte) (*toolimport.Result, error) {
			return toolimport.OpenAPI("tools.json", data, toolimport.OpenAPIOptions{})
		}, `{"openapi":"3.1.0","info":{"title":"a","version":"1"},"servers":[{"url":"https://example.com"}],"paths":{
 "/a":{"get":{"operationId":"shown","summary":HIDDEN,"parameters":[
  {"name":"a","in":"query","description":HIDDEN,"schema":{"type":"string"}},{"name":"b","in":"query","schema":{"type":"string","description":HIDDEN}},{"name":"c","in":"query","schema":{"type":"string","title":HIDDEN}}]}},
 "/b":{"get":{"operationId":"word","parameters":[{"name":"q","in":"query","schema":{"enum":[HIDDEN]}}]}},
 "/c":{"get":{"operationId":"named","parameters":[{"name":HIDDEN,"in":"query","schema":{"type":"string"}}]}},
 "/d":{"get":{"operationId":"data","parameters":[{"name":"q","in":"query","schema":{"const":{"description":HIDDEN}}}]}}}}`},
	} {
		im, err := c.read(stated(c.data))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(im.Names) != 1 || im.Names[0] != "shown" || len(im.Refused) < 3 {
			t.Errorf("%s: found %v; expected the first alone; refused: %v", name, im.Names, im.Refused)
		}
		if r, found := wrapper.Hidden(string(im.YAML)); found {
			t.Errorf("%s: the file holds %U: %q", name, r, im.YAML)
		}
		if got := strings.Count(string(im.YAML), shownText); got != 4 {
			t.Errorf("%s: %d texts are written out; expected 4: %s", name, got, im.YAML)
		}
		for _, list := range [][]*document.Fault{im.Changed, im.Refused} {
			printed := 0
			for _, f := range list {
				if strings.Contains(f.Error(), "the hidden character U+202E") {
					printed++
				}
				if r, found := wrapper.Hidden(f.Error()); found {
					t.Errorf("%s: %q holds %U", name, f, r)
				}
			}
			if printed < 3 {
				t.Errorf("%s: found %v", name, list)
			}
		}
		loaded := loads(t, configtest.With(t, map[string]string{"tools/web.yaml": string(im.YAML), "limits.yaml": "{}\n# end\n", "policy.csv": "# end\n"}))
		if tool, ok := loaded.Tools.Lookup("shown"); !ok || tool.Description() != shownText {
			t.Errorf("%s: the imported tool is not what was shown: %v", name, ok)
		}
	}
}

// TestAcceptedTextsAreShown: what a server says of its tools is shown to models with
// nothing hidden in it; its pin holds what the server said. A tool that is judged by
// what hides is not accepted.
func TestAcceptedTextsAreShown(t *testing.T) {
	dir, data := t.TempDir(), t.TempDir()
	main := configtest.Write(t, dir, configtest.With(t, serverMain(data, oneServer)))
	before, err := Load(main)
	if err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(hiddenText)
	if err != nil {
		t.Fatal(err)
	}
	schema := func(s string) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(s, "HIDDEN", string(quoted)))
	}
	search, word, named := offered("search"), offered("get_word"), offered("get_named")
	search.Description = hiddenText
	search.InputSchema = schema(`{"type":"object","description":HIDDEN,"properties":{"q":{"type":"string","title":HIDDEN}}}`)
	search.OutputSchema = schema(`{"type":"object","properties":{"a":{"type":"string","description":HIDDEN}}}`)
	word.InputSchema = schema(`{"type":"object","properties":{"q":{"enum":[HIDDEN]}}}`)
	named.InputSchema = schema(`{"type":"object","properties":{HIDDEN:{"type":"string"}}}`)
	accepted := lockfile.Accept(before.Servers[0], []tool.Definition{search, word, named})
	if len(accepted.Pins) != 1 || len(accepted.Changed) != 4 || len(accepted.Refused) != 2 {
		t.Fatalf("found %+v", accepted)
	}
	for _, f := range append(accepted.Changed, accepted.Refused...) {
		if r, found := wrapper.Hidden(f.Error()); found || !strings.Contains(f.Error(), "the hidden character U+202E") {
			t.Errorf("found %q, which holds %U", f, r)
		}
	}
	digest, err := lockfile.Digest(search)
	if pin := accepted.Pins[0]; err != nil || pin.Description != hiddenText || pin.Digest != digest {
		t.Errorf("the pin is not what the server said: %+v", pin)
	}
	if err := lockfile.Write(before.DataDir, "hub", before.Pins["hub"], accepted.Pins); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(lockfile.Path(data, "hub"))
	if err != nil {
		t.Fatal(err)
	}
	if r, found := wrapper.Hidden(string(file)); found {
		t.Errorf("the file of pins holds %U: %q", r, file)
	}
	shown := func() {
		t.Helper()
		c, err := Load(main)
		if err != nil {
			t.Fatal(err)
		}
		tool, ok := c.Tools.Lookup("hub.search")
		if !ok {
			t.Fatal("an accepted tool is not registered")
		}
		for part, text := range map[string]string{
			"description": tool.Description(), "input schema": string(tool.InputSchema()), "closed": string(tool.ClosedSchema()),
			"as it was written": string(tool.AuthoredSchema()), "output schema": string(tool.OutputSchema()),
		} {
			var value any = text
			if part != "description" {
				value = decode(t, json.RawMessage(text))
			}
			if r, found := hiddenIn(value); found {
				t.Errorf("%s: found %U in %s", part, r, text)
			}
			if !strings.Contains(text, "u202e") {
				t.Errorf("%s: %s does not show what was hidden", part, text)
			}
		}
	}
	shown()
	// A file that an older release wrote, or an editor, holds the texts themselves.
	raw, err := json.Marshal(map[string]any{"server": "hub", "tools": []lockfile.Pin{{Name: "search", Digest: digest, Description: hiddenText, InputSchema: search.InputSchema, OutputSchema: search.OutputSchema}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lockfile.Path(data, "hub"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	shown()
	raw, err = json.Marshal(map[string]any{"server": "hub", "tools": []lockfile.Pin{{Name: "search", Digest: digest, InputSchema: word.InputSchema}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(lockfile.Path(data, "hub"), raw, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(main); err == nil || !strings.Contains(err.Error(), filepath.Base(lockfile.Path(data, "hub"))+":1:") || !strings.Contains(err.Error(), "the hidden character U+202E") {
		t.Errorf("a pin that is judged by what hides: %v", err)
	}
}

// hiddenIn looks through a decoded value.
func hiddenIn(value any) (rune, bool) {
	switch v := value.(type) {
	case string:
		return wrapper.Hidden(v)
	case []any:
		for _, e := range v {
			if r, found := hiddenIn(e); found {
				return r, true
			}
		}
	case map[string]any:
		for name, e := range v {
			if r, found := wrapper.Hidden(name); found {
				return r, true
			}
			if r, found := hiddenIn(e); found {
				return r, true
			}
		}
	}
	return 0, false
}
