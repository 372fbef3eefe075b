package replies_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// chatWire is the API of chat completions. Deviations: no_id, late_id, late_name, no_index, object_arguments,
// no_done, done_twice, parts (content as a list), empty_call (a function_call), bad_usage, function_call,
// message_too (the last chunk of a stream has the whole message), message_only (and no delta has anything).
type chatWire struct{}

func (chatWire) path() string { return "/v1/chat/completions" }

func (chatWire) request(c *testCase) string {
	var tools []string
	for _, name := range c.tools {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":%q}}`, name))
	}
	more := ""
	if tools != nil {
		more = `,"tools":[` + strings.Join(tools, ",") + `]`
	}
	switch c.choice {
	case "":
	case "auto", "none", "required":
		more += `,"tool_choice":` + quoted(c.choice)
	case "only":
		more += `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":` + quoted(c.only) + `}}]}}`
	default:
		more += `,"tool_choice":{"type":"function","function":{"name":` + quoted(c.choice) + `}}`
	}
	if c.single {
		more += `,"parallel_tool_calls":false`
	}
	if c.output == "json_object" {
		more += `,"response_format":{"type":"json_object"}`
	} else if c.output != "" {
		more += `,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":` + c.output + `}}`
	}
	return `{"model":"chat","messages":[{"role":"user","content":"hi"}]` + more
}

func (chatWire) finish(r *reply) string {
	end := r.end
	if end == "" {
		end = "done"
		if r.calls() {
			end = "called"
		}
	}
	if word, ok := strings.CutPrefix(end, "="); ok {
		end = quoted(word)
	} else {
		end = map[string]string{"called": `"tool_calls"`, "done": `"stop"`, "cut": `"length"`, "filtered": `"content_filter"`, "none": "null"}[end]
	}
	return end
}

// call is a call with its index, or without (-1).
func (chatWire) call(r *reply, p *part, index int) string {
	arguments := quoted(p.text)
	if r.as["object_arguments"] {
		arguments = p.text
	}
	id, at := fmt.Sprintf(`"id":"call_%d",`, max(index, 0)+1), ""
	if r.as["no_id"] {
		id = ""
	}
	if index >= 0 && !r.as["no_index"] {
		at = fmt.Sprintf(`"index":%d,`, index)
	}
	return `{` + at + id + `"type":"function","function":{"name":` + quoted(p.name) + `,"arguments":` + arguments + `}}`
}

func chatCite(text string) string {
	return `{"type":"url_citation","url_citation":{"title":` + quoted(text) + `,"url":"https://a.example","start_index":0,"end_index":1}}`
}

// message is the message of a whole answer.
func (w chatWire) message(r *reply) string {
	texts := map[string]string{}
	var calls, cites, parts []string
	members := ""
	for i := range r.parts {
		switch p := &r.parts[i]; p.kind {
		case "call":
			calls = append(calls, strings.Replace(w.call(r, p, -1), `"call_1"`, fmt.Sprintf(`"call_%d"`, len(calls)+1), 1))
		case "cite":
			cites = append(cites, chatCite(p.text))
		case "block":
			members += "," + strings.TrimSuffix(p.text[1:], "}")
		default:
			texts[p.kind] += p.text
			if p.kind == "text" {
				parts = append(parts, `{"type":"text","text":`+quoted(p.text)+`}`)
			}
		}
	}
	content := "null"
	if text, ok := texts["text"]; ok {
		content = quoted(text)
	}
	if r.as["parts"] {
		content = "[" + strings.Join(parts, ",") + "]"
	}
	for name, kind := range map[string]string{"reasoning_content": "thought", "refusal": "refusal"} {
		if text, ok := texts[kind]; ok {
			members += `,"` + name + `":` + quoted(text)
		}
	}
	if cites != nil {
		members += `,"annotations":[` + strings.Join(cites, ",") + `]`
	}
	if calls != nil {
		members += `,"tool_calls":[` + strings.Join(calls, ",") + `]`
	}
	if r.as["empty_call"] {
		members += `,"function_call":{}`
	}
	return `{"role":"assistant","content":` + content + members + `}`
}

func (w chatWire) whole(r *reply) string {
	return `{"id":"chatcmpl-1","object":"chat.completion","created":7,"model":` + r.model() + `,"choices":[{"index":0,"message":` + w.message(r) + `,"finish_reason":` + w.finish(r) +
		`}],"usage":` + w.usage(r) + r.failure() + `}`
}

func (chatWire) usage(r *reply) string {
	if r.as["bad_usage"] {
		return `{"prompt_tokens":"many"}`
	}
	return `{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15` + r.inUsage() + `}`
}

func (chatWire) forms() []form { return []form{{size: 1000}, {size: 7}, {size: 1}} }

