package module

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/reconciler"
)

// seen is an event of a watch and the kind that was watched.
type seen struct {
	resource cluster.Resource
	event    cluster.WatchEvent
}

// judged says in what way an event is drift; empty if it is none.
func (s *site) judged(module string, e seen) string {
	b := s.baseline(module)
	ref := bundle.Ref{Group: e.resource.Group, Kind: e.resource.Kind, Namespace: e.event.Object.Namespace, Name: e.event.Object.Name}
	switch {
	case e.event.Object.Labels[v1beta2.ApplySetPartOfLabel] != b.SetID():
		return ""
	case e.event.Type == cluster.WatchDeleted && b.Wants(ref), e.event.Type != cluster.WatchDeleted && !b.Holds(e.resource, e.event.Object):
		return string(e.event.Type) + " " + strings.ReplaceAll(ref.String(), s.namespace, "$NS")
	}
	return ""
}

// watch watches kinds from now on. next gives the next event of an object of the site's.
func (s *site) watch(kinds ...cluster.Resource) (next func() seen) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	events := make(chan seen, 1000)
	var running sync.WaitGroup
	for _, r := range kinds {
		_, version, err := s.client.ListMetaVersion(ctx, r, cluster.ListOptions{LabelSelector: v1beta2.ApplySetPartOfLabel})
		if err != nil {
			s.t.Fatal(err)
		}
		o := cluster.WatchOptions{LabelSelector: v1beta2.ApplySetPartOfLabel, ResourceVersion: version}
		running.Go(func() {
			_ = s.client.WatchMeta(ctx, r, o, func(e cluster.WatchEvent) {
				if e.Object != nil && strings.Contains(e.Object.Namespace+e.Object.Name, s.namespace) {
					events <- seen{r, e}
				}
			})
		})
	}
	s.t.Cleanup(func() { cancel(); running.Wait() })
	return func() seen {
		s.t.Helper()
		select {
		case e := <-events:
			return e
		case <-s.t.Context().Done():
			s.t.Fatal("no event came")
			return seen{}
		}
	}
}

// untilApplied passes until one is through, whether all is ready or not: here are no controllers for workloads.
func (s *site) untilApplied(c reconciler.Component) {
	s.t.Helper()
	eventually(s.t, func() string {
		if r := s.run(c); r.BundleDigest == "" {
			return fmt.Sprintf("%s: %s %v", r.Outcome, r.Message, r.Err)
		}
		return ""
	})
}

// until takes events up to the one that is of an object of that name and passes.
func until(next func() seen, name string, last func(seen) bool) []seen {
	var out []seen
	for range 1000 {
		e := next()
		out = append(out, e)
		if e.event.Object.Name == name && last(e) {
			break
		}
	}
	return out
}

var (
	deployments = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Namespaced: true}
	services    = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "services"}, Kind: "Service", Namespaced: true}
)

