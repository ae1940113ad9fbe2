package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local"
)

// api is the control plane's API: a kube-apiserver with its etcd, which goes on while the product is restarted.
type api struct {
	server     *local.Server
	kubeconfig string // its file
	client     client.WithWatch
}

// apiGCPercent is the GOGC of the API server of so many clusters. With Go's default it collects its garbage for a second of each three at
// this rate of changes, and uses up both cores for that time: what of a change is late then says nothing of the product.
func apiGCPercent(clusters int) int {
	if clusters > 2000 {
		return 400 // of more than a gigabyte
	}
	return 1000
}

// openAPI starts the servers with their state in a folder.
func openAPI(ctx context.Context, folder string, clusters int) (_ *api, err error) {
	a := &api{kubeconfig: filepath.Join(folder, "kubeconfig")}
	a.server, err = local.Start(ctx, local.Options{
		Dir: filepath.Join(folder, "api"), Controllers: local.DefaultControllers, GCPercent: apiGCPercent(clusters),
	})
	if err != nil {
		return nil, err
	}
	if err := a.prepare(); err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// prepare writes the kubeconfig and makes the client.
func (a *api) prepare() error {
	kubeconfig, err := a.server.Kubeconfig()
	if err != nil {
		return err
	}
	if err := os.WriteFile(a.kubeconfig, kubeconfig, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1beta2.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return fmt.Errorf("making the scheme: %w", err)
		}
	}
	cfg := a.server.Config()
	cfg.QPS, cfg.Burst = -1, 0 // the benchmark is not to wait for itself
	if a.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	return nil
}

// collect has the API server collect its garbage now, and says how often it has done so.
func (a *api) collect(ctx context.Context) (int, error) { return a.heap(ctx, "?debug=1&gc=1") }

// collections is how often the API server has collected its garbage.
func (a *api) collections(ctx context.Context) (int, error) { return a.heap(ctx, "?debug=1") }

var (
	errHeap  = errors.New("the API server does not say how often it has collected its garbage")
	numberGC = regexp.MustCompile(`(?m)^# NumGC = (\d+)$`)
)

// heap asks for the API server's heap profile, which says how often its garbage was collected.
func (a *api) heap(ctx context.Context, query string) (int, error) {
	profile, err := a.read(ctx, "/debug/pprof/heap"+query)
	if err != nil {
		return 0, err
	}
	found := numberGC.FindSubmatch(profile)
	if found == nil {
		return 0, errHeap
	}
	return strconv.Atoi(string(found[1]))
}

// requests is how many requests the API server has answered, by verb and resource.
func (a *api) requests(ctx context.Context) (map[string]int, error) {
	metrics, err := a.read(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	out := map[string]int{}
	for _, line := range requestsTotal.FindAllSubmatch(metrics, -1) {
		labels := map[string]string{}
		for _, l := range label.FindAllSubmatch(line[1], -1) {
			labels[string(l[1])] = string(l[2])
		}
		n, err := strconv.ParseFloat(string(line[2]), 64)
		if err != nil {
			return nil, fmt.Errorf("reading how many requests were answered: %w", err)
		}
		what := labels["verb"] + " " + labels["resource"]
		if sub := labels["subresource"]; sub != "" {
			what += "/" + sub
		}
		out[what] += int(n)
	}
	return out, nil
}

var (
	requestsTotal = regexp.MustCompile(`(?m)^apiserver_request_total\{(.*)\} (\S+)$`)
	label         = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// requestsSince are those since before was taken.
func (a *api) requestsSince(ctx context.Context, before map[string]int) (map[string]int, error) {
	out, err := a.requests(ctx)
	for what := range out {
		if out[what] -= before[what]; out[what] == 0 {
			delete(out, what)
		}
	}
	return out, err
}

// read reads what the API server says about itself.
func (a *api) read(ctx context.Context, path string) ([]byte, error) {
	cfg := a.server.Config()
	c := clientOf(cfg)
	defer c.CloseIdleConnections()
	return request(ctx, c, cfg, http.MethodGet, path, nil)
}

func (a *api) close() error {
	if a == nil || a.server == nil {
		return nil
	}
	return a.server.Close()
}
