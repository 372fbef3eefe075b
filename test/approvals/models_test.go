package approvals_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/upstream"
)

// byModels are the faces in front of models: each in both modes, whole and streamed.
func byModels() (all []face) {
	for _, f := range []struct {
		speaks     upstream.Wire
		path, body string
	}{
		{upstream.ChatWire, "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"pay"}},{"type":"function","function":{"name":"refund"}}]}`, upstream.ChatWire)},
		{upstream.MessagesWire, "/v1/messages", fmt.Sprintf(`{"model":%q,"max_tokens":9,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"pay","input_schema":{"type":"object"}},{"name":"refund","input_schema":{"type":"object"}}]}`, upstream.MessagesWire)},
		{upstream.ResponsesWire, "/v1/responses", fmt.Sprintf(`{"model":%q,"input":"hi","tools":[{"type":"function","name":"pay","parameters":{"type":"object"}},{"type":"function","name":"refund","parameters":{"type":"object"}}]}`, upstream.ResponsesWire)},
	} {
		if !app.Speaks(f.speaks) {
			continue
		}
		for _, mode := range []upstream.Mode{upstream.Enforce, upstream.Orchestrate} {
			name := string(f.speaks) + ", " + string(mode)
			streamed := strings.TrimSuffix(f.body, "}") + `,"stream":true}`
			all = append(all, byModel(name, f.path, mode, f.body), byModel(name+", streamed", f.path, mode, streamed))
		}
	}
	return all
}

// byModel is a face in front of a model.
func byModel(name, path string, mode upstream.Mode, body string) face {
	f := face{name: name, handsOver: mode == upstream.Enforce, waits: true}
	f.send = func(o *office, c call) *httptest.ResponseRecorder {
		o.mu.Lock()
		o.next, o.read = &c, ""
		o.mu.Unlock()
		return o.post(path, body, c, "Callgate-Mode", string(mode))
	}
	f.code = func(t *testing.T, o *office, w *httptest.ResponseRecorder) string {
		answer := w.Body.String()
		if strings.Contains(body, `"stream":true`) != strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") && w.Code == http.StatusOK {
			t.Errorf("no answer of its kind: %q", w.Header())
		}
		if !f.handsOver { // the model reads what became of its call
			if w.Code != http.StatusOK || !strings.Contains(answer, "It waits.") || strings.Contains(answer, "amount") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			answer = o.read
		}
		code := codeIn(answer)
		if code == "" { // the model was told, and called nothing more
			code = codeIn(o.read)
		}
		handedOver := strings.Contains(w.Body.String(), "call_1") || strings.Contains(w.Body.String(), "toolu_1")
		if handedOver != (f.handsOver && code == "") {
			t.Errorf("%q, handed over: %v: %.2000s", code, handedOver, w.Body)
		}
		return code
	}
	return f
}

var codes = regexp.MustCompile(`\\*"code\\*":\s*\\*"(\w+)\\*"|"error_code":"(\w+)"`)

// codeIn is the first code that a text states, which may be within a string.
func codeIn(text string) string {
	if m := codes.FindStringSubmatch(text); m != nil {
		return m[1] + m[2]
	}
	return ""
}

// say is the model: it makes the call once, and answers with a text from then on.
func (o *office) say(w http.ResponseWriter, r *http.Request) {
	request, _ := io.ReadAll(r.Body)
	o.mu.Lock()
	c := o.next
	o.next, o.read = nil, string(request)
	o.mu.Unlock()
	name, arguments := `""`, ""
	if c != nil {
		name, arguments = quoted(c.tool()), c.Arguments
	}
	var whole string
	var events []string
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		whole, events = chatAnswer(c != nil, name, arguments)
	case strings.HasSuffix(r.URL.Path, "/messages"):
		whole, events = messagesAnswer(c != nil, name, arguments)
	default:
		whole, events = responsesAnswer(c != nil, name, arguments)
	}
	if !strings.Contains(string(request), `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, data := range events {
		named := ""
		if strings.HasPrefix(data, `{"type":"`) {
			named, _, _ = strings.Cut(strings.TrimPrefix(data, `{"type":"`), `"`)
		}
		_, _ = w.Write(sse.AppendEvent(nil, named, []byte(data)))
	}
}

