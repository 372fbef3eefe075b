package upstream

import (
	"io"
	"strings"
	"testing"
)

// BenchmarkChunks reads a stream of 200 pieces of text and puts it together: the
// figures are for one of them.
func BenchmarkChunks(b *testing.B) {
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mock","choices":[{"index":0,"delta":{"content":"some more words "},"logprobs":null,"finish_reason":null}]}` + "\n\n"
	const obfuscated = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"mock","service_tier":"default","choices":[{"index":0,"delta":{"content":"some more words "},"logprobs":null,"finish_reason":null}],"obfuscation":"aBcDeF"}` + "\n\n"
	other := strings.Replace(chunk, "1700000000", "1700000001", 1)
	for name, stream := range map[string]string{
		"alike":      strings.Repeat(chunk, 200),
		"obfuscated": strings.Repeat(obfuscated, 200),
		"unlike":     strings.Repeat(chunk+other, 100),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i += 200 {
				var a Assembler
				for e := offline(strings.NewReader(stream + endEvent + doneEvent)); ; {
					chunk, err := e.Next()
					if err == io.EOF {
						break
					}
					if err == nil {
						err = a.Add(chunk)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
