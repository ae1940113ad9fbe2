package local

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// metricsTimeout and metricsSize bound the reading of the server's metrics, which are 2 MiB.
	metricsTimeout = 30 * time.Second
	metricsSize    = 64 << 20
)

// Request is a sort of request that the API server counts.
type Request struct {
	// Verb as the server names it: GET, LIST, WATCH, POST, PUT, PATCH, APPLY (server-side), DELETE, DELETECOLLECTION,
	// CONNECT. A WATCH is counted when it ends.
	Verb string
	// Group and Resource, as in "apps" and "deployments"; the core group and what is no resource (discovery, OpenAPI,
	// health) are empty.
	Group, Resource string
}

// Requests returns how many requests the API server has answered since it started, from its metric
// apiserver_request_total: everybody's, so also those of the server itself (leases, flow control), of controllers, of
// the simulated node, and this method's.
func (s *Server) Requests(ctx context.Context) (map[Request]int, error) {
	return RequestsAt(ctx, s.Config())
}

// RequestsAt is Requests of the API server that a configuration leads to.
func RequestsAt(ctx context.Context, config *rest.Config) (map[Request]int, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the server's metrics: %w", err)
	}
	defer client.CloseIdleConnections()
	counts, err := scrape(ctx, client, config.Host+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("reading the server's metrics: %w", err)
	}
	return counts, nil
}

func scrape(ctx context.Context, client *http.Client, url string) (map[Request]int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %s", resp.Status)
	}
	return countRequests(io.LimitReader(resp.Body, metricsSize))
}

var (
	// requestLine is one sample of the metric in Prometheus' text format: labels, value.
	requestLine = regexp.MustCompile(`^apiserver_request_total\{(.*)\} (\S+)$`)
	label       = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// countRequests sums the samples of the metric by verb, group and resource.
func countRequests(metrics io.Reader) (map[Request]int, error) {
	counts := map[Request]int{}
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		sample := requestLine.FindStringSubmatch(lines.Text())
		if sample == nil {
			continue
		}
		value, err := strconv.ParseFloat(sample[2], 64)
		if err != nil {
			return nil, fmt.Errorf("parsing %q: %w", lines.Text(), err)
		}
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(sample[1], -1) {
			labels[l[1]] = l[2]
		}
		counts[Request{labels["verb"], labels["group"], labels["resource"]}] += int(value)
	}
	return counts, lines.Err()
}
