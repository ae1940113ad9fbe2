package mothership_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
)

// widgets is a definition of a kind in a group of the test's own.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$NS.test}
spec:
  group: $NS.test
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// widget is an instance of it.
const widget = `
apiVersion: $NS.test/v1
kind: Widget
metadata: {name: one}
spec: {size: 1}
`

// config is something to keep a module from being empty.
const config = `
apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data: {a: "1"}
`

// instances are the names of the widgets.
func (s *site) instances() string {
	return s.kubectl("get", "widgets."+s.namespace+".test", "-o", "name")
}

func TestDefinitionAndItsInstance(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("widgets", widgets+"---"+widget)
	if r := s.install(m); r.Count(mothership.ActionCreate) != 2 {
		t.Errorf("fresh: %v", actions(r.Objects))
	}
	if r := s.install(m); r.Changed() {
		t.Errorf("again: %v", actions(r.Objects))
	}
	s.kubectl("patch", "widgets."+s.namespace+".test", "one", "--type=merge", "-p", `{"spec":{"size":7}}`)
	if diff := cmp.Diff([]string{"Widget one: repaired .spec.size by kubectl-patch"}, changes(s.diff(m))); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	s.uninstall(m)
	if left := s.members(m); left != "" || s.parent(m) != nil {
		t.Errorf("left: %s, parent %v", left, s.parent(m))
	}
}

