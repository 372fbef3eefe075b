package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/ratelimit"
)

// exchange is one recorded answer of a provider to a request with tools.
type exchange struct {
	ID, Style, Text string
	Tools           []struct {
		Name   string
		Schema json.RawMessage
	}
	Calls  []struct{ Name, Arguments string }
	Oracle [][]string // of each call, by another validator
}

// someTools loads those of an exchange's tools that load, and says of the others
// why they do not.
func someTools(t testing.TB, x exchange) (k *gateway.Kernel, out map[string]string) {
	t.Helper()
	type definition struct {
		Name        string          `json:"name"`
		InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	}
	definitions := []definition{}
	for _, tool := range x.Tools {
		d := definition{Name: tool.Name}
		if string(tool.Schema) != "null" {
			d.InputSchema = withoutStrict(t, tool.Schema)
		}
		definitions = append(definitions, d)
	}
	data, err := json.Marshal(definitions)
	if err != nil {
		t.Fatal(err)
	}
	im, err := toolimport.MCP("tools.json", data, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := permitAll(t, dir)
	loaded := map[string]bool{}
	for _, name := range im.Names {
		loaded[name] = true
	}
	if len(im.Names) == 0 {
		im.YAML = []byte("tools: []\n# end\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "tools", "imported.yaml"), im.YAML, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := configs.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	if k, err = gateway.New(app.KernelConfig(c, nil), gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: forgets{}}); err != nil {
		t.Fatal(err)
	}
	out = map[string]string{}
	for _, tool := range x.Tools {
		if !loaded[tool.Name] {
			out[tool.Name] = fmt.Sprint(im.Refused)
		}
	}
	return k, out
}

// providersOwn are calls of tools that the provider runs itself: the request
// names them without a schema, so there is nothing to judge by. The other validator
// lets pass whatever has no schema; here no such tool loads.
var providersOwn = map[string]string{
	"crmne/ruby_llm:spec/fixtures/vcr_cassettes/chat_web_search_with_anthropic_claude-haiku-4-5_replays_search_turns_so_the_conversation_can_continue.yml#0": "web_search",
	"crmne/ruby_llm:spec/fixtures/vcr_cassettes/chat_web_search_with_anthropic_claude-haiku-4-5_searches_cites_and_reports_tool_usage.yml#0":                 "web_search",
}

// TestNativeExchanges judges what providers have answered, each by the tools of
// its own request: every call by itself, and the answer as one with its text.
func TestNativeExchanges(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	exchanges := corpora.Lines[exchange](t, corpora.Path(t, "native_exchanges", "exchanges.jsonl"))
	verdicts, others, disagree := map[string]int{}, map[string]int{}, 0
	for i, x := range exchanges {
		if testing.Short() && i%10 != 0 {
			continue
		}
		k, out := someTools(t, x)
		a, err := k.Admit(ctx, gateway.Request{})
		if err != nil {
			t.Fatal(err)
		}
		judge := func(inputs ...gateway.Input) *gateway.Decision {
			d := a.Judge(ctx, gateway.ModeEnforce, inputs...)
			d.Release()
			return d
		}
		var answer []gateway.Input
		if x.Text != "" || len(x.Calls) == 0 {
			text := gateway.Input{Completion: []byte(x.Text), TextOnly: true}
			if got := codeOf(judge(text).Reports[0]); got != "text" {
				t.Errorf("%s: the text is %s: %q", x.ID, got, x.Text)
			}
			answer = append(answer, text)
		}
		whole := true
		for i, c := range x.Calls {
			in := gateway.Input{Native: &gateway.NativeCall{Name: c.Name, Wire: c.Name, Arguments: []byte(c.Arguments)}}
			answer = append(answer, in)
			got, other := codeOf(judge(in).Reports[0]), x.Oracle[i][0]
			verdicts[got]++
			others[other]++
			whole = whole && got == "tool_call"
			want := map[string]string{"ok": "tool_call", "unknown_tool": "unknown_tool", "no_tools_in_request": "unknown_tool", "schema_unusable": "unknown_tool"}[other]
			if providersOwn[x.ID] == c.Name {
				disagree++
				want = "unknown_tool"
			}
			if got != want {
				t.Errorf("%s: %s %s is %s, the other validator says %s; %s", x.ID, c.Name, c.Arguments, got, other, out[c.Name])
			}
			if got != "tool_call" {
				continue
			}
			for spoiled, want := range map[string]string{
				string(insert(json.RawMessage(c.Arguments), `"callgate_extra":1`)): "unexpected_argument",
				c.Arguments + "}":                   "malformed_json",
				c.Arguments[:len(c.Arguments)-1]:    "malformed_json",
				string(quoted([]byte(c.Arguments))): "wrong_type",
			} {
				in := gateway.Input{Native: &gateway.NativeCall{Name: c.Name, Wire: c.Name, Arguments: []byte(spoiled)}}
				if got := codeOf(judge(in).Reports[0]); got != want {
					t.Errorf("%s: %s %s is %s, want %s", x.ID, c.Name, spoiled, got, want)
				}
			}
			in.Truncated = true
			if got := codeOf(judge(in).Reports[0]); got != "truncated_output" {
				t.Errorf("%s: %s, cut, is %s", x.ID, c.Name, got)
			}
		}
		if d := judge(answer...); len(d.Reports) != len(answer) || (d.Refusal() == nil) != whole {
			t.Errorf("%s: the whole answer: %v", x.ID, d.Refusal())
		}
	}
	count := func(whole, sample int) int { return corpora.Count("native_exchanges", whole, sample) }
	if testing.Short() {
		return
	}
	if len(exchanges) != count(726, 18) || verdicts["tool_call"] != count(195, 14) || verdicts["unknown_tool"] != count(44, 4) || others["ok"] != count(197, 14) || others["schema_unusable"] != count(40, 1) || disagree != count(len(providersOwn), 0) {
		t.Errorf("%d exchanges: %v; the other validator: %v; %d disagree", len(exchanges), verdicts, others, disagree)
	}
}

// withoutStrict takes OpenAI's flag "strict" off a schema, into which the client
// that recorded most exchanges wrote it. It is no keyword, and no tool that has it
// loads.
func withoutStrict(t testing.TB, schema json.RawMessage) json.RawMessage {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(schema, &members); err != nil {
		t.Fatal(err)
	}
	if string(members["strict"]) != "true" {
		return schema
	}
	delete(members, "strict")
	without, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return without
}

// forgets is a journal that keeps nothing.
type forgets struct{}

func (forgets) Append(context.Context, audit.Record) error { return nil }
