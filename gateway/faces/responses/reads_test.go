package responses_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
)

// response is an answer, or an error, whole or put together from a stream.
type response struct {
	ID, Status, Model string
	Output            []item
	Error             *struct {
		Code, Message, Type, Param string
		Callgate                   json.RawMessage
	}
	IncompleteDetails *struct{ Reason string } `json:"incomplete_details"`
	Instructions      json.RawMessage
	Tools             json.RawMessage
	ToolChoice        json.RawMessage `json:"tool_choice"`
	Usage             map[string]any
	Temperature       float64

	kinds    []string // of a stream, the types of its events
	comments int
}

type item struct {
	ID, Type, Status, Name, Input string
	Arguments                     words
	CallID                        string `json:"call_id"`
	Content                       []struct{ Type, Text, Refusal string }
	Action, Operation             json.RawMessage
	Summary                       []struct{ Text string }
}

// words are a text, or an object as it was written: the arguments of a search of tools are one.
type words string

func (w *words) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) != nil {
		text = ""
	}
	*w = words(text)
	return nil
}

// text is all text of an answer.
func (r response) text() string {
	text := ""
	for _, item := range r.Output {
		for _, part := range item.Content {
			text += part.Text + part.Refusal
		}
	}
	return text
}

// calls are the calls of an answer.
func (r response) calls() string {
	var list []string
	for _, i := range r.Output {
		if i.CallID != "" {
			list = append(list, i.Type+" "+i.CallID+" "+i.Name+string(i.Arguments)+i.Input+string(i.Action)+string(i.Operation))
		}
	}
	return strings.Join(list, ", ")
}

// reads takes an answer apart, whole or a stream.
func reads(t testing.TB, w *httptest.ResponseRecorder) response {
	t.Helper()
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		return readsStream(t, w.Body.String())
	}
	var r response
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return r
}

// readsStream reads a stream as strictly as the strictest client (RS-60 to RS-63): one id,
// numbers without gaps, items that begin in order and end before the response completes, texts
// and calls that all places state alike.
func readsStream(t testing.TB, body string) response {
	t.Helper()
	var last response
	type state struct {
		item  item
		texts map[int]string
		done  bool
	}
	var items []*state
	ids := map[string]bool{}
	var kinds []string
	comments, id, ended := 0, "", false
	for n, event := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ": ") {
			comments++
			continue
		}
		name, data, ok := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		var e struct {
			Type                   string
			SequenceNumber         *int   `json:"sequence_number"`
			OutputIndex            *int   `json:"output_index"`
			ContentIndex           int    `json:"content_index"`
			ItemID                 string `json:"item_id"`
			Delta                  words
			Text, Arguments, Input string
			Refusal                string
			Item                   *item
			Response               *response
			Obfuscation            string
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil || !ok || e.Type != name || ended || e.Obfuscation != "" {
			t.Fatalf("found %q (%v) in %s", event, err, body)
		}
		if e.SequenceNumber == nil || *e.SequenceNumber != len(kinds) {
			t.Fatalf("event %d has another number: %q", n, event)
		}
		kinds = append(kinds, e.Type)
		if e.Response != nil {
			if id == "" {
				id = e.Response.ID
			}
			if id == "" || id != e.Response.ID {
				t.Fatalf("the id of the response changes: %q", event)
			}
			last = *e.Response
			ended = e.Type != "response.created" && e.Type != "response.in_progress"
			continue
		}
		if e.OutputIndex == nil {
			t.Fatalf("no output_index: %q", event)
		}
		if e.Type == "response.output_item.added" {
			if *e.OutputIndex != len(items) || e.Item.ID == "" || ids[e.Item.ID] {
				t.Fatalf("an item out of order, or without an id of its own: %q", event)
			}
			ids[e.Item.ID] = true
			items = append(items, &state{item: *e.Item, texts: map[int]string{}})
			continue
		}
		if *e.OutputIndex >= len(items) || items[*e.OutputIndex].done {
			t.Fatalf("an event of no open item: %q", event)
		}
		s := items[*e.OutputIndex]
		if e.Item == nil && e.ItemID != s.item.ID && !strings.HasPrefix(e.Type, "response.shell_call_command") {
			t.Fatalf("an event of another item: %q", event)
		}
		switch {
		case strings.HasSuffix(e.Type, ".delta"):
			s.texts[e.ContentIndex] += string(e.Delta)
		case strings.HasSuffix(e.Type, "text.done"), strings.HasSuffix(e.Type, "refusal.done"), strings.HasSuffix(e.Type, "arguments.done"), strings.HasSuffix(e.Type, "input.done"):
			if s.texts[e.ContentIndex] != e.Text+e.Refusal+e.Arguments+e.Input {
				t.Fatalf("%v was sent before %q", s.texts, event)
			}
		case e.Type == "response.output_item.done":
			if e.Item.ID != s.item.ID || e.Item.Type != s.item.Type || e.Item.CallID != s.item.CallID {
				t.Fatalf("an item has changed: %q", event)
			}
			s.item, s.done = *e.Item, true
			for i, part := range s.item.Content {
				if s.texts[i] != part.Text+part.Refusal {
					t.Fatalf("%v was sent before %q", s.texts, event)
				}
			}
			if text := string(s.item.Arguments) + s.item.Input; text != s.texts[0] && s.item.CallID != "" && text != "" {
				t.Fatalf("%v was sent before %q", s.texts, event)
			}
		}
	}
	if !ended || len(last.Output) > len(items) {
		t.Fatalf("the stream has no end: %s", body)
	}
	if last.Status != "failed" {
		for i, s := range items {
			if !s.done || i >= len(last.Output) || last.Output[i].ID != s.item.ID || fmt.Sprint(last.Output[i]) != fmt.Sprint(s.item) {
				t.Fatalf("item %d is not as it was sent, in %s", i, body)
			}
		}
	}
	last.kinds, last.comments = kinds, comments
	return last
}
