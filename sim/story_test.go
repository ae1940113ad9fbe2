package sim_test

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/sim"
)

func start(t testing.TB) *sim.Server {
	t.Helper()
	s, err := sim.Start(t.Context(), sim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func add(t testing.TB, s *sim.Server, name string) *rest.Config {
	t.Helper()
	if err := s.Add(name); err != nil {
		t.Fatal(err)
	}
	return s.Config(name)
}

// certManager is cert-manager's real chart, in the Go module that the benchmarks pin.
func certManager(t testing.TB) mothership.Module {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	cmd.Dir = filepath.Join("..", "bench")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("finding cert-manager's module: %v", err)
	}
	m := mothership.Module{
		Name: "cert-manager", Namespace: "cert-manager",
		Values: map[string]any{"crds": map[string]any{"enabled": true, "keep": false}, "startupapicheck": map[string]any{"enabled": false}},
	}
	m.Template.Source = mothership.Chart(filepath.Join(strings.TrimSpace(string(out)), "deploy", "charts", "cert-manager"))
	return m
}

// story is what the library says of a module's life on a cluster.
func story(t *testing.T, cfg *rest.Config, m mothership.Module, wait bool) []string {
	t.Helper()
	var out []string
	note := func(step string, events []mothership.Event) {
		var lines []string
		for _, e := range events {
			lines = append(lines, step+": "+e.Object.Kind+" "+e.Object.Namespace+"/"+e.Object.Name+" "+string(e.Action))
		}
		slices.Sort(lines)
		out = append(out, lines...)
	}
	compare := func(step string, c *mothership.Comparison, err error) {
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		for _, change := range c.Changes {
			out = append(out, step+": "+change.Object.Kind+" "+change.Object.Name+" "+string(change.Action))
		}
	}
	i := mothership.New(mothership.Options{})
	ctx := t.Context()
	for _, step := range []string{"install", "install again"} {
		r, err := i.Install(ctx, cfg, m, mothership.InstallOptions{Timeout: time.Minute, Wait: wait})
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		note(step, r.Objects)
	}
	c, err := i.Verify(ctx, cfg, m, mothership.CompareOptions{Timeout: time.Minute})
	compare("verify", c, err)
	c, err = i.Diff(ctx, cfg, m, mothership.CompareOptions{Timeout: time.Minute})
	compare("diff", c, err)
	r, err := i.Uninstall(ctx, cfg, m, mothership.UninstallOptions{Timeout: time.Minute})
	if err != nil {
		t.Fatalf("uninstall: %v", err)
	}
	note("uninstall", r.Objects)
	return out
}

func TestCertManagerIsTreatedAsByARealServer(t *testing.T) {
	t.Parallel()
	s := start(t)
	m := certManager(t)
	got := story(t, add(t, s, "eu-1"), m, false)
	want := story(t, localtest.Server(t).Config(), m, false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the simulator (+) and a real API server (-):\n%s", diff)
	}
}

func TestCertManagerGetsReady(t *testing.T) {
	t.Parallel()
	s := start(t)
	if got := story(t, add(t, s, "eu-1"), certManager(t), true); len(got) == 0 {
		t.Error("nothing happened")
	}
}
