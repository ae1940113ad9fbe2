package controlplane_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
)

func (s *site) answer(path string) (code int, text string) {
	s.t.Helper()
	code, text, err := s.get(s.t.Context(), path)
	if err != nil {
		s.t.Fatal(err)
	}
	return code, text
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusOK, "/fleet": http.StatusOK, "/": http.StatusNotFound} {
		if code, text := s.answer(path); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	var published corev1.ConfigMap
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: "mothership"}, &published); err != nil || published.Data["address"] != s.cp.Address() {
		t.Errorf("published %q, %v", published.Data, err)
	}
}

func (s *site) explanation() controlplane.Explanation {
	s.t.Helper()
	code, text := s.answer("/fleet/" + space + "/" + s.name)
	var out controlplane.Explanation
	if err := json.Unmarshal([]byte(text), &out); err != nil || code != http.StatusOK {
		s.t.Fatalf("%d %s: %v", code, text, err)
	}
	return out
}

// explains asks until a module is said to be as wanted: phase, facts that it waits for, message.
func (s *site) explains(name, want string) {
	s.t.Helper()
	got := ""
	for range polls {
		for _, c := range s.explanation().Components {
			if c.Name == s.mod(name) {
				got = c.Phase + " " + strings.Join(c.WaitingFor, ",") + " " + c.Message
			}
		}
		if got == want {
			return
		}
	}
	s.t.Errorf("module %s is %q, not %q", name, got, want)
}

func TestExplanation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	if diff := cmp.Diff(controlplane.Explanation{Components: []controlplane.ComponentExplanation{}}, s.explanation()); diff != "" {
		t.Errorf("of a runtime that there is not (-want +got):\n%s", diff)
	}
	s.join()
	s.offers("app", "1.0.0")
	s.offers("upper", "1.0.0", s.needs("nothing"))
	s.offers("broken", "1.0.0", by("refuser"))
	s.wants(s.entry("app"), s.entry("upper"), s.entry("broken"))
	s.kyma("evaluated", func(k *v1beta2.Kyma) bool { return k.Status.ObservedGeneration == k.Generation })
	s.explains("upper", "waiting module."+s.mod("nothing")+" waiting for module."+s.mod("nothing"))
	s.explains("broken", "failed  it will not be")
	s.proxy.has(refuses)
	s.changes(func(k *v1beta2.Kyma) {
		k.Spec.Modules[0].Version = "1.0.0"
		k.Annotations = map[string]string{v1beta2.ReconcileAnnotation: "now"}
	})
	s.unreachable(v1beta2.ReasonUnreachable)
	e := s.explanation()
	if !e.Unreachable || e.Failures < 2 || e.Since == nil {
		t.Errorf("of a runtime that does not answer: %+v", e)
	}
	s.dumps()
}

// dumps checks the dumps of one component, and of the fleet.
func (s *site) dumps() {
	s.t.Helper()
	var one controlplane.Explanation
	s.decode("/fleet/"+space+"/"+s.name+"/"+s.mod("broken"), &one)
	if len(one.Components) != 1 || one.Components[0].Name != s.mod("broken") {
		s.t.Errorf("of one component: %+v", one)
	}
	var o controlplane.Overview
	s.decode("/fleet", &o)
	if o.Limit < 1 || o.Unreachable < 1 || len(o.UnreachableLongest) < 1 || len(o.UnreachableLongest) > 20 || o.Runtimes < 1 || o.Patience == "" {
		s.t.Errorf("of the fleet: %+v", o)
	}
}

// decode reads what an endpoint answers.
func (s *site) decode(path string, into any) {
	s.t.Helper()
	code, text := s.answer(path)
	if err := json.Unmarshal([]byte(text), into); err != nil || code != http.StatusOK {
		s.t.Fatalf("%s: %d %s: %v", path, code, text, err)
	}
}

var (
	sample = regexp.MustCompile(`(?m)^mothership_(\w+?)(_bucket|_sum|_count)?(?:\{(.*)\})? \S+$`)
	label  = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// Metrics have few labels with few values, however large the fleet is.
func TestMetricsHaveFewLabels(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	code, text := s.answer("/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, text)
	}
	for _, name := range []string{s.name, strings.TrimPrefix(s.proxy.server.URL, "https://")} {
		if i := strings.Index(text, name); i >= 0 {
			t.Errorf("a metric names a runtime: %s", text[max(0, i-200):i+100])
		}
	}
	labels, metrics := map[string]map[string]bool{}, map[string]bool{}
	for _, m := range sample.FindAllStringSubmatch(text, -1) {
		metrics[m[1]] = true
		for _, l := range label.FindAllStringSubmatch(m[3], -1) {
			if labels[l[1]] == nil {
				labels[l[1]] = map[string]bool{}
			}
			labels[l[1]][l[2]] = true
		}
	}
	for _, want := range []string{
		"queue_wait_seconds", "run_seconds", "time_to_ready_seconds", "queued", "components", "unreachable_runtimes",
		"runtime_requests_total", "runtime_connections", "panics_total", "runs_limit", "runs", "throttled", "status_backlog",
	} {
		if !metrics[want] {
			t.Errorf("there is no metric %s among %v", want, metrics)
		}
	}
	for name, values := range labels {
		if !slices.Contains([]string{"priority", "kind", "outcome", "phase", "place", "verb", "le"}, name) || len(values) > 20 {
			t.Errorf("label %s has %d values", name, len(values))
		}
	}
	if !strings.Contains(text, "mothership_panics_total 0\n") {
		t.Error("a run has ended in a panic")
	}
}

func TestSearchFindsSecrets(t *testing.T) {
	t.Parallel()
	if search(map[string][]string{"a": {"nothing", "token: " + canary("it")}}) == nil {
		t.Error("a secret was not found")
	}
	if err := search(map[string][]string{"a": {"nothing"}}); err != nil {
		t.Error(err)
	}
}
