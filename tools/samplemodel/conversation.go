package main

import (
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// message is one message of a request, as far as it is read.
type message struct {
	Role    string         `json:"role"`
	Content jsontext.Value `json:"content"`
}

// text is the content: a string, or the text parts of a list; ok is false for
// another form.
func (m message) text() (string, bool) { return textOf(m.Content) }

// textOf is the text of a content of any API: a string, or the parts of a list that
// have a text. It is false for another form.
func textOf(content jsontext.Value) (string, bool) {
	switch content.Kind() {
	case 0:
		return "", true
	case '"':
		var text string
		return text, json.Unmarshal(content, &text) == nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return "", false
	}
	var all strings.Builder
	for _, p := range parts {
		all.WriteString(p.Text)
	}
	return all.String(), true
}

// conversation is where a conversation stands after its last question.
type conversation struct {
	answers int   // of the assistant, since its first message
	turn    int   // of them since the question, but for those that were refused
	refused bool  // the last one was
	results []any // what tools returned since the question, in order
}

// follow reads messages in order. It is false where one has another form.
func follow(messages []message) (conversation, bool) {
	var c conversation
	for _, m := range messages {
		text, ok := m.text()
		if !ok {
			return c, false
		}
		switch m.Role {
		case "system", "developer":
		case "assistant":
			c.answered()
		case "tool":
			c.add(resultsIn(text, true))
		case "user":
			c.readUserText(text)
		default:
			return c, false
		}
	}
	return c, true
}

// answered counts an answer of the assistant.
func (c *conversation) answered() {
	c.answers++
	c.turn++
	c.refused = false
}

// readUserText reads a text of the user: a question, or results of calls as text.
func (c *conversation) readUserText(text string) {
	results := resultsIn(text, false)
	if results == nil {
		*c = conversation{answers: c.answers}
	}
	c.add(results)
}

// result is what came of one call.
type result struct {
	output  any
	refused bool
}

func (c *conversation) add(results []result) {
	for _, r := range results {
		c.results = append(c.results, r.output)
		if r.refused && !c.refused && c.turn > 0 {
			c.refused = true
			c.turn--
		}
	}
}

// resultsIn finds the lines {"tool_result":…} of a text. Without any, a
// tool's text as a whole is a result, and a user's text has none.
func resultsIn(text string, fromTool bool) []result {
	var results []result
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, `{"tool_result":`) {
			continue
		}
		var envelope struct {
			Result struct {
				Output map[string]any `json:"output"`
			} `json:"tool_result"`
		}
		if json.Unmarshal([]byte(line), &envelope) == nil {
			_, refused := envelope.Result.Output["error"]
			results = append(results, result{envelope.Result.Output, refused})
		}
	}
	if results == nil && fromTool {
		var value any
		if json.Unmarshal([]byte(text), &value) != nil {
			value = text
		}
		results = []result{{output: value}}
	}
	return results
}

// nothing is written where no result has what a text names.
const nothing = "(nothing)"

// look finds the value at a JSON Pointer in the newest result that has it. A
// string is without the space around it: files end in a line break.
func (c conversation) look(pointer string) string {
	for i := len(c.results) - 1; i >= 0; i-- {
		value, ok := valueAt(c.results[i], pointer)
		if !ok {
			continue
		}
		if s, ok := value.(string); ok {
			return strings.TrimSpace(s)
		}
		if b, err := json.Marshal(value, json.Deterministic(true)); err == nil {
			return string(b)
		}
	}
	return nothing
}

// valueAt walks into a value by a JSON Pointer.
func valueAt(value any, pointer string) (any, bool) {
	for token := range jsontext.Pointer(pointer).Tokens() {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[token]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return nil, false
			}
			value = v[i]
		default:
			return nil, false
		}
	}
	return value, true
}

// fill puts values in the place of {{pointers}}. Values are not searched for
// pointers.
func (c conversation) fill(text string) string {
	var filled strings.Builder
	for {
		before, rest, opened := strings.Cut(text, "{{")
		pointer, after, closed := strings.Cut(rest, "}}")
		if !opened || !closed {
			filled.WriteString(text)
			return filled.String()
		}
		filled.WriteString(before)
		filled.WriteString(c.look(pointer))
		text = after
	}
}
