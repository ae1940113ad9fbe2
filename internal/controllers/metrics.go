package controllers

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/kyma-project/mothership/internal/engine"
)

// metrics of the fleet. No label names a runtime or a module: a fleet has too many of them.
type metrics struct {
	fleet     *Fleet
	wait      *prometheus.HistogramVec
	took      *prometheus.HistogramVec
	untilOK   prometheus.Histogram
	queued    *prometheus.Desc
	phase     *prometheus.Desc
	breakers  *prometheus.Desc
	requests  *prometheus.Desc
	connected *prometheus.Desc
	panics    *prometheus.Desc
	slots     *prometheus.Desc
	limit     *prometheus.Desc
	runs      *prometheus.Desc
	throttled *prometheus.Desc
	backlog   *prometheus.Desc
}

// buckets reach from a lookup in memory to a slow installation, in seconds.
var buckets = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}

func newMetrics(f *Fleet) *metrics {
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "mothership", Name: name, Help: help, Buckets: buckets}, labels)
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("mothership_"+name, help, labels, nil)
	}
	return &metrics{
		fleet: f,
		wait:  histogram("queue_wait_seconds", "Time that work was queued for, by priority.", "priority"),
		took:  histogram("run_seconds", "Time that work took, by kind (module, runtime) and outcome.", "kind", "outcome"),
		untilOK: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "mothership", Name: "time_to_ready_seconds", Help: "Time from a module's change of state until it was ready.", Buckets: buckets,
		}),
		queued:    desc("queued", "Work that waits for its turn, by priority.", "priority"),
		phase:     desc("components", "Components that are not idle, by phase.", "phase"),
		breakers:  desc("unreachable_runtimes", "Runtimes that do not answer."),
		requests:  desc("runtime_requests_total", "Requests to runtimes, by verb.", "verb"),
		connected: desc("runtime_connections", "Connections to runtimes that are kept."),
		panics:    desc("panics_total", "Runs that ended in a panic."),
		slots:     desc("owned_slots", "Slots of the fleet, of 256, that this replica works on."),
		limit:     desc("runs_limit", "Runs that may be in hand."),
		runs:      desc("runs", "Runs under way, by place: in hand, set aside because their runtime does not answer, or a probe.", "place"),
		throttled: desc("throttled", "Whether as little as possible is done, because the control plane's API does not keep up."),
		backlog:   desc("status_backlog", "Kymas whose status is to be written."),
	}
}

// Collectors are the fleet's metrics, for a registry.
func (f *Fleet) Collectors() []prometheus.Collector {
	return []prometheus.Collector{f.metrics, f.metrics.wait, f.metrics.took, f.metrics.untilOK}
}

// observe books a run of the engine.
func (m *metrics) observe(e engine.Event) {
	kind := "module"
	if e.Key.Component == "" {
		kind = "runtime"
	}
	m.wait.WithLabelValues(e.Priority.String()).Observe(e.QueueWait.Seconds())
	m.took.WithLabelValues(kind, e.Outcome.String()).Observe(e.RunTime.Seconds())
	if e.Stack != nil {
		m.fleet.o.Log.Info("A run ended in a panic", "runtime", e.Key.Runtime, "component", e.Key.Component, "stack", string(e.Stack))
	}
}

func (m *metrics) ready(took time.Duration) { m.untilOK.Observe(took.Seconds()) }

// Describe implements prometheus.Collector.
func (m *metrics) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.queued, m.phase, m.breakers, m.requests, m.connected, m.panics, m.slots, m.limit, m.runs, m.throttled, m.backlog} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (m *metrics) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	s := m.fleet.engine.Stats()
	for priority, n := range s.Queued {
		gauge(m.queued, n, engine.Priority(priority).String())
	}
	for phase, n := range map[engine.Phase]int{
		engine.PhaseRunning: s.Running, engine.PhaseDelayed: s.Delayed, engine.PhaseWaiting: s.Waiting, engine.PhaseFailed: s.Failed,
	} {
		gauge(m.phase, n, phase.String())
	}
	gauge(m.breakers, s.OpenBreakers)
	gauge(m.connected, m.fleet.access.Open())
	for verb, n := range m.fleet.access.Stats() {
		out <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(n), verb)
	}
	out <- prometheus.MustNewConstMetric(m.panics, prometheus.CounterValue, float64(s.Panics))
	gauge(m.slots, m.fleet.share.held())
	gauge(m.limit, s.Limit)
	for place, n := range map[string]int{"hand": s.InHand, "aside": s.Aside, "probe": s.Probing} {
		gauge(m.runs, n, place)
	}
	throttled := 0
	if s.Throttled {
		throttled = 1
	}
	gauge(m.throttled, throttled)
	gauge(m.backlog, m.fleet.status.Backlog())
}
