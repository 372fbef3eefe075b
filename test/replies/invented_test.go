package replies_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/callgate/callgate/test/replies/invented"
)

// inventedWire is the API of package invented.
type inventedWire struct{}

func (inventedWire) path() string { return invented.Path }

func (inventedWire) request(c *testCase) string {
	var tools []string
	for _, name := range c.tools {
		tools = append(tools, `{"name":`+quoted(name)+`}`)
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
		more += `,"tool_choice":{"only":[` + quoted(c.only) + `]}`
	default:
		more += `,"tool_choice":{"call":` + quoted(c.choice) + `}`
	}
	if c.single {
		more += `,"single":true`
	}
	if c.output != "" {
		more += `,"form":` + c.format()
	}
	return `{"model":"invented","turns":[{"by":"user","say":"hi"}]` + more
}

// part is a part of a reply, or how it begins.
func (inventedWire) part(p *part, at int, text string) string {
	if p.kind == "call" {
		return fmt.Sprintf(`{"call":%s,"ref":"call_%d","input":%s}`, quoted(p.name), at, quoted(text))
	}
	return `{` + quoted(p.kind) + `:` + quoted(text) + `}`
}

func (inventedWire) head(r *reply) string { return `"id":"r1","model":` + r.model() }

func (inventedWire) end(r *reply) string {
	end := r.end
	if end == "" && r.calls() {
		end = "called"
	}
	word := map[string]string{"": "done", "done": "done", "called": "calls", "cut": "length", "filtered": "filter"}[end]
	return `"end":` + quoted(word) + `,"usage":{"in":10,"out":5` + r.inUsage() + `}`
}

func (w inventedWire) whole(r *reply) string {
	var parts []string
	for i := range r.parts {
		parts = append(parts, w.part(&r.parts[i], i, r.parts[i].text))
	}
	return `{` + w.head(r) + `,"parts":[` + strings.Join(parts, ",") + `],` + w.end(r) + `}`
}

func (inventedWire) forms() []form { return []form{{size: 1000}, {size: 7}, {size: 1}} }

func (w inventedWire) events(r *reply, f form) (events []string) {
	event := func(members string) { events = append(events, "data: {"+members+"}\n\n") }
	event(w.head(r))
	for i := range r.parts {
		p := &r.parts[i]
		event(`"begin":` + w.part(p, i, ""))
		for _, piece := range pieces(p.text, f.size) {
			event(`"more":` + quoted(piece))
		}
		event(`"stop":true`)
	}
	event(w.end(r))
	return events
}

func (inventedWire) read(body string, streamed bool) (a answer, err error) {
	type said struct {
		Text, Input        string
		Thought, Call, Ref *string
	}
	type event struct {
		Parts []said
		Begin *said
		More  string
		Stop  bool
		End   string
		Error struct{ Code string }
	}
	var open *said
	take := func(p *said) {
		a.text += p.Text
		if p.Thought != nil {
			a.thought += *p.Thought
		}
		if p.Call != nil {
			if *p.Ref == "" {
				err = fmt.Errorf("a call without a ref")
			}
			a.calls = append(a.calls, *p.Call+" "+p.Input)
		}
	}
	documents := []string{body}
	if streamed {
		documents = dataOf(body)
	}
	for _, data := range documents {
		var e event
		if err := json.Unmarshal([]byte(data), &e); err != nil || a.done || a.code != "" {
			return a, fmt.Errorf("more behind the end, or %w: %s", err, data)
		}
		for i := range e.Parts {
			take(&e.Parts[i])
		}
		switch {
		case e.Begin != nil == (open != nil) && (e.Begin != nil || e.More != "" || e.Stop):
			return a, fmt.Errorf("a part out of order: %s", data)
		case e.Begin != nil:
			open = e.Begin
		case e.More != "" && open.Call != nil:
			open.Input += e.More
		case e.More != "" && open.Thought != nil:
			*open.Thought += e.More
		case e.More != "":
			open.Text += e.More
		case e.Stop:
			take(open)
			open = nil
		}
		a.code = e.Error.Code
		a.end = known(e.End, map[string]string{"calls": "called", "done": "done", "length": "cut", "filter": "filtered"})
		a.done = e.End != ""
	}
	if open != nil {
		take(open)
	}
	return a, err
}
