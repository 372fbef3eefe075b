package messages_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/upstream"
)

// longText is a stream of a text in n deltas.
func longText(n int) string {
	var b strings.Builder
	stream(&b, "deltas", 10, message("end_turn", textOf(strings.Repeat("some text ", n))))
	return b.String()
}

// opensText is a face whose model streams a text of n deltas.
func opensText(t testing.TB, n int) *fixture {
	text := longText(n)
	return open(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, text)
	}, plan{definition: func(d *upstream.Definition) { d.MaxBody = 1 << 30 }})
}

// BenchmarkStream streams texts through the face.
func BenchmarkStream(b *testing.B) {
	for _, deltas := range []int{5, 200, 1000} {
		b.Run(fmt.Sprint(deltas), func(b *testing.B) {
			h := opensText(b, deltas)
			b.ReportAllocs()
			for b.Loop() {
				if w := h.create(asks(streamed)); w.Code != 200 {
					b.Fatal(w.Code)
				}
			}
		})
	}
}

// TestAllocationsPerDelta: a further delta of a text allocates next to nothing.
func TestAllocationsPerDelta(t *testing.T) {
	const few, many = 500, 6000 // within output.max_bytes of the vectors
	allocations := func(n int) float64 {
		h := opensText(t, n)
		return testing.AllocsPerRun(5, func() {
			if w := h.create(asks(streamed)); w.Code != 200 || !strings.Contains(w.Body.String(), "message_stop") {
				t.Fatalf("%d …%s", w.Code, w.Body.String()[max(0, w.Body.Len()-600):])
			}
		})
	}
	if each := (allocations(many) - allocations(few)) / (many - few); each > 0.5 {
		t.Errorf("%.2f allocations for each delta", each)
	}
}
