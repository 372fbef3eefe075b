package replies_test

import (
	"encoding/json"
	"fmt"
	"strings"
)

// messagesWire is the API of Messages. Deviations: no_stop (message_stop is missing), stop_twice, no_input,
// unsigned (thinking without a signature), bare (a message without id, type, role and model), index_gaps, null_delta.
type messagesWire struct{}

func (messagesWire) path() string { return "/v1/messages" }

func (messagesWire) request(c *testCase) string {
	var tools []string
	for _, name := range c.tools {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"input_schema":{"type":"object"}}`, name))
	}
	if c.has("hosted=web_search") {
		tools = append(tools, `{"type":"web_search_20260318","name":"web_search"}`)
	}
	more := ""
	if tools != nil {
		more = `,"tools":[` + strings.Join(tools, ",") + `]`
	}
	kind := map[string]string{"": "auto", "auto": "auto", "none": "none", "required": "any"}[c.choice]
	one := ""
	if c.single {
		one = `,"disable_parallel_tool_use":true`
	}
	switch {
	case kind == "":
		more += `,"tool_choice":{"type":"tool","name":` + quoted(c.choice) + one + `}`
	case c.choice != "" || c.single:
		more += `,"tool_choice":{"type":` + quoted(kind) + one + `}`
	}
	if c.output != "" {
		more += `,"output_config":{"format":` + c.format() + `}`
	}
	return `{"model":"messages","max_tokens":100,"messages":[{"role":"user","content":"hi"}]` + more
}

func (messagesWire) reason(r *reply) string {
	end := r.end
	if end == "" {
		end = "done"
		if r.calls() {
			end = "called"
		}
	}
	if word, ok := strings.CutPrefix(end, "="); ok {
		return quoted(word)
	}
	return map[string]string{"called": `"tool_use"`, "done": `"end_turn"`, "cut": `"max_tokens"`, "filtered": `"refusal"`, "paused": `"pause_turn"`, "none": "null"}[end]
}

// block is a content block, its opening without what deltas bring, and those deltas.
type block struct{ whole, opening, delta, text, last string }

func (messagesWire) blocks(r *reply) (blocks []block) {
	signature := "c2ln"
	if r.as["unsigned"] {
		signature = ""
	}
	for i := 0; i < len(r.parts); i++ {
		p := &r.parts[i]
		switch p.kind {
		case "text":
			b := block{delta: `"type":"text_delta","text":`, text: p.text, opening: `{"type":"text","text":""}`}
			var cites []string
			for ; i+1 < len(r.parts) && r.parts[i+1].kind == "cite"; i++ {
				cites = append(cites, `{"type":"char_location","cited_text":`+quoted(r.parts[i+1].text)+`,"document_index":0,"start_char_index":0,"end_char_index":1}`)
			}
			b.whole = `{"type":"text","text":` + quoted(p.text) + `}`
			if cites != nil {
				b.whole = `{"type":"text","text":` + quoted(p.text) + `,"citations":[` + strings.Join(cites, ",") + `]}`
				b.opening = `{"type":"text","text":"","citations":[]}`
				for _, cite := range cites {
					b.last += "\n" + `"type":"citations_delta","citation":` + cite
				}
			}
			blocks = append(blocks, b)
		case "thought":
			blocks = append(blocks, block{
				whole: `{"type":"thinking","thinking":` + quoted(p.text) + `,"signature":` + quoted(signature) + `}`, opening: `{"type":"thinking","thinking":"","signature":""}`,
				delta: `"type":"thinking_delta","thinking":`, text: p.text, last: "\n" + `"type":"signature_delta","signature":` + quoted(signature),
			})
		case "call":
			head := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":%s`, len(blocks)+1, quoted(p.name))
			b := block{whole: head + `,"input":` + p.text + `}`, opening: head + `,"input":{}}`, delta: `"type":"input_json_delta","partial_json":`, text: p.text}
			if r.as["no_input"] {
				b = block{whole: head + `}`, opening: head + `}`}
			}
			blocks = append(blocks, b)
		case "hosted":
			use := fmt.Sprintf(`{"type":"server_tool_use","id":"srvtoolu_%d","name":"web_search","input":{"query":%s}}`, len(blocks), quoted(p.text))
			result := fmt.Sprintf(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_%d","content":[]}`, len(blocks))
			blocks = append(blocks, block{whole: use, opening: use}, block{whole: result, opening: result})
		case "block":
			blocks = append(blocks, block{whole: p.text, opening: p.text})
		default:
			panic("Messages have no " + p.kind)
		}
	}
	return blocks
}

func messagesHead(r *reply) string {
	if r.as["bare"] {
		return `{"content":[`
	}
	return `{"id":"msg_1","type":"message","role":"assistant","model":` + r.model() + `,"content":[`
}

func (w messagesWire) whole(r *reply) string {
	var all []string
	for _, b := range w.blocks(r) {
		all = append(all, b.whole)
	}
	return messagesHead(r) + strings.Join(all, ",") + `],"stop_reason":` + w.reason(r) + `,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":5` + r.inUsage() + `}` + r.failure() + `}`
}

