package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// hookMetrics count what hooks answer. The label hook holds names of hooks.yaml, and so is the
// operator's.
type hookMetrics struct {
	verdicts *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

// hookBuckets are from a tenth of a millisecond to 30 seconds, the longest that a callout may take.
func hookBuckets() []float64 {
	return []float64{1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30}
}

func newHookMetrics(create promauto.Factory) hookMetrics {
	return hookMetrics{
		verdicts: create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_hooks_total", Help: "Runs of hooks, by hook, by where (call, result), and by verdict: passed, redacted, denied, failed (and so denied)."}, []string{"hook", "at", "verdict"}),
		took:     create.NewHistogramVec(prometheus.HistogramOpts{Name: "callgate_hook_seconds", Help: "Time that a hook took, by hook.", Buckets: hookBuckets()}, []string{"hook"}),
	}
}

// HookEnded counts a run of a hook.
func (m *hookMetrics) HookEnded(hook, at, verdict string, took time.Duration) {
	m.verdicts.WithLabelValues(hook, at, verdict).Inc()
	m.took.WithLabelValues(hook).Observe(took.Seconds())
}
