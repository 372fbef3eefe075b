package messages

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
)

// textStream is a stream of n text deltas; with padding as the provider adds it.
func textStream(n int) string {
	delta := events(strings.Replace(lineHello, `"}}`, `"}`, 1) + "      }")
	return events(lineStart, lineText) + strings.Repeat(delta, n) + events(lineStop0, lineEndTurn, lineStop)
}

// BenchmarkStream reads a stream of text; the figures are for one delta.
func BenchmarkStream(b *testing.B) {
	b.ReportAllocs()
	stream := textStream(b.N)
	b.ResetTimer()
	if got := readDiscarding(strings.NewReader(stream)); got != nil {
		b.Fatal(got)
	}
}

// BenchmarkRead reads a whole message with a call.
func BenchmarkRead(b *testing.B) {
	message := whole(readStream(streamOf(lineStart, lineText, lineHello, lineStop0, lineTool1, lineArgs1, lineStop1, lineToolUse, lineStop), options{}).reply)
	b.ReportAllocs()
	b.SetBytes(int64(len(message)))
	for b.Loop() {
		if _, err := readWhole(message, options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestAllocationsPerDelta holds that a delta of the form of the last one allocates next to
// nothing: only the text grows.
func TestAllocationsPerDelta(t *testing.T) {
	if detector.On {
		t.Skip("the race detector allocates")
	}
	const deltas = 4000
	stream := textStream(deltas)
	allocations := testing.AllocsPerRun(3, func() {
		if err := readDiscarding(strings.NewReader(stream)); err != nil {
			t.Fatal(err)
		}
	}) / deltas
	if allocations > 0.1 {
		t.Errorf("%.2f allocations for each delta", allocations)
	}
}
