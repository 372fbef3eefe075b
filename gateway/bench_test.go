package gateway_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/kaptinlin/jsonschema"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
)

// call300 is a call of about 300 bytes that the vectors' configuration allows.
const call300 = `{"tool":{"name":"data.vector_search","arguments":{"embedding":[0.0123,-0.9981,0.5,0.25,-0.125,0.0625,0.3,0.77,0.0123,-0.9981,0.5,0.25,-0.125,0.0625,0.3,0.77,0.0123,-0.9981,0.5,0.25,-0.125,0.0625,0.3,0.77,0.0123,-0.9981],"top_k":12,"filter":{"field":"language","equals":"de"}}},"agent":"Analyst"}`

// discard is a journal that keeps nothing: the kernel without the disk.
type discard struct{}

func (discard) Append(context.Context, audit.Record) error { return nil }

// BenchmarkCall300 sets the whole kernel beside one bare validation by
// kaptinlin/jsonschema of the same arguments.
func BenchmarkCall300(b *testing.B) {
	s := state(b, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	parsed := parser.Parse([]byte(call300), false, parser.Options{})
	if parsed.Kind != parser.Call {
		b.Fatal(parsed.Refusal)
	}
	tool, _ := s.Tools.Lookup(parsed.Name)
	b.Run("bare ValidateMap", func(b *testing.B) {
		schema, err := jsonschema.NewCompiler().SetAssertFormat(true).Compile(tool.ClosedSchema())
		if err != nil {
			b.Fatal(err)
		}
		var args map[string]any
		if err := json.Unmarshal(parsed.Arguments, &args); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if !schema.ValidateMap(args).IsValid() {
				b.Fatal("invalid")
			}
		}
	})
	request := completion(call300)
	b.Run("Check", func(b *testing.B) {
		k := kernelWith(b, s, ratelimit.NewLocal(time.Now))
		b.ReportAllocs()
		for b.Loop() {
			if r := k.Kernel.Check(context.Background(), request); r.Refusal != nil {
				b.Fatal(r.Refusal)
			}
		}
	})
	b.Run("Judge and Execute, nothing synced", func(b *testing.B) {
		limited := state(b, vectorConfig)
		rate, _ := ratelimit.ParseRate("1000000/s")
		wide := ratelimit.Budget{Rate: rate, Burst: 1_000_000}
		limited.Limits = &ratelimit.Limits{Replicas: 1, Default: ratelimit.Allowance{Budget: &wide}, Tools: map[string]ratelimit.Budget{parsed.Name: wide}}
		k := kernelOf(b, limited, calls.Deps{Deps: gateway.Deps{Limiter: ratelimit.NewLocal(time.Now), Journal: discard{}}, Engine: &engine{}, Store: store.NewMemory(time.Now)})
		b.ReportAllocs()
		for b.Loop() {
			if o := k.Execute(context.Background(), k.Kernel.Judge(context.Background(), request))[0]; o.Refusal != nil {
				b.Fatal(o.Refusal)
			}
		}
	})
}

// BenchmarkStages reports what each stage of the judgement of a call takes, in
// nanoseconds.
func BenchmarkStages(b *testing.B) {
	s := state(b, vectorConfig)
	s.Limits = &ratelimit.Limits{Replicas: 1}
	took := map[string]time.Duration{}
	k := kernelWith(b, s, ratelimit.NewLocal(time.Now))
	request := completion(call300)
	n := 0
	for b.Loop() {
		for stage, d := range k.Kernel.Times(context.Background(), request) {
			took[string(stage)] += d
		}
		n++
	}
	for stage, d := range took {
		b.ReportMetric(float64(d.Nanoseconds())/float64(n), stage+"-ns")
	}
}
