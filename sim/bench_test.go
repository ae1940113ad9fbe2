package sim_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/sim"
)

// object is one of a synthetic module: what a chart's object weighs.
func object(module, i int) (path, body string) {
	ns := fmt.Sprintf("module-%d", module)
	meta := fmt.Sprintf(`{"name":"object-%d","namespace":%q,"labels":{"app.kubernetes.io/name":"object","app.kubernetes.io/part-of":%q},"annotations":{"operator.kyma-project.io/digest":"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"}}`, i, ns, ns)
	switch i {
	case 0:
		return "/api/v1/namespaces/" + ns, fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, ns)
	case 1:
		return fmt.Sprintf("/apis/apps/v1/namespaces/%s/deployments/object-%d", ns, i), fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":%s,
			"spec":{"selector":{"matchLabels":{"app":"a"}},"template":{"metadata":{"labels":{"app":"a"}},"spec":{"containers":[{"name":"c","image":"example.com/c:1"}]}}}}`, meta)
	case 2:
		return fmt.Sprintf("/api/v1/namespaces/%s/services/object-%d", ns, i), fmt.Sprintf(`{"apiVersion":"v1","kind":"Service","metadata":%s,"spec":{"selector":{"app":"a"},"ports":[{"port":80}]}}`, meta)
	}
	return fmt.Sprintf("/api/v1/namespaces/%s/configmaps/object-%d", ns, i), fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":%s,"data":{"value":"%0200d"}}`, meta, i)
}

// patcher applies objects to one cluster over HTTP.
type patcher struct {
	client      *http.Client
	host, token string
}

func newPatcher(t testing.TB, cfg *rest.Config) *patcher {
	t.Helper()
	config, err := rest.TLSConfigFor(cfg)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true} // client-go's would be kept for ever
	return &patcher{client: &http.Client{Transport: transport}, host: cfg.Host, token: cfg.BearerToken}
}

func (p *patcher) apply(t testing.TB, path, body, manager string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, p.host+path+"?force=true&fieldManager="+manager, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.token)
	req.Header.Set("Content-Type", "application/apply-patch+yaml")
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode/100 != 2 {
		t.Fatalf("%s: %s %v %s", path, resp.Status, err, answer)
	}
}

const modules, objects = 10, 20

// template makes a cluster with ten modules of twenty objects, and waits until it is at rest.
func template(t testing.TB, s *sim.Server) {
	t.Helper()
	p := newPatcher(t, add(t, s, "template"))
	for m := range modules {
		for i := range objects {
			path, body := object(m, i)
			p.apply(t, path, body, "mothership")
		}
	}
	settle(t, s)
}

// settle waits until nothing happens by itself any more.
func settle(t testing.TB, s *sim.Server) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for s.Stats().Pending > 0 {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it never comes to rest")
		}
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkClone measures cloning of a cluster of 200 objects: time per cluster, and memory per cluster and object.
//
//	go test ./sim -run '^$' -bench Clone -benchtime 10000x
func BenchmarkClone(b *testing.B) {
	s := start(b)
	template(b, s)
	before := heap()
	n := 0
	for b.Loop() {
		if err := s.Clone("template", fmt.Sprintf("runtime-%d", n)); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.StopTimer()
	grown := float64(heap() - before)
	b.ReportMetric(grown/float64(n), "bytes/cluster")
	b.ReportMetric(grown/float64(n)/(modules*objects), "bytes/object")
}

// BenchmarkApply measures an apply that another cluster has seen: requests of one connection, over TLS.
func BenchmarkApply(b *testing.B) {
	s := start(b)
	template(b, s)
	p := newPatcher(b, s.Config("template"))
	path, body := object(3, 7)
	n := 0
	for b.Loop() {
		p.apply(b, path, body, "mothership")
		n++
	}
}

// BenchmarkUpgrade measures one module of twenty objects written anew on a cluster that was cloned: time per cluster over TLS, and
// what the cluster takes more than before, its history for watches included.
//
//	go test ./sim -run '^$' -bench Upgrade -benchtime 2000x
func BenchmarkUpgrade(b *testing.B) {
	s := start(b)
	template(b, s)
	for i := range b.N {
		if err := s.Clone("template", fmt.Sprintf("runtime-%d", i)); err != nil {
			b.Fatal(err)
		}
	}
	before := heap()
	b.ResetTimer()
	for n := range b.N {
		p := newPatcher(b, s.Config(fmt.Sprintf("runtime-%d", n)))
		for i := range objects {
			path, body := object(3, i)
			p.apply(b, path, strings.ReplaceAll(body, "sha256:0123", "sha256:4567"), "mothership")
		}
		p.client.CloseIdleConnections()
	}
	b.StopTimer()
	settle(b, s)
	b.ReportMetric(float64(heap()-before)/float64(b.N), "bytes/cluster")
	b.ReportMetric(float64(b.N*objects)/b.Elapsed().Seconds(), "applies/s")
}

// BenchmarkInstall measures the library installing cert-manager's chart on clusters that are new: the whole of it, rendered once.
//
//	go test ./sim -run '^$' -bench Install -benchtime 200x
func BenchmarkInstall(b *testing.B) {
	s := start(b)
	m, i := certManager(b), mothership.New(mothership.Options{})
	n := 0
	for b.Loop() {
		cfg := add(b, s, fmt.Sprintf("runtime-%d", n))
		r, err := i.Install(b.Context(), cfg, m, mothership.InstallOptions{Timeout: time.Minute})
		if err != nil {
			b.Fatal(err)
		}
		if n == 0 {
			b.ReportMetric(float64(len(r.Objects)), "objects")
		}
		n++
	}
}
