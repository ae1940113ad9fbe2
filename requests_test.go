package mothership_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// requestsGolden has the number of API calls of each standard case by verb. How often a server must be asked until it
// serves a definition ("wait") depends on the server, and is left out.
const requestsGolden = "testdata/requests.golden.json"

// certManager is the folder of cert-manager's real chart, in the Go module that the benchmarks pin.
func certManager(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	cmd.Dir = "bench"
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("finding cert-manager's module: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "deploy", "charts", "cert-manager")
}

// standardCase is one module in two versions: the second changes one object and drops another.
type standardCase struct {
	before, changed, dropped mothership.Module
	damage                   []string // kubectl arguments that change one object
}

func TestRequestsOfStandardCases(t *testing.T) {
	t.Parallel()
	// A server of its own: what others leave in the system namespace must not count.
	srv := localtest.Start(t, func(o *local.Options) { o.Controllers = nil })
	s := &site{t: t, srv: srv, cfg: srv.Config(), namespace: "standard", installer: mothership.New(mothership.Options{})}
	chart := func(values map[string]any) mothership.Module {
		m := mothership.Module{Name: "cert-manager", Namespace: "cert-manager", Values: values}
		m.Template.Source = mothership.Chart(certManager(t))
		return m
	}
	crds := map[string]any{"enabled": true}
	got := map[string]map[string]map[string]int{
		"small": s.count(standardCase{
			before: s.module("web", web), changed: s.module("web", strings.Replace(web, "hello", "servus", 1)),
			dropped: s.module("web", strings.Replace(webDropped, "hello", "servus", 1)),
			damage:  []string{"patch", "configmap", "web", "-p", `{"data":{"greeting":"moin"}}`},
		}),
		"cert-manager": s.count(standardCase{
			before:  chart(map[string]any{"crds": crds}),
			changed: chart(map[string]any{"crds": crds, "cainjector": map[string]any{"replicaCount": 2}}),
			dropped: chart(map[string]any{"crds": crds, "cainjector": map[string]any{"enabled": false}}),
			damage:  []string{"label", "--overwrite", "clusterrole", "cert-manager-edit", "app.kubernetes.io/name=other"},
		}),
	}
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(requestsGolden, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(requestsGolden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(bytes.TrimSpace(want)), string(text)); diff != "" {
		t.Errorf("if this is meant, run go test . -run %s -update (-golden +got):\n%s", t.Name(), diff)
	}
}

// count goes through the standard cases and returns the requests of each.
func (s *site) count(c standardCase) map[string]map[string]int {
	s.t.Helper()
	out := map[string]map[string]int{}
	note := func(name string, requests map[string]int) {
		out[name] = maps.Clone(requests)
		delete(out[name], "wait")
	}
	note("fresh", s.install(c.before).Requests)
	unchanged := s.install(c.before)
	note("unchanged", unchanged.Requests)
	if unchanged.Changed() || writes(unchanged.Requests) != 0 {
		s.t.Errorf("unchanged: %v", unchanged.Requests)
	}
	note("verify", s.verify(c.before).Requests)
	note("diff unchanged", s.diff(c.before).Requests)
	note("one object changed", s.install(c.changed).Requests)
	s.kubectl(c.damage...)
	note("one object damaged", s.install(c.changed).Requests)
	pruned := s.install(c.dropped)
	note("upgrade with prune", pruned.Requests)
	if pruned.Count(mothership.ActionPrune) == 0 {
		s.t.Errorf("upgrade: %v", actions(pruned.Objects))
	}
	return out
}
