package replies_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// responsesWire is the API of Responses. Deviations: no_items (the end states none), no_numbers, odd_numbers, end_twice,
// object_arguments, no_arguments, no_index (nothing says where an event belongs but ids, and calls have their call_id alone),
// index_gaps, no_id, late_name, placeholder (arguments begin as {}), null_delta, pings, empty_error; other_ids (a call has another
// call_id at its end, and one more in the reply's), first_piece (stands in the beginning of a call too), one_index (for all; a
// message before a call is neither ended nor listed), ends_behind (an empty message that never began, with another number).
type responsesWire struct{}

func (responsesWire) path() string { return "/v1/responses" }

func (responsesWire) request(c *testCase) string {
	var tools []string
	for _, name := range c.tools {
		tools = append(tools, fmt.Sprintf(`{"type":"function","name":%q,"parameters":{"type":"object"}}`, name))
	}
	if c.has("hosted=web_search") {
		tools = append(tools, `{"type":"web_search"}`)
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
		more += `,"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":` + quoted(c.only) + `}]}`
	default:
		more += `,"tool_choice":{"type":"function","name":` + quoted(c.choice) + `}`
	}
	if c.single {
		more += `,"parallel_tool_calls":false`
	}
	if c.output != "" {
		more += `,"text":{"format":` + c.format() + `}`
	}
	return `{"model":"responses","input":"hi"` + more
}

// item is an item of a reply, how it begins, and the texts that come in pieces.
type item struct {
	whole, opening string
	texts          []itemText
}

// itemText is a text of an item: the events that bring it, and the member that states it.
type itemText struct {
	event, member, text, more string
	cites                     []string
}

func (responsesWire) items(r *reply) (items []item) {
	for i := 0; i < len(r.parts); i++ {
		p := &r.parts[i]
		at := len(items) + 1
		switch p.kind {
		case "text", "refusal":
			t := itemText{"response.output_text", "text", p.text, `,"content_index":0`, nil}
			for ; i+1 < len(r.parts) && r.parts[i+1].kind == "cite"; i++ {
				t.cites = append(t.cites, `{"type":"url_citation","title":`+quoted(r.parts[i+1].text)+`,"url":"https://a.example","start_index":0,"end_index":1}`)
			}
			content := `{"type":"output_text","annotations":[` + strings.Join(t.cites, ",") + `],"text":` + quoted(p.text) + `}`
			if p.kind == "refusal" {
				t.event, t.member, content = "response.refusal", "refusal", `{"type":"refusal","refusal":`+quoted(p.text)+`}`
			}
			head := fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","status":`, at)
			items = append(items, item{head + `"completed","content":[` + content + `]}`, head + `"in_progress","content":[]}`, []itemText{t}})
		case "thought":
			head := fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[`, at)
			items = append(items, item{head + `{"type":"summary_text","text":` + quoted(p.text) + `}]}`, head + `]}`, []itemText{{"response.reasoning_summary_text", "text", p.text, `,"summary_index":0`, nil}}})
		case "call":
			arguments := quoted(p.text)
			if r.as["object_arguments"] {
				arguments = p.text
			}
			head := fmt.Sprintf(`{"id":"fc_%d","type":"function_call","call_id":"call_%d","name":%s,"status":`, at, at, quoted(p.name))
			if r.as["no_index"] {
				head = "{" + head[strings.Index(head, `"type"`):]
			}
			call := item{head + `"completed","arguments":` + arguments + `}`, head + `"in_progress","arguments":""}`, []itemText{{"response.function_call_arguments", "arguments", p.text, "", nil}}}
			if r.as["object_arguments"] {
				call.texts = nil
			}
			if r.as["placeholder"] {
				call.opening = head + `"in_progress","arguments":"{}"}`
			}
			if r.as["late_name"] {
				call.opening = strings.Replace(call.opening, quoted(p.name), `""`, 1)
			}
			if r.as["no_arguments"] {
				call = item{head + `"completed"}`, head + `"in_progress"}`, nil}
			}
			items = append(items, call)
		case "hosted":
			whole := fmt.Sprintf(`{"id":"ws_%d","type":"web_search_call","status":"completed","action":{"type":"search","query":%s}}`, at, quoted(p.text))
			items = append(items, item{whole, whole, nil})
		case "block":
			items = append(items, item{p.text, p.text, nil})
		default:
			panic("Responses have no " + p.kind)
		}
		if last := len(items) - 1; r.as["no_id"] {
			items[last].whole, items[last].opening = withoutIDs(items[last].whole), withoutIDs(items[last].opening)
		}
	}
	return items
}

// withoutIDs is an item that is told by nothing.
func withoutIDs(item string) string {
	item = regexp.MustCompile(`"call_id":"[^"]*"`).ReplaceAllString(item, `"call_id":null`)
	return regexp.MustCompile(`"id":"[^"]*",`).ReplaceAllString(item, "")
}

