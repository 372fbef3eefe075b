package messages

import (
	"strings"
	"testing"
)

// TestEventsNamedByTheirData: an event without a name has the type of its data.
func TestEventsNamedByTheirData(t *testing.T) {
	lines := []string{lineStart, lineText, lineHello, lineStop0, lineTool1, lineArgs1, lineStop1, lineToolUse}
	stream := ""
	for _, line := range lines {
		_, data, _ := strings.Cut(line, " ")
		stream += "data: " + data + "\n\n"
	}
	stream += `data: {"type":"message_stop"}` + "\n\n"
	got, want := readStream(strings.NewReader(stream), options{}), readStream(streamOf(append(lines, lineStop)...), options{})
	if got.err != nil || describe(got.reply) != describe(want.reply) || got.shown != want.shown {
		t.Errorf("%v, %s", got.err, got.shown)
	}
}

// TestUnnamedEvents: an event without a name and without a type that was read is not one of an
// unknown type. Some readers go by the type in the data, and find a text that nobody judged.
func TestUnnamedEvents(t *testing.T) {
	_, delta, _ := strings.Cut(lineHello, " ")
	for _, data := range []string{
		`{}`, `{"a":1}`,
		strings.Replace(delta, `"index"`, `"type":"content_block_delta","index"`, 1),              // a name twice
		strings.Replace(delta, "Hello", "\xff", 1),                                                // no UTF-8
		strings.Replace(delta, "Hello", `\ud800`, 1),                                              // half of a pair
		`{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `,` + delta[1:], // too deep
	} {
		stream := events(lineStart, lineText) + "data: " + data + "\n\n" + events(lineStop0, lineEndTurn, lineStop)
		if got := readStream(strings.NewReader(stream), options{unknown: true}); got.err == nil || strings.Contains(got.shown, data) {
			t.Errorf("%.200s: %v, %s", data, got.err, got.shown)
		}
	}
}

// TestAddsNothing: behind message_stop, a ping and message_stop add nothing.
func TestAddsNothing(t *testing.T) {
	for name, data := range map[string]string{"ping": `{"type":"ping"}`, "message_stop": `{"type":"message_stop"}`} {
		if !newReader(options{}).AddsNothing([]byte(name), []byte(data)) {
			t.Errorf("%s adds something", name)
		}
	}
	for name, data := range map[string]string{
		"content_block_stop": `{"type":"content_block_stop","index":0}`,
		"message_stop":       `{"type":"message_stop","message":{}}`,
		"message_delta":      `{"type":"message_delta","delta":{},"usage":{}}`,
		"error":              `{"type":"error"}`,
	} {
		if newReader(options{}).AddsNothing([]byte(name), []byte(data)) {
			t.Errorf("%s %s adds nothing", name, data)
		}
	}
}
