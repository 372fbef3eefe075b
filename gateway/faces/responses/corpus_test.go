package responses_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/corpora"
	"github.com/callgate/callgate/upstream"
)

const corpus = "face_recordings"

type recording struct {
	File, Style, Finish string
	Expected            []struct {
		ID, Name, Kind   string
		Arguments, Input *string
	} `json:"expected_calls"`
}

// recordings are the recorded streams that have an answer; the reader refuses some (see
// the reader), two ask for approvals again and again, and two have calls at the provider that
// were approved in an earlier request.
func recordings(t testing.TB) []recording {
	t.Helper()
	if !corpora.Whole(corpus) {
		t.Skip("left out: the corpus " + corpus + " is not here")
	}
	return slices.DeleteFunc(corpora.Lines[recording](t, corpora.Path(t, corpus, "sse_streams", "index.jsonl")), func(r recording) bool {
		return r.Style != "openai-responses" || slices.Contains([]string{"362_", "365_", "367_", "368_", "369_", "370_", "376_", "424_", "425_", "427_"}, r.File[:4])
	})
}

// permissive lets everything pass that a switch can.
func permissive(r *upstream.Rules) {
	r.MaxRepairs = 0
	r.Responses = upstream.ResponsesRules{
		HostedTools: []string{"web_search", "file_search", "code_interpreter", "image_generation", "tool_search", "compaction", "shell"},
		MCPServers:  []string{"zip1"}, State: upstream.RefuseState, Async: true, ProgrammaticCalls: true, UnknownItems: upstream.Pass,
	}
}

// TestRecordedStreams: of every recorded stream the calls come out as they were made, however
// its bytes are cut, in a stream that the strictest client reads; and where no tool is offered,
// nothing of a call comes out.
func TestRecordedStreams(t *testing.T) {
	all := recordings(t)
	names := map[string]string{}
	for _, r := range all {
		for _, c := range r.Expected {
			names[c.Name] = c.Kind
		}
	}
	var list, offered []string
	for name, kind := range names {
		list = append(list, fmt.Sprintf("\n  - {name: %s, description: x, open: true, run: {type: client}, input_schema: {type: object, additionalProperties: true}}", name))
		offered = append(offered, fmt.Sprintf(`{"type":%q,"name":%q}`, strings.TrimSuffix(strings.TrimSuffix(kind, "_call"), "_tool"), name))
	}
	list = append(list, "\n  - {name: shell, description: x, open: true, run: {type: client}, input_schema: {type: object, additionalProperties: true}}",
		"\n  - {name: local_shell, description: x, open: true, run: {type: client}, input_schema: {type: object, additionalProperties: true}}",
		"\n  - {name: apply_patch, description: x, open: true, run: {type: client}, input_schema: {type: object, additionalProperties: true}}")
	offered = append(offered, `{"type":"shell"}`, `{"type":"local_shell"}`, `{"type":"apply_patch"}`, `{"type":"mcp","server_label":"zip1"}`)
	var body []byte
	random := rand.New(rand.NewPCG(3, 4))
	h := open(t, plan{config: withTools(t, strings.Join(list, "")+"\n"), rules: permissive}, func(w http.ResponseWriter, _ bool) {
		w.Header().Set("Content-Type", "text/event-stream")
		for rest := body; len(rest) > 0; {
			n := min(1+random.IntN(4000), len(rest))
			_, _ = w.Write(rest[:n])
			w.(http.Flusher).Flush()
			rest = rest[n:]
		}
	})
	calls := 0
	for _, r := range all {
		var err error
		if body, err = os.ReadFile(corpora.Path(t, corpus, "sse_streams", r.File)); err != nil {
			t.Fatal(err)
		}
		w := h.post(asksStream(`"tools":[` + strings.Join(offered, ",") + `]`))
		if strings.HasPrefix(r.Finish, "incomplete") && len(r.Expected) > 0 {
			if refused := reads(t, w); refused.Error == nil || refused.Error.Code != "truncated_output" { // RS-31
				t.Errorf("%s: %s", r.File, w.Body)
			}
			continue
		}
		if w.Code != 200 {
			t.Errorf("%s: %d %s", r.File, w.Code, w.Body)
			continue
		}
		got := reads(t, w)
		var made []item
		for _, i := range got.Output {
			if i.Type == "function_call" || i.Type == "custom_tool_call" {
				made = append(made, i)
			}
		}
		if got.Status == "failed" || len(made) != len(r.Expected) {
			t.Errorf("%s: %s %+v", r.File, got.Status, got.Error)
			continue
		}
		for i, c := range r.Expected {
			text := c.Arguments
			if text == nil {
				text = c.Input
			}
			want := *text
			if want == "" {
				want = "{}"
			}
			if made[i].CallID != c.ID || made[i].Name != c.Name || string(made[i].Arguments)+made[i].Input != want {
				t.Errorf("%s: found %+v, want %+v", r.File, made[i], c)
			}
			calls++
		}
		if len(r.Expected) == 0 {
			continue
		}
		w = h.post(asksStream())
		for _, c := range r.Expected {
			if strings.Contains(w.Body.String(), c.ID) {
				t.Errorf("%s: a refused call was sent: %s", r.File, w.Body)
			}
		}
		if refused := reads(t, w); refused.Error == nil || refused.Error.Code != "unknown_tool" {
			t.Errorf("%s: %s", r.File, w.Body)
		}
	}
	if len(all) != 220 || calls < 75 {
		t.Errorf("%d recordings with %d calls", len(all), calls)
	}
}
