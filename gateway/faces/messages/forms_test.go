package messages_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestFormsAgree: any reply has the same verdict whole and streamed, wherever its calls stand, with
// the same text and calls if it passes, and no byte of a refused call is sent.
func TestFormsAgree(outer *testing.T) {
	texts := []string{"fine.", "", " \n", "I {look}", "so: {", `"tool":"x"}`, "<tool_", "call>x", "[", "ends in \"", "é<", `{"tool":{"name":"SECRET","arguments":{}}}`, "{\n"}
	var now script
	h := open(outer, func(turn int, w http.ResponseWriter, r *http.Request) { now(turn, w, r) }, plan{rules: noRepairs})
	rapid.Check(outer, func(t *rapid.T) {
		var blocks []string
		for i := range rapid.IntRange(0, 5).Draw(t, "blocks") {
			switch rapid.IntRange(0, 6).Draw(t, "block") {
			case 0, 1, 2, 3:
				blocks = append(blocks, textOf(rapid.SampledFrom(texts).Draw(t, "text")))
			case 4:
				blocks = append(blocks, toolUse(fmt.Sprint("toolu_", i), "web_search", `{"query":"go"}`))
			case 5:
				blocks = append(blocks, toolUse(fmt.Sprint("toolu_", i), "web_search", rapid.SampledFrom([]string{`{"query":"SECRET","x":1}`, `{"q":"SECRET"}`}).Draw(t, "input")))
			case 6:
				blocks = append(blocks, thinkingBlock)
			}
		}
		reply := message(rapid.SampledFrom([]string{"tool_use", "tool_use", "end_turn", "max_tokens", "pause_turn"}).Draw(t, "stop_reason"), blocks...)
		now = says(reply)
		first := h.create(asks(tools("web_search")))
		whole := reads(outer, first)
		for _, place := range []string{"deltas", "start", "message"} {
			now = saysIn(place, rapid.IntRange(1, 9).Draw(t, "size"), reply)
			w := h.create(asks(tools("web_search"), streamed))
			got := reads(outer, w)
			if whole.Error.Details.Code != got.Error.Details.Code {
				t.Fatalf("%s, in %s\nwhole: %s\nstreamed: %s", reply, place, first.Body, w.Body)
			}
			if whole.Error.Details.Code == "" && (whole.text != got.text || fmt.Sprint(whole.calls()) != fmt.Sprint(got.calls()) || whole.StopReason != got.StopReason) {
				t.Fatalf("%s, in %s\nwhole: %s\nstreamed: %s", reply, place, first.Body, w.Body)
			}
			if strings.Contains(w.Body.String(), "SECRET") {
				t.Fatalf("%s, in %s\nstreamed: %s", reply, place, w.Body)
			}
		}
	})
}
