package gateway_test

import (
	"context"
	"testing"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
)

// TestTerms: terms rule out what they name and nothing else, whole and in a
// stream, and what they refuse is written down.
func TestTerms(t *testing.T) {
	refused := func(message string) *refusal.Error { return refusal.New(refusal.ToolChoiceViolated, message) }
	const (
		text    = "Hello"
		call    = `{"tool":{"name":"time.now","arguments":{}}}`
		another = `{"tool":{"name":"web.search","arguments":{"query":"x"}}}`
		near    = `{"tool":{"name":"web.serch","arguments":{"query":"x"}}}`
		wrong   = `{"tool":{"name":"time.now","arguments":{"x":1}}}`
	)
	for name, c := range map[string]struct {
		terms gateway.Constraints
		want  map[string]string // by completion; absent: as without terms
	}{
		"none":             {gateway.Constraints{}, nil},
		"a fault":          {gateway.Constraints{RefuseAll: refusal.New(refusal.ForeignCallSyntax, "")}, map[string]string{text: "parse foreign_call_syntax", call: "parse foreign_call_syntax", another: "parse foreign_call_syntax", near: "parse foreign_call_syntax", wrong: "parse foreign_call_syntax"}},
		"no text":          {gateway.Constraints{RefuseText: refused("")}, map[string]string{text: "any tool_choice_violated"}},
		"no call":          {gateway.Constraints{RefuseCall: refused("")}, map[string]string{call: "any tool_choice_violated", another: "any tool_choice_violated", near: "any tool_choice_violated", wrong: "any tool_choice_violated"}},
		"a name":           {gateway.Constraints{OnlyTools: []string{"time.now"}, RefuseOther: refused("")}, map[string]string{another: "any tool_choice_violated", near: "any tool_choice_violated"}},
		"a name, unworded": {gateway.Constraints{OnlyTools: []string{"time.now"}}, map[string]string{another: "any tool_choice_violated", near: "any tool_choice_violated"}},
		"offered":          {gateway.Constraints{OfferedTools: []string{"time.now"}}, map[string]string{another: "schema unknown_tool"}},
		"nothing offered":  {gateway.Constraints{OfferedTools: []string{}}, map[string]string{call: "schema unknown_tool", another: "schema unknown_tool", wrong: "schema unknown_tool"}},
	} {
		for completion, plain := range map[string]string{text: "", call: "", another: "", near: "schema unknown_tool", wrong: "schema unexpected_argument"} {
			want, changed := c.want[completion]
			if !changed {
				want = plain
			}
			j := &journal{}
			a := admit(t, open(t, &engine{}, j), gateway.Request{}).WithConstraints(c.terms)
			d := a.Judge(context.Background(), gateway.ModeEnforce, gateway.Input{Completion: []byte(completion)})
			d.Release()
			if got := refusedBy(d); got != want {
				t.Errorf("%s: %s is %q, want %q", name, completion, got, want)
			}
			if last := j.records[len(j.records)-1]; (last.Verdict == audit.Refused) != (want != "") {
				t.Errorf("%s: %s is written down as %s", name, completion, last.Verdict)
			}
			if r := d.Reports[0]; want != "" && completion == call && r.ArgumentsSHA256 == "" || want == "" && r.ArgumentsSHA256 != "" {
				t.Errorf("%s: %s has the digest %q", name, completion, r.ArgumentsSHA256)
			}
			if near := d.Reports[0].Refusal; completion != "" && near != nil && near.Code == refusal.UnknownTool && c.terms.OfferedTools != nil && len(near.DidYouMean) > 0 {
				t.Errorf("%s: %s is near %v, which was not offered", name, completion, near.DidYouMean)
			}
			s, err := a.Stream(context.Background(), gateway.ModeEnforce, false)
			if err != nil {
				t.Fatal(err)
			}
			s.Write([]byte(completion))
			d = s.Close(context.Background(), false)
			d.Release()
			if got := refusedBy(d); got != want {
				t.Errorf("%s: %s, as a stream, is %q, want %q", name, completion, got, want)
			}
		}
	}
}

// TestTermsOnlyNarrow: an admission that terms were made from has none, and no
// term lets pass what is refused without.
func TestTermsOnlyNarrow(t *testing.T) {
	a := admit(t, open(t, &engine{}, &journal{}), gateway.Request{})
	a.WithConstraints(gateway.Constraints{RefuseAll: refusal.New(refusal.MixedOutput, "")})
	denied := gateway.Input{Completion: []byte(`{"tool":{"name":"files.delete","arguments":{"path":"x"}}}`)}
	for _, a := range []*gateway.Admission{a, a.WithConstraints(gateway.Constraints{OnlyTools: []string{"files.delete"}, OfferedTools: []string{"files.delete"}})} {
		d := a.Judge(context.Background(), gateway.ModeEnforce, denied)
		d.Release()
		if got := refusedBy(d); got != "permission permission_denied" {
			t.Errorf("what may not be used is %q", got)
		}
	}
}
