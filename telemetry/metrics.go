// Package telemetry counts what the gateway does, for operators, and traces its
// calls. Every label takes its values from a fixed vocabulary of Callgate's own, or
// from names of the operator's configuration: its rules of approval and, where it asks
// for that, its agents and tools, up to a number of series. No name that a caller, a
// model or a tool chose is ever a label, so the number of series is bounded whatever comes.
//
// Traces go to an OpenTelemetry collector: one span a call, below the caller's
// own, and below it one for each step that may wait for something outside the
// process. They hold no content unless that is asked for, and the environment
// configures none of it. Counting and tracing never refuse, slow or fail a call.
package telemetry

import (
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/callgate/callgate/refusal"
)

// Metrics are the counters of one process. It is safe for concurrent use. Those of approvals, hooks,
// the candidate and budgets have their methods beside them.
type Metrics struct {
	registry  *prometheus.Registry
	verdicts  *callCounter
	stages    byLabel[prometheus.Observer]
	outcomes  *callCounter
	execution prometheus.Histogram
	audit     byLabel[prometheus.Observer]
	requests  *prometheus.CounterVec
	inFlight  prometheus.Gauge
	shed      prometheus.Counter
	reloads   *prometheus.CounterVec
	stale     prometheus.Gauge
	info      *prometheus.GaugeVec
	tokens    *prometheus.CounterVec
	keys      *prometheus.CounterVec
	upstream  *prometheus.HistogramVec
	breakers  *prometheus.CounterVec
	build     *prometheus.GaugeVec
	shipped   *prometheus.CounterVec
	threads   *prometheus.CounterVec
	moved     prometheus.Counter

	approvalMetrics
	hookMetrics
	candidateMetrics
	budgetMetrics
}

// buckets are from a microsecond to ten seconds. These and all others have bounds that people read
// at a glance and write in a query, and the same in every version.
func buckets() []float64 {
	return []float64{1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1, 3, 10}
}

// upstreamBuckets are from a tenth of a second to ten minutes: no model answers earlier, and few
// may take longer.
func upstreamBuckets() []float64 {
	return []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600}
}

// New returns metrics of their own registry, without names of agents and tools.
func New() *Metrics { return NewLabelled(CallLabels{}) }

