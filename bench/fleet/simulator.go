package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kyma-project/mothership/bench/internal/child"
	"github.com/kyma-project/mothership/sim"
	"github.com/kyma-project/mothership/sim/dial"
)

// agent is what the product calls itself in runtimes.
const agent = "mothership"

// simulator is a simulator in a process of its own.
type simulator struct{ *child.Process }

// call asks the administration; the answer is decoded into out unless that is nil or *[]byte, which takes it as it is.
func (s simulator) call(ctx context.Context, method, path string, body, out any) error {
	ctx, cancel := context.WithTimeout(ctx, patience.Bound)
	defer cancel()
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("asking the simulator: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, method, s.Address+path, bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("asking the simulator: %w", err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("asking the simulator: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, data)
	}
	if raw, ok := out.(*[]byte); ok {
		*raw = data
	} else if err == nil && out != nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return fmt.Errorf("asking the simulator for %s: %w", path, err)
	}
	return nil
}

func (s simulator) add(ctx context.Context, q sim.AddRequest) error {
	return s.call(ctx, http.MethodPost, "/runtimes", q, nil)
}

func (s simulator) dial(ctx context.Context, d dial.Dials, names []string) error {
	return s.call(ctx, http.MethodPut, "/dials", sim.DialRequest{Names: names, Dials: d}, nil)
}

func (s simulator) kubeconfig(ctx context.Context, name string) (out []byte, err error) {
	return out, s.call(ctx, http.MethodGet, "/runtimes/"+name+"/kubeconfig", nil, &out)
}

// config is the access to a cluster.
func (s simulator) config(ctx context.Context, name string) (*rest.Config, error) {
	data, err := s.kubeconfig(ctx, name)
	if err != nil {
		return nil, err
	}
	return clientcmd.RESTConfigFromKubeConfig(data)
}

func (s simulator) stats(ctx context.Context) (out sim.Stats, err error) {
	return out, s.call(ctx, http.MethodGet, "/stats", nil, &out)
}

// connections is how many there are to all clusters.
func (s simulator) connections(ctx context.Context) (n int64, err error) {
	return n, s.call(ctx, http.MethodGet, "/connections", nil, &n)
}

// requests are the product's since the last reset, by verb.
func (s simulator) requests(ctx context.Context, reset bool) (map[string]int, error) {
	return s.requestsBy(ctx, agent, reset)
}

// requestsBy are those of a user agent.
func (s simulator) requestsBy(ctx context.Context, agent string, reset bool) (map[string]int, error) {
	var counts []dial.Count
	method := http.MethodGet
	if reset {
		method = http.MethodDelete
	}
	if err := s.call(ctx, method, "/requests?sum=true", nil, &counts); err != nil {
		return nil, err
	}
	return byVerb(counts, agent), nil
}

// requestsOf are the product's to some clusters since the last reset, and connections that got no answer, which only the product makes.
func (s simulator) requestsOf(ctx context.Context, names []string) (int, error) {
	counts := map[string][]dial.Count{}
	if err := s.call(ctx, http.MethodGet, "/requests", nil, &counts); err != nil {
		return 0, err
	}
	n := 0
	for _, name := range names {
		n += total(byVerb(counts[name], agent)) + byVerb(counts[name], "")[dial.VerbConnect]
	}
	return n, nil
}

func byVerb(counts []dial.Count, agent string) map[string]int {
	out := map[string]int{}
	for _, c := range counts {
		if c.Agent == agent {
			out[c.Verb] += int(c.N)
		}
	}
	return out
}

func total(requests map[string]int) int {
	n := 0
	for _, m := range requests {
		n += m
	}
	return n
}

// writes are those that can change something. Dry runs count too.
func writes(requests map[string]int) int {
	return requests["create"] + requests["update"] + requests["patch"] + requests["apply"] + requests["delete"]
}
