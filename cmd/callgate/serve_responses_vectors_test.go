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

// responsesModel answers with one call, in one of the places of a reply of OpenAI Responses where
// a call can stand (RS-43).
type responsesModel struct {
	place string // whole, deltas, done, item, added or terminal
	mu    sync.Mutex
	item  string // the call
	input string
}

func (m *responsesModel) say(name, arguments string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.item = fmt.Sprintf(`{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":%s,"arguments":%s}`, quotedName(name), quotedName(arguments))
	m.input = arguments
}

func (m *responsesModel) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	m.mu.Lock()
	item, input := m.item, m.input
	m.mu.Unlock()
	response := func(status string, items ...string) string {
		return fmt.Sprintf(`{"id":"resp_1","object":"response","created_at":1,"status":%q,"model":"vectors","output":[%s]}`, status, strings.Join(items, ","))
	}
	if m.place == "whole" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, response("completed", item))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(name, members string) {
		fmt.Fprintf(w, "event: %s\ndata: {\"type\":%q,%s}\n\n", name, name, members)
	}
	event("response.created", `"response":`+response("in_progress"))
	begun := item
	if m.place != "added" {
		begun = strings.Replace(item, `"arguments":`+quotedName(input), `"arguments":""`, 1)
	}
	if m.place != "terminal" {
		event("response.output_item.added", `"output_index":0,"item":`+begun)
	}
	if m.place == "deltas" {
		for _, piece := range byCharacter(input) {
			event("response.function_call_arguments.delta", `"output_index":0,"item_id":"fc_1","delta":`+quotedName(piece))
		}
	}
	if m.place == "done" {
		event("response.function_call_arguments.done", `"output_index":0,"item_id":"fc_1","arguments":`+quotedName(input))
	}
	if m.place == "terminal" {
		event("response.completed", `"response":`+response("completed", item))
		return
	}
	event("response.output_item.done", `"output_index":0,"item":`+item)
	event("response.completed", `"response":`+response("completed"))
}

// byResponses brings calls to the face of OpenAI Responses.
func byResponses(place string) func(t *testing.T, of vectors) carry {
	return func(t *testing.T, of vectors) carry {
		requires(t, configs.ResponsesFace)
		m := &responsesModel{place: place}
		upstream := httptest.NewServer(m)
		t.Cleanup(upstream.Close)
		config, data := unlimited(t, of.config)
		upstreams := fmt.Sprintf("upstreams:\n  - {name: vectors, base_url: %q, models: [vectors], speaks: [responses], max_repairs: 0}\n# end\n", upstream.URL+"/v1")
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
			tools = append(tools, map[string]any{"type": "function", "name": name, "parameters": map[string]string{"type": "object"}})
		}
		body, err := json.Marshal(map[string]any{"model": "vectors", "input": "Go on.", "tools": tools, "stream": place != "whole"})
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
			if !ok || !utf8.Valid(arguments) { // half of a character cannot stand in a string
				return vectorVerdict{}, false
			}
			if wireName, known := wire.Wire(name); known {
				name = wireName
			}
			m.say(name, string(arguments))
			sent++
			r := g.ask(t, http.MethodPost, "/v1/responses", string(body), "Content-Type", "application/json", "Callgate-Mode", "enforce",
				"Callgate-Agent", v.Agent, "Callgate-Workspace", v.Workspace, "Callgate-Project", v.Project, "Callgate-Id", v.ID)
			return responsesVerdict(t, v, r, arguments), true
		}
	}
}

// responsesVerdict reads an answer as clients do.
func responsesVerdict(t *testing.T, v corpora.Vector, r reply, arguments []byte) vectorVerdict {
	t.Helper()
	if r.status == http.StatusOK {
		type response struct {
			Output []struct {
				CallID    string `json:"call_id"`
				Arguments string
			}
		}
		last := r.body[strings.LastIndex(r.body, "data: ")+1:] // of a stream, the terminal event
		var whole struct {
			response
			Response response
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(last, "ata: ")), &whole); err != nil {
			t.Fatalf("%s: %v %s", v.ID, err, r.body)
		}
		output := append(whole.Output, whole.Response.Output...)
		if len(output) != 1 || output[0].CallID != "call_1" || output[0].Arguments != string(arguments) {
			t.Errorf("%s: %s", v.ID, r.body)
		}
		return vectorVerdict{Verdict: "tool_call"}
	}
	var answer struct{ Error *chatFailure }
	if err := json.Unmarshal([]byte(r.body), &answer); err != nil || answer.Error == nil || strings.Contains(r.body, "call_1") {
		t.Fatalf("%s: %d %s", v.ID, r.status, r.body)
	}
	said := answer.Error.Callgate.Result.Output.Error
	if answer.Error.Code != said.Code {
		t.Errorf("%s: two codes in %s", v.ID, r.body)
	}
	verdict := vectorVerdict{Verdict: "refused", Code: said.Code, Stage: said.Stage}
	if len(said.Violations) > 0 {
		verdict.Path = said.Violations[0].Path
	}
	return verdict
}
