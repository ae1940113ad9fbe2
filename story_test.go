package mothership_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

// web is a small module: what most of them are made of.
const web = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: "web:1", ports: [{containerPort: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: web}}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
data: {greeting: hello, color: blue}
`

// webDropped is web without its ServiceAccount.
var webDropped = func() string {
	parts := strings.Split(web, "---")
	return strings.Join(append(parts[:2:2], parts[3]), "---")
}()

// writes are the requests that change something.
func writes(requests map[string]int) int {
	return requests["apply"] + requests["patch"] + requests["create"] + requests["update"] + requests["delete"]
}

func TestStoryOfAModule(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", web)

	if diff := cmp.Diff([]string{
		"ServiceAccount web: created", "ConfigMap web: created", "Service web: created", "Deployment web: created",
	}, actions(s.install(m).Objects)); diff != "" {
		t.Errorf("fresh (-want +got):\n%s", diff)
	}

	const kinds = 4
	r := s.install(m)
	total := 0
	for _, n := range r.Requests {
		total += n
	}
	if r.Changed() || writes(r.Requests) != 0 || total-kinds > 4 {
		t.Errorf("unchanged: changed %v, requests %v", r.Changed(), r.Requests)
	}

	s.kubectl("patch", "configmap", "web", "-p", `{"data":{"greeting":"moin","extra":"mine"}}`)
	want := []string{"ConfigMap web: repaired .data.greeting by kubectl-patch"}
	if diff := cmp.Diff(want, changes(s.verify(m))); diff != "" {
		t.Errorf("verify (-want +got):\n%s", diff)
	}
	c := s.diff(m)
	if diff := cmp.Diff(want, changes(c)); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	if f := c.Changes[0].Fields[0]; f.From != "moin" || f.To != "hello" {
		t.Errorf("diff from %v to %v", f.From, f.To)
	}
	r = s.install(m)
	if r.Count(mothership.ActionRepair) != 1 || r.Count(mothership.ActionNone) != 3 {
		t.Errorf("repair: %v", actions(r.Objects))
	}
	if got := s.kubectl("get", "configmap", "web", "-o", "jsonpath={.data}"); got != `{"color":"blue","extra":"mine","greeting":"hello"}` {
		t.Errorf("repaired to %s: the user's own field is not ours", got)
	}

	m.Template.Source = s.module("web", webDropped).Template.Source
	if diff := cmp.Diff([]string{"ServiceAccount web: pruned"}, changes(s.diff(m))); diff != "" {
		t.Errorf("diff of the upgrade (-want +got):\n%s", diff)
	}
	if r := s.install(m); r.Count(mothership.ActionPrune) != 1 || r.Count(mothership.ActionNone) != 3 {
		t.Errorf("upgrade: %v", actions(r.Objects))
	}
	if s.members(m) == "" || strings.Contains(s.members(m), "serviceaccount") {
		t.Errorf("members after the upgrade: %s", s.members(m))
	}

	s.uninstall(m)
	eventually(t, func() string { return s.members(m) }) // EndpointSlices follow their Service
	if s.parent(m) != nil {
		t.Error("the inventory is left")
	}
	if r := s.uninstall(m); r.Changed() {
		t.Errorf("uninstalling again: %v", actions(r.Objects))
	}
}

func TestUserChangesAreRepaired(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", web)
	s.install(m)
	for _, damage := range []struct {
		name string
		args []string
		want []string
	}{
		{"Label", []string{"label", "configmap", "web", v1beta2.ApplySetPartOfLabel + "-"},
			[]string{"ConfigMap web: repaired .metadata.labels[" + v1beta2.ApplySetPartOfLabel + "]"}},
		{"Annotation", []string{"annotate", "service", "web", v1beta2.DigestAnnotation + "-"},
			[]string{"Service web: repaired .metadata.annotations[" + v1beta2.DigestAnnotation + "]"}},
		{"Deleted", []string{"delete", "deployment", "web"}, []string{"Deployment web: created"}},
		{"Replaced", []string{"set", "image", "deployment/web", "web=evil"},
			[]string{"Deployment web: repaired .spec.template.spec.containers[name=web].image by kubectl-set"}},
		{"FieldRemoved", []string{"patch", "configmap", "web", "--type=json", "-p", `[{"op":"remove","path":"/data/color"}]`},
			[]string{"ConfigMap web: repaired .data.color"}},
	} {
		s.kubectl(damage.args...)
		if diff := cmp.Diff(damage.want, changes(s.verify(m))); diff != "" {
			t.Errorf("%s: verify (-want +got):\n%s", damage.name, diff)
		}
		s.diff(m)
		if r := s.install(m); !r.Changed() {
			t.Errorf("%s: nothing was repaired", damage.name)
		}
		if c := s.verify(m); !c.Equal() {
			t.Errorf("%s: after the repair: %v", damage.name, changes(c))
		}
	}
}

func TestModuleOfManyScopes(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("scopes", `
apiVersion: v1
kind: Namespace
metadata: {name: $NS-two, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: there, namespace: $NS-two}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: here}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $NS-role}
rules: []
`)
	if r := s.install(m); r.Count(mothership.ActionCreate) != 4 {
		t.Errorf("fresh: %v", actions(r.Objects))
	}
	if r := s.install(m); r.Changed() {
		t.Errorf("again: %v", actions(r.Objects))
	}
	if got := s.parent(m).Annotations[v1beta2.ApplySetNamespacesAnnotation]; got != s.namespace+","+s.namespace+"-two" {
		t.Errorf("namespaces of the set: %s", got)
	}
	if r := s.uninstall(m); r.Count(mothership.ActionDelete) != 3 || s.members(m) != "" {
		t.Errorf("uninstall: %v, left %s", actions(r.Objects), s.members(m))
	}
	if got := s.kubectl("get", "namespace", s.namespace+"-two", "-o", "jsonpath={.status.phase}"); got != "Active" {
		t.Errorf("the namespace is %s: namespaces are never members", got)
	}
	s.kubectl("delete", "--wait=false", "namespace", s.namespace+"-two")
}

func TestTwoClustersAtOnce(t *testing.T) {
	t.Parallel()
	etcd, err := local.StartEtcd(local.EtcdOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := etcd.Close(); err != nil {
			t.Error(err)
		}
	})
	installer := mothership.New(mothership.Options{})
	done := make(chan error)
	for _, name := range []string{"/one", "/two"} {
		srv := localtest.Start(t, func(o *local.Options) { o.Etcd, o.Prefix, o.Controllers = etcd, name, nil })
		s := &site{t: t, srv: srv, namespace: "fleet"}
		m := s.module("web", web+"---\n"+strings.ReplaceAll(widgets, "$NS", "fleet"))
		go func() { done <- lifecycle(t.Context(), installer, srv, m) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// lifecycle installs a module twice and removes it.
func lifecycle(ctx context.Context, i *mothership.Installer, srv *local.Server, m mothership.Module) error {
	for range 2 {
		if _, err := i.Install(ctx, srv.Config(), m, mothership.InstallOptions{Timeout: time.Minute}); err != nil {
			return err
		}
	}
	_, err := i.Uninstall(ctx, srv.Config(), m, mothership.UninstallOptions{Timeout: time.Minute})
	return err
}
