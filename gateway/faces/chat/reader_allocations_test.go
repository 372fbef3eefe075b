package chat

import (
	"strings"
	"testing"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/testkit/detector"
)

// ordinaryChunk is a chunk of an ordinary stream.
const ordinaryChunk = `{"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"some words "},"finish_reason":null}]}`

// TestAllocationsPerChunk: a chunk costs no memory of its own, whether it matches the template or is
// parsed in full.
func TestAllocationsPerChunk(t *testing.T) {
	if detector.On {
		t.Skip("the race detector allocates")
	}
	const chunks = 400
	perChunk := func(one, two string) float64 {
		documents := [][]byte{[]byte(one), []byte(two)}
		return testing.AllocsPerRun(5, func() {
			r := &reader{}
			for i := range chunks {
				if _, err := r.Event(nil, documents[i%2]); err != nil {
					t.Fatal(err)
				}
			}
		}) / chunks
	}
	obfuscated := strings.Replace(ordinaryChunk, `"model"`, `"obfuscation":"xyz","model"`, 1)
	alike, padded := perChunk(ordinaryChunk, ordinaryChunk), perChunk(obfuscated, obfuscated)
	parsed := perChunk(ordinaryChunk, strings.Replace(ordinaryChunk, "c1", "c2", 1))
	if alike > 0.25 || padded > 0.25 || parsed > 0.25 {
		t.Errorf("%.1f allocations for a chunk that matches, %.1f with padding, %.1f for one that is parsed; expected at most 0.25", alike, padded, parsed)
	}
}

// BenchmarkChunks reads a stream of 200 pieces of text and puts it together: the
// figures are for one of them.
func BenchmarkChunks(b *testing.B) {
	obfuscated := strings.Replace(ordinaryChunk, `"model"`, `"obfuscation":"aBcDeF","model"`, 1)
	for name, two := range map[string][2]string{"alike": {ordinaryChunk, ordinaryChunk}, "obfuscated": {obfuscated, obfuscated}, "unlike": {ordinaryChunk, strings.Replace(ordinaryChunk, "c1", "c2", 1)}} {
		documents := [][]byte{[]byte(two[0]), []byte(two[1])}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i += 200 {
				var r turns.Reader = &reader{}
				for j := range 200 {
					if _, err := r.Event(nil, documents[j%2]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