// response is the response object with some items.
func (responsesWire) response(r *reply, items []string, begun bool) string {
	status, details := "completed", "null"
	switch {
	case begun:
		status = "in_progress"
	case r.end == "cut":
		status, details = "incomplete", `{"reason":"max_output_tokens"}`
	case r.end == "filtered":
		status, details = "incomplete", `{"reason":"content_filter"}`
	case strings.HasPrefix(r.end, "="):
		status = r.end[1:]
	}
	usage := `{"input_tokens":10,"output_tokens":5,"total_tokens":15` + r.inUsage() + `}`
	if begun {
		usage = "null"
	}
	id := `"id":"resp_1",`
	if r.as["no_id"] {
		id = ""
	}
	return `{` + id + `"object":"response","created_at":7,"status":"` + status + `"` + cmp.Or(r.failure(), `,"error":null`) + `,"incomplete_details":` + details + `,"model":` + r.model() + `,"output":[` + strings.Join(items, ",") + `],"usage":` + usage + `}`
}

func (w responsesWire) wholes(r *reply) (all []string) {
	for _, i := range w.items(r) {
		all = append(all, i.whole)
	}
	return all
}

func (w responsesWire) whole(r *reply) string { return w.response(r, w.wholes(r), false) }

func (responsesWire) forms() []form {
	return []form{{size: 1000}, {size: 7}, {size: 1}, {place: "item"}}
}

func (w responsesWire) events(r *reply, f form) (events []string) {
	event := func(name, members string) {
		switch {
		case r.as["odd_numbers"]:
			members = `,"sequence_number":` + []string{"0", "null", `"3"`, "-1", "0.5"}[len(events)%5] + members
		case !r.as["no_numbers"]:
			members = fmt.Sprintf(`,"sequence_number":%d`, len(events)) + members
		}
		events = append(events, "event: "+name+"\ndata: {\"type\":"+quoted(name)+members+"}\n\n")
	}
	if r.as["pings"] {
		event("ping", "")
	}
	event("response.created", `,"response":`+w.response(r, nil, true))
	for i, it := range w.items(r) {
		at := fmt.Sprintf(`,"output_index":%d`, i)
		var id struct {
			ID     string
			CallID string `json:"call_id"`
		}
		_ = json.Unmarshal([]byte(it.whole), &id)
		switch {
		case r.as["no_index"]:
			at = ""
			id.ID = cmp.Or(id.ID, id.CallID)
		case r.as["index_gaps"], r.as["ends_behind"]:
			at = fmt.Sprintf(`,"output_index":%d`, 2*i+1)
		case r.as["one_index"]:
			at = `,"output_index":0`
		}
		opening := it.opening
		if r.as["first_piece"] && f.place != "item" {
			opening = strings.Replace(opening, `"arguments":""`, `"arguments":`+quoted(pieces(it.texts[0].text, f.size)[0]), 1)
		}
		event("response.output_item.added", at+`,"item":`+opening)
		for _, text := range it.texts {
			if f.place == "item" {
				break
			}
			in := at + `,"item_id":` + quoted(id.ID)
			if !r.as["no_index"] {
				in += text.more
			}
			if r.as["null_delta"] {
				event(text.event+".delta", in+`,"delta":null`)
			}
			if r.as["pings"] {
				event("ping", "")
			}
			for _, piece := range pieces(text.text, f.size) {
				event(text.event+".delta", in+`,"delta":`+quoted(piece))
			}
			for n, cite := range text.cites {
				event("response.output_text.annotation.added", fmt.Sprintf(`%s,"annotation_index":%d,"annotation":%s`, in, n, cite))
			}
			if !r.as["one_index"] {
				event(text.event+".done", in+`,"`+text.member+`":`+quoted(text.text))
			}
		}
		if r.as["one_index"] && id.CallID == "" && f.place != "item" {
			continue
		}
		event("response.output_item.done", at+`,"item":`+otherID(r, it.whole, "done"))
	}
	end, items := "response.completed", w.wholes(r)
	if r.end == "cut" || r.end == "filtered" {
		end = "response.incomplete"
	}
	switch {
	case r.as["no_items"]:
		items = nil
	case r.as["one_index"] && f.place != "item":
		items = slices.DeleteFunc(items, func(item string) bool { return !strings.Contains(item, "call_id") })
	case r.as["ends_behind"]:
		at, blank := `,"output_index":0,"item_id":"msg_0","content_index":0`, `{"type":"output_text","annotations":[],"text":""}`
		item := `{"id":"msg_0","type":"message","role":"assistant","status":"completed","content":[` + blank + `]}`
		event("response.output_text.done", at+`,"text":""`)
		event("response.content_part.done", at+`,"part":`+blank)
		events = append(events, `data: {"type":"response.output_item.done","output_index":0,"sequence_number":1,"item":`+item+"}\n\n")
		items = slices.Insert(items, 0, item)
	}
	for i := range items {
		items[i] = otherID(r, items[i], "listed")
	}
	event(end, `,"response":`+w.response(r, items, false))
	if r.as["end_twice"] {
		event(end, `,"response":`+w.response(r, items, false))
	}
	return events
}

