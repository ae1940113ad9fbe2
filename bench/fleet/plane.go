package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// plane is the product: a control plane over the API, in a process of its own.
type plane struct {
	*process
	config planeConfig
}

// metricsSize bounds what is read of metrics.
const metricsSize = 16 << 20

// open starts the control plane, again or for the first time, and waits until it works.
func (p *plane) open(ctx context.Context) (err error) {
	p.process, err = startProcess(ctx, planeArgument, p.config)
	return err
}

func (p *plane) close() error {
	if p == nil {
		return nil
	}
	return p.stop()
}

// metrics are the sums of all samples, by metric and, behind a slash, by the value of the first label.
func (p *plane) metrics(ctx context.Context) (map[string]float64, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/metrics", nil)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	req.Header.Set("Accept-Encoding", "identity") // compressing would be the control plane's work
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, metricsSize))
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return sums(string(data)), nil
}

// sums reads the text format.
func sums(text string) map[string]float64 {
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		sample, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		value, err := strconv.ParseFloat(rest, 64)
		if err != nil || strings.HasPrefix(line, "#") {
			continue
		}
		metric, labels, _ := strings.Cut(sample, "{")
		_, label, _ := strings.Cut(labels, `"`)
		label, _, _ = strings.Cut(label, `"`)
		out[metric] += value
		out[metric+"/"+label] += value
	}
	return out
}

// restLooks is how many looks in succession must find nothing to do.
const restLooks = 5

// rests waits until the control plane has nothing in hand and all runtimes have their next verification ahead, and returns when it
// was first seen so. A runtime without one has not been looked at yet.
func (p *plane) rests(ctx context.Context, runtimes int) (time.Time, error) {
	var since time.Time
	looks := 0
	err := await(ctx, fleetPatience, "the control plane rests", func(ctx context.Context) (bool, error) {
		m, err := p.metrics(ctx)
		if err != nil {
			return false, err
		}
		busy := m["mothership_queued"] + m["mothership_components/running"] + m["workqueue_depth"] + m["controller_runtime_active_workers"]
		if busy > 0 || int(m["mothership_components/delayed"]) < runtimes {
			looks = 0
			return false, nil
		}
		if looks++; looks == 1 {
			since = time.Now()
		}
		return looks >= restLooks, nil
	})
	return since, err
}
