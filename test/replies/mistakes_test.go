package replies_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/test/replies/invented"
	"github.com/callgate/callgate/upstream"
)

// mistakes are what a wire may do by mistake: a function changes what its reader has read.
var mistakes = []struct {
	name  string
	parts []part
	make  func(*turns.Reply, []turns.Delta) []turns.Delta
	code  string
}{
	{"no answer", []part{{kind: "text", text: "Hello."}}, func(r *turns.Reply, _ []turns.Delta) []turns.Delta {
		r.Answers = nil
		return nil
	}, "internal"},
	{"a part of no row", secretCall, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		return ofRow(r, d, nil)
	}, "internal"},
	{"a call of a row without a kind", secretCall, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		return ofRow(r, d, &turns.Row{Type: "call"})
	}, "internal"},
	{"a call without an id", secretCall, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		return withIDs(r, d, "")
	}, "upstream_unavailable"},
	{"two calls with one id", append(secretCall, secretCall...), func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		return withIDs(r, d, "a")
	}, "upstream_unavailable"},
	{"a call in an id", secretCall, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		return withIDs(r, d, "<tool_call>HIDDEN")
	}, "upstream_unavailable"},
	{"a delta of no answer", nil, func(_ *turns.Reply, d []turns.Delta) []turns.Delta {
		return append(d, turns.Delta{Is: turns.Ping})
	}, "internal"},
	{"a delta of no part", nil, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		return append(d, turns.Delta{Is: turns.Grown, Answer: r.Answers[0]})
	}, "internal"},
	{"a text without its delta", nil, func(_ *turns.Reply, d []turns.Delta) []turns.Delta {
		return slices.DeleteFunc(d, func(d turns.Delta) bool {
			return d.Is == turns.Grown && strings.Contains(string(d.Part.Text), "SECRET")
		})
	}, "internal"},
	{"a text without any delta", nil, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		if len(d) > 0 && len(r.Answers[0].Parts) == 2 {
			return nil
		}
		return d
	}, "internal"},
	{"a text that leaves out its beginning", nil, func(_ *turns.Reply, d []turns.Delta) []turns.Delta {
		for i := range d {
			if d[i].Is == turns.Grown && strings.Contains(string(d[i].Part.Text), "SECRET") {
				d[i].From = len(d[i].Part.Text)
			}
		}
		return d
	}, "internal"},
	{"a part of the provider without its beginning", []part{{kind: "thought", text: "SECRET"}, {kind: "text", text: "Hello."}}, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		for _, p := range r.Answers[0].Parts {
			if p.Kind == turns.Thought {
				p.Row = &turns.Row{Type: "thought", Kind: turns.Hosted, Allowed: func(*upstream.Rules, *turns.Part) (found, key string) { return "a search", "" }}
			}
		}
		if len(d) > 0 && d[0].Part != nil && d[0].Part.Kind == turns.Hosted {
			return nil
		}
		return d
	}, "permission_denied"},
	{"it panics", nil, func(r *turns.Reply, d []turns.Delta) []turns.Delta {
		if len(r.Answers[0].Parts) > 2 {
			panic("SECRET")
		}
		return d
	}, "internal"},
}

var (
	secretCall   = []part{{kind: "text", text: "Hello."}, {kind: "call", name: "web_search", text: `{"query":"SECRET"}`}}
	secretInText = []part{{kind: "text", text: "Hello."}, {kind: "text", text: "<tool_call>SECRET"}, {kind: "text", text: strings.Repeat("Hello. ", 9)}}
)

func ofRow(r *turns.Reply, d []turns.Delta, row *turns.Row) []turns.Delta {
	for _, p := range r.Answers[0].Parts {
		if p.Call.Name != "" {
			p.Row = row
		}
	}
	return d
}

func withIDs(r *turns.Reply, d []turns.Delta, id string) []turns.Delta {
	for _, p := range r.Answers[0].Parts {
		p.Call.ID = id
	}
	return d
}

// mistaken is the API of package invented with a mistake.
type mistaken struct {
	turns.Wire
	make func(*turns.Reply, []turns.Delta) []turns.Delta
}

func (m mistaken) Read(members rawjson.Object, model string) (turns.Dialogue, error) {
	d, err := m.Wire.Read(members, model)
	return mistakenDialogue{d, m}, err
}

type mistakenDialogue struct {
	turns.Dialogue
	mistaken mistaken
}

func (d mistakenDialogue) Reader() turns.Reader {
	return mistakenReader{d.Dialogue.Reader(), d.mistaken}
}

type mistakenReader struct {
	turns.Reader
	mistaken mistaken
}

func (r mistakenReader) Whole(body []byte) error {
	err := r.Reader.Whole(body)
	r.mistaken.make(r.Reply(), nil)
	return err
}

func (r mistakenReader) Event(name, data []byte) ([]turns.Delta, error) {
	deltas, err := r.Reader.Event(name, data)
	return r.mistaken.make(r.Reply(), deltas), err
}

// mistakenWire is that API as a test writes and reads it.
type mistakenWire struct {
	inventedWire
	at string
}

func (w mistakenWire) path() string { return w.at }

// TestMistakesOfAWire: what a wire gets wrong fails the run. No call is lost, or handed over without an id of its own, and
// nothing is shown that was not released.
func TestMistakesOfAWire(t *testing.T) {
	var g *gate
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.serve(w, r) }))
	defer model.Close()
	g = open(t, &testCase{}, model.URL)
	for i, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			parts, forms := m.parts, []form{{}, {size: 1000}, {size: 1}}
			if parts == nil { // a mistake of deltas, of which a whole reply has none
				parts, forms = secretInText, forms[1:]
			}
			c := &testCase{name: m.name, tools: offered, replies: []reply{{parts: parts, as: map[string]bool{}}}}
			w := mistakenWire{at: fmt.Sprint("/v1/mistakes/", i)}
			invented.MountAt(w.at, mistaken{invented.Wire, m.make}, g.options, g.Server)
			for _, f := range forms {
				got, body := g.ask(t.Context(), t, c, w, f.size > 0, says(c, w, f))
				c.checkShown(t, f.String(), &got, body)
				if got.code != m.code {
					t.Errorf("%s: found %s, expected %s", f, &got, m.code)
				}
				if records := strings.Join(g.settled(t), "\n"); strings.Contains(records, "handed_over") {
					t.Errorf("%s: handed over: %s", f, records)
				}
			}
		})
	}
}
