package main

import (
	"fmt"
	"maps"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// responsesForm writes answers as responses of the Responses API.
type responsesForm struct {
	q       *responsesRequest
	tag     string
	created int64
	read    int // tokens
}

// responseBody is a response: a whole answer, or the state of one in an event.
type responseBody struct {
	ID           string           `json:"id"`
	Object       string           `json:"object"`
	Created      int64            `json:"created_at"`
	Status       string           `json:"status"`
	Background   bool             `json:"background"`
	Error        *struct{}        `json:"error"`
	Incomplete   *struct{}        `json:"incomplete_details"`
	Instructions jsontext.Value   `json:"instructions"`
	MaxTokens    *int             `json:"max_output_tokens"`
	MaxCalls     *int             `json:"max_tool_calls"`
	Model        string           `json:"model"`
	Output       []any            `json:"output"`
	Parallel     bool             `json:"parallel_tool_calls"`
	Previous     *string          `json:"previous_response_id"`
	Reasoning    responseThought  `json:"reasoning"`
	Tier         string           `json:"service_tier"`
	Store        bool             `json:"store"`
	Temperature  float64          `json:"temperature"`
	Text         jsontext.Value   `json:"text"`
	Choice       jsontext.Value   `json:"tool_choice"`
	Tools        []jsontext.Value `json:"tools"`
	TopP         float64          `json:"top_p"`
	Truncation   string           `json:"truncation"`
	Usage        *responseUsage   `json:"usage"`
	User         *string          `json:"user"`
	Metadata     jsontext.Value   `json:"metadata"`
}

type responseThought struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type responseUsage struct {
	Input        int            `json:"input_tokens"`
	InputDetail  map[string]int `json:"input_tokens_details"`
	Output       int            `json:"output_tokens"`
	OutputDetail map[string]int `json:"output_tokens_details"`
	Total        int            `json:"total_tokens"`
}

// valueOr is a value, or another one if it is absent.
func valueOr(v jsontext.Value, other string) jsontext.Value {
	if v == nil {
		return jsontext.Value(other)
	}
	return v
}

// body is a response of a status, with its output so far. Like the API's, it repeats
// what the request said of instructions, tools and the like.
func (f responsesForm) body(status string, output []any) responseBody {
	return responseBody{
		ID: "resp_" + f.tag, Object: "response", Created: f.created, Status: status,
		Instructions: valueOr(f.q.Instructions, "null"), Model: f.q.Model, Output: output,
		Parallel: f.q.Parallel == nil || *f.q.Parallel, Tier: "default", Temperature: 1, TopP: 1, Truncation: "disabled",
		Text: valueOr(f.q.Text, `{"format":{"type":"text"}}`), Choice: valueOr(f.q.Choice, `"auto"`),
		Tools: append([]jsontext.Value{}, f.q.Tools...), Metadata: valueOr(f.q.Metadata, "{}"),
	}
}

func (f responsesForm) completed(r reply, output []any) responseBody {
	b := f.body("completed", output)
	n := tokens(r.written())
	b.Usage = &responseUsage{f.read, map[string]int{"cached_tokens": 0}, n, map[string]int{"reasoning_tokens": 0}, f.read + n}
	return b
}

// output is the items of an answer, each of them done.
func (f responsesForm) output(r reply) []map[string]any {
	var all []map[string]any
	for n, raw := range r.items {
		var i map[string]any
		// It was read as an object when it was loaded.
		_ = json.Unmarshal(raw, &i)
		i["id"] = fmt.Sprintf("item_%s_%d", f.tag, n)
		if clientRuns(i["type"]) {
			i["call_id"] = fmt.Sprintf("call_%s_i%d", f.tag, n)
		}
		all = append(all, i)
	}
	if r.text != "" {
		all = append(all, map[string]any{
			"type": "message", "id": "msg_" + f.tag, "status": "completed", "role": "assistant",
			"content": []any{textPart(r.text)},
		})
	}
	for n, c := range r.calls {
		all = append(all, map[string]any{
			"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", f.tag, n), "status": "completed",
			"call_id": fmt.Sprintf("call_%s_%d", f.tag, n), "name": c.Function.Name, "arguments": c.Function.Arguments,
		})
	}
	return all
}

func textPart(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

// whole is the answer in one piece.
func (f responsesForm) whole(r reply) any {
	output := []any{}
	for _, i := range f.output(r) {
		output = append(output, i)
	}
	return f.completed(r, output)
}

// events is the answer as a stream.
func (f responsesForm) events(r reply, characters int) []event {
	s := &responseStream{characters: characters}
	s.say("response.created", map[string]any{"response": f.body("in_progress", []any{})})
	s.say("response.in_progress", map[string]any{"response": f.body("in_progress", []any{})})
	output := []any{}
	for n, i := range f.output(r) {
		s.item(n, i)
		output = append(output, i)
	}
	s.say("response.completed", map[string]any{"response": f.completed(r, output)})
	return s.events
}

// responseStream collects the events of a response.
type responseStream struct {
	characters int
	events     []event
}

func (s *responseStream) say(name string, data map[string]any) {
	data["type"], data["sequence_number"] = name, len(s.events)
	s.events = append(s.events, event{name, jsonValue(data)})
}

// of says something of an item.
func (s *responseStream) of(index int, id any, name string, data map[string]any) {
	data["output_index"], data["item_id"] = index, id
	s.say(name, data)
}

// item streams an item: text, arguments and free input come in pieces, as the API sends
// them; any other item is whole where it is added.
func (s *responseStream) item(index int, done map[string]any) {
	added := maps.Clone(done)
	if _, ok := added["status"]; ok {
		added["status"] = "in_progress"
	}
	id := done["id"]
	begin := func() { s.say("response.output_item.added", map[string]any{"output_index": index, "item": added}) }
	content, _ := done["content"].([]any)
	switch {
	case done["type"] == "message" && len(content) == 1:
		part, _ := content[0].(map[string]any)
		text, _ := part["text"].(string)
		added["content"] = []any{}
		begin()
		s.of(index, id, "response.content_part.added", map[string]any{"content_index": 0, "part": textPart("")})
		for _, piece := range pieces(text, s.characters) {
			s.of(index, id, "response.output_text.delta", map[string]any{"content_index": 0, "delta": piece, "logprobs": []any{}})
		}
		s.of(index, id, "response.output_text.done", map[string]any{"content_index": 0, "text": text, "logprobs": []any{}})
		s.of(index, id, "response.content_part.done", map[string]any{"content_index": 0, "part": part})
	case done["type"] == "function_call":
		s.pieces(index, done, added, "arguments", "response.function_call_arguments", begin)
	case done["type"] == "custom_tool_call":
		s.pieces(index, done, added, "input", "response.custom_tool_call_input", begin)
	default:
		begin()
	}
	s.say("response.output_item.done", map[string]any{"output_index": index, "item": done})
}

// pieces streams one member of a call.
func (s *responseStream) pieces(index int, done, added map[string]any, member, name string, begin func()) {
	text, _ := done[member].(string)
	added[member] = ""
	begin()
	for _, piece := range pieces(text, s.characters) {
		s.of(index, done["id"], name+".delta", map[string]any{"delta": piece})
	}
	s.of(index, done["id"], name+".done", map[string]any{member: text})
}

func (responsesForm) failure(status int) any { return newFailure(status, "", serverFailed) }

func (responsesForm) broken(n int) event {
	return event{"error", map[string]any{"type": "error", "code": "server_error", "message": serverFailed, "param": nil,
		"sequence_number": n}}
}
