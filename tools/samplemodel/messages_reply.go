package main

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// messagesForm writes answers as messages of the Messages API.
type messagesForm struct {
	tag, model string
	read       int // tokens
}

// messageBody is a whole answer, and what a stream begins with.
type messageBody struct {
	ID      string           `json:"id"`
	Type    string           `json:"type"`
	Role    string           `json:"role"`
	Model   string           `json:"model"`
	Content []jsontext.Value `json:"content"`
	Reason  *string          `json:"stop_reason"`
	Stop    *string          `json:"stop_sequence"`
	Details *struct{}        `json:"stop_details"`
	Usage   messageUsage     `json:"usage"`
	Room    *struct{}        `json:"container"`
}

// messageUsage has the members that the API always sends.
type messageUsage struct {
	Input   int       `json:"input_tokens"`
	Created int       `json:"cache_creation_input_tokens"`
	Cached  int       `json:"cache_read_input_tokens"`
	Output  int       `json:"output_tokens"`
	Hosted  *struct{} `json:"server_tool_use"`
	Tier    string    `json:"service_tier"`
}

type textBlock struct {
	Type      string    `json:"type"`
	Text      string    `json:"text"`
	Citations *struct{} `json:"citations"`
}

type callBlock struct {
	Type   string         `json:"type"`
	ID     string         `json:"id"`
	Name   string         `json:"name"`
	Input  jsontext.Value `json:"input"`
	Caller caller         `json:"caller"`
}

type caller struct {
	Type string `json:"type"`
}

func (f messagesForm) body(r reply) messageBody {
	return messageBody{
		ID: "msg_" + f.tag, Type: "message", Role: "assistant", Model: f.model, Content: []jsontext.Value{},
		Usage: messageUsage{Input: f.read, Output: tokens(r.written()), Tier: "standard"},
	}
}

// stopReason is the reason why an answer ends.
func stopReason(r reply) *string {
	reason := "end_turn"
	if len(r.calls) > 0 {
		reason = "tool_use"
	}
	for _, b := range r.blocks {
		if typeOf(b) == "tool_use" {
			reason = "tool_use"
		}
	}
	return &reason
}

// newCallBlock is a call without its input.
func (f messagesForm) newCallBlock(n int, c toolCall) callBlock {
	return callBlock{"tool_use", fmt.Sprintf("toolu_%s_%d", f.tag, n), c.Function.Name, jsontext.Value("{}"), caller{"direct"}}
}

// whole is the answer in one piece. A call whose arguments are no JSON cannot be written
// there: its input is a string.
func (f messagesForm) whole(r reply) any {
	m := f.body(r)
	m.Reason = stopReason(r)
	m.Content = append(m.Content, r.blocks...)
	if r.text != "" {
		m.Content = append(m.Content, jsonValue(textBlock{Type: "text", Text: r.text}))
	}
	for n, c := range r.calls {
		b := f.newCallBlock(n, c)
		if b.Input = jsontext.Value(c.Function.Arguments); !b.Input.IsValid() {
			b.Input = jsonValue(c.Function.Arguments)
		}
		m.Content = append(m.Content, jsonValue(b))
	}
	return m
}

// events is the answer as a stream.
func (f messagesForm) events(r reply, characters int) []event {
	s := &messageStream{characters: characters}
	m := f.body(r)
	m.Usage.Output = 1
	s.say("message_start", map[string]any{"message": m})
	s.say("ping", map[string]any{})
	for _, b := range r.blocks {
		s.scripted(b)
	}
	if r.text != "" {
		s.begin(textBlock{Type: "text"})
		s.deltas("text_delta", "text", r.text)
		s.end()
	}
	for n, c := range r.calls {
		s.begin(f.newCallBlock(n, c))
		s.delta("input_json_delta", "partial_json", "")
		s.deltas("input_json_delta", "partial_json", c.Function.Arguments)
		s.end()
	}
	s.say("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stopReason(r), "stop_sequence": nil, "stop_details": nil, "container": nil},
		"usage": map[string]any{
			"input_tokens": f.read, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
			"output_tokens": tokens(r.written()), "server_tool_use": nil,
		},
	})
	s.say("message_stop", map[string]any{})
	return s.events
}

// messageStream collects the events of a message.
type messageStream struct {
	characters, index int
	events            []event
}

func (s *messageStream) say(name string, data map[string]any) {
	data["type"] = name
	s.events = append(s.events, event{name, jsonValue(data)})
}

func (s *messageStream) begin(block any) {
	s.say("content_block_start", map[string]any{"index": s.index, "content_block": block})
}

func (s *messageStream) delta(kind, member, piece string) {
	s.say("content_block_delta", map[string]any{"index": s.index, "delta": map[string]any{"type": kind, member: piece}})
}

func (s *messageStream) deltas(kind, member, text string) {
	for _, piece := range pieces(text, s.characters) {
		s.delta(kind, member, piece)
	}
}

func (s *messageStream) end() {
	s.say("content_block_stop", map[string]any{"index": s.index})
	s.index++
}

// scripted streams a block of the scenario. A call's input and a thought come in pieces,
// as the API sends them; any other block is whole where it starts.
func (s *messageStream) scripted(raw jsontext.Value) {
	var b map[string]any
	// It was read as an object when it was loaded.
	_ = json.Unmarshal(raw, &b)
	switch b["type"] {
	case "tool_use", "server_tool_use", "mcp_tool_use":
		input := jsonValue(b["input"])
		b["input"] = map[string]any{}
		s.begin(b)
		s.deltas("input_json_delta", "partial_json", string(input))
	case "thinking":
		text, _ := b["thinking"].(string)
		signature, _ := b["signature"].(string)
		b["thinking"], b["signature"] = "", ""
		s.begin(b)
		s.deltas("thinking_delta", "thinking", text)
		s.delta("signature_delta", "signature", signature)
	default:
		s.begin(b)
	}
	s.end()
}

// jsonValue encodes what this program has made, or read as JSON before.
func jsonValue(v any) jsontext.Value {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		panic(err)
	}
	return data
}

func (messagesForm) failure(status int) any { return newMessagesFailure(status, serverFailed) }

func (messagesForm) broken(int) event { return event{"error", newMessagesFailure(529, "Overloaded")} }

type messagesFailure struct {
	Type  string `json:"type"`
	Error struct {
		Type    string          `json:"type"`
		Message string          `json:"message"`
		Details *failureDetails `json:"details,omitzero"`
	} `json:"error"`
	Request string `json:"request_id"`
}

type failureDetails struct {
	Code        string   `json:"error_code"`
	Unsupported []string `json:"unsupported"`
}

// newMessagesFailure is an error in the shape of the Messages API.
func newMessagesFailure(status int, message string) messagesFailure {
	f := messagesFailure{Type: "error", Request: "req_sample"}
	f.Error.Type, f.Error.Message = "api_error", message
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType:
		f.Error.Type = "invalid_request_error"
	case http.StatusRequestEntityTooLarge:
		f.Error.Type = "request_too_large"
	case http.StatusTooManyRequests:
		f.Error.Type = "rate_limit_error"
	case 529:
		f.Error.Type = "overloaded_error"
	}
	return f
}

func refuseMessages(w http.ResponseWriter, f *failure) {
	body := newMessagesFailure(f.status, f.message)
	if f.code != "" {
		body.Error.Details = &failureDetails{f.code, []string{}}
	}
	answer(w, f.status, body)
}
