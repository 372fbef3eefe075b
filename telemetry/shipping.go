package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// newShippingMetric counts records of the audit log by what became of their copy.
func newShippingMetric(create promauto.Factory) *prometheus.CounterVec {
	return create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_audit_shipped_total", Help: "Records of the audit log for the collector, by result: shipped, or lost where it will never have them."}, []string{"result"})
}

// AuditShipped counts records of the audit log that a collector has taken.
func (m *Metrics) AuditShipped(n uint64) { m.shipped.WithLabelValues("shipped").Add(float64(n)) }

// AuditNotShipped counts records of the audit log that a collector will never have.
func (m *Metrics) AuditNotShipped(n uint64) { m.shipped.WithLabelValues("lost").Add(float64(n)) }

// AuditBehind says, from now on, how many records a collector does not have yet. It is called
// once.
func (m *Metrics) AuditBehind(behind func() uint64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callgate_audit_behind", Help: "Records of the audit log that wait in the file for the collector."}, func() float64 { return float64(behind()) }))
}
