package chat_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/toolimport"
	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/upstream"
)

// recorded is a tool of a recorded request.
type recorded struct {
	Name   string
	Schema json.RawMessage
}

// imported loads those of some recorded tools that load, as `callgate tools import
// openai` does, and says which.
func imported(t testing.TB, list []recorded) (*configs.Config, []string) {
	t.Helper()
	type function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters,omitempty"`
	}
	type definition struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}
	definitions := []definition{}
	for _, tool := range list {
		d := definition{"function", function{Name: tool.Name}}
		if string(tool.Schema) != "null" {
			d.Function.Parameters = tool.Schema
		}
		definitions = append(definitions, d)
	}
	data, err := json.Marshal(definitions)
	if err != nil {
		t.Fatal(err)
	}
	im, err := toolimport.OpenAI("tools.json", data)
	if err != nil {
		t.Fatal(err)
	}
	if len(im.Names) == 0 {
		return configWith(t, "tools.json", `{"tools":[]}`), nil
	}
	return configWith(t, "tools.yaml", string(im.YAML)), im.Names
}

// offering is a request with some tools, as a stream or not.
func offering(names []string, streamed bool) string {
	body := asks("")
	if len(names) > 0 {
		body = asks(tools(names...))
	}
	if streamed {
		body = strings.TrimSuffix(body, "}") + `,"stream":true}`
	}
	return body
}

// TestRecordedStreams: of every recorded stream of OpenAI's chat the calls come
// out as they were made, however its bytes are cut.
func TestRecordedStreams(t *testing.T) {
	type entry struct {
		File, Style string
		Tools       []recorded
		Expected    []struct{ ID, Name, Arguments string } `json:"expected_calls"`
	}
	folder := corpora.Path(t, "sse_streams")
	seen, calls, cuts := 0, 0, 0
	for _, e := range corpora.Lines[entry](t, filepath.Join(folder, "index.jsonl")) {
		if e.Style != "openai-chat" {
			continue
		}
		seen++
		body, err := os.ReadFile(filepath.Join(folder, e.File))
		if err != nil {
			t.Fatal(err)
		}
		c, names := imported(t, e.Tools)
		if len(e.Tools) == 0 { // the recording does not say which tools there were
			var list []string
			for _, call := range e.Expected {
				if !slices.Contains(names, call.Name) {
					names = append(names, call.Name)
					list = append(list, fmt.Sprintf(`{"name":%q,"open":true,"input_schema":{"type":"object","additionalProperties":true},"run":{"type":"client"}}`, call.Name))
				}
			}
			c = configWith(t, "tools.json", `{"tools":[`+strings.Join(list, ",")+`]}`)
		}
		var at func() int
		h := openWith(t, c, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			for rest := body; len(rest) > 0; {
				n := min(at(), len(rest))
				_, _ = w.Write(rest[:n])
				w.(http.Flusher).Flush()
				rest = rest[n:]
			}
		}, plan{rules: noRepairs, definition: func(d *upstream.Definition) { d.MaxBody = 64 << 20 }})
		send := func(how string) {
			w := h.post(offering(names, true))
			got := reads(t, w)
			if len(e.Expected) > 0 && (w.Code != 200 || !got.done || len(got.Choices) == 0 || len(got.Choices[0].Message.ToolCalls) != len(e.Expected)) {
				t.Errorf("%s, %s: %d %.700s", e.File, how, w.Code, w.Body)
				return
			}
			for i, want := range e.Expected {
				call := got.Choices[0].Message.ToolCalls[i]
				arguments := cmp.Or(want.Arguments, "{}") // a call without any leaves as a call with none
				if call.ID != want.ID || call.Function.Name != want.Name || call.Function.Arguments != arguments || call.Type != "function" {
					t.Errorf("%s, %s: call %d is %+v, want %+v", e.File, how, i, call, want)
				}
			}
			cuts++
		}
		at = func() int { return len(body) }
		send("whole")
		if len(body) < 20_000 && !testing.Short() {
			at = func() int { return 1 }
			send("byte by byte")
		}
		random := rand.New(rand.NewPCG(uint64(len(body)), 7))
		for range 3 {
			at = func() int { return 1 + random.IntN(200) }
			send("in random pieces")
		}
		calls += len(e.Expected)
	}
	if seen != corpora.Count("sse_streams", 28, 11) {
		t.Errorf("found %d streams of OpenAI's chat", seen)
	}
	t.Logf("%d streams with %d calls, cut in %d ways", seen, calls, cuts)
}

// TestRecordedExchanges: what providers have answered in OpenAI's chat gets,
// through the face, the verdict of another validator, wherever the schema loads.
func TestRecordedExchanges(t *testing.T) {
	type exchange struct {
		ID, Style, Text string
		Tools           []recorded
		Calls           []struct{ ID, Name, Arguments string }
		Oracle          [][]string
	}
	count := map[string]int{}
	for _, x := range corpora.Lines[exchange](t, corpora.Path(t, "native_exchanges", "exchanges.jsonl")) {
		if x.Style != "openai-chat" {
			continue
		}
		count["exchanges"]++
		c, names := imported(t, x.Tools)
		message := map[string]any{"role": "assistant", "content": nil}
		if x.Text != "" || len(x.Calls) == 0 {
			message["content"] = x.Text
		}
		var list []map[string]any
		want := ""
		for i, call := range x.Calls {
			id := call.ID
			if id == "" {
				id = fmt.Sprint("call-", i)
			}
			list = append(list, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": call.Name, "arguments": call.Arguments}})
			if oracle := x.Oracle[i][0]; oracle != "ok" {
				want = "unknown_tool" // no tool of the request that loads
				count[oracle]++
			}
		}
		if list != nil {
			message["tool_calls"] = list
		}
		if len(x.Calls) == 0 && parser.Parse([]byte(x.Text), false, parser.Options{TextOnly: true}).Kind != parser.Text {
			want = "empty_output"
		}
		raw, err := json.Marshal(message)
		if err != nil {
			t.Fatal(err)
		}
		for _, streamed := range []bool{false, true} {
			h := openWith(t, c, inTurn(says(string(raw), "stop")), plan{rules: noRepairs})
			w := h.post(offering(names, streamed))
			got := reads(t, w)
			if got.Error.Code != want {
				t.Errorf("%s: %d %.1000s; want %q; loaded %v", x.ID, w.Code, w.Body, want, names)
				continue
			}
			if want != "" {
				continue
			}
			if got.text() != x.Text || len(got.Choices[0].Message.ToolCalls) != len(x.Calls) {
				t.Errorf("%s: %d %.1000s", x.ID, w.Code, w.Body)
				continue
			}
			for i, call := range got.Choices[0].Message.ToolCalls {
				if arguments := x.Calls[i].Arguments; call.Function.Name != x.Calls[i].Name || call.Function.Arguments != arguments && arguments != "" {
					t.Errorf("%s: call %d came out as %+v", x.ID, i, call)
				}
				count["calls"]++
			}
		}
	}
	if count["exchanges"] != corpora.Count("native_exchanges", 287, 10) {
		t.Errorf("%v", count)
	}
	t.Logf("%v", count)
}
