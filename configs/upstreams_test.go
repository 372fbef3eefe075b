package configs

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/upstream"
)

// upstreamsOf reads an upstreams file in a folder.
func upstreamsOf(t *testing.T, data string) ([]upstream.Definition, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "upstreams.yaml")
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	var r document.Report
	root, ok := document.ReadYAML(&r, path, []byte(data))
	if !ok {
		return nil, r.Err()
	}
	all := readUpstreams(root)
	return all, r.Err()
}

func TestUpstreams(t *testing.T) {
	t.Setenv("CALLGATE_TEST_KEY", "hunter2")
	all, err := upstreamsOf(t, `
upstreams:
  - name: local
    base_url: http://127.0.0.1:11434/v1
    models: [qwen3, "llama*"]
  - name: far
    base_url: https://api.example.com/v1
    key: env:CALLGATE_TEST_KEY
    protocol: text
    modes: [orchestrate]
    models:
      - {id: gpt-4.1, upstream_model: gpt-4.1-2026, protocol: native, max_repairs: 0, modes: [enforce]}
      - {id: small, token_budget: 9, request_members: [web_search_options]}
      - plain
    native_prose: refuse
    structured_output: pass
    parallel: refuse
    reasoning: drop
    audio: drop
    request_members: [plugins, x-y.z]
    call_format: content
    stream_buffer: whole
    max_repairs: 1
    max_turns: 3
    run_timeout: 1m
    token_budget: 5000
    timeouts: {connect: 1s, response: 2s, idle: 3s, total: 4s}
    retries: 0
    max_body: 2048
    max_event: 4096
    max_stream: 8192
    max_events: 7
  - name: near
    base_url: http://model:8000/v1
    insecure_http: true
    models: ["*"]
# end
`)
	if err != nil {
		t.Fatal(err)
	}
	if key := all[1].Credential; !reflect.DeepEqual(key, tool.Bearer("env:CALLGATE_TEST_KEY")) {
		t.Errorf("found the key %+v", key)
	}
	all[1].Credential = nil
	local := upstream.Defaults()
	local.Name, local.BaseURL = "local", "http://127.0.0.1:11434/v1"
	local.Models = []upstream.Model{{ID: "qwen3"}, {ID: "llama*"}}
	rules := upstream.Defaults().Rules
	far := upstream.Definition{
		Name: "far", BaseURL: "https://api.example.com/v1",
		Rules: upstream.Rules{
			Protocol: upstream.Text, Modes: []upstream.Mode{upstream.Orchestrate}, CallFormat: upstream.AsContent, NativeProse: upstream.Refuse,
			StructuredOutput: upstream.Pass,
			Parallel:         upstream.Refuse, Reasoning: upstream.Drop, Audio: upstream.Drop, StreamBuffer: upstream.Whole, MaxRepairs: 1, MaxTurns: 3, RunTimeout: time.Minute, TokenBudget: 5000,
			RequestMembers: []string{"plugins", "x-y.z"}, Speaks: rules.Speaks, Tools: rules.Tools, Refusals: rules.Refusals, Messages: rules.Messages, Responses: rules.Responses,
		},
		Timeouts: upstream.Timeouts{Connect: time.Second, Response: 2 * time.Second, Idle: 3 * time.Second, Total: 4 * time.Second},
		Retries:  0, MaxBody: 2048, MaxEvent: 4096, MaxStream: 8192, MaxEvents: 7,
	}
	big, small := far.Rules, far.Rules
	big.Protocol, big.MaxRepairs, big.Modes = upstream.Native, 0, []upstream.Mode{upstream.Enforce}
	small.TokenBudget, small.RequestMembers = 9, []string{"web_search_options"}
	far.Models = []upstream.Model{{ID: "gpt-4.1", UpstreamModel: "gpt-4.1-2026", Rules: &big}, {ID: "small", Rules: &small}, {ID: "plain"}}
	near := upstream.Defaults()
	near.Name, near.BaseURL, near.InsecureHTTP, near.Models = "near", "http://model:8000/v1", true, []upstream.Model{{ID: "*"}}
	for i, want := range []upstream.Definition{local, far, near} {
		if !reflect.DeepEqual(all[i], want) {
			t.Errorf("found    %+v\nexpected %+v", all[i], want)
		}
	}
	if _, err := upstream.New(all); err != nil {
		t.Error(err)
	}
}

