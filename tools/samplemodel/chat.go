package main

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

const maxChoices = 8

// readChat reads and checks a request for a completion.
func (m model) readChat(body []byte) (*question, *failure) {
	q := &request{Choices: 1, bytes: len(body)}
	if json.Unmarshal(body, q) != nil {
		return nil, failed(http.StatusBadRequest, "", "found no request for a completion; expected an object with model and messages")
	}
	switch {
	case q.Model == "":
		return nil, failed(http.StatusBadRequest, "model", "found no model; expected one")
	case len(q.Messages) == 0:
		return nil, failed(http.StatusBadRequest, "messages", "found no messages; expected at least one")
	case q.Choices < 1 || q.Choices > maxChoices:
		return nil, failed(http.StatusBadRequest, "n", "found another number of choices; expected 1 to %d", maxChoices)
	}
	c, ok := follow(q.Messages)
	if !ok {
		return nil, failed(http.StatusBadRequest, "messages", "found a message of another form; expected role and content")
	}
	native := len(q.Tools) > 0
	return &question{
		model: q.Model, stream: q.Stream, place: c,
		reply: func(s *scenario) reply { return s.play(c, native) },
		form:  chatForm{q, newHead(q, c, m.now().Unix())},
	}, nil
}
