package callback

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callgate/callgate/parser"
)

// fuzzToken is the token by which fuzzed messages come.
const fuzzToken = "cb1.token-of-a-callback-address"

// FuzzRead: a message of a foreign tool is read, or refused with bad_request, and never panics.
// A message that was read has a call or a thread, and an effect; it is the same when it is read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"type":"tool_result","group_id":"t","id":"c","text":"done"}`,
		`{"type":"tool_result","group_id":"t","id":"c","call_id":null,"text":"{\"n\":1,\"at\":\"\\u0063b1\"}","subscription":true,"display_as":[{"type":"text","content":"x"},{"type":"diff","content":{"path":"a","patch":"b"}},{"type":"image","content":{"data":"AAAA","mediaType":"image/png"}}]}`,
		`{"type":"tool_result","group_id":"t","id":"c","content":[{"type":"text","text":"Error: x"},{"type":"image","data":"AAAA","mediaType":"image/png"}]}`,
		`{"type":"tool_result","group_id":"t","id":"c","text":"Error: no","display_as":{"type":1}}`,
		`{"type":"oauth","group_id":"t","id":"c","auth_url":"https://example.com/login?a=1"}`,
		`{"type":"subscription_event","group_id":"t","tool_call_id":"c","text":"event ` + fuzzToken + `","associative":true,"final":true}`,
		`{"type":"view_update","group_id":"t","view_type":"diff","content":{"patch":"\u202e","n":1e400}}`,
		`{"type":"view_update","group_id":"t","view_type":"diff","content":{"a ` + fuzzToken + `":{"` + fuzzToken + `":1}}}`,
		`{"type":"user_choice","group_id":"t","id":"c","prompt":"Which?","choices":["a","b"],"default":1,"response_url":"https://example.com/chosen"}`,
		`{"type":"user_choice","group_id":"t","id":"c","prompt":"\u202e","choices":["a",null,[]],"default":-1e9,"response_url":"` + fuzzToken + `"}`,
		`{"type":"\ud800","group_id":{},"id":[]}`, `{"type":"tool_result","type":"oauth"}`, `[]`, `null`, ``, `{"a":` + strings.Repeat("[", 100),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, refused := read(body, fuzzToken)
		again, refusedAgain := read(body, fuzzToken)
		if refused != nil {
			if refused.Code != "bad_request" || refusedAgain == nil || refusedAgain.Message != refused.Message {
				t.Fatalf("%v, then %v", refused, refusedAgain)
			}
			if len(refused.Message) > 1000 || !utf8.ValidString(refused.Message) || strings.Contains(refused.Message, fuzzToken) {
				t.Fatalf("the refusal is %q", refused.Message)
			}
			return
		}
		if m.post == nil || m.group == "" || len(m.digest) != 64 || m.digest != again.digest || m.id != again.id {
			t.Fatalf("%+v, then %+v", m, again)
		}
		value, err := parser.ReadValue(body, maxDepth)
		object, ok := mask(value, fuzzToken).(map[string]any)
		if err != nil || !ok {
			t.Fatalf("what is no object was read: %v", err)
		}
		r := reader{object: object, token: fuzzToken}
		switch object["type"] {
		case "tool_result":
			a := r.answer()
			for _, text := range []string{string(a.Output.Body), a.Failure, string(a.Display)} {
				// Each byte becomes at most an escape of six, beside a few words for each image.
				if strings.Contains(text, fuzzToken) || len(text) > 200+20*len(body) {
					t.Fatalf("from %d bytes: %q", len(body), text)
				}
			}
			if a.Failure == "" && !json.Valid(a.Output.Body) {
				t.Fatalf("the output is %q", a.Output.Body)
			}
		case "view_update":
			if view := r.view(); strings.Contains(string(view.Content), fuzzToken) || !json.Valid(view.Content) {
				t.Fatalf("the view is %q", view.Content)
			}
		case "user_choice":
			c := r.choice(m.digest).Choice
			if c.ID == "" || c.Default < 0 || c.Default >= len(c.Choices) || strings.Contains(c.Prompt+strings.Join(c.Choices, ""), fuzzToken) {
				t.Fatalf("%+v", c)
			}
		}
	})
}
