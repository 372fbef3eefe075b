package elicitation_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/gateway/elicitation"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

var kinds = tool.QuestionKinds()

// FuzzQuestion: what a caller is given of any question is strict JSON of the protocol
// in which nothing hides, and is given so again where it is read again.
func FuzzQuestion(f *testing.F) {
	others := protocol(f)
	for _, c := range askings {
		for i, kind := range kinds {
			if kind == c.kind && len(c.params) < 4<<10 {
				f.Add(uint8(i), []byte(c.params))
			}
		}
	}
	f.Fuzz(func(t *testing.T, n uint8, params []byte) {
		kind := kinds[int(n)%len(kinds)]
		q, err := elicitation.Read("name", kind, methods[kind], params)
		if err != nil {
			return
		}
		value, err := parser.ReadValue(q.Params(), 64)
		if err != nil || !bytes.Equal(wrapper.Escape(q.Params()), q.Params()) {
			t.Fatalf("%q: %v", q.Params(), err)
		}
		var texts func(any)
		texts = func(v any) {
			switch v := v.(type) {
			case string:
				if wrapper.EscapeText(v) != v {
					t.Fatalf("%q hides in %q", v, q.Params())
				}
			case []any:
				for _, one := range v {
					texts(one)
				}
			case map[string]any:
				for name, one := range v {
					if name != "metadata" { // is for a program
						texts(name)
						texts(one)
					}
				}
			}
		}
		texts(value)
		second, err := elicitation.Read("name", kind, methods[kind], q.Params())
		if err != nil || !bytes.Equal(second.Params(), q.Params()) {
			t.Fatalf("%q is read again as %q, %v", q.Params(), second.Params(), err)
		}
		if err := ofProtocol(others, kind, q.Params()); err != nil {
			t.Fatalf("%q: %v", q.Params(), err)
		}
		q.Validate([]byte(`{"action":"accept","content":{}}`))
	})
}

// FuzzAnswer: what a tool is given of any answer is strict JSON of the protocol, with
// nothing beside what was judged, and is judged so again.
func FuzzAnswer(f *testing.F) {
	others := protocol(f)
	for _, c := range answerings {
		for i, kind := range kinds {
			if kind == c.kind && len(c.answer) < 4<<10 {
				f.Add(uint8(i), []byte(c.answer))
			}
		}
	}
	all := make([]elicitation.Question, len(kinds))
	for i, kind := range kinds {
		all[i] = question(f, kind)
	}
	f.Fuzz(func(t *testing.T, n uint8, answer []byte) {
		kind, q := kinds[int(n)%len(kinds)], all[int(n)%len(kinds)]
		a, faults := q.Validate(answer)
		if len(faults) > 0 {
			if a.JSON != nil || a.Paths != nil {
				t.Fatalf("an answer with faults is sent: %q", a.JSON)
			}
			return
		}
		if _, err := parser.ReadValue(a.JSON, 64); err != nil || !json.Valid(answer) {
			t.Fatalf("%q sends %q: %v", answer, a.JSON, err)
		}
		second, faults := q.Validate(a.JSON)
		if len(faults) > 0 || !bytes.Equal(second.JSON, a.JSON) {
			t.Fatalf("%q is judged again: %q, %v", a.JSON, second.JSON, faultTexts(faults))
		}
		// The schema of the protocol forgets numbers that are no integers, which a form
		// may ask for.
		if kind != "form" {
			if err := others.Check(answers[kind], a.JSON); err != nil {
				t.Fatalf("%q: %v", a.JSON, err)
			}
		}
	})
}
