package runs_test

import (
	"testing"

	"github.com/callgate/callgate/gateway/runs"
)

// BenchmarkRun records one run of one turn with one call, in a log that is full.
func BenchmarkRun(b *testing.B) {
	log := runs.New(runs.Options{})
	turn := turnOf(1)
	b.ReportAllocs()
	for b.Loop() {
		r := log.Begin("p", head)
		r.SetOutcome(r.Add(turn), 0, runs.HandedOver, "")
		r.End(nil)
	}
}