// NewLabelled is New with names of agents and tools in the counters of calls.
func NewLabelled(labels CallLabels) *Metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	create := promauto.With(registry)
	room := &atomic.Int64{}
	room.Store(int64(labels.MaxSeries))
	return &Metrics{
		registry:  registry,
		verdicts:  newCallCounter(create, labels, room, prometheus.CounterOpts{Name: "callgate_verdicts_total", Help: "Completions judged, by verdict, and by stage and code where refused."}, []string{"verdict", "stage", "code"}),
		stages:    byLabel[prometheus.Observer]{of: create.NewHistogramVec(prometheus.HistogramOpts{Name: "callgate_stage_seconds", Help: "Time that a stage took.", Buckets: buckets()}, []string{"stage"}).WithLabelValues},
		outcomes:  newCallCounter(create, labels, room, prometheus.CounterOpts{Name: "callgate_outcomes_total", Help: "Executed calls, by how they ended."}, []string{"outcome"}),
		execution: create.NewHistogram(prometheus.HistogramOpts{Name: "callgate_execution_seconds", Help: "Time from dispatch to outcome.", Buckets: buckets()}),
		audit:     byLabel[prometheus.Observer]{of: create.NewHistogramVec(prometheus.HistogramOpts{Name: "callgate_audit_seconds", Help: "Time until a record was durable, or refused.", Buckets: buckets()}, []string{"result"}).WithLabelValues},
		requests:  create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_http_requests_total", Help: "HTTP requests, by route and status."}, []string{"route", "status"}),
		inFlight:  create.NewGauge(prometheus.GaugeOpts{Name: "callgate_http_in_flight", Help: "HTTP requests that are being answered."}),
		shed:      create.NewCounter(prometheus.CounterOpts{Name: "callgate_overloaded_total", Help: "Requests that were refused because too many were being answered."}),
		reloads:   create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_reloads_total", Help: "Configurations looked at while serving, by result."}, []string{"result"}),
		stale:     create.NewGauge(prometheus.GaugeOpts{Name: "callgate_config_failed", Help: "1 while the files hold a configuration that does not load."}),
		info:      create.NewGaugeVec(prometheus.GaugeOpts{Name: "callgate_config_info", Help: "The digest of the configuration that is served."}, []string{"digest"}),
		tokens:    create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_tokens_refused_total", Help: "Tokens that were refused, by reason."}, []string{"reason"}),
		keys:      create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_key_fetches_total", Help: "Fetches of the keys that tokens are verified with, by result."}, []string{"result"}),
		upstream:  create.NewHistogramVec(prometheus.HistogramOpts{Name: "callgate_upstream_seconds", Help: "Time until a model answered, or did not, by the class of its HTTP status (0: none) and by code where its answer could not be used.", Buckets: upstreamBuckets()}, []string{"status", "code"}),
		breakers:  create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_breaker_events_total", Help: "Circuit breakers of tools: opened, closed, and calls refused since one was open."}, []string{"event"}),
		build:     create.NewGaugeVec(prometheus.GaugeOpts{Name: "callgate_build_info", Help: "1, with what this process was built from."}, []string{"version", "revision", "goversion"}),
		shipped:   newShippingMetric(create),
		threads:   create.NewCounterVec(prometheus.CounterOpts{Name: "callgate_thread_refusals_total", Help: "Calls that the policy refused for what was done before, by what it asks: labels, counts, results, or unknown."}, []string{"reason"}),
		moved:     create.NewCounter(prometheus.CounterOpts{Name: "callgate_thread_moved_total", Help: "Answers whose conditions were evaluated again, since other calls of their thread or caller had been let through."}),

		approvalMetrics:  newApprovalMetrics(create),
		hookMetrics:      newHookMetrics(create),
		candidateMetrics: newCandidateMetrics(create),
		budgetMetrics:    newBudgetMetrics(create),
	}
}

// byLabel holds the metrics of one label with few values, for less than a vector's own
// lookup costs: each call has a dozen of them.
type byLabel[T any] struct {
	of    func(value ...string) T
	found sync.Map // value to T
}

func (b *byLabel[T]) get(value string) T {
	if found, ok := b.found.Load(value); ok {
		return found.(T)
	}
	found := b.of(value)
	b.found.Store(value, found)
	return found
}

// Built notes what the process was built from; the revision may be empty.
func (m *Metrics) Built(version, revision string) {
	m.build.WithLabelValues(version, revision, runtime.Version()).Set(1)
}

// Handler serves the metrics in Prometheus' format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Judged counts a verdict; refused is nil unless it is a refusal. agent and tool are names of
// the configuration, or empty.
func (m *Metrics) Judged(verdict string, refused *refusal.Error, agent, tool string) {
	key := callKey{fixed: [3]string{verdict}, agent: agent, tool: tool}
	if refused != nil {
		key.fixed[1], key.fixed[2] = string(refused.Stage), string(refused.Code)
	}
	m.verdicts.count(key)
}

// Stage notes how long a stage took.
func (m *Metrics) Stage(stage refusal.Stage, took time.Duration) {
	m.stages.get(string(stage)).Observe(took.Seconds())
}

// Ended counts an executed call by its outcome. agent and tool are as in Judged.
func (m *Metrics) Ended(outcome string, took time.Duration, agent, tool string) {
	m.outcomes.count(callKey{fixed: [3]string{outcome}, agent: agent, tool: tool})
	m.execution.Observe(took.Seconds())
}

// Recorded notes how long a record took to become durable, or to be refused.
func (m *Metrics) Recorded(durable bool, took time.Duration) {
	result := "refused"
	if durable {
		result = "durable"
	}
	m.audit.get(result).Observe(took.Seconds())
}

// ThreadRefused counts a call that the policy refused for what was done before; reason is of a closed list.
func (m *Metrics) ThreadRefused(reason string) { m.threads.WithLabelValues(reason).Inc() }