// workload has fields that the server defaults.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", ports: [{containerPort: 80}], env: [{name: A, value: ""}]}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: $NS.test/v1
kind: Widget
metadata: {name: sized}
spec: {size: 1}
`

// TestBaselineJudgesEvents: what we do ourselves is no drift, whatever the server makes of it; what others do is.
func TestBaselineJudgesEvents(t *testing.T) {
	t.Parallel()
	s := setup(t)
	kinds := []cluster.Resource{configMaps, accounts, definitions, deployments, services}
	next := s.watch(kinds...)
	first := s.component("web", widgets, fmt.Sprintf(account, "web"), config("web", "1"), config("dropped", "1"), workload, config("z-last", "1"))
	s.untilApplied(first)
	holds := func(what string, events []seen) {
		t.Helper()
		for _, e := range events {
			if drift := s.judged("web", e); drift != "" {
				t.Errorf("%s: %s is taken for drift", what, drift)
			}
		}
	}
	installed := until(next, "z-last", func(e seen) bool { return e.event.Type == cluster.WatchAdded })
	for range kinds { // one event of each kind may come after that of another: ask for one that is last in its kind
		s.patch(configMaps, "z-last", `{"metadata":{"annotations":{"test.local/theirs":"1"}}}`)
	}
	installed = append(installed, until(next, "z-last", func(e seen) bool { return e.event.Object.Annotations["test.local/theirs"] != "" })...)
	holds("installing", installed)
	if len(installed) < 7 {
		t.Errorf("%d events only", len(installed))
	}
	if got := len(s.baseline("web").Kinds()); got != len(kinds)+1 {
		t.Errorf("kinds: %v", s.baseline("web").Kinds())
	}

	second := s.component("web", widgets, fmt.Sprintf(account, "web"), config("web", "2"), workload, config("z-last", "2"))
	s.untilApplied(second)
	upgraded := until(next, "dropped", func(e seen) bool { return e.event.Type == cluster.WatchDeleted })
	holds("upgrading and pruning", upgraded)

	widget := s.watch(s.widgetsOf())
	label := `{"metadata":{"labels":{"` + v1beta2.ApplySetPartOfLabel + `":null}}}`
	for _, test := range []struct {
		name, object string
		next         func() seen
		damage       func()
		want         string
	}{
		{"Edit", "web", next, func() { s.patch(configMaps, "web", `{"data":{"v":"9"}}`) }, "MODIFIED ConfigMap $NS/web"},
		{"EditOfAWorkload", "web", next, func() {
			s.patch(deployments, "web", `{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:9"}]}}}}`)
		}, "MODIFIED Deployment.apps $NS/web"},
		{"Replicas", "web", next, func() { s.patch(deployments, "web", `{"spec":{"replicas":3}}`) }, "MODIFIED Deployment.apps $NS/web"},
		{"LabelRemoved", "web", next, func() { s.patch(services, "web", label) }, "DELETED Service $NS/web"},
		{"Deletion", "web", next, func() { s.delete(accounts, "web") }, "DELETED ServiceAccount $NS/web"},
		{"CustomResource", "sized", widget, func() { s.patch(s.widgetsOf(), "sized", `{"spec":{"size":2}}`) }, "MODIFIED Widget.$NS.test $NS/sized"},
		{"DigestTaken", "web", next, func() {
			s.patch(configMaps, "web", `{"metadata":{"annotations":{"`+v1beta2.DigestAnnotation+`":"sha256:0"}}}`)
		}, "MODIFIED ConfigMap $NS/web"},
		{"FieldOfOthers", "web", next, func() { s.patch(configMaps, "web", `{"data":{"theirs":"1"}}`) }, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.damage()
			drift := ""
			until(test.next, test.object, func(e seen) bool {
				drift = s.judged("web", e)
				return drift != "" || test.want == ""
			})
			if drift != test.want {
				t.Errorf("judged %q, want %q", drift, test.want)
			}
			if test.want == "" {
				return
			}
			s.untilApplied(second)
			repaired := until(test.next, test.object, func(e seen) bool { return e.event.Type != cluster.WatchDeleted })
			holds("repairing", repaired[len(repaired)-1:])
		})
	}
}

// TestBaselineLeavesOthersAlone judges objects that carry the set's label, or are wanted, in other ways.
func TestBaselineLeavesOthersAlone(t *testing.T) {
	t.Parallel()
	s := setup(t)
	c := s.component("web", config("a", "1"))
	c.Template.Yield = []v1beta2.YieldRule{{Kind: "ConfigMap", Paths: []string{"/data/v"}}}
	c.Template.Data = raw(defaultConfig("once"))
	s.untilApplied(c)
	next := s.watch(configMaps)
	b := s.baseline("web")
	if b.ID().String() != s.namespace+"/web" || b.SetID() != bundle.ApplySetID(s.namespace, "web") {
		t.Errorf("identity: %s, %s", b.ID(), b.SetID())
	}
	s.patch(configMaps, "a", `{"data":{"v":"theirs"}}`)
	if e := next(); !b.Holds(e.resource, e.event.Object) {
		t.Error("a field that is yielded is drift")
	}
	s.patch(configMaps, "once", `{"data":{"v":"theirs"}}`)
	if e := next(); !b.Holds(e.resource, e.event.Object) {
		t.Error("a change of what is created once is drift")
	}
	copied := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"copy","labels":{"` + v1beta2.ApplySetPartOfLabel + `":"` + b.SetID() + `"}}}`
	if err := s.client.Create(t.Context(), configMaps, s.namespace, []byte(copied), nil); err != nil {
		t.Fatal(err)
	}
	if e := next(); !b.Holds(e.resource, e.event.Object) || b.Wants(bundle.Ref{Kind: "ConfigMap", Namespace: s.namespace, Name: "copy"}) {
		t.Error("an object that somebody else labelled is drift")
	}
	err := s.client.Apply(t.Context(), configMaps, s.namespace, "copy", []byte(copied), cluster.ApplyOptions{Manager: v1beta2.FieldManager, Force: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e := next(); b.Holds(e.resource, e.event.Object) {
		t.Error("an object of ours that the module does not have is no drift")
	}
	if !b.Wants(bundle.Ref{Kind: "ConfigMap", Namespace: s.namespace, Name: "once"}) {
		t.Error("what is created once is not wanted")
	}
}
