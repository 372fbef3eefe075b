package messages

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
)

// madeID is the id of a message that has none.
var madeID = regexp.MustCompile(`msg_[A-Z2-7]{26}`)

// FuzzStream holds for all bytes: nothing panics, cutting changes nothing, no call is shown
// before the end, and what a client is sent of a reply is the same reply.
func FuzzStream(f *testing.F) {
	for _, lines := range hostile {
		f.Add([]byte(events(lines...)))
	}
	f.Add([]byte(events(startOf(wholeCall, `"tool_use"`), lineStop)))
	f.Add([]byte(events(lineStart, thinkingStart, signature, lineStop0, lineTool1, lineArgs1, lineStop1, lineToolUse, lineStop)))
	f.Add([]byte(events(strings.Replace(lineStart, `"id":"msg_1",`, "", 1), lineText, lineHello, lineTool1, lineHello, lineArgs1, lineStop0, lineStop1, lineToolUse, lineStop)))
	f.Add([]byte(events(lineStart, thinkingStart, lineText1, strings.Replace(lineHello, `"index":0`, `"index":1`, 1), signature, lineStop0, lineStop1, lineEndTurn, lineStop)))
	f.Add([]byte(events(lineStart, strings.NewReplacer("tool_use", "server_tool_use", "toolu_1", "s").Replace(lineTool0), lineTool1, lineArgs0, lineArgs1, lineStop0, lineStop1, lineToolUse, lineStop)))
	f.Fuzz(func(t *testing.T, b []byte) {
		got := readStream(bytes.NewReader(b), options{})
		cut := readStream(iotest.OneByteReader(bytes.NewReader(b)), options{})
		if madeID.ReplaceAllString(got.shown, "") != madeID.ReplaceAllString(cut.shown, "") || (got.err == nil) != (cut.err == nil) {
			t.Fatalf("in one piece %v, byte by byte %v", got.err, cut.err)
		}
		if strings.Contains(got.shown, `"content_block":{"type":"tool_use"`) {
			t.Fatalf("a call was shown: %s", got.shown)
		}
		if got.err != nil {
			return
		}
		again := readStream(strings.NewReader(got.asSent(t)), options{})
		if again.err != nil || len(foundCalls(again.reply)) != len(foundCalls(got.reply)) {
			t.Fatalf("what a client is sent is another reply: %v\n%s", again.err, got.asSent(t))
		}
	})
}

// FuzzRead holds that a message that was read is read again as the same from what is passed on.
func FuzzRead(f *testing.F) {
	_, message, _ := strings.Cut(startOf(wholeCall, `"tool_use"`), `"message":`)
	f.Add([]byte(strings.TrimSuffix(message, "}")))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readWhole(b, options{})
		if err != nil {
			return
		}
		again, err := readWhole(whole(r), options{})
		if err != nil || len(again.Answers[0].Parts) != len(r.Answers[0].Parts) || len(callsOf(again)) != len(callsOf(r)) {
			t.Fatalf("passed on as another message: %v", err)
		}
	})
}
