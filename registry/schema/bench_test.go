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

func BenchmarkEvaluate(b *testing.B) {
	e := compiled(b, benchSchema)
	args := arguments(b, benchArguments)
	b.Run("both", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if found := e.Evaluate("web.search", args); found != nil {
				b.Fatal(found)
			}
		}
	})
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			j := evaluation{tool: "web.search"}
			if !wellFormed(args, 1) || !j.apply(e.root, args, nil) {
				b.Fatal("refused")
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
