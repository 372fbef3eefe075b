package messages

import (
	"strings"
	"testing"
)

// TestUnnamedEvents: an event without a name and without a type that was read is not one of an
// unknown type. Some readers go by the type in the data, and find a text that nobody judged.
func TestUnnamedEvents(t *testing.T) {
	_, delta, _ := strings.Cut(lineHello, " ")
	for _, data := range []string{
		`{}`, `{"a":1}`, delta,
		strings.Replace(delta, `"index"`, `"type":"content_block_delta","index"`, 1),              // a name twice
		strings.Replace(delta, "Hello", "\xff", 1),                                                // no UTF-8
		strings.Replace(delta, "Hello", `\ud800`, 1),                                              // half of a pair
		`{"a":` + strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth) + `,` + delta[1:], // too deep
	} {
		stream := events(lineStart, lineText) + "data: " + data + "\n\n" + events(lineStop0, lineEndTurn, lineStop)
		if got := readStream(strings.NewReader(stream), Options{Unknown: true}); got.err == nil || strings.Contains(got.shown, data) {
			t.Errorf("%.200s: %v, %s", data, got.err, got.shown)
		}
	}
}