// TestHostedWords: a word of hosted_tools that lets no item pass is warned of.
func TestHostedWords(t *testing.T) {
	for word, warned := range map[string]bool{
		"web_search": false, "web_search_2025_08_26": false, "compaction": false, "shell": false,
		"context_compaction": true, "agent_message": true, "mcp_call": true, "web_searches": true, "web_search_call": true,
	} {
		var r document.Report
		root, _ := document.ReadYAML(&r, "upstreams.yaml", []byte("upstreams: [{name: a, base_url: \"http://127.0.0.1:1/v1\", models: [m], speaks: [responses], responses: {hosted_tools: ["+word+"]}}]\n# end\n"))
		readUpstreams(root)
		if err := r.Err(); err != nil || (len(r.Warnings) == 1) != warned {
			t.Errorf("%s: warnings %v, %v", word, r.Warnings, err)
		}
	}
}

// TestWires reads every key about the protocols of an upstream, and what a model has of its own.
func TestWires(t *testing.T) {
	all, err := upstreamsOf(t, `
upstreams:
  - name: anthropic
    base_url: https://api.example.com/v1
    speaks: [chat, messages, responses]
    tools: request
    refusals: message
    messages: {server_tools: [web_search, web_fetch_20250910], mcp_servers: [docs], thread: true, container: true, fallbacks: true, programmatic_calls: true, tool_definitions: true, unknown_blocks: pass, safeguards: drop}
    responses: {hosted_tools: [web_search], mcp_servers: [deepwiki], state: bind, background: true, prompt: true, async: true, programmatic_calls: true, additional_tools: true, unknown_items: pass}
    models:
      - plain
      - {id: own, speaks: [messages], tools: registry, refusals: error, messages: {server_tools: [], thread: false}}
# end
`)
	if err != nil {
		t.Fatal(err)
	}
	want := upstream.Defaults().Rules
	want.Speaks, want.Tools, want.Refusals = []upstream.Wire{upstream.ChatWire, upstream.MessagesWire, upstream.ResponsesWire}, upstream.FromRequest, upstream.AsMessage
	want.Messages = upstream.MessagesRules{
		ServerTools: []string{"web_search", "web_fetch_20250910"}, MCPServers: []string{"docs"}, Thread: true, Container: true, Fallbacks: true,
		ProgrammaticCalls: true, ToolDefinitions: true, UnknownBlocks: upstream.Pass, Safeguards: upstream.Drop,
	}
	want.Responses = upstream.ResponsesRules{
		HostedTools: []string{"web_search"}, MCPServers: []string{"deepwiki"}, State: upstream.BindState, Background: true, Prompt: true, Async: true,
		ProgrammaticCalls: true, AdditionalTools: true, UnknownItems: upstream.Pass,
	}
	if !reflect.DeepEqual(all[0].Rules, want) {
		t.Errorf("found    %+v\nexpected %+v", all[0].Rules, want)
	}
	own := want
	own.Speaks, own.Tools, own.Refusals = []upstream.Wire{upstream.MessagesWire}, upstream.FromRegistry, upstream.AsError
	own.Messages.ServerTools, own.Messages.Thread = nil, false
	if found := *all[0].Models[1].Rules; !reflect.DeepEqual(found, own) {
		t.Errorf("found    %+v\nexpected %+v", found, own)
	}
	if _, err := upstream.New(all); err != nil {
		t.Error(err)
	}
}

