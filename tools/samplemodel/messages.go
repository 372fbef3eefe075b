package main

import (
	"net/http"

	"github.com/go-json-experiment/json"
)

// versionHeader is required of every request of the Messages API.
const versionHeader = "Anthropic-Version"

// versioned refuses a request without a version, as the API does.
func versioned(serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(versionHeader) == "" {
			refuseMessages(w, failed(http.StatusBadRequest, "", "anthropic-version: header is required"))
			return
		}
		w.Header().Set("Request-Id", "req_sample")
		serve(w, r)
	}
}

// readMessages reads and checks a request for a message.
func (m model) readMessages(body []byte) (*question, *failure) {
	q := messagesRequest{MaxTokens: -1}
	if json.Unmarshal(body, &q) != nil {
		return nil, failed(http.StatusBadRequest, "",
			"found no request for a message; expected an object with model, max_tokens and messages")
	}
	switch {
	case q.Model == "":
		return nil, failed(http.StatusBadRequest, "", "model: Field required")
	case q.MaxTokens < 0:
		return nil, failed(http.StatusBadRequest, "", "max_tokens: Field required")
	case len(q.Messages) == 0:
		return nil, failed(http.StatusBadRequest, "", "messages: at least one message is required")
	case q.Thread != nil:
		f := failed(http.StatusBadRequest, "", "thread: not supported by this model")
		f.code = "thread_unsupported_request"
		return nil, f
	}
	c, fault := followMessages(q.Messages)
	if fault != nil {
		return nil, fault
	}
	return &question{
		model: q.Model, stream: q.Stream,
		reply: func(s *scenario) reply {
			r := s.play(c, true)
			if len(q.Tools) == 0 {
				r = r.withoutTools()
			}
			return r
		},
		form: messagesForm{tag(body), q.Model, tokens(len(body))},
	}, nil
}

// countMessages answers a request for the number of tokens.
func countMessages(w http.ResponseWriter, r *http.Request) {
	body, fault := readBody(w, r)
	if fault != nil {
		refuseMessages(w, fault)
		return
	}
	answer(w, http.StatusOK, map[string]int{"input_tokens": tokens(len(body))})
}

// newModelPage is the list of models in the shape of the Messages API.
func newModelPage(names []string) any {
	type entry struct {
		Type    string `json:"type"`
		ID      string `json:"id"`
		Name    string `json:"display_name"`
		Created string `json:"created_at"`
	}
	page := struct {
		Data  []entry `json:"data"`
		More  bool    `json:"has_more"`
		First string  `json:"first_id"`
		Last  string  `json:"last_id"`
	}{First: names[0], Last: names[len(names)-1]}
	for _, name := range names {
		page.Data = append(page.Data, entry{"model", name, name, "1970-01-01T00:00:00Z"})
	}
	return page
}
