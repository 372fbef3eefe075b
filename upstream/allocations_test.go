package upstream

import (
	"io"
	"strings"
	"testing"
)

// TestAllocationsPerChunk holds that the chunk template is worth its code: a chunk that it
// matches costs at most a third of the allocations of one that is parsed in full.
func TestAllocationsPerChunk(t *testing.T) {
	const chunk = `data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"some words "},"finish_reason":null}]}` + "\n\n"
	const chunks = 400
	perChunk := func(one, two string) float64 {
		stream := strings.Repeat(one+two, chunks/2) + endEvent + doneEvent
		return testing.AllocsPerRun(5, func() {
			var a Assembler
			for e := offline(strings.NewReader(stream)); ; {
				c, err := e.Next()
				if err == io.EOF {
					return
				}
				if err == nil {
					err = a.Add(c)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}) / chunks
	}
	obfuscated := strings.Replace(chunk, `"model"`, `"obfuscation":"xyz","model"`, 1)
	alike, padded := perChunk(chunk, chunk), perChunk(obfuscated, obfuscated)
	parsed := perChunk(chunk, strings.Replace(chunk, "c1", "c2", 1))
	if alike > 0.25 || padded > 1.25 {
		t.Errorf("%.1f allocations for a chunk that matches, %.1f with padding; expected at most 0.25 and 1.25", alike, padded)
	}
	if parsed < 3*alike {
		t.Errorf("%.1f allocations for a chunk that matches, %.1f for one that is parsed: the template saves too little to be kept", alike, parsed)
	}
}
