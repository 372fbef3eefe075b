package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// candidateMetrics are those of the configuration that is compared with the one that is served.
type candidateMetrics struct {
	compared *prometheus.CounterVec
	failed   prometheus.Gauge
}

func newCandidateMetrics(create promauto.Factory) candidateMetrics {
	return candidateMetrics{
		compared: create.NewCounterVec(prometheus.CounterOpts{
			Name: "callgate_candidate_total", Help: "Calls judged by the candidate, by how its judgement differs from the one that was served.",
		}, []string{"change"}),
		failed: create.NewGauge(prometheus.GaugeOpts{Name: "callgate_candidate_failed", Help: "1 while a candidate is configured that does not load."}),
	}
}

// CandidateCompared counts a call that the candidate has judged, or has not.
func (m *candidateMetrics) CandidateCompared(result string) {
	m.compared.WithLabelValues(result).Inc()
}

// CandidateFailed says whether there is a candidate that does not load.
func (m *candidateMetrics) CandidateFailed(failed bool) {
	m.failed.Set(0)
	if failed {
		m.failed.Set(1)
	}
}
