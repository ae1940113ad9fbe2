package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// metricsSize bounds what is read of the control plane's metrics.
const metricsSize = 8 << 20

// metrics are samples of the control plane's metrics by name and labels, as the text format has them.
type metrics map[string]float64

// metrics reads those of the control plane.
func (f *fleet) metrics(ctx context.Context) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.control.Address()+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading the control plane's metrics: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading the control plane's metrics: %w", err)
	}
	defer resp.Body.Close()
	out := metrics{}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, metricsSize))
	for lines.Scan() {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil && strings.HasPrefix(name, "mothership_") {
			out[name] = value
		}
	}
	return out, lines.Err()
}

// sum adds the samples of a metric whose labels contain all of some texts.
func (m metrics) sum(name string, labels ...string) int {
	total := 0.0
	for sample, value := range m {
		rest, is := strings.CutPrefix(sample, name+"{")
		if is && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(rest, l) }) {
			total += value
		}
	}
	return int(total)
}

// requests to runtimes by verb.
type requests map[string]int

func (m metrics) requests() requests {
	out := requests{}
	for sample, value := range m {
		if verb, is := strings.CutPrefix(sample, `mothership_runtime_requests_total{verb="`); is {
			out[strings.TrimSuffix(verb, `"}`)] = int(value)
		}
	}
	return out
}

// since is what was added to an older reading.
func (r requests) since(older requests) requests {
	out := requests{}
	for verb, n := range r {
		if d := n - older[verb]; d > 0 {
			out[verb] = d
		}
	}
	return out
}

// writes are the requests that can change something.
func (r requests) writes() int {
	n := 0
	for _, verb := range []string{"create", "update", "patch", "apply", "delete", "deletecollection"} {
		n += r[verb]
	}
	return n
}

// String is as in "12 requests to runtimes: apply 8, get 4".
func (r requests) String() string {
	var parts []string
	total := 0
	for verb, n := range r {
		parts = append(parts, fmt.Sprintf("%s %d", verb, n))
		total += n
	}
	slices.Sort(parts)
	if total == 0 {
		return "no request to runtimes"
	}
	return fmt.Sprintf("%d requests to runtimes: %s", total, strings.Join(parts, ", "))
}

// metricsPoll is the time between two looks at the metrics.
const metricsPoll = 100 * time.Millisecond

// awaitMetrics reads the metrics until ok holds.
func (f *fleet) awaitMetrics(ctx context.Context, what string, ok func(metrics) bool) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, watchdog)
	defer cancel()
	tick := time.NewTicker(metricsPoll)
	defer tick.Stop()
	for {
		m, err := f.metrics(ctx)
		if err != nil || ok(m) {
			return m, err
		}
		select {
		case <-ctx.Done():
			return m, fmt.Errorf("waiting until %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
}

// idle says whether the control plane has nothing in hand.
func idle(m metrics) bool {
	return m.sum("mothership_queued") == 0 && m.sum("mothership_components", `phase="running"`) == 0
}
