package main

import (
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBody    = 8 << 20
	maxChoices = 8
)

// request is what is read of a request for a completion.
type request struct {
	Model    string           `json:"model"`
	Messages []message        `json:"messages"`
	Tools    []jsontext.Value `json:"tools"`
	Choices  int              `json:"n"`
	Stream   bool             `json:"stream"`
	Options  struct {
		Usage bool `json:"include_usage"`
	} `json:"stream_options"`

	bytes int // of the whole body
}

// readBody reads the body of a request of any API.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *failure) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, failed(http.StatusUnsupportedMediaType, "", "found another content type; expected application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, failed(http.StatusRequestEntityTooLarge, "", "found a body over %d bytes; expected at most that", maxBody)
		}
		return nil, failed(http.StatusBadRequest, "", "the body broke off")
	}
	return body, nil
}

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
