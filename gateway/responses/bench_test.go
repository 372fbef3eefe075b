package responses_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// BenchmarkStream streams a text of 1,000 pieces. The allocations of a piece are those of a
// long stream less those of a short one.
func BenchmarkStream(b *testing.B) {
	for _, pieces := range []int{4, 200, 1000} {
		b.Run(fmt.Sprint(pieces), func(b *testing.B) {
			const piece = " some words"
			list := events("completed", message(strings.Repeat(piece, pieces)))
			var body strings.Builder
			for _, event := range list {
				head, _, _ := strings.Cut(event, `","`)
				if !strings.Contains(head, "output_text.delta") {
					fmt.Fprintf(&body, "data: %s\n\n", withoutNumber(event))
					continue
				}
				if strings.Contains(event, "obfuscation") {
					for range pieces {
						fmt.Fprintf(&body, "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"item_id\":\"msg_%d\",\"output_index\":0,\"content_index\":0,\"delta\":%q,\"logprobs\":[],\"obfuscation\":\"abcdef\"}\n\n", len(piece)*pieces, piece)
					}
				}
			}
			text := []byte(body.String())
			h := open(b, plan{}, func(w http.ResponseWriter, _ bool) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = w.Write(text)
			})
			if r := reads(b, h.post(asksStream())); r.Status != "completed" {
				b.Fatal(r)
			}
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				h.post(asksStream())
			}
		})
	}
}

// withoutNumber drops the sequence_number that an event begins with.
func withoutNumber(event string) string {
	_, rest, _ := strings.Cut(event, ",")
	return "{" + rest
}
