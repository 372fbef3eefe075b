package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/registry"
)

// messagesModel answers with one call, in one of the places of a reply of Anthropic Messages where a
// call can stand (AM-44).
type messagesModel struct {
	place string // whole, deltas, start or message
	mu    sync.Mutex
	name  string
	input []byte
}

func (m *messagesModel) say(name string, input []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.name, m.input = name, input
}

func (m *messagesModel) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	name, input := quotedName(m.name), m.input
	m.mu.Unlock()
	call := func(input []byte) string {
		return fmt.Sprintf(`{"type":"tool_use","id":"toolu_1","name":%s,"input":%s,"caller":{"type":"direct"}}`, name, input)
	}
	message := func(reason string, content ...string) string {
		return `{"id":"msg_1","type":"message","role":"assistant","model":"vectors","content":[` + strings.Join(content, ",") + `],"stop_reason":` + reason +
			`,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	}
	if m.place == "whole" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, message(`"tool_use"`, call(input)))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name, members string) {
		data := strings.NewReplacer("\r\n", "\ndata: ", "\n", "\ndata: ", "\r", "\ndata: ").Replace(members) // a line end begins another line
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, data)
	}
	if m.place == "message" {
		event("message_start", `,"message":`+message(`"tool_use"`, call(input)))
		event("message_stop", "")
		return
	}
	event("message_start", `,"message":`+message("null"))
	if m.place == "start" {
		event("content_block_start", `,"index":0,"content_block":`+call(input))
	} else {
		event("content_block_start", `,"index":0,"content_block":`+call([]byte("{}")))
		for _, piece := range byCharacter(string(input)) {
			event("content_block_delta", `,"index":0,"delta":{"type":"input_json_delta","partial_json":`+quotedName(piece)+`}`)
		}
	}
	event("content_block_stop", `,"index":0`)
	event("message_delta", `,"delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":1}`)
	event("message_stop", "")
}

func quotedName(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// byMessages brings calls to the face of Anthropic Messages.
func byMessages(place string) func(t *testing.T, of vectors) carry {
	return func(t *testing.T, of vectors) carry {
		m := &messagesModel{place: place}
		upstream := httptest.NewServer(m)
		t.Cleanup(upstream.Close)
		config, data := unlimited(t, of.config)
		upstreams := fmt.Sprintf("upstreams:\n  - {name: vectors, base_url: %q, models: [vectors], speaks: [messages], max_repairs: 0}\n# end\n", upstream.URL+"/v1")
		if err := os.WriteFile(filepath.Join(filepath.Dir(config), "upstreams.yaml"), []byte(upstreams), 0o600); err != nil {
			t.Fatal(err)
		}
		main, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		main = append(bytes.TrimSuffix(main, []byte("# end\n")), "upstreams: upstreams.yaml\n# end\n"...)
		if err := os.WriteFile(config, main, 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := configs.Load(config)
		if err != nil {
			t.Fatal(err)
		}
		wire := wireNames(t, loaded, registry.OpenAI())
		var tools []any
		for _, tool := range loaded.Tools.Entries() {
			name, _ := wire.Wire(tool.Name())
			tools = append(tools, map[string]any{"name": name, "input_schema": map[string]string{"type": "object"}})
		}
		body, err := json.Marshal(map[string]any{
			"model": "vectors", "max_tokens": 100, "messages": []any{map[string]string{"role": "user", "content": "Go on."}}, "tools": tools, "stream": place != "whole",
		})
		if err != nil {
			t.Fatal(err)
		}
		g := serveGate(t, config)
		sent := 0
		t.Cleanup(func() {
			if decisions, _ := g.countRecords(t, data); decisions != sent {
				t.Errorf("%d decisions in the log, want %d", decisions, sent)
			}
		})
		return func(t *testing.T, v corpora.Vector) (vectorVerdict, bool) {
			name, arguments, ok := bytesCalled(t, v)
			// Bytes that end the JSON around them cannot stand in it, nor can half of a
			// character in a string.
			if !ok || place != "deltas" && !json.Valid(arguments) || place == "deltas" && !utf8.Valid(arguments) || name == "" {
				return vectorVerdict{}, false
			}
			if wireName, known := wire.Wire(name); known {
				name = wireName
			}
			m.say(name, arguments)
			sent++
			r := g.ask(t, http.MethodPost, "/v1/messages", string(body), "Content-Type", "application/json", "Callgate-Mode", "enforce",
				"Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project, "Callgate-Id", v.ID)
			return messagesVerdict(t, v, r, arguments), true
		}
	}
}

// messagesVerdict reads an answer as clients do.
func messagesVerdict(t *testing.T, v corpora.Vector, r reply, arguments []byte) vectorVerdict {
	t.Helper()
	if r.status == http.StatusOK {
		if !strings.Contains(r.body, `"tool_use"`) || json.Valid(arguments) && !strings.Contains(r.body, "message_stop") && !strings.Contains(r.body, `"stop_reason":"tool_use"`) {
			t.Errorf("%s: %s", v.ID, r.body)
		}
		return vectorVerdict{Verdict: "tool_call"}
	}
	var failure struct {
		Type  string
		Error struct {
			Type    string
			Details struct {
				Code     string `json:"error_code"`
				Callgate struct {
					Result struct {
						Output struct {
							Error struct {
								Code, Stage string
								Violations  []struct{ Path string }
							}
						}
					} `json:"tool_result"`
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(r.body), &failure); err != nil || failure.Type != "error" || failure.Error.Type == "" || strings.Contains(r.body, "toolu_1") {
		t.Errorf("%s: %d %s", v.ID, r.status, r.body)
	}
	said := failure.Error.Details.Callgate.Result.Output.Error
	if failure.Error.Details.Code != said.Code {
		t.Errorf("%s: two codes in %s", v.ID, r.body)
	}
	verdict := vectorVerdict{Verdict: "refused", Code: said.Code, Stage: said.Stage}
	if len(said.Violations) > 0 {
		verdict.Path = said.Violations[0].Path
	}
	return verdict
}