func (w chatWire) events(r *reply, f form) (events []string) {
	chunk := func(choices, more string) {
		events = append(events, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":7,"model":`+r.model()+`,"choices":[`+choices+`]`+more+"}\n\n")
	}
	delta := func(members string) { chunk(`{"index":0,"delta":{`+members+`},"finish_reason":null}`, "") }
	delta(`"role":"assistant"`)
	calls := 0
	message := ""
	if r.as["message_too"] || r.as["message_only"] {
		message = `,"message":` + w.message(r)
	}
	for i := range r.parts {
		if r.as["message_only"] {
			break
		}
		p := &r.parts[i]
		member := map[string]string{"text": "content", "thought": "reasoning_content", "refusal": "refusal"}[p.kind]
		switch p.kind {
		case "call":
			w.callDeltas(r, p, calls, f, delta)
			calls++
		case "cite":
			delta(`"annotations":[` + chatCite(p.text) + `]`)
		case "block":
			delta(p.text[1 : len(p.text)-1])
		default:
			for _, piece := range pieces(p.text, f.size) {
				value := quoted(piece)
				if r.as["parts"] && p.kind == "text" {
					value = `[{"type":"text","text":` + value + `}]`
				}
				delta(`"` + member + `":` + value)
			}
		}
	}
	if r.as["empty_call"] {
		delta(`"function_call":{}`)
	}
	chunk(`{"index":0,"delta":{}`+message+`,"finish_reason":`+w.finish(r)+`}`, "")
	chunk("", `,"usage":`+w.usage(r))
	if !r.as["no_done"] {
		events = append(events, "data: [DONE]\n\n")
	}
	if r.as["done_twice"] {
		events = append(events, "data: [DONE] \n\n")
	}
	return events
}

// callDeltas are the pieces of a call.
func (w chatWire) callDeltas(r *reply, p *part, index int, f form, delta func(string)) {
	whole := w.call(r, p, index)
	if r.as["object_arguments"] || r.as["whole_calls"] {
		delta(`"tool_calls":[` + whole + `]`)
		return
	}
	at := fmt.Sprintf(`"index":%d,`, index)
	if r.as["no_index"] {
		at = ""
	}
	id, name := fmt.Sprintf(`"id":"call_%d",`, index+1), `"name":`+quoted(p.name)+`,`
	first, late := id, ""
	if r.as["late_id"] {
		first, late = "", id
	}
	if r.as["no_id"] {
		first = ""
	}
	if r.as["late_name"] {
		delta(`"tool_calls":[{` + at + first + `"type":"function","function":{"arguments":""}}]`)
		first = ""
	}
	delta(`"tool_calls":[{` + at + first + `"type":"function","function":{` + name + `"arguments":""}}]`)
	for _, piece := range pieces(p.text, f.size) {
		delta(`"tool_calls":[{` + at + late + `"function":{"arguments":` + quoted(piece) + `}}]`)
		late = ""
	}
}

func (chatWire) read(body string, streamed bool) (a answer, err error) {
	type message struct {
		Content, Refusal string
		Thought          string `json:"reasoning_content"`
		Annotations      []struct {
			Cite struct{ Title string } `json:"url_citation"`
		}
		ToolCalls []struct {
			Index    int
			ID       string
			Function struct{ Name, Arguments string }
		} `json:"tool_calls"`
	}
	type completion struct {
		Choices []struct {
			Message, Delta message
			Finish         string `json:"finish_reason"`
		}
		Error struct{ Code string }
	}
	take := func(m *message) {
		a.text += m.Content
		a.refusal += m.Refusal
		a.thought += m.Thought
		for _, n := range m.Annotations {
			a.cites = append(a.cites, n.Cite.Title)
		}
		for i, call := range m.ToolCalls {
			at := call.Index
			if !streamed {
				at = i
			}
			if call.ID == "" || at != len(a.calls) {
				err = fmt.Errorf("a call without an id, or out of order")
			}
			a.calls = append(a.calls, call.Function.Name+" "+call.Function.Arguments)
		}
	}
	documents := []string{body}
	if streamed {
		documents = dataOf(body)
	}
	for _, data := range documents {
		if a.done || a.code != "" && streamed {
			return a, fmt.Errorf("more behind the end: %s", data)
		}
		if data == "[DONE]" {
			a.done = true
			continue
		}
		var c completion
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			return a, err
		}
		a.code = c.Error.Code
		for i := range c.Choices {
			take(&c.Choices[i].Message)
			take(&c.Choices[i].Delta)
			if word := c.Choices[i].Finish; word != "" {
				a.end = known(word, map[string]string{"tool_calls": "called", "stop": "done", "length": "cut", "content_filter": "filtered"})
			}
		}
	}
	a.done = a.done || !streamed && a.code == ""
	return a, err
}
