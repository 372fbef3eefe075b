package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// wire is an API of models, as the mock model speaks it and a client reads it.
type wire struct {
	path      string // below /v1
	offered   string // the members of a request that offer the one tool
	request   func(model, more string) string
	text      string                    // a completion of text
	call      string                    // one of a call
	stream    func(chunks int) [][]byte // pieces of text, and the end
	beforeBit string                    // what stands before a piece of text in its line
	last      string                    // how the last line of a stream begins
}

var wires = map[string]wire{"chat": chatWire, "messages": messagesWire, "responses": responsesWire}

func wireNames() string { return strings.Join(slices.Sorted(maps.Keys(wires)), ", ") }

const (
	system   = "You are a helpful assistant."
	question = "What is the audit log of a gateway?"
)

const chatHead = `{"id":"chatcmpl-1","object":"chat.completion","created":1700000000,"model":"mock","choices":[{"index":0,"message":{"role":"assistant","refusal":null,`
const chatTail = `}],"usage":{"prompt_tokens":20,"completion_tokens":100,"total_tokens":120}}`

var chatWire = wire{
	path:    "/chat/completions",
	offered: `"tools":[{"type":"function","function":{"name":"bench_echo","parameters":{"type":"object"}}}],`,
	request: func(model, more string) string {
		return `{"model":"` + model + `",` + more + `"messages":[{"role":"system","content":"` + system + `"},{"role":"user","content":"` +
			question + `"}]}`
	},
	text: chatHead + `"content":"` + someText + `"},"logprobs":null,"finish_reason":"stop"` + chatTail,
	call: chatHead + `"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"bench_echo","arguments":` +
		strconv.Quote(arguments) + `}}]},"logprobs":null,"finish_reason":"tool_calls"` + chatTail,
	stream: func(chunks int) [][]byte {
		event := func(delta, finish string) []byte {
			return fmt.Appendf(nil, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mock","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}`+"\n\n", delta, finish)
		}
		all := [][]byte{event(`{"role":"assistant"}`, "null")}
		for range chunks {
			all = append(all, event(`{"content":"`+piece+`"}`, "null"))
		}
		return append(all, event("{}", `"stop"`), []byte("data: [DONE]\n\n"))
	},
	beforeBit: `"content":"`,
	last:      "data: [DONE]",
}

// named is an event whose name is the type of its data.
func named(kind, members string) []byte {
	return []byte("event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + members + "}\n\n")
}

func message(content, reason string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"mock","content":[` + content + `],"stop_reason":` + reason +
		`,"stop_sequence":null,"stop_details":null,"usage":{"input_tokens":20,"output_tokens":100},"container":null}`
}

var messagesWire = wire{
	path:    "/messages",
	offered: `"tools":[{"name":"bench_echo","input_schema":{"type":"object"}}],`,
	request: func(model, more string) string {
		return `{"model":"` + model + `","max_tokens":1000,` + more + `"system":"` + system + `","messages":[{"role":"user","content":"` +
			question + `"}]}`
	},
	text: message(`{"type":"text","text":"`+someText+`","citations":null}`, `"end_turn"`),
	call: message(`{"type":"tool_use","id":"toolu_1","name":"bench_echo","input":`+arguments+`,"caller":{"type":"direct"}}`, `"tool_use"`),
	stream: func(chunks int) [][]byte {
		all := [][]byte{
			named("message_start", `,"message":`+message("", "null")),
			named("content_block_start", `,"index":0,"content_block":{"type":"text","text":"","citations":null}`),
		}
		for range chunks {
			all = append(all, named("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"`+piece+`"}`))
		}
		return append(all, named("content_block_stop", `,"index":0`),
			named("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null,"stop_details":null},"usage":{"output_tokens":100}`),
			named("message_stop", ""))
	},
	beforeBit: `"text_delta","text":"`,
	last:      `data: {"type":"message_stop"`,
}

func response(status, output string) string {
	return `{"id":"resp_1","object":"response","created_at":1700000000,"status":"` + status +
		`","error":null,"incomplete_details":null,"instructions":null,"metadata":{},` +
		`"model":"mock","output":[` + output + `],"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"temperature":1,"top_p":1,` +
		`"usage":{"input_tokens":20,"input_tokens_details":{"cached_tokens":0},"output_tokens":100,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":120}}`
}

func outputMessage(status, content string) string {
	return `{"id":"msg_1","type":"message","status":"` + status + `","role":"assistant","content":[` + content + `]}`
}

func outputText(text string) string {
	return `{"type":"output_text","text":"` + text + `","annotations":[],"logprobs":[]}`
}

var responsesWire = wire{
	path:    "/responses",
	offered: `"tools":[{"type":"function","name":"bench_echo","strict":false,"parameters":{"type":"object"}}],`,
	request: func(model, more string) string {
		return `{"model":"` + model + `","store":false,` + more + `"instructions":"` + system + `","input":"` + question + `"}`
	},
	text: response("completed", outputMessage("completed", outputText(someText))),
	call: response("completed", `{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"bench_echo","arguments":`+strconv.Quote(arguments)+`}`),
	stream: func(chunks int) [][]byte {
		var all [][]byte
		add := func(kind, members string) {
			all = append(all, named(kind, `,"sequence_number":`+strconv.Itoa(len(all))+members))
		}
		const place = `,"item_id":"msg_1","output_index":0,"content_index":0`
		whole := strings.Repeat(piece, chunks)
		add("response.created", `,"response":`+response("in_progress", ""))
		add("response.in_progress", `,"response":`+response("in_progress", ""))
		add("response.output_item.added", `,"output_index":0,"item":`+outputMessage("in_progress", ""))
		add("response.content_part.added", place+`,"part":`+outputText(""))
		for range chunks {
			add("response.output_text.delta", place+`,"delta":"`+piece+`","logprobs":[]`)
		}
		add("response.output_text.done", place+`,"text":"`+whole+`","logprobs":[]`)
		add("response.content_part.done", place+`,"part":`+outputText(whole))
		add("response.output_item.done", `,"output_index":0,"item":`+outputMessage("completed", outputText(whole)))
		add("response.completed", `,"response":`+response("completed", outputMessage("completed", outputText(whole))))
		return all
	},
	beforeBit: `"delta":"`,
	last:      `data: {"type":"response.completed"`,
}

// pieceOf is the text in a line of a stream.
func (w *wire) pieceOf(line []byte) []byte {
	_, text, _ := bytes.Cut(line, []byte(w.beforeBit))
	text, _, _ = bytes.Cut(text, []byte(`"`))
	return text
}
