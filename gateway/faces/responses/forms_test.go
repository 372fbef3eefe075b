package responses_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFormsAgree: any reply has the same verdict whole and streamed, with the same text and calls if
// it passes; and what a stream has sent before a refusal is clean.
func TestFormsAgree(outer *testing.T) {
	texts := []string{"fine.", "", " \n", "I {look}", "so: {", `"tool":"x"}`, "<tool_", "call>x", "[", "ends in \"", "é<", `{"tool":{"name":"SECRET","arguments":{}}}`, "{\n"}
	var now answer
	h := open(outer, plan{rules: noRepairs}, func(w http.ResponseWriter, streamed bool) { now(w, streamed) })
	rapid.Check(outer, func(t *rapid.T) {
		var items []string
		for i := range rapid.IntRange(0, 5).Draw(t, "items") {
			switch rapid.IntRange(0, 7).Draw(t, "item") {
			case 0, 1, 2, 3:
				items = append(items, fmt.Sprintf(`{"id":"msg_%d","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":%s}]}`,
					i, quoted(rapid.SampledFrom(texts).Draw(t, "text"))))
			case 4:
				items = append(items, function(fmt.Sprint("call_", i), "web_search", `{"query":"go"}`))
			case 5:
				items = append(items, function(fmt.Sprint("call_", i), "web_search", rapid.SampledFrom([]string{`{"query":"SECRET","x":1}`, `{"query":"SECRET"`, `{"query":"SECRET","query":1}`}).Draw(t, "arguments")))
			case 6:
				items = append(items, fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","summary":[]}`, i))
			case 7:
				items = append(items, strings.Replace(refusing(rapid.SampledFrom([]string{"no", "<tool_call>SECRET"}).Draw(t, "refusal")), "msg_r", fmt.Sprint("msg_", i), 1))
			}
		}
		now = says(items...)
		wholeAnswer, streamAnswer := h.post(asks(tools("web_search"))), h.post(asksStream(tools("web_search")))
		whole, streamed := reads(outer, wholeAnswer), reads(outer, streamAnswer)
		if (whole.Error == nil) != (streamed.Error == nil) || whole.Error != nil && whole.Error.Code != streamed.Error.Code {
			t.Fatalf("%s\nwhole: %s\nstreamed: %s", items, wholeAnswer.Body, streamAnswer.Body)
		}
		if whole.Error == nil && (whole.text() != streamed.text() || whole.calls() != streamed.calls()) {
			t.Fatalf("%s\nwhole: %s\nstreamed: %s", items, wholeAnswer.Body, streamAnswer.Body)
		}
		if body := streamAnswer.Body.String(); strings.Contains(body, "SECRET") && (streamed.Error == nil || !strings.Contains(string(streamed.Error.Callgate), "SECRET")) {
			t.Fatalf("%s\nstreamed: %s", items, body)
		}
	})
}
