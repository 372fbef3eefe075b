package main

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// readResponses reads and checks a request for a response.
func (m model) readResponses(body []byte) (*question, *failure) {
	var q responsesRequest
	if json.Unmarshal(body, &q) != nil {
		return nil, failed(http.StatusBadRequest, "", "found no request for a response; expected an object with model and input")
	}
	items, ok := q.items()
	switch {
	case q.Model == "":
		return nil, failed(http.StatusBadRequest, "model", "Missing required parameter: 'model'.")
	case !ok || len(items) == 0:
		return nil, failed(http.StatusBadRequest, "input", "found no input; expected a text or items")
	}
	c, fault := followItems(items)
	if fault != nil {
		return nil, fault
	}
	offers := len(q.Tools) > 0
	for _, i := range items {
		offers = offers || len(i.Tools) > 0
	}
	return &question{
		model: q.Model, stream: q.Stream,
		reply: func(s *scenario) reply {
			r := s.play(c, true)
			if !offers {
				r = r.withoutTools()
			}
			return r
		},
		form: responsesForm{q: &q, tag: tag(body), created: m.now().Unix(), read: tokens(len(body))},
	}, nil
}

// countInput answers a request for the number of tokens.
func countInput(w http.ResponseWriter, r *http.Request) {
	body, fault := readBody(w, r)
	if fault != nil {
		refuse(w, fault)
		return
	}
	answer(w, http.StatusOK, map[string]any{"object": "response.input_tokens", "input_tokens": tokens(len(body))})
}
