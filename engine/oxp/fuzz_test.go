package oxp

import (
	"encoding/json"
	"testing"

	"github.com/callgate/callgate/internal/weburl"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

// FuzzReadOXP: whatever a server answers is a result that is strict JSON and within
// its bound, or a refusal with words of ours; and the first is an answer to the call.
func FuzzReadOXP(f *testing.F) {
	for _, seed := range []string{
		`{"call_id":"c","success":true,"value":{"a":[1,"x",null]}}`, `{"call_id":"c","success":true}`,
		`{"call_id":"c","success":false,"error":{"message":"m","can_retry":true,"retry_after_ms":5,"additional_prompt_content":"p"}}`,
		`{"call_id":"c","success":true,"value":1,"value":2}`, `{"call_id":"c","success":true,"error":null}`, `[]`, "\xff", `{"message":"m","missing_requirements":{"authorization":[{"id":"a","url":"https://a.example/"}]}}`,
	} {
		f.Add([]byte(seed))
	}
	call := tool.Call{Tool: "t", Effect: "read", Run: tool.Run{MaxResultBytes: 200}}
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, failure := readOXPResponse(call, "c", body)
		if (failure == nil) == (answer.result.Body == nil) {
			t.Fatalf("%q: %v and %q", body, failure, answer.result.Body)
		}
		if failure == nil {
			if _, err := parser.ReadValue(answer.result.Body, maxOXPDepth); err != nil || len(answer.result.Body) > 200 {
				t.Fatalf("%q: %q %v", body, answer.result.Body, err)
			}
			var response struct {
				ID      string `json:"call_id"`
				Success bool   `json:"success"`
			}
			if json.Unmarshal(body, &response) != nil || response.ID != "c" || !response.Success {
				t.Fatalf("%q is taken for a success", body)
			}
		} else if failure.Refusal().Cause == nil || len(failure.Refusal().Message) > 10_000 {
			t.Fatalf("%q: %v", body, failure.Refusal())
		}
		if failure != nil && failure.Retry() && failure.Refusal().Code != refusal.ToolFailed {
			t.Fatalf("%q: tried again after %v", body, failure.Refusal())
		}
		decoded, err := readServerError(tool.Result{Body: body, JSON: true})
		if err == nil {
			for _, c := range decoded.challenges {
				if !weburl.IsPublic(c.URL) {
					t.Fatalf("%q: %v", body, c)
				}
			}
		}
	})
}