// halves are a text in two pieces, each as JSON.
func halves(text string) [2]string {
	half := len(text) / 2
	return [2]string{quoted(text[:half]), quoted(text[half:])}
}

func chatAnswer(calls bool, name, arguments string) (whole string, events []string) {
	message, reason := `{"role":"assistant","content":"It waits."}`, "stop"
	deltas := []string{message}
	if calls {
		made := `{"id":"call_1","type":"function","function":{"name":` + name + `,"arguments":`
		message, reason = `{"role":"assistant","content":null,"tool_calls":[`+made+quoted(arguments)+`}}]}`, "tool_calls"
		pieces := halves(arguments)
		deltas = []string{
			`{"role":"assistant","tool_calls":[` + strings.Replace(made, "{", `{"index":0,`, 1) + pieces[0] + `}}]}`,
			`{"tool_calls":[{"index":0,"function":{"arguments":` + pieces[1] + `}}]}`,
		}
	}
	whole = `{"id":"c","object":"chat.completion","created":7,"model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + reason + `"}]}`
	chunk := func(delta, finish string) string {
		return `{"id":"c","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
	}
	for _, delta := range deltas {
		events = append(events, chunk(delta, "null"))
	}
	return whole, append(events, chunk("{}", quoted(reason)), "[DONE]")
}

func messagesAnswer(calls bool, name, arguments string) (whole string, events []string) {
	head := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[`
	content, reason := `{"type":"text","text":"It waits."}`, "end_turn"
	begun, deltas := `{"type":"text","text":""}`, []string{`{"type":"text_delta","text":"It waits."}`}
	if calls {
		content, reason = `{"type":"tool_use","id":"toolu_1","name":`+name+`,"input":`+arguments+`}`, "tool_use"
		begun = `{"type":"tool_use","id":"toolu_1","name":` + name + `,"input":{}}`
		pieces := halves(arguments)
		deltas = []string{`{"type":"input_json_delta","partial_json":` + pieces[0] + `}`, `{"type":"input_json_delta","partial_json":` + pieces[1] + `}`}
	}
	const usage = `"usage":{"input_tokens":1,"output_tokens":1}`
	whole = head + content + `],"stop_reason":"` + reason + `","stop_sequence":null,` + usage + `}`
	events = []string{
		`{"type":"message_start","message":` + head + `],"stop_reason":null,"stop_sequence":null,` + usage + `}}`,
		`{"type":"content_block_start","index":0,"content_block":` + begun + `}`,
	}
	for _, delta := range deltas {
		events = append(events, `{"type":"content_block_delta","index":0,"delta":`+delta+`}`)
	}
	return whole, append(events, `{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"`+reason+`","stop_sequence":null},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`)
}

func responsesAnswer(calls bool, name, arguments string) (whole string, events []string) {
	item := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"It waits."}]}`
	begun := `{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`
	kind, at, text, last := "response.output_text", `"item_id":"msg_1","output_index":0,"content_index":0`, "It waits.", "text"
	if calls {
		made := func(status, arguments string) string {
			return `{"id":"fc_1","type":"function_call","status":"` + status + `","call_id":"call_1","name":` + name + `,"arguments":` + arguments + `}`
		}
		item, begun = made("completed", quoted(arguments)), made("in_progress", `""`)
		kind, at = "response.function_call_arguments", `"item_id":"fc_1","output_index":0`
		text, last = arguments, "arguments"
	}
	response := func(status, output string) string {
		return `{"id":"resp_1","object":"response","created_at":7,"status":"` + status + `","model":"m","output":[` + output + `]}`
	}
	pieces := halves(text)
	events = []string{
		`{"type":"response.created","response":` + response("in_progress", "") + `}`,
		`{"type":"response.output_item.added","output_index":0,"item":` + begun + `}`,
		`{"type":"` + kind + `.delta",` + at + `,"delta":` + pieces[0] + `}`, `{"type":"` + kind + `.delta",` + at + `,"delta":` + pieces[1] + `}`,
		`{"type":"` + kind + `.done",` + at + `,"` + last + `":` + quoted(text) + `}`,
		`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`,
		`{"type":"response.completed","response":` + response("completed", item) + `}`,
	}
	for i, event := range events {
		events[i] = strings.TrimSuffix(event, "}") + fmt.Sprintf(`,"sequence_number":%d}`, i)
	}
	return response("completed", item), events
}
