package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"unicode"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/corpora"
)

// task is one task of the function calling leaderboard, with its true calls.
type task struct {
	ID    string
	Tools []struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
	}
	GroundTruth []struct {
		Name         string
		Arguments    json.RawMessage
		SchemaErrors []string `json:"schema_errors"`
	} `json:"ground_truth"`
}

// permitAll is a configuration that lets Analyst use every tool in dir/tools.
func permitAll(t testing.TB, dir string) string {
	t.Helper()
	for name, text := range map[string]string{
		"callgate.yaml":   "registry: {files: [tools/*.yaml]}\n# end\n",
		"policy.csv":      "p, Analyst, acme/alpha, *, , allow\n# end\n",
		"workspaces.yaml": "workspaces: {acme: {projects: {alpha: {agents: [Analyst]}}}}\n# end\n",
		"limits.yaml":     "{}\n# end\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "tools"), 0o700); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "callgate.yaml")
}

// imported loads MCP definitions through the import and the whole configuration.
func imported(t testing.TB, dir string, definitions any) *configs.Config {
	t.Helper()
	data, err := json.Marshal(definitions)
	if err != nil {
		t.Fatal(err)
	}
	im, err := toolimport.MCP("tools.json", data, "")
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Refused) > 0 {
		t.Fatalf("left out: %v", im.Refused)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools", "imported.yaml"), im.YAML, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(filepath.Join(dir, "callgate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkAs judges one completion as the default agent.
func checkAs(t testing.TB, k *gateway.Kernel, completion string, truncated bool) gateway.Report {
	t.Helper()
	return k.Check(context.Background(), gateway.Request{
		Inputs: []gateway.Input{{Completion: []byte(completion), Truncated: truncated}},
	})
}

func codeOf(r gateway.Report) string {
	if r.Refusal == nil {
		return string(r.Verdict)
	}
	return string(r.Refusal.Code)
}

func TestFunctionCallingLeaderboard(t *testing.T) {
	t.Parallel()
	tasks := corpora.Lines[task](t, corpora.Path(t, "bfcl_schemas", "bfcl_schemas.jsonl.gz"))
	dir := t.TempDir()
	permitAll(t, dir)
	confusables := confusableOf(t)
	var withCalls, calls, accepted, refused, wrong int
	mutations := map[string]int{}
	for _, task := range tasks {
		if len(task.GroundTruth) == 0 {
			continue
		}
		if testing.Short() && withCalls%50 != 0 {
			withCalls++
			continue
		}
		withCalls++
		k, err := app.NewChecker(imported(t, dir, task.Tools))
		if err != nil {
			t.Fatal(err)
		}
		for _, truth := range task.GroundTruth {
			calls++
			completion := envelope(truth.Name, truth.Arguments)
			got := codeOf(checkAs(t, k, completion, false))
			if len(truth.SchemaErrors) > 0 {
				refused++
				if got == "tool_call" || got == "text" {
					wrong++
					t.Errorf("%s: %s is %s, but %v", task.ID, completion, got, truth.SchemaErrors)
				}
				continue
			}
			accepted++
			if got != "tool_call" {
				wrong++
				t.Errorf("%s: %s is %s, want a call", task.ID, completion, got)
				continue
			}
			var schema json.RawMessage
			for _, tool := range task.Tools {
				if tool.Name == truth.Name {
					schema = tool.InputSchema
				}
			}
			for _, m := range mutate(t, truth.Name, truth.Arguments, schema, confusables) {
				r := checkAs(t, k, m.completion, m.truncated)
				mutations[m.name]++
				if codeOf(r) != m.code {
					wrong++
					t.Errorf("%s: %s: %s is %s, want %s", task.ID, m.name, m.completion, codeOf(r), m.code)
				} else if m.path != "" && r.Refusal.Violations[0].Path != m.path {
					wrong++
					t.Errorf("%s: %s: at %s, want %s", task.ID, m.name, r.Refusal.Violations[0].Path, m.path)
				}
			}
		}
		if wrong > 20 {
			t.Fatal("too many to list")
		}
	}
	count := func(whole, sample int) int { return corpora.Count("bfcl_schemas", whole, sample) }
	if !testing.Short() && (withCalls != count(2501, 40) || calls != count(3302, 43) || accepted != count(3094, 28) || refused != count(208, 15)) {
		t.Errorf("%d calls in %d tasks: %d to accept, %d to refuse", calls, withCalls, accepted, refused)
	}
	t.Logf("%d calls in %d tasks: %d to accept, %d to refuse, %d wrong; mutations %v", calls, withCalls, accepted, refused, wrong, mutations)
}

func envelope(name string, arguments json.RawMessage) string {
	quoted, _ := json.Marshal(name)
	return fmt.Sprintf(`{"tool":{"name":%s,"arguments":%s}}`, quoted, arguments)
}

// mutation is a true call with one thing wrong, and what must come of it.
type mutation struct {
	name, completion, code, path string
	truncated                    bool
}

// mutate spoils a true call in every way that its schema has room for.
func mutate(t testing.TB, name string, arguments, schema json.RawMessage, confusables map[byte][]string) []mutation {
	t.Helper()
	call := envelope(name, arguments)
	ms := []mutation{
		{"trailing prose", call + " I hope this helps.", "mixed_output", "", false},
		{"leading prose", "Sure: " + call, "mixed_output", "", false},
		{"fence", "```json\n" + call + "\n```", "mixed_output", "", false},
		{"think", "<think>hm</think>" + call, "mixed_output", "", false},
		{"two calls", call + "\n" + call, "multiple_calls", "", false},
		{"array", "[" + call + "]", "multiple_calls", "", false},
		{"cut", call[:len(call)-1], "malformed_json", "", false},
		{"cut in the middle", strings.ToValidUTF8(call[:len(call)/2], ""), "malformed_json", "", false},
		{"cut by length", call[:len(call)*2/3], "truncated_output", "", true},
		{"whole, but cut by length", call, "truncated_output", "", true},
		{"near name", envelope(name+"s", arguments), "unknown_tool", "/tool/name", false},
		{"name cut", envelope(name[1:], arguments), "unknown_tool", "/tool/name", false},
		{"name in blanks", envelope(name+" ", arguments), "unknown_tool", "/tool/name", false},
		{"case of name", envelope(swapCase(name), arguments), "unknown_tool", "/tool/name", false},
		{"extra", envelope(name, insert(arguments, `"callgate_extra":1`)), "unexpected_argument", "/tool/arguments/callgate_extra", false},
		{"extra in the envelope", strings.Replace(call, `{"tool":{`, `{"tool":{"id":"1",`, 1), "unexpected_field", "/tool/id", false},
		{"arguments as a string", envelope(name, quoted(arguments)), "wrong_type", "/tool/arguments", false},
	}
	for i := range len(name) {
		if like := confusables[name[i]]; len(like) > 0 {
			ms = append(ms, mutation{"confusable name", envelope(name[:i]+like[0]+name[i+1:], arguments), "unknown_tool", "/tool/name", false})
			break
		}
	}
	return append(ms, mutateArguments(t, name, arguments, schema)...)
}

type objectSchema struct {
	Type                 any
	Properties           map[string]json.RawMessage
	Required             []string
	Enum                 []any
	AdditionalProperties any
}

func mutateArguments(t testing.TB, name string, arguments, schema json.RawMessage) []mutation {
	t.Helper()
	var s objectSchema
	var args map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil || json.Unmarshal(arguments, &args) != nil {
		t.Fatalf("%s: %s", name, arguments)
	}
	var ms []mutation
	add := func(kind, code, at string, changed map[string]json.RawMessage) {
		body, _ := json.Marshal(changed)
		ms = append(ms, mutation{kind, envelope(name, body), code, at, false})
	}
	with := func(key string, value string) map[string]json.RawMessage {
		changed := map[string]json.RawMessage{}
		for k, v := range args {
			changed[k] = v
		}
		if value == "" {
			delete(changed, key)
		} else {
			changed[key] = json.RawMessage(value)
		}
		return changed
	}
	keys := make([]string, 0, len(args))
	for k := range args {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	if len(s.Required) > 0 {
		add("missing", "missing_argument", pointerTo(s.Required[0]), with(s.Required[0], ""))
	}
	seen := map[string]bool{}
	for _, k := range keys {
		var p objectSchema
		if json.Unmarshal(s.Properties[k], &p) != nil {
			continue
		}
		if other := otherType(p.Type); other != "" && !seen["type"] {
			seen["type"] = true
			add("wrong type", "wrong_type", pointerTo(k), with(k, other))
			add("null", "wrong_type", pointerTo(k), with(k, "null"))
		}
		if p.Type == "string" && len(p.Enum) > 0 && !seen["enum"] {
			seen["enum"] = true
			add("enum", "invalid_value", pointerTo(k), with(k, `"callgate none of these"`))
		}
		if p.Type == "object" && len(p.Properties) > 0 && p.AdditionalProperties == false && !seen["nested"] {
			seen["nested"] = true
			add("extra nested", "unexpected_argument", pointerTo(k)+"/callgate_extra", with(k, string(insert(args[k], `"callgate_extra":1`))))
		}
	}
	if len(keys) > 0 {
		key, _ := json.Marshal(keys[0])
		ms = append(ms, mutation{"duplicate", envelope(name, insert(arguments, string(key)+":1")), "duplicate_key", "", false})
	}
	return ms
}

func pointerTo(key string) string {
	return "/tool/arguments/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// otherType is a value that is not of a type.
func otherType(typ any) string {
	switch typ {
	case "string":
		return "7"
	case "integer", "number", "boolean", "array", "object":
		return `"x"`
	}
	return ""
}

// insert adds a member at the end of an object.
func insert(object json.RawMessage, member string) json.RawMessage {
	body := bytes.TrimSpace(object)
	body = bytes.TrimSuffix(body, []byte("}"))
	if len(bytes.TrimSpace(body)) > 1 {
		member = "," + member
	}
	return json.RawMessage(string(body) + member + "}")
}

func quoted(b json.RawMessage) json.RawMessage {
	q, _ := json.Marshal(string(b))
	return q
}

func swapCase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// confusableOf returns characters that look like an ASCII one.
func confusableOf(t testing.TB) map[byte][]string {
	t.Helper()
	b, err := os.ReadFile(corpora.Path(t, "confusables", "confusables_ascii.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []struct {
		Char      string
		LooksLike string `json:"looks_like"`
	}
	if err := json.Unmarshal(b, &all); err != nil || len(all) != corpora.Count("confusables", 1378, 173) {
		t.Fatalf("%d confusables: %v", len(all), err)
	}
	of := map[byte][]string{}
	for _, c := range all {
		of[c.LooksLike[0]] = append(of[c.LooksLike[0]], c.Char)
	}
	return of
}

// TestNoSpoofedNameResolves puts every confusable character into a name that is
// registered.
func TestNoSpoofedNameResolves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	permitAll(t, dir)
	const name = "abcdefghijklmnopqrstuvwxyz-._ABCDEFGHIJKLMNOPQRSTUVWXYZ012345678"
	schema := json.RawMessage(`{"type":"object"}`)
	k, err := app.NewChecker(imported(t, dir, []map[string]any{{"name": name[:64], "inputSchema": schema}, {"name": "a9", "inputSchema": schema}}))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for ascii, like := range confusableOf(t) {
		for _, char := range like {
			for _, registered := range []string{name[:64], "a9"} {
				spoofed := strings.ReplaceAll(registered, string(ascii), char)
				if spoofed == registered {
					continue
				}
				tried++
				if got := codeOf(checkAs(t, k, envelope(spoofed, json.RawMessage("{}")), false)); got != "unknown_tool" {
					t.Errorf("%q: %s", spoofed, got)
				}
			}
		}
	}
	if tried < corpora.Count("confusables", 1300, 170) {
		t.Errorf("only %d names tried", tried)
	}
}
