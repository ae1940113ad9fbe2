package fleetview_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/fleetview"
)

func kymaWith(modules ...v1beta2.ModuleStatus) *v1beta2.Kyma {
	k := &v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: "kcp-system", Name: "eu-1"}}
	k.Status.State, k.Status.Modules = v1beta2.StateProcessing, modules
	return k
}

func storeWith(modules ...string) catalog.Catalog {
	s := catalog.NewStore()
	for _, name := range modules {
		s.PutTemplate(&v1beta2.ModuleTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kcp-system", Name: name + "-1.0.0"},
			Spec:       v1beta2.ModuleTemplateSpec{ModuleName: name, Version: "1.0.0"},
		})
	}
	return s.In("kcp-system")
}

func TestModules(t *testing.T) {
	t.Parallel()
	at := metav1.NewTime(time.Unix(1000, 0))
	k := kymaWith(v1beta2.ModuleStatus{Name: "b", State: v1beta2.StateReady, Version: "1.0.0", LastTransitionTime: at})
	k.Spec.Modules = []v1beta2.Module{{Name: "b"}, {Name: "a", Channel: "fast"}}
	want := []fleetview.Module{
		{Runtime: "eu-1", Module: "a", Channel: "fast", State: v1beta2.StateProcessing, Message: "the control plane has not looked at it yet"},
		{Runtime: "eu-1", Module: "b", Version: "1.0.0", State: v1beta2.StateReady, Since: &at},
	}
	if diff := cmp.Diff(want, fleetview.Modules(k)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	k.DeletionTimestamp = &at
	if got := fleetview.Modules(k); len(got) != 1 {
		t.Errorf("of a Kyma on its way out: %v, want only what is there", got)
	}
}

func TestCatalog(t *testing.T) {
	t.Parallel()
	s := catalog.NewStore()
	s.PutTemplate(&v1beta2.ModuleTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web-1.0.0"},
		Spec: v1beta2.ModuleTemplateSpec{ModuleName: "web", Version: "1.0.0", Needs: []string{"module.dns"}, Namespace: "web",
			Source: v1beta2.Source{Chart: &v1beta2.SourceRef{URL: "https://example.com/web.tgz", Path: "web"}}},
	})
	s.PutRelease(&v1beta2.ModuleReleaseMeta{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}, Spec: v1beta2.ModuleReleaseMetaSpec{
		ModuleName: "web", Channels: []v1beta2.ChannelVersion{{Channel: "regular", Version: "1.0.0"}, {Channel: "fast", Version: "2.0.0"}, {Channel: "long", Version: "1.0.0"}},
	}})
	want := []fleetview.CatalogEntry{
		{Module: "web", Version: "1.0.0", Channels: []string{"long", "regular"}, Needs: []string{"module.dns"}, Namespace: "web", Source: "chart https://example.com/web.tgz (web)"},
		{Module: "web", Version: "2.0.0", Channels: []string{"fast"}, Problem: "there is no ModuleTemplate web-2.0.0"},
	}
	if diff := cmp.Diff(want, fleetview.Catalog(s.In("n"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestExplainModule says for each way in which a module can stand what happens next, and what a person can do.
func TestExplainModule(t *testing.T) {
	t.Parallel()
	soon := time.Unix(2000, 0)
	engine := func(phase string) *controlplane.Explanation {
		return &controlplane.Explanation{Components: []controlplane.ComponentExplanation{
			{Name: ""}, {Name: "web", Phase: phase, Attempts: 2, Last: "retry", Message: "no route", LastAt: &soon, Next: &soon},
		}}
	}
	module := func(state v1beta2.State) *v1beta2.Kyma {
		return kymaWith(v1beta2.ModuleStatus{Name: "web", State: state})
	}
	suspended := module(v1beta2.StateError)
	suspended.Spec.Suspend = true
	for _, c := range []struct {
		name         string
		kyma         *v1beta2.Kyma
		engine       *controlplane.Explanation
		noRuntime    bool
		next, advice string
		at           *time.Time
	}{
		{name: "Delayed", kyma: module(v1beta2.StateError), engine: engine("delayed"), next: "tried again", advice: "mothership reconcile eu-1", at: &soon},
		{name: "DelayedButReady", kyma: module(v1beta2.StateReady), engine: engine("delayed"), next: "looked at again", at: &soon},
		{name: "Running", kyma: module(v1beta2.StateProcessing), engine: engine("running"), next: "worked on at the moment"},
		{name: "Queued", kyma: module(v1beta2.StateProcessing), engine: engine("queued"), next: "its turn"},
		{name: "Waiting", kyma: module(v1beta2.StateWaiting), engine: engine("waiting"), next: "as soon as what it waits for"},
		{name: "Failed", kyma: module(v1beta2.StateError), engine: engine("failed"), next: "nothing by itself", advice: "mend what the message says"},
		{name: "Idle", kyma: module(v1beta2.StateReady), engine: &controlplane.Explanation{}, next: "nothing is to be done"},
		{name: "Unreachable", kyma: module(v1beta2.StateProcessing), engine: &controlplane.Explanation{Unreachable: true, NextProbe: &soon}, next: "as soon as the runtime answers", at: &soon},
		{name: "Suspended", kyma: suspended, engine: engine("failed"), next: "nothing: the Kyma is suspended", advice: "mothership resume eu-1"},
		{name: "Unmanaged", kyma: module(v1beta2.StateUnmanaged), engine: engine("delayed"), next: "left alone on request", advice: "mothership module manage eu-1 web"},
		{name: "NoRuntime", kyma: module(v1beta2.StateProcessing), noRuntime: true, next: "until there is a Runtime eu-1"},
		{name: "NotAskedError", kyma: module(v1beta2.StateError), next: "tried again with growing pauses", advice: "mend what the message says"},
		{name: "NotAskedWaiting", kyma: module(v1beta2.StateWaiting), next: "as soon as what it waits for"},
		{name: "NotAskedWarning", kyma: module(v1beta2.StateWarning), next: "a person should look"},
		{name: "NotAskedProcessing", kyma: module(v1beta2.StateProcessing), next: "within seconds"},
		{name: "UnknownPhase", kyma: module(v1beta2.StateProcessing), engine: engine("new"), next: "within seconds"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := fleetview.Input{Kyma: c.kyma, Catalog: storeWith("web"), Engine: c.engine, Runtime: &v1beta2.Runtime{}}
			if c.noRuntime {
				in.Runtime = nil
			}
			got := fleetview.Explain(in)
			m := got.Modules[0]
			if !strings.Contains(m.Next, c.next) || !strings.Contains(m.Advice, c.advice) || (c.advice == "") != (m.Advice == "") {
				t.Errorf("next %q, advice %q", m.Next, m.Advice)
			}
			if diff := cmp.Diff(c.at, m.NextAt); diff != "" {
				t.Errorf("when (-want +got):\n%s", diff)
			}
			if asked := c.engine != nil; got.Asked != asked || (len(got.Modules[0].Tried) > 0) != (asked && len(c.engine.Components) > 0) {
				t.Errorf("asked %v, tried %q", got.Asked, m.Tried)
			}
		})
	}
}

func TestExplainFacts(t *testing.T) {
	t.Parallel()
	k := kymaWith(
		v1beta2.ModuleStatus{Name: "dns", State: v1beta2.StateError, Message: "no zone"},
		v1beta2.ModuleStatus{Name: "web", State: v1beta2.StateWaiting, WaitingFor: []string{
			"module.dns", "module.istio", "module.nix", "values/secret/web", "values/configmap/web", "network.name",
		}})
	got, found := fleetview.Explain(fleetview.Input{Kyma: k, Catalog: storeWith("istio"), Runtime: &v1beta2.Runtime{}}).Of("web")
	want := []string{
		"module.dns: module dns is Error: no zone",
		"module.istio: module istio is not enabled: mothership module enable eu-1 istio",
		"module.nix: module nix is neither enabled nor in the catalogue",
		"values/secret/web: the module takes values from the Secret web, which is missing or has no such key: create it in namespace kcp-system",
		"values/configmap/web: the module takes values from the ConfigMap web, which is missing or has no such key: create it in namespace kcp-system",
		"network.name: a fact about the runtime that nobody has stated yet",
	}
	if diff := cmp.Diff(want, got.Modules[0].Waits); diff != "" || !found || len(got.Modules) != 1 {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, found := got.Of("dns"); found {
		t.Error("a module that was left out is found")
	}
}

func TestExplainRuntime(t *testing.T) {
	t.Parallel()
	probe := time.Unix(3000, 0)
	k := kymaWith()
	k.Status.Conditions = []metav1.Condition{{Type: v1beta2.ConditionReachable, Status: metav1.ConditionFalse, Message: "connection refused"}}
	r := &v1beta2.Runtime{}
	r.Status.State = v1beta2.StateReady
	got := fleetview.Explain(fleetview.Input{
		Kyma: k, Runtime: r, Catalog: storeWith(), Engine: &controlplane.Explanation{Unreachable: true, Failures: 7, NextProbe: &probe},
	}).Runtime
	want := fleetview.RuntimeExplanation{Exists: true, State: v1beta2.StateReady, Why: "connection refused", Failures: 7, NextProbe: &probe}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	fresh := fleetview.Explain(fleetview.Input{Kyma: &v1beta2.Kyma{}, Catalog: storeWith()})
	if fresh.State != v1beta2.StateProcessing || !strings.Contains(fresh.Why, "is one running?") || fresh.Runtime.Advice == "" {
		t.Errorf("a Kyma that nobody has looked at: %+v", fresh)
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	got := fleetview.Events([]corev1.Event{
		{Reason: "Series", Series: &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(at(40))}, EventTime: metav1.NewMicroTime(at(1))},
		{Reason: "Last", Count: 2, LastTimestamp: metav1.NewTime(at(30))},
		{Reason: "Event", EventTime: metav1.NewMicroTime(at(20))},
		{Reason: "Created", ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(10))}},
	})
	var reasons []string
	var counts []int32
	for _, e := range got {
		reasons, counts = append(reasons, e.Reason), append(counts, e.Count)
	}
	if diff := cmp.Diff([]string{"Created", "Event", "Last", "Series"}, reasons); diff != "" || !cmp.Equal(counts, []int32{1, 1, 2, 3}) {
		t.Errorf("%v (-want +got):\n%s", counts, diff)
	}
}
