package main

import (
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// messagesRequest is what is read of a request of the Messages API.
type messagesRequest struct {
	Model     string           `json:"model"`
	MaxTokens int              `json:"max_tokens"`
	Messages  []message        `json:"messages"`
	Tools     []jsontext.Value `json:"tools"`
	Stream    bool             `json:"stream"`
	Thread    jsontext.Value   `json:"thread"`
}

// messageBlock is what is read of a block of a message.
type messageBlock struct {
	Type    string         `json:"type"`
	ID      string         `json:"id"`
	Call    string         `json:"tool_use_id"`
	Text    string         `json:"text"`
	Content jsontext.Value `json:"content"`
	Failed  bool           `json:"is_error"`
}

// followMessages reads messages in order. As the API does, it refuses a tool_use that
// the next message does not answer, and a tool_result that answers none.
func followMessages(messages []message) (conversation, *failure) {
	var c conversation
	var open map[string]bool // calls of the message before
	for i, m := range messages {
		blocks, ok := m.blocks()
		if !ok {
			return c, failed(http.StatusBadRequest, "", "messages.%d: found another form; expected a role and content", i)
		}
		var results []result
		for n, b := range blocks {
			switch {
			case b.Type == "tool_use" && m.Role == "assistant", b.Type != "tool_use" && b.Type != "tool_result":
				continue
			case b.Type == "tool_use", m.Role != "user", n > 0 && blocks[n-1].Type != "tool_result":
				return c, failed(http.StatusBadRequest, "", "messages.%d.content.%d: found a %s where none may stand", i, n, b.Type)
			case !open[b.Call]:
				return c, failed(http.StatusBadRequest, "",
					"messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks", i, n)
			}
			delete(open, b.Call)
			text, ok := textOf(b.Content)
			if !ok {
				return c, failed(http.StatusBadRequest, "", "messages.%d.content.%d: found content of another form", i, n)
			}
			for _, r := range resultsIn(text, true) {
				r.refused = r.refused || b.Failed
				results = append(results, r)
			}
		}
		if len(open) > 0 {
			return c, failed(http.StatusBadRequest, "",
				"messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after", i-1)
		}
		switch m.Role {
		case "system":
		case "assistant":
			c.answered()
			open = callIDs(blocks)
		case "user":
			if results != nil {
				c.add(results)
				continue
			}
			text, _ := m.text()
			c.readUserText(text)
		default:
			return c, failed(http.StatusBadRequest, "", "messages.%d.role: found another role; expected user, assistant or system", i)
		}
	}
	if len(open) > 0 {
		return c, failed(http.StatusBadRequest, "", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after",
			len(messages)-1)
	}
	return c, nil
}

// callIDs are the ids of the calls among blocks.
func callIDs(blocks []messageBlock) map[string]bool {
	ids := map[string]bool{}
	for _, b := range blocks {
		if b.Type == "tool_use" {
			ids[b.ID] = true
		}
	}
	return ids
}

// blocks are those of a content, which may be a string.
func (m message) blocks() ([]messageBlock, bool) {
	if m.Content.Kind() == '"' {
		text, ok := m.text()
		return []messageBlock{{Type: "text", Text: text}}, ok
	}
	var all []messageBlock
	return all, json.Unmarshal(m.Content, &all) == nil
}
