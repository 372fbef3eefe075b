package responses_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/callgate/callgate/internal/testkit/detector"
)

// ofPieces is a face whose model streams a text of so many pieces, and the body of that stream.
func ofPieces(t testing.TB, pieces int) (*fixture, []byte) {
	const piece = " some words"
	var body strings.Builder
	number := 0
	for _, event := range events("completed", message(strings.Repeat(piece, pieces))) {
		head, _, _ := strings.Cut(event, `","`)
		if !strings.Contains(head, "output_text.delta") {
			fmt.Fprintf(&body, "data: %s\n\n", withoutNumber(event))
			continue
		}
		if strings.Contains(event, "obfuscation") {
			for range pieces {
				number++
				fmt.Fprintf(&body, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":%d,\"item_id\":\"msg_%d\",\"output_index\":0,\"content_index\":0,\"delta\":%q,\"logprobs\":[],\"obfuscation\":\"abcdef\"}\n\n", number, len(piece)*pieces, piece)
			}
		}
	}
	text := []byte(body.String())
	h := open(t, plan{}, func(w http.ResponseWriter, _ bool) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(text)
	})
	if r := reads(t, h.post(asksStream())); r.Status != "completed" {
		t.Fatal(r)
	}
	return h, text
}

// BenchmarkStream streams a text. The allocations of a piece are those of a long stream less
// those of a short one.
func BenchmarkStream(b *testing.B) {
	for _, pieces := range []int{4, 200, 1000} {
		b.Run(fmt.Sprint(pieces), func(b *testing.B) {
			h, text := ofPieces(b, pieces)
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				h.post(asksStream())
			}
		})
	}
}

// TestAllocationsPerPiece holds that a piece of text goes from the model's connection to the
// application's without an allocation of its own: buffers grow, and reads have some.
func TestAllocationsPerPiece(t *testing.T) {
	if detector.On {
		t.Skip("the race detector allocates")
	}
	const few, many = 4, 804
	allocations := func(pieces int) float64 {
		h, _ := ofPieces(t, pieces)
		return testing.AllocsPerRun(10, func() { h.post(asksStream()) })
	}
	if each := (allocations(many) - allocations(few)) / (many - few); each > 0.5 {
		t.Errorf("%.2f allocations for a piece, expected at most 0.5", each)
	} else {
		t.Logf("%.2f allocations for a piece", each)
	}
}

// withoutNumber drops the sequence_number that an event begins with.
func withoutNumber(event string) string {
	_, rest, _ := strings.Cut(event, ",")
	return "{" + rest
}
