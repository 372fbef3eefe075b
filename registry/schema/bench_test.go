package schema

import (
	"testing"

	"github.com/kaptinlin/jsonschema"
)

// benchSchema has six properties, one of them an object, and no pattern, so
// that the bare library may be used without a fence.
const benchSchema = `{"type":"object","additionalProperties":false,"required":["query","filter"],"properties":{
	"query":{"type":"string","minLength":1,"maxLength":400},
	"num_results":{"type":"integer","minimum":1,"maximum":50},
	"lang":{"enum":["en","de","fr"]},
	"safe":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"},"maxItems":10},
	"filter":{"type":"object","additionalProperties":false,"required":["field"],"properties":{"field":{"type":"string"},"equals":{"type":["string","number","boolean"]}}}}}`

const benchArguments = `{"query":"weather in Rome","num_results":5,"lang":"en","safe":true,"tags":["a","b","c"],"filter":{"field":"site","equals":"example.com"}}`

// callSchema and callArguments are those of the benchmark over HTTP.
const (
	callSchema = `{"type":"object","required":["query","filters","limit"],"properties":{"query":{"type":"string","minLength":1,"maxLength":400},"limit":{"type":"integer","minimum":1,"maximum":50},
	"sort":{"type":"string","enum":["relevance","newest","oldest"]},"fuzzy":{"type":"boolean"},"weight":{"type":"number","minimum":0,"maximum":1},"tags":{"type":"array","items":{"type":"string","maxLength":40},"maxItems":8},
	"filters":{"type":"object","required":["language"],"properties":{"language":{"type":"string","enum":["en","de","fr"]},"after":{"type":"string"},"before":{"type":"string"}}}}}`
	callArguments = `{"query":"agent memory and the audit log of a gateway","limit":5,"sort":"newest","fuzzy":false,"weight":0.75,"tags":["memory","gateway","audit"],"filters":{"language":"en","after":"2026-01-01","before":"2026-11-01"}}`
)

func BenchmarkEvaluate(b *testing.B) {
	for _, c := range []struct{ name, schema, arguments string }{{"plain", benchSchema, benchArguments}, {"plain call", callSchema, callArguments}} {
		s, raw := compiled(b, c.schema), []byte(c.arguments)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if !s.AcceptsJSON(raw) {
					b.Fatal("refused")
				}
			}
		})
	}
	e := compiled(b, benchSchema)
	args := arguments(b, benchArguments)
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if found := e.decide(ofArguments("web.search"), args, false); found != nil {
				b.Fatal(found)
			}
		}
	})
	bare, err := jsonschema.NewCompiler().SetAssertFormat(true).Compile([]byte(benchSchema))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("kaptinlin", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !bare.ValidateMap(args).IsValid() {
				b.Fatal("refused")
			}
		}
	})
	wrong := arguments(b, `{"query":"","extra":1,"filter":{"fields":"a"}}`)
	b.Run("refused", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if len(e.Evaluate("web.search", wrong)) != 4 {
				b.Fatal(e.Evaluate("web.search", wrong))
			}
		}
	})
}

// TestPlainAllocations: arguments of common kinds are accepted without an allocation.
func TestPlainAllocations(t *testing.T) {
	for _, c := range []struct {
		schema, arguments string
		most              float64
	}{
		{benchSchema, benchArguments, 0},
		{callSchema, callArguments, 0},
		{`{"properties":{"a":{"type":"string","pattern":"^[a-z]+$","maxLength":9},"b":{"multipleOf":0.01,"exclusiveMinimum":-1e3}}}`, `{"a":"abc","b":-12.50}`, 0},
		{`{"properties":{"a":{"enum":["a\nb"]},"b\"":{"maxLength":3}}}`, `{"\u0061":"a\nb","b\"":"\ud83d\ude00\t"}`, 0},
		{`{"properties":{"a":{"format":"date"},"b":{"minimum":1}}}`, `{"a":"2026-01-31","b":1e2}`, 2},
	} {
		s, raw := compiled(t, c.schema), []byte(c.arguments)
		if got := testing.AllocsPerRun(100, func() {
			if !s.AcceptsJSON(raw) {
				t.Fatalf("%s is not accepted", raw)
			}
		}); got > c.most {
			t.Errorf("%s: %v allocations; expected %v", raw, got, c.most)
		}
	}
}