func TestDefaultCustomResource(t *testing.T) {
	t.Parallel()
	s := setup(t)
	data, err := json.Marshal(map[string]any{
		"apiVersion": s.namespace + ".test/v1", "kind": "Widget", "metadata": map[string]any{"name": "default"}, "spec": map[string]any{"size": 3},
	})
	if err != nil {
		t.Fatal(err)
	}
	m := s.module("widgets", widgets+"---"+config, func(t *v1beta2.ModuleTemplateSpec) { t.Data = &runtime.RawExtension{Raw: data} })
	s.install(m)
	s.kubectl("patch", "widgets."+s.namespace+".test", "default", "--type=merge", "-p", `{"spec":{"size":9}}`)
	if c := s.verify(m); !c.Equal() {
		t.Errorf("a user's edit of the default is drift: %v", changes(c))
	}
	s.install(m)
	if got := s.kubectl("get", "widgets."+s.namespace+".test", "default", "-o", "jsonpath={.spec.size}"); got != "9" {
		t.Errorf("the user's edit became %s", got)
	}
	// A finalizer shows the order: nothing else goes while the default custom resource is there.
	s.kubectl("patch", "widgets."+s.namespace+".test", "default", "--type=merge", "-p", `{"metadata":{"finalizers":["test/cleanup"]}}`)
	_, err = s.installer.Uninstall(t.Context(), s.cfg, m, mothership.UninstallOptions{Timeout: time.Second})
	var timeout *mothership.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("error = %v, want a timeout", err)
	}
	wants(t, err.Error(), "Widget", "default", "test/cleanup")
	if got := s.kubectl("get", "configmap", "config", "-o", "name"); !strings.Contains(got, "config") {
		t.Error("the ConfigMap went before the default custom resource")
	}
	s.kubectl("patch", "widgets."+s.namespace+".test", "default", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	s.uninstall(m)
	if left := s.members(m); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestDefinitionWithInstancesIsProtected(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("widgets", widgets+"---"+config)
	s.install(m)
	s.input(strings.Replace(widget, "name: one", "name: mine", 1), "apply", "-f", "-")

	m.Template.Source = s.module("widgets", config).Template.Source
	r := s.install(m)
	if diff := cmp.Diff([]string{"ConfigMap config: unchanged", "CustomResourceDefinition widgets." + s.namespace + ".test: kept"}, actions(r.Objects)); diff != "" {
		t.Errorf("prune (-want +got):\n%s", diff)
	}
	wants(t, r.Objects[1].Message, "Widget", "mine")
	if c := s.verify(m); !c.Equal() {
		t.Errorf("a definition that is kept is drift: %v", changes(c))
	}

	_, err := s.installer.Uninstall(t.Context(), s.cfg, m, mothership.UninstallOptions{Timeout: 20 * time.Second})
	var blocked *mothership.BlockedError
	if !errors.As(err, &blocked) {
		t.Fatalf("error = %v, want that it is blocked", err)
	}
	wants(t, err.Error(), "Widget."+s.namespace+".test", s.namespace+"/mine")
	if got := s.instances(); !strings.Contains(got, "mine") {
		t.Errorf("instances left: %s", got)
	}
	s.kubectl("delete", "widgets."+s.namespace+".test", "mine")
	s.uninstall(m)
	if left := s.members(m); left != "" || s.parent(m) != nil {
		t.Errorf("left: %s", left)
	}
}

func TestUninstallRightAfterInstallOfDefinitions(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("widgets", widgets+"---"+widget)
	for range 3 {
		s.install(m)
		start := time.Now()
		s.uninstall(m)
		if took := time.Since(start); took > 30*time.Second {
			t.Errorf("the removal took %s", took)
		}
	}
	if left := s.members(m); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestInstancesThatFollowTheirOwner: what a module's controller made for its custom resource goes with it, a moment later, and
// must not be mistaken for somebody's.
func TestInstancesThatFollowTheirOwner(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("widgets", widgets+"---"+widget)
	s.install(m)
	uid := s.kubectl("get", "widgets."+s.namespace+".test", "one", "-o", "jsonpath={.metadata.uid}")
	s.input(`
apiVersion: $NS.test/v1
kind: Widget
metadata:
  name: child
  finalizers: [test/cleanup]
  ownerReferences: [{apiVersion: $NS.test/v1, kind: Widget, name: one, uid: `+uid+`}]
`, "create", "-f", "-")
	_, err := s.installer.Uninstall(t.Context(), s.cfg, m, mothership.UninstallOptions{Timeout: 5 * time.Second})
	var timeout *mothership.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("error = %v, want a timeout", err)
	}
	wants(t, err.Error(), "Widget."+s.namespace+".test "+s.namespace+"/child")
	s.kubectl("patch", "widgets."+s.namespace+".test", "child", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	s.uninstall(m)
	if left := s.members(m); left != "" || s.parent(m) != nil {
		t.Errorf("left: %s", left)
	}
}

// TestDefaultCustomResourceOfAUser counts as the module's, and need not carry its label.
func TestDefaultCustomResourceOfAUser(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.install(s.module("definitions", widgets))
	s.input(widget, "create", "-f", "-")
	data := []byte(s.fill(`{"apiVersion":"$NS.test/v1","kind":"Widget","metadata":{"name":"one"},"spec":{"size":3}}`))
	m := s.module("widgets", config, func(t *v1beta2.ModuleTemplateSpec) { t.Data = &runtime.RawExtension{Raw: data} })
	if _, err := s.waiting(m, 30*time.Second); err != nil {
		t.Error(err)
	}
}

// TestCleanUpBeforePruning: what cleans up after a custom resource must not be pruned before it is gone.
func TestCleanUpBeforePruning(t *testing.T) {
	t.Parallel()
	s := setup(t)
	held := strings.Replace(widget, "name: one", "name: one, finalizers: [test/cleanup]", 1)
	s.install(s.module("widgets", widgets+"---"+held+"---"+config))
	m := s.module("widgets", widgets+"---"+strings.Replace(config, "name: config", "name: other", 1))
	_, err := s.installer.Install(t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: 5 * time.Second})
	var timeout *mothership.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("error = %v, want a timeout", err)
	}
	wants(t, err.Error(), "Widget", "one", "test/cleanup")
	if got := s.kubectl("get", "configmaps", "-o", "name"); !strings.Contains(got, "/config") {
		t.Error("the ConfigMap went before the custom resource")
	}
	s.kubectl("patch", "widgets."+s.namespace+".test", "one", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	if r := s.install(m); r.Count(mothership.ActionPrune) != 1 {
		t.Errorf("then: %v", actions(r.Objects))
	}
}

// TestDefinitionThatIsNotServedYet: an installation that was cut short leaves one behind; the next one waits for it.
func TestDefinitionThatIsNotServedYet(t *testing.T) {
	t.Parallel()
	s := setup(t)
	p := newProxy(t, s.cfg)
	notServed := func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Audit-Id", "1") // as every API server does
		return page(http.StatusNotFound, "text/plain", "404 page not found")(w, r)
	}
	p.has(at("PATCH", "/widgets/one", times(1, notServed)))
	m := s.module("widgets", widgets+"---"+widget)
	if _, err := s.installer.Install(t.Context(), p.cfg, m, mothership.InstallOptions{Timeout: 30 * time.Second}); err != nil {
		t.Error(err)
	}
	if p.strikes() != 1 {
		t.Errorf("%d refusals", p.strikes())
	}
}
