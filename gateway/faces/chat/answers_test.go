package chat_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// says answers with a message, whole or as a stream, as it is asked for.
func says(message, finish string) func(http.ResponseWriter, *http.Request) {
	return saysMany(finish, message)
}

// saysMany answers with one choice for each message.
func saysMany(finish string, messages ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept") == "text/event-stream" {
			stream(w, 1<<20, finish, messages...)
			return
		}
		var choices []string
		for i, m := range messages {
			choices = append(choices, fmt.Sprintf(`{"index":%d,"message":%s,"finish_reason":%q}`, i, m, finish))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":"model-1-0","choices":[%s],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"details":{"cached":3}},"system_fingerprint":"fp"}`, strings.Join(choices, ","))
	}
}

// stream sends messages as a stream, in pieces of at most so many bytes of text,
// as characters allow.
func stream(w http.ResponseWriter, piece int, finish string, messages ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i, m := range messages {
		for _, delta := range deltas(m, piece) {
			event(w, fmt.Sprintf(`{"index":%d,"delta":%s,"finish_reason":null}`, i, delta))
		}
		event(w, fmt.Sprintf(`{"index":%d,"delta":{},"finish_reason":%q}`, i, finish))
	}
	fmt.Fprintf(w, "data: %s\n\n", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"model-1-0","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"details":{"cached":3}}}`)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func event(w http.ResponseWriter, choice string) {
	fmt.Fprintf(w, "data: %s\n\n", `{"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":"model-1-0","choices":[`+choice+`]}`)
	w.(http.Flusher).Flush()
}

// deltas cuts a message into what a stream brings of it.
func deltas(message string, piece int) []string {
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		panic(message)
	}
	out := []string{`{"role":"assistant"}`}
	for _, name := range []string{"reasoning_content", "content", "refusal", "function_call"} {
		var s string
		switch raw := m[name]; {
		case raw == nil:
		case json.Unmarshal(raw, &s) != nil || string(raw) == "null":
			out = append(out, `{"`+name+`":`+string(raw)+`}`)
		default:
			for _, part := range pieces(s, piece) {
				out = append(out, `{"`+name+`":`+quoted(part)+`}`)
			}
		}
	}
	var calls []map[string]json.RawMessage
	_ = json.Unmarshal(m["tool_calls"], &calls)
	for i, c := range calls {
		var f struct{ Name, Arguments string }
		_ = json.Unmarshal(c["function"], &f)
		kind := c["type"]
		if kind == nil {
			kind = json.RawMessage(`"function"`)
		}
		out = append(out, fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%s,"type":%s,"function":{"name":%s,"arguments":""}}]}`, i, c["id"], kind, quoted(f.Name)))
		for _, part := range pieces(f.Arguments, piece) {
			out = append(out, fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted(part)))
		}
	}
	return out
}

// pieces cuts a text between characters.
func pieces(s string, most int) []string {
	var out []string
	for len(s) > 0 {
		n := min(most, len(s))
		for n < len(s) && s[n]&0xC0 == 0x80 {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
