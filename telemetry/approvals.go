package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/callgate/callgate/refusal"
)

// approvalMetrics count what people are asked and say. The label rule holds names of
// approvals.yaml, and so is the operator's.
type approvalMetrics struct {
	waiting prometheus.Gauge
	grants  prometheus.Gauge
	acts    *prometheus.CounterVec
	decided *prometheus.HistogramVec
	notices *prometheus.CounterVec
}

// approvalBuckets are from a second to seven days, the longest that people may be asked.
func approvalBuckets() []float64 {
	const hour = 60 * 60
	return []float64{1, 5, 15, 60, 5 * 60, 15 * 60, 30 * 60, hour, 2 * hour, 4 * hour, 8 * hour, 24 * hour, 2 * 24 * hour, 4 * 24 * hour, 7 * 24 * hour}
}

func newApprovalMetrics(create promauto.Factory) approvalMetrics {
	return approvalMetrics{
		waiting: create.NewGauge(prometheus.GaugeOpts{Name: "callgate_approvals_waiting", Help: "Calls in the store that wait for people's approval; counted every ten seconds."}),
		grants:  create.NewGauge(prometheus.GaugeOpts{Name: "callgate_grants", Help: "Approvals in the store that also cover further calls; counted every ten seconds."}),
		acts:    create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_approvals_total", Help: "Acts on approvals, by rule, and by code as in the audit log."}, []string{"rule", "code"}),
		decided: create.NewHistogramVec(prometheus.HistogramOpts{Name: "callgate_approval_seconds", Help: "Time from asking people to their decision, by rule.", Buckets: approvalBuckets()}, []string{"rule"}),
		notices: create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_notices_total", Help: "Notices of approvals, by result: sent, failed (and sent again), gone (the endpoint wants no more), dropped."}, []string{"result"}),
	}
}

// ApprovalActed counts an act by a rule: a code of the audit log's event approval.
func (m *approvalMetrics) ApprovalActed(rule string, code refusal.Code) {
	m.acts.WithLabelValues(rule, string(code)).Inc()
}

// ApprovalDecided notes how long people took from being asked to their decision.
func (m *approvalMetrics) ApprovalDecided(rule string, took time.Duration) {
	m.decided.WithLabelValues(rule).Observe(took.Seconds())
}

// ApprovalsKept notes how many approvals wait for votes, and how many grants stand.
func (m *approvalMetrics) ApprovalsKept(waiting, grants int) {
	m.waiting.Set(float64(waiting))
	m.grants.Set(float64(grants))
}

// NoticeEnded counts a notice of an approval that was sent, or could not be, by its result.
func (m *approvalMetrics) NoticeEnded(result string) { m.notices.WithLabelValues(result).Inc() }
