package main

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// question is a request of any API, as far as a scenario needs it.
type question struct {
	model  string
	stream bool
	place  conversation
	reply  func(*scenario) reply
	form   form
}

// form writes answers in the form of one API.
type form interface {
	whole(reply) any
	events(r reply, characters int) []event
	// failure is the body of an error, broken the event of one as the nth of a stream.
	failure(status int) any
	broken(n int) event
}

// event is one event of a stream. Without a name it has no line for one.
type event struct {
	name string
	data any
}

// endMark is data that is no JSON: the mark at the end of a stream of completions.
type endMark []byte

// encoded is what is sent: the whole answer in one piece, or each event.
func encoded(q *question, a reply, characters int) ([][]byte, error) {
	if !q.stream {
		body, err := json.Marshal(q.form.whole(a))
		return [][]byte{body}, err
	}
	events := q.form.events(a, characters)
	if a.fault == faultError {
		events = append(events[:len(events)/2:len(events)/2], q.form.broken(len(events)/2))
	}
	var all [][]byte
	for _, e := range events {
		data, ok := e.data.(endMark)
		if !ok {
			var err error
			if data, err = json.Marshal(e.data); err != nil {
				return nil, err
			}
		}
		line := fmt.Appendf(nil, "data: %s\n\n", data)
		if e.name != "" {
			line = fmt.Appendf(nil, "event: %s\n%s", e.name, line)
		}
		all = append(all, line)
	}
	return all, nil
}