func TestUpstreamCredentials(t *testing.T) {
	header := func(name, prefix string) *tool.Credential {
		return &tool.Credential{In: tool.InHeader, Name: name, Prefix: prefix, Secret: "env:KEY"}
	}
	for text, want := range map[string]*tool.Credential{
		"env:KEY": tool.Bearer("env:KEY"),
		"{in: header, name: X-Api-Key, value: 'env:KEY'}":                       header("X-Api-Key", ""),
		"{in: header, name: Authorization, value: 'env:KEY', prefix: 'Token '}": header("Authorization", "Token "),
		"{in: header, name: X-Api-Key, value: 'env:KEY', prefix: ''}":           header("X-Api-Key", ""),
		"{in: basic, user: me, password: 'env:KEY'}":                            {In: tool.InBasic, User: "me", Secret: "env:KEY"},
		"{in: oauth2, token_url: 'https://idp.example/token', client_id: me, client_secret: 'env:KEY'}": {
			In: tool.InOAuth, Secret: "env:KEY", OAuth: &tool.OAuth{TokenURL: "https://idp.example/token", ClientID: "me"},
		},
	} {
		all, err := upstreamsOf(t, "upstreams: [{name: x, base_url: https://x.example, models: [a], credential: "+text+"}]\n# end\n")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if found := all[0].Credential; !reflect.DeepEqual(found, want) {
			t.Errorf("%s: found %+v", text, found)
		}
	}
	all, err := upstreamsOf(t, "upstreams: [{name: x, base_url: https://x.example, models: [a], key: {command: [vault, read], refresh: 1m}}]\n# end\n")
	if err != nil || !strings.HasPrefix(all[0].Credential.Secret, "command:") {
		t.Errorf("found %+v, %v", all, err)
	}
}

// TestUpstreamCredentialHeaders: none is one that requests have anyway.
func TestUpstreamCredentialHeaders(t *testing.T) {
	for _, name := range []string{"Accept", "accept-encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent"} {
		if _, err := upstreamsOf(t, "upstreams: [{name: x, base_url: https://x.example, models: [a], credential: {in: header, name: "+name+", value: 'env:KEY'}}]\n# end\n"); err == nil {
			t.Errorf("a credential may be the header %s", name)
		}
	}
}

// TestModelsStartFromTheirUpstream writes the models before what they start
// from.
func TestModelsStartFromTheirUpstream(t *testing.T) {
	all, err := upstreamsOf(t, "upstreams: [{models: [{id: a}], name: x, base_url: https://x.example, max_repairs: 7}]\n# end\n")
	if err != nil || all[0].Models[0].Rules.MaxRepairs != 7 {
		t.Errorf("found %+v, %v", all, err)
	}
}

func TestNoUpstreams(t *testing.T) {
	all, err := upstreamsOf(t, "upstreams: []\n# end\n")
	if err != nil || len(all) != 0 {
		t.Errorf("found %+v, %v", all, err)
	}
}

// TestFaultyUpstreams reads every file of testdata/upstreams: each has one
// fault, and the comment of its archive is the whole error.
func TestFaultyUpstreams(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "upstreams", "*.txtar"))
	if err != nil || len(cases) < 40 {
		t.Fatalf("found %d cases, %v; expected at least 40", len(cases), err)
	}
	messages := map[string]string{}
	for _, path := range cases {
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		t.Run(name, func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil || len(a.Files) != 1 {
				t.Fatalf("found %d files, %v", len(a.Files), err)
			}
			_, err = upstreamsOf(t, string(a.Files[0].Data))
			if err == nil {
				t.Fatal("it loads")
			}
			faults, ok := err.(document.Faults)
			if !ok || len(faults) != 1 {
				t.Fatalf("expected one fault, found:\n%v", err)
			}
			found := strings.TrimPrefix(err.Error(), filepath.Dir(faults[0].File)+string(filepath.Separator))
			if *update {
				a.Comment = []byte(found + "\n")
				if err := os.WriteFile(path, txtar.Format(a), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if want := strings.TrimSuffix(string(a.Comment), "\n"); found != want {
				t.Errorf("found    %s\nexpected %s", found, want)
			}
			readable(t, faults[0], found)
			if other, twice := messages[faults[0].Message]; twice {
				t.Errorf("its message is that of %s", other)
			}
			messages[faults[0].Message] = name
		})
	}
}