func (messagesWire) forms() []form {
	return []form{{size: 1000}, {size: 7}, {size: 1}, {place: "start"}, {place: "message"}, {size: 7, place: "open"}} // no block that deltas bring stops before all have begun
}

func (w messagesWire) events(r *reply, f form) (events []string) {
	event := func(name, members string) {
		events = append(events, "event: "+name+"\ndata: {\"type\":"+quoted(name)+members+"}\n\n")
	}
	stop := func() {
		if !r.as["no_stop"] {
			event("message_stop", "")
		}
		if r.as["stop_twice"] {
			event("message_stop", "")
		}
	}
	if f.place == "message" {
		event("message_start", `,"message":`+w.whole(r))
		stop()
		return events
	}
	event("message_start", `,"message":`+messagesHead(r)+`],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1`+r.inUsage()+`}}`)
	at := func(i int) int {
		if r.as["index_gaps"] {
			return 2*i + 1
		}
		return i
	}
	stops := func(i int, b block) {
		for _, delta := range strings.Split(b.last, "\n")[1:] {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{%s}`, at(i), delta))
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, at(i)))
	}
	blocks := w.blocks(r)
	for i, b := range blocks {
		if f.place == "start" {
			b.last = ""
			event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, at(i), b.whole))
		} else {
			event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, at(i), b.opening))
			if r.as["null_delta"] && b.text != "" {
				event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{%snull}`, at(i), b.delta))
			}
			for _, piece := range pieces(b.text, f.size) {
				event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":{%s%s}`, at(i), b.delta, quoted(piece)))
			}
		}
		if f.place != "open" || b.delta == "" {
			stops(i, b)
		}
	}
	for i, b := range blocks {
		if f.place == "open" && b.delta != "" {
			stops(i, b)
		}
	}
	event("message_delta", `,"delta":{"stop_reason":`+w.reason(r)+`,"stop_sequence":null},"usage":{"output_tokens":5`+r.inUsage()+`}`)
	stop()
	return events
}

func (messagesWire) read(body string, streamed bool) (a answer, err error) {
	type content struct {
		Type, Text, Thinking, ID, Name string
		Input                          json.RawMessage
		Citations                      []struct {
			Text string `json:"cited_text"`
		}
	}
	type document struct {
		Type    string
		Index   int
		Content []content
		Reason  string  `json:"stop_reason"`
		Block   content `json:"content_block"`
		Message struct{ Content []content }
		Delta   struct {
			Reason         string `json:"stop_reason"`
			Text, Thinking string
			Partial        string `json:"partial_json"`
			Citation       *struct {
				Text string `json:"cited_text"`
			}
		}
		Error struct {
			Details struct {
				Code string `json:"error_code"`
			}
		}
	}
	inputs, open := map[int]string{}, map[int]*content{}
	end := func(i int) {
		b := open[i]
		switch b.Type {
		case "tool_use":
			if b.ID == "" {
				err = fmt.Errorf("a call without an id")
			}
			if inputs[i] == "" {
				inputs[i] = string(b.Input)
			}
			a.calls = append(a.calls, b.Name+" "+inputs[i])
		case "text", "thinking":
		default:
			a.others = append(a.others, b.Type)
		}
		delete(open, i)
	}
	begin := func(i int, b *content) {
		a.text += b.Text
		a.thought += b.Thinking
		for _, c := range b.Citations {
			a.cites = append(a.cites, c.Text)
		}
		open[i] = b
	}
	reasons := map[string]string{"tool_use": "called", "end_turn": "done", "max_tokens": "cut", "refusal": "filtered", "pause_turn": "paused"}
	if !streamed {
		var d document
		if err := json.Unmarshal([]byte(body), &d); err != nil {
			return a, err
		}
		for i := range d.Content {
			begin(i, &d.Content[i])
			end(i)
		}
		a.end, a.code, a.done = known(d.Reason, reasons), d.Error.Details.Code, d.Type == "message"
		return a, err
	}
	blocks := 0
	for _, data := range dataOf(body) {
		if a.done || a.code != "" {
			return a, fmt.Errorf("more behind the end: %s", data)
		}
		var d document
		if err := json.Unmarshal([]byte(data), &d); err != nil {
			return a, err
		}
		switch d.Type {
		case "content_block_start":
			if d.Index != blocks {
				return a, fmt.Errorf("a block out of order: %s", data)
			}
			blocks++
			begin(d.Index, &d.Block)
		case "content_block_delta":
			if open[d.Index] == nil {
				return a, fmt.Errorf("a delta of no open block: %s", data)
			}
			a.text += d.Delta.Text
			a.thought += d.Delta.Thinking
			inputs[d.Index] += d.Delta.Partial
			if d.Delta.Citation != nil {
				a.cites = append(a.cites, d.Delta.Citation.Text)
			}
		case "content_block_stop":
			if open[d.Index] == nil {
				return a, fmt.Errorf("a stop of no open block: %s", data)
			}
			end(d.Index)
		case "message_delta":
			a.end = known(d.Delta.Reason, reasons)
		case "message_stop":
			a.done = len(open) == 0
		case "error":
			a.code = d.Error.Details.Code
			if a.code == "" {
				a.code = "an error of the provider"
			}
		}
	}
	return a, err
}
