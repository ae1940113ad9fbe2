package child

import (
	"context"
	"strconv"
	"strings"
)

// Metrics are sums of samples, by metric and by the value of its first label, empty where there is none.
type Metrics map[string]map[string]float64

// Metrics reads those of the process.
func (p *Process) Metrics(ctx context.Context) (Metrics, error) {
	data, err := p.Read(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	return sums(string(data)), nil
}

// Sum over all labels of a metric.
func (m Metrics) Sum(name string) float64 {
	var sum float64
	for _, v := range m[name] {
		sum += v
	}
	return sum
}

// sums reads the text format.
func sums(text string) Metrics {
	out := Metrics{}
	for line := range strings.Lines(text) {
		sample, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(rest, 64)
		if err != nil || strings.HasPrefix(line, "#") {
			continue
		}
		metric, labels, _ := strings.Cut(sample, "{")
		_, label, _ := strings.Cut(labels, `"`)
		label, _, _ = strings.Cut(label, `"`)
		if out[metric] == nil {
			out[metric] = map[string]float64{}
		}
		out[metric][label] += value
	}
	return out
}
