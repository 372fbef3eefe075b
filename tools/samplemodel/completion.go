package main

import (
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
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

// head is what every completion and every chunk begins with.
type head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

// usage is how many tokens were read and written, about.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

func newUsage(q *request, r reply) *usage {
	u := &usage{Prompt: tokens(q.bytes), Completion: q.Choices * tokens(r.written())}
	u.Total = u.Prompt + u.Completion
	return u
}

// completion is a whole answer.
type completion struct {
	head
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
}

type choice struct {
	Index   int           `json:"index"`
	Message answerMessage `json:"message"`
	Logs    *struct{}     `json:"logprobs"`
	Finish  string        `json:"finish_reason"`
}

type answerMessage struct {
	Role    string     `json:"role"`
	Content *string    `json:"content"`
	Refusal *string    `json:"refusal"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
}

// completionChunk is one event of a stream.
type completionChunk struct {
	head
	Choices []part `json:"choices"`
	Usage   *usage `json:"usage,omitzero"`
}

type part struct {
	Index  int       `json:"index"`
	Delta  delta     `json:"delta"`
	Logs   *struct{} `json:"logprobs"`
	Finish *string   `json:"finish_reason"`
}

type delta struct {
	Role    string      `json:"role,omitempty"`
	Content string      `json:"content,omitempty"`
	Calls   []callDelta `json:"tool_calls,omitempty"`
}

type callDelta struct {
	Index    int           `json:"index"`
	ID       string        `json:"id,omitempty"`
	Type     string        `json:"type,omitempty"`
	Function functionDelta `json:"function"`
}

type functionDelta struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// newHead names a completion after its place, which is all that differs between
// two answers of the same conversation.
func newHead(q *request, c conversation, created int64) head {
	return head{fmt.Sprintf("chatcmpl-sample-%d", c.answers), "chat.completion", created, q.Model}
}

// chatForm writes answers as chat completions.
type chatForm struct {
	q *request
	h head
}

// whole is the answer in one piece.
func (f chatForm) whole(r reply) any {
	answer := completion{head: f.h, Usage: newUsage(f.q, r)}
	for i := range f.q.Choices {
		m := answerMessage{Role: "assistant", Calls: r.calls}
		if r.text != "" {
			m.Content = &r.text
		}
		answer.Choices = append(answer.Choices, choice{Index: i, Message: m, Finish: r.finish()})
	}
	return answer
}

// events is the answer as a stream: the role, the text and the arguments in
// pieces of so many characters, the reason why it ends, and the mark of the end.
func (f chatForm) events(r reply, characters int) []event {
	var chunks []completionChunk
	h := f.h
	h.Object += ".chunk"
	for i := range f.q.Choices {
		say := func(d delta) {
			chunks = append(chunks, completionChunk{head: h, Choices: []part{{Index: i, Delta: d}}})
		}
		say(delta{Role: "assistant"})
		for _, piece := range pieces(r.text, characters) {
			say(delta{Content: piece})
		}
		for n, c := range r.calls {
			say(delta{Calls: []callDelta{{Index: n, ID: c.ID, Type: c.Type, Function: functionDelta{Name: c.Function.Name}}}})
			for _, piece := range pieces(c.Function.Arguments, characters) {
				say(delta{Calls: []callDelta{{Index: n, Function: functionDelta{Arguments: piece}}}})
			}
		}
		finish := r.finish()
		chunks = append(chunks, completionChunk{head: h, Choices: []part{{Index: i, Finish: &finish}}})
	}
	if f.q.Options.Usage {
		chunks = append(chunks, completionChunk{head: h, Choices: []part{}, Usage: newUsage(f.q, r)})
	}
	var events []event
	for _, c := range chunks {
		events = append(events, event{data: c})
	}
	return append(events, event{data: endMark("[DONE]")})
}

func (chatForm) failure(status int) any { return newFailure(status, "", serverFailed) }

func (f chatForm) broken(int) event { return event{data: f.failure(http.StatusInternalServerError)} }
