package registry

import (
	"encoding/json"
	"fmt"
	"github.com/callgate/callgate/tool"
	"testing"
)

// toolSchema has six properties, one of them an object.
const toolSchema = `{"type":"object","additionalProperties":false,"required":["query","filter"],"properties":{
	"query":{"type":"string","minLength":1,"maxLength":400},
	"num_results":{"type":"integer","minimum":1,"maximum":50},
	"lang":{"enum":["en","de","fr"]},
	"safe":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"},"maxItems":10},
	"filter":{"type":"object","additionalProperties":false,"required":["field"],"properties":{"field":{"type":"string"},"equals":{"type":["string","number","boolean"]}}}}}`

func benchTool(name string) Tool {
	return Tool{Name: name, Version: "1.0.0", InputSchema: json.RawMessage(toolSchema), Run: tool.Run{Type: "demo"}}
}

func manyTools(n int) []Tool {
	tools := make([]Tool, n)
	for i := range tools {
		tools[i] = benchTool(fmt.Sprintf("server%d.tool_%d", i%97, i))
		tools[i].InputSchema = json.RawMessage(fmt.Sprintf(`{"title":"%d",%s`, i, toolSchema[1:]))
	}
	return tools
}

func BenchmarkNew10000(b *testing.B) {
	tools := manyTools(10_000)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := New(tools); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		r, err := New(manyTools(n))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := r.Lookup("server3.tool_3"); !ok {
					b.Fatal("not found")
				}
			}
		})
	}
}

func BenchmarkNear10000(b *testing.B) {
	r, err := New(manyTools(10_000))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Suggest("servr3.tool_3", func(string) bool { return true }, 3)
	}
}
