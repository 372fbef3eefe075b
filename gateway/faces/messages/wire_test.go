package messages_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// shownBlock is a content block, as far as tests look at it.
type shownBlock struct {
	Type, Text, Thinking, Signature, ID, Name string
	Input                                     json.RawMessage
}

// answer is a message, or an error, whole or put together from a stream.
type answer struct {
	Type, ID, Model, Role string
	Content               []shownBlock
	StopReason            string `json:"stop_reason"`
	Usage                 map[string]any
	Error                 struct {
		Type, Message string
		Details       struct {
			Code string `json:"error_code"`
		}
	}
	RequestID string `json:"request_id"`
	pings     int
	comments  int
	done      bool
	text      string // of all blocks
}

func (a answer) calls() []string {
	var all []string
	for _, b := range a.Content {
		if b.Type == "tool_use" {
			all = append(all, b.ID+" "+b.Name+" "+string(b.Input))
		}
	}
	return all
}

// reads takes an answer apart, whole or a stream, as strictly as a client does.
func reads(t testing.TB, w *httptest.ResponseRecorder) answer {
	t.Helper()
	var a answer
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil {
			t.Fatalf("%d %q: %v", w.Code, w.Body, err)
		}
		a.done = true
	} else {
		a = readsStream(t, w.Body.String())
	}
	for _, b := range a.Content {
		a.text += b.Text
	}
	return a
}

// readsStream puts a stream together. Every event of which a client would fail fails the test.
func readsStream(t testing.TB, body string) answer {
	t.Helper()
	var a answer
	var inputs []string
	opened := false
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") {
			a.comments++
			continue
		}
		name, data, found := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		var e struct {
			Type    string
			Index   int
			Message answer
			Block   shownBlock `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking, Signature string
				Partial                         string `json:"partial_json"`
				StopReason                      string `json:"stop_reason"`
			}
			Usage map[string]any
			Error json.RawMessage
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || !found || e.Type != name || a.done || a.Error.Type != "" {
			t.Fatalf("found %q in %q: %v", event, body, err)
		}
		if a.ID == "" && name != "message_start" && name != "error" {
			t.Fatalf("%s before message_start in %q", name, body)
		}
		switch name {
		case "message_start":
			if a.ID != "" || len(e.Message.Content) > 0 || e.Message.StopReason != "" {
				t.Fatalf("a bad message_start in %q", body)
			}
			a = e.Message
		case "content_block_start":
			if opened || e.Index != len(a.Content) {
				t.Fatalf("a block at %d in %q", e.Index, body)
			}
			opened = true
			a.Content, inputs = append(a.Content, e.Block), append(inputs, "")
		case "content_block_delta", "content_block_stop":
			if !opened || e.Index != len(a.Content)-1 {
				t.Fatalf("%s at %d in %q", name, e.Index, body)
			}
			b := &a.Content[e.Index]
			if name == "content_block_stop" {
				opened = false
				if inputs[e.Index] != "" {
					b.Input = json.RawMessage(inputs[e.Index])
				}
				continue
			}
			b.Text += e.Delta.Text
			b.Thinking += e.Delta.Thinking
			b.Signature += e.Delta.Signature
			inputs[e.Index] += e.Delta.Partial
		case "message_delta":
			a.StopReason, a.Usage = e.Delta.StopReason, e.Usage
		case "message_stop":
			if opened || a.StopReason == "" || a.Usage["output_tokens"] == nil {
				t.Fatalf("a bad end in %q", body)
			}
			a.done = true
		case "ping":
			a.pings++
		case "error":
			if err := json.Unmarshal(e.Error, &a.Error); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("found %q", event)
		}
	}
	return a
}

// textOf is a content block of the model.
func textOf(text string) string { return `{"type":"text","text":` + quoted(text) + `}` }

func toolUse(id, name, input string) string {
	return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, id, name, input)
}

const thinkingBlock = `{"type":"thinking","thinking":"Hm.","signature":"c2ln"}`

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// message is a message of the model.
func message(reason string, blocks ...string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[` + strings.Join(blocks, ",") + `],"stop_reason":` + quoted(reason) +
		`,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":5}}`
}

// stream writes a message as a stream, in deltas of so many bytes. place is where the calls stand:
// deltas, start or message.
func stream(w io.Writer, place string, size int, whole string) {
	var m struct {
		Content    []map[string]any
		StopReason string `json:"stop_reason"`
	}
	if err := json.Unmarshal([]byte(whole), &m); err != nil {
		panic(err)
	}
	head := whole[:strings.Index(whole, `"content":[`)]
	usage := `"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"output_tokens":1}}`
	event := func(name, data string) { fmt.Fprintf(w, "event: %s\ndata: %s\n\n", name, data) }
	if place == "message" {
		event("message_start", `{"type":"message_start","message":`+whole+`}`)
		event("message_stop", `{"type":"message_stop"}`)
		return
	}
	event("message_start", `{"type":"message_start","message":`+head+`"content":[],"stop_reason":null,`+usage+`}`)
	event("ping", `{"type":"ping"}`)
	for i, b := range m.Content {
		delta := func(kind, member, text string) {
			for len(text) > 0 {
				n := min(size, len(text))
				for n < len(text) && text[n]&0xC0 == 0x80 {
					n++ // not within a character
				}
				event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, kind, member, quoted(text[:n])))
				text = text[n:]
			}
		}
		opening := map[string]any{}
		for name, value := range b {
			opening[name] = value
		}
		var then func()
		switch b["type"] {
		case "text":
			opening["text"] = ""
			then = func() { delta("text_delta", "text", b["text"].(string)) }
		case "thinking":
			opening["thinking"], opening["signature"] = "", ""
			then = func() {
				delta("thinking_delta", "thinking", b["thinking"].(string))
				event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%s}}`, i, quoted(b["signature"].(string))))
			}
		case "tool_use", "server_tool_use":
			if place == "deltas" {
				opening["input"] = map[string]any{}
				raw, _ := json.Marshal(b["input"])
				then = func() { delta("input_json_delta", "partial_json", string(raw)) }
			}
		}
		raw, _ := json.Marshal(opening)
		event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, raw))
		if then != nil {
			then()
		}
		event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
	}
	event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":5}}`, m.StopReason))
	event("message_stop", `{"type":"message_stop"}`)
}

// says is a script of messages, the last of which is said from then on; streamed where the request
// asks for that.
func says(wholes ...string) script { return saysIn("deltas", 7, wholes...) }

func saysIn(place string, size int, wholes ...string) script {
	return func(turn int, w http.ResponseWriter, r *http.Request) {
		whole := wholes[min(turn, len(wholes)-1)]
		w.Header().Set("Request-Id", "req_upstream")
		if r.Header.Get("Accept") == "text/event-stream" {
			w.Header().Set("Content-Type", "text/event-stream")
			stream(w, place, size, whole)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, whole)
	}
}
