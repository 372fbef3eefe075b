package gateway_test

import (
	"context"
	"strings"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// TestStructuredOutput: the JSON that an answer is asked to be is judged by the schema once it was read, before hooks see
// it, and as they leave it. A refusal lists where the faults are, in the completion and from its root, and is recorded.
func TestStructuredOutput(t *testing.T) {
	const asked = `{"type":"object","properties":{"id":{"type":"string","maxLength":50},"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`
	for name, c := range map[string]struct {
		said  string
		stage refusal.Stage
		code  refusal.Code
		path  string
		at    int
		in    string // the message
	}{
		"right":                      {` {"n":1}`, "", "", "", 0, ""},
		"redacted":                   {`{"n":1,"id":"` + token + `"}`, "", "", "", 0, ""},
		"a call by name":             {`{"n":1,"tool":{"name":"acts"}}`, refusal.Parse, refusal.MixedOutput, "", 7, "form of a tool call"},
		"no JSON":                    {`n is 1`, refusal.Parse, refusal.MalformedJSON, "", 1, "strict JSON"},
		"missing":                    {` {"id":"a"}`, refusal.Schema, refusal.InvalidOutput, "/n", 1, `Member "n" is missing. The schema requires it: an integer.`},
		"another type":               {`{"n":"1"}`, refusal.Schema, refusal.InvalidOutput, "/n", 5, `Member "n" must be an integer, not a string.`},
		"another member":             {`{"n":1,"x":2}`, refusal.Schema, refusal.InvalidOutput, "/x", 7, `Send the answer again without it.`},
		"another value":              {`[1]`, refusal.Schema, refusal.InvalidOutput, "", 0, `The answer must be an object, not an array.`},
		"a secret that is not asked": {`{"n":"` + token + `"}`, refusal.Schema, refusal.InvalidOutput, "/n", 5, `must be an integer`},
	} {
		k, j := kernelHooked(t, textHook("redact"), nil, nil)
		a := admit(t, k, gateway.Request{})
		by, faults, err := a.AnswerSchema([]byte(asked))
		if err != nil || len(faults) > 0 {
			t.Fatal(faults, err)
		}
		d := a.Judge(context.Background(), gateway.ModeEnforce, gateway.Input{Completion: []byte(c.said), TextOnly: true, Output: by})
		refused := d.Refusal()
		last := j.all()[len(j.all())-1]
		switch {
		case c.code == "" && (refused != nil || d.Reports[0].Verdict != gateway.VerdictText || last.Verdict != audit.Text):
			t.Errorf("%s: found %v, recorded %+v", name, refused, last)
		case c.code != "" && (refused == nil || refused.Stage != c.stage || refused.Code != c.code || !strings.Contains(refused.Message, c.in) || len(d.Reports[0].Text) > 0 ||
			last.Verdict != audit.Refused || last.Stage != c.stage || last.Code != c.code):
			t.Errorf("%s: found %v, recorded %+v", name, refused, last)
		case c.code != "" && (refused.Violations[0].Path != c.path || refused.Violations[0].Offset != c.at):
			t.Errorf("%s: found %+v", name, refused.Violations)
		}
		d.Release()
	}
}

// TestSN60StructuredOutput: an answer that is not by its schema is refused behind the checks of the stage schema for calls
// beside it, and before those of the stage permission. The step is in no test of order, since no call comes to it.
func TestSN60StructuredOutput(t *testing.T) {
	of := orderConfigs(t)
	for name, c := range map[string]struct {
		said string
		call attempt
		want refusal.Code
	}{
		"right":                                {`{}`, attempt{}, ""},
		"wrong":                                {`[]`, attempt{}, refusal.InvalidOutput},
		"wrong, beside a wrong answer":         {`[]`, attempt{state: "call_none"}, refusal.InvalidValue},
		"wrong, beside a call that may not be": {`[]`, attempt{amount: 1000}, refusal.InvalidOutput},
		"wrong, and nothing can be recorded":   {`[]`, attempt{silent: true}, refusal.InvalidOutput},
		"right, and nothing can be recorded":   {`{}`, attempt{silent: true}, refusal.AuditUnavailable},
	} {
		w := c.call.meet(t, of)
		a, err := w.kernel.Kernel.Admit(context.Background(), w.request())
		if err != nil {
			t.Fatal(err)
		}
		by, _, err := a.AnswerSchema([]byte(`{"type":"object"}`))
		if err != nil {
			t.Fatal(err)
		}
		d := a.Judge(context.Background(), gateway.ModeCall, gateway.Input{Completion: []byte(c.said), TextOnly: true, Output: by}, w.input())
		if r := d.Refusal(); c.want == "" && r != nil || c.want != "" && (r == nil || r.Code != c.want) {
			t.Errorf("%s: %v", name, r)
		}
		d.Release()
	}
}