// otherID is an item with the call_id that it has at a place.
func otherID(r *reply, item, place string) string {
	if !r.as["other_ids"] {
		return item
	}
	return strings.Replace(item, `"call_id":"`, `"call_id":"`+place+`_`, 1)
}

func (responsesWire) read(body string, streamed bool) (a answer, err error) {
	type output struct {
		Type, Name, Arguments string
		CallID                string `json:"call_id"`
		Content               []struct {
			Type, Text, Refusal string
			Annotations         []struct{ Title string }
		}
		Summary []struct{ Text string }
	}
	type response struct {
		Status     string
		Output     []output
		Incomplete *struct{ Reason string } `json:"incomplete_details"`
		Error      *struct{ Code string }
	}
	take := func(o *output) {
		switch o.Type {
		case "message":
			for _, part := range o.Content {
				a.text += part.Text
				a.refusal += part.Refusal
				for _, n := range part.Annotations {
					a.cites = append(a.cites, n.Title)
				}
			}
		case "reasoning":
			for _, s := range o.Summary {
				a.thought += s.Text
			}
		case "function_call":
			if o.CallID == "" {
				err = fmt.Errorf("a call without an id")
			}
			a.calls = append(a.calls, o.Name+" "+o.Arguments)
		default:
			a.others = append(a.others, o.Type)
		}
	}
	finish := func(r *response) {
		switch {
		case r.Error != nil:
			a.code = r.Error.Code
		case r.Incomplete != nil:
			a.end = known(r.Incomplete.Reason, map[string]string{"max_output_tokens": "cut", "content_filter": "filtered"})
		case r.Status == "completed" && len(a.calls) > 0:
			a.end = "called"
		default:
			a.end = known(r.Status, map[string]string{"completed": "done"})
		}
		a.done = a.code == ""
	}
	if !streamed {
		var r response
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			return a, err
		}
		for i := range r.Output {
			take(&r.Output[i])
		}
		finish(&r)
		return a, err
	}
	text, begun, ended := "", 0, 0
	for n, data := range dataOf(body) {
		var e struct {
			Type     string
			Number   int `json:"sequence_number"`
			Index    int `json:"output_index"`
			Delta    string
			Item     *output
			Response *response
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return a, err
		}
		if e.Number != n || a.done || a.code != "" {
			return a, fmt.Errorf("more behind the end, or another number than %d: %s", n, data)
		}
		switch {
		case e.Type == "response.output_text.delta":
			text += e.Delta
		case e.Type == "response.output_item.added":
			if begun++; e.Index != begun-1 {
				return a, fmt.Errorf("an item out of order: %s", data)
			}
		case e.Type == "response.output_item.done":
			ended++
			take(e.Item)
		case e.Response != nil && e.Response.Status != "in_progress":
			finish(e.Response)
			if len(e.Response.Output) != ended || a.code == "" && begun != ended {
				return a, fmt.Errorf("%d items began, %d ended, and the end has %d", begun, ended, len(e.Response.Output))
			}
		}
	}
	if a.code != "" {
		a.text = text // also of an item that has not ended
	}
	if a.text != text {
		err = fmt.Errorf("the items state the text %q, and their deltas %q", a.text, text)
	}
	return a, err
}