// ThreadMoved counts an answer whose conditions were evaluated again.
func (m *Metrics) ThreadMoved() { m.moved.Inc() }

// Threads counts, from now on, how many threads and callers are kept. It is called once.
func (m *Metrics) Threads(kept func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callgate_threads", Help: "Threads and callers whose counts are kept; with a Redis, by all gateways."}, func() float64 { return float64(kept()) }))
}

// Route returns what to call when a request to a route begins to be answered, and when it
// ends, with its status. They are safe for concurrent use.
func (m *Metrics) Route(route string) (begin func(), end func(status int)) {
	if m == nil {
		return func() {}, func(int) {}
	}
	// The counter of the most frequent status is looked up once; no counter appears before
	// the first request of its status.
	ok := sync.OnceValue(func() prometheus.Counter { return m.requests.WithLabelValues(route, "200") })
	return m.inFlight.Inc, func(status int) {
		m.inFlight.Dec()
		if status == http.StatusOK {
			ok().Inc()
			return
		}
		m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	}
}

// Shed counts a request that was refused because too many were being answered.
func (m *Metrics) Shed() {
	m.shed.Inc()
}

// Reloaded notes that a configuration is served from now on.
func (m *Metrics) Reloaded(digest string) {
	m.reloads.WithLabelValues("served").Inc()
	m.stale.Set(0)
	m.info.Reset()
	m.info.WithLabelValues(digest).Set(1)
}

// ReloadFailed notes that the files hold a configuration that does not load.
func (m *Metrics) ReloadFailed() {
	m.reloads.WithLabelValues("failed").Inc()
	m.stale.Set(1)
}

// Stops counts, from now on, how many stops active says are in force, and whether local says that those of
// other gateways are not known. It is called once.
func (m *Metrics) Stops(active func() int, local func() bool) {
	m.registry.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callgate_stops", Help: "What operators have stopped, and nobody has resumed."}, func() float64 { return float64(active()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callgate_stops_local", Help: "1 while it is not known what operators have stopped at other gateways, since Redis is away."}, func() float64 {
			if local() {
				return 1
			}
			return 0
		}))
}

// TokenRefused counts a token that was refused; reason is of a closed list.
func (m *Metrics) TokenRefused(reason string) {
	m.tokens.WithLabelValues(reason).Inc()
}

// KeysFetched counts a fetch of the keys that tokens are verified with.
func (m *Metrics) KeysFetched(succeeded bool) {
	result := "failed"
	if succeeded {
		result = "fetched"
	}
	m.keys.WithLabelValues(result).Inc()
}

// LimitsLocal tells, from now on, whether local says that limits which replicas share are this
// process's own. It is called once.
func (m *Metrics) LimitsLocal(local func() bool) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callgate_limits_local", Help: "1 while limits that replicas share are this process's own, since Redis is away."}, func() float64 {
		if local() {
			return 1
		}
		return 0
	}))
}

// Breakers counts, from now on, how many breakers open says are open. It is
// called once.
func (m *Metrics) Breakers(open func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callgate_breakers_open", Help: "Tools that are not asked, or on trial, since their servers did not answer."}, func() float64 { return float64(open()) }))
}

// Quarantine counts, from now on, how many accepted tools held says may not be
// called. It is called once.
func (m *Metrics) Quarantine(quarantined func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "callgate_tools_quarantined", Help: "Tools that were accepted, and of which their servers say something else, nothing, or what cannot be read."}, func() float64 { return float64(quarantined()) }))
}

// Breaker counts an event of a tool's breaker; event is of a closed list.
func (m *Metrics) Breaker(event string) {
	m.breakers.WithLabelValues(event).Inc()
}

// UpstreamRequest notes how one request to a model went; status is 0 without an answer,
// code empty where the answer can be used so far.
func (m *Metrics) UpstreamRequest(code string, status int, took time.Duration) {
	m.upstream.WithLabelValues(statusClass(status), code).Observe(took.Seconds())
}

// statusClass keeps apart what a peer may answer, in a bounded number of words.
func statusClass(status int) string {
	if status < 100 || status > 599 {
		return "0"
	}
	return strconv.Itoa(status/100) + "xx"
}
