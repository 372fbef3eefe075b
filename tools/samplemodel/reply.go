package main

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// reply is what the model answers.
type reply struct {
	text  string
	calls []toolCall
	fault string

	blocks, items []jsontext.Value // of the Messages and the Responses API
	status        int              // of an error, if it is not 0
	body          jsontext.Value   // of that error; nil is one in the API's own words
}

// toolCall is a native call.
type toolCall struct {
	ID       string   `json:"id"`
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// play returns what a scenario answers at this point. Call ids are unique within
// the conversation.
func (s *scenario) play(c conversation, native bool) reply {
	t := s.Turns[min(c.turn, len(s.Turns)-1)]
	if c.refused && t.AfterRefusal != nil {
		t = *t.AfterRefusal
	}
	r := reply{text: c.fill(t.Text), fault: t.Fault, blocks: t.Blocks, items: t.Items, status: t.Status, body: t.Body}
	for i, call := range t.Calls {
		if native {
			r.calls = append(r.calls, toolCall{fmt.Sprintf("call_%d_%d", c.answers, i),
				"function", function{wire(call.Name), call.written()}})
			continue
		}
		if r.text != "" {
			r.text += "\n"
		}
		r.text += textCall(call)
	}
	return r
}

// tag names an answer after all of its request: ids are unique in a conversation even
// where somebody between took answers out of it.
func tag(body []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(body) // it cannot fail
	return fmt.Sprintf("%016x", h.Sum64())
}

// withoutTools is the reply to a request that offers no tools and has no language for
// calls as text: its text alone.
func (r reply) withoutTools() reply {
	r.calls, r.blocks, r.items = nil, nil, nil
	if r.text == "" {
		r.text = "There is no tool to call."
	}
	return r
}

// textCall is a call in the language of text.
func textCall(c call) string {
	// A name was read as a JSON string, so it can be written as one.
	name, _ := json.Marshal(c.Name)
	return `{"tool":{"name":` + string(name) + `,"arguments":` + c.written() + `}}`
}

// wire is a tool's name in the alphabet of native calls.
func wire(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, name)
}

// finish is the reason why the answer ends.
func (r reply) finish() string {
	if len(r.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

// tokens is about how many there are in n bytes.
func tokens(n int) int { return (n + 3) / 4 }

// written is how many bytes the model wrote.
func (r reply) written() int {
	n := len(r.text)
	for _, c := range r.calls {
		n += len(c.Function.Name) + len(c.Function.Arguments)
	}
	return n
}

// pieces cuts a text after so many characters each.
func pieces(text string, characters int) []string {
	var cut []string
	from, n := 0, 0
	for i := range text {
		if n == characters {
			cut = append(cut, text[from:i])
			from, n = i, 0
		}
		n++
	}
	if from < len(text) {
		cut = append(cut, text[from:])
	}
	return cut
}
