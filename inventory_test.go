package mothership_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// staleDiscovery says that the API server behind a group does not answer.
func staleDiscovery(group string) fault {
	list := `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[
		{"metadata":{"name":"` + group + `"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`
	answer := page(http.StatusOK, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", list)
	return func(w http.ResponseWriter, r *http.Request) bool { return r.URL.Path == "/apis" && answer(w, r) }
}

// TestKindWhoseServerDoesNotAnswer: nobody knows whether there are members of it, so the inventory must not forget it.
func TestKindWhoseServerDoesNotAnswer(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("plain", config)
	s.install(m)
	group := s.namespace + ".stale"
	s.kubectl("--namespace="+v1beta2.SystemNamespace, "annotate", "--overwrite", "configmap", bundle.ParentName(m.Namespace, m.Name),
		v1beta2.ApplySetGroupKindsAnnotation+"=ConfigMap,Reading."+group)
	p := newProxy(t, s.cfg)
	p.has(staleDiscovery(group))
	_, err := s.installer.Install(t.Context(), p.cfg, m, mothership.InstallOptions{Timeout: time.Second})
	if !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("installing: error = %v, want that the kind is unavailable", err)
	}
	_, err = s.installer.Uninstall(t.Context(), p.cfg, m, mothership.UninstallOptions{Timeout: time.Second})
	if !errors.Is(err, cluster.ErrUnavailable) {
		t.Errorf("uninstalling: error = %v, want that the kind is unavailable", err)
	}
	wants(t, s.parent(m).Annotations[v1beta2.ApplySetGroupKindsAnnotation], "Reading."+group)
	s.uninstall(m) // the kind is gone by now
}

// TestKindThatChangesItsVersion: members are found in the version that the server still has, also those that the new form of the
// module does not know.
func TestKindThatChangesItsVersion(t *testing.T) {
	t.Parallel()
	s := setup(t)
	second := strings.Replace(widget, "name: one", "name: two", 1)
	s.install(s.module("widgets", widgets+"---"+widget+"---"+second))
	const v1 = "  - name: v1\n    served: true\n    storage: true\n"
	_, rest, _ := strings.Cut(widgets, v1)
	next := strings.Replace(widgets, v1, strings.ReplaceAll(v1, "true", "false"), 1) + strings.Replace(v1, "v1", "v2", 1) + rest
	s.install(s.module("widgets", next+"---"+strings.Replace(widget, ".test/v1", ".test/v2", 1)))
	if got := s.instances(); strings.Contains(got, "two") || !strings.Contains(got, "one") {
		t.Errorf("widgets: %s", got)
	}
}

// TestTwoInstallationsAtOnce: the one that ends last finds and prunes what the other left; nothing is forgotten.
func TestTwoInstallationsAtOnce(t *testing.T) {
	t.Parallel()
	s := setup(t)
	slow := s.module("plain", config)
	fast := s.module("plain", "apiVersion: v1\nkind: Secret\nmetadata: {name: other}\n")
	p := newProxy(t, s.cfg)
	var once sync.Once
	p.has(at("PATCH", "/configmaps/config", func(http.ResponseWriter, *http.Request) bool {
		once.Do(func() {
			if _, err := s.installer.Install(context.Background(), s.cfg, fast, mothership.InstallOptions{Timeout: time.Minute}); err != nil {
				t.Errorf("the second: %v", err)
			}
		})
		return false
	}))
	r, err := s.installer.Install(t.Context(), p.cfg, slow, mothership.InstallOptions{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(s.members(slow)); got != "configmap/config" {
		t.Errorf("members: %s, after %v", got, actions(r.Objects))
	}
	s.uninstall(slow)
	if left := s.members(slow); left != "" {
		t.Errorf("left: %s", left)
	}
}

// TestInventoryOfAnotherModule is no object that a module may ship, whoever allows adoption.
func TestInventoryOfAnotherModule(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("plain", config)
	s.install(m)
	thief := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: $NS.plain, namespace: mothership-system}\n"
	wants(t, s.refused(s.module("thief", thief, adopting)).Error(), "is the inventory of a module")
	if c := s.verify(m); !c.Equal() {
		t.Errorf("changes: %v", changes(c))
	}
}

// TestOneObjectTwice: whether two objects are one may depend on the scope of a kind, which only the server knows.
func TestOneObjectTwice(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.install(s.module("widgets", widgets))
	named := strings.Replace(widget, "name: one", "name: one, namespace: $NS", 1)
	wants(t, s.refused(s.module("twice", widget+"---"+named)).Error(), "one", "defined twice")
}

// TestUpgradeIsNoDrift: a field that the new form adds was not taken by anybody.
func TestUpgradeIsNoDrift(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.install(s.module("plain", config))
	s.kubectl("patch", "configmap", "config", "-p", `{"data":{"a":"mine"}}`)
	r := s.install(s.module("plain", strings.Replace(config, `a: "1"`, `a: "2", b: "3"`, 1)))
	if len(r.Objects) != 1 || r.Objects[0].Action != mothership.ActionUpdate {
		t.Fatalf("upgrade: %v", actions(r.Objects))
	}
	if drift := r.Objects[0].Drift; len(drift) != 1 || drift[0].Path != ".data.a" || drift[0].Manager != "kubectl-patch" {
		t.Errorf("drift: %v", drift)
	}
}

// TestParentThatSomebodyDeleted: the members carry the set's label, and are found by it.
func TestParentThatSomebodyDeleted(t *testing.T) {
	t.Parallel()
	forget := func(s *site, m mothership.Module) {
		s.kubectl("--namespace="+v1beta2.SystemNamespace, "delete", "configmap", bundle.ParentName(m.Namespace, m.Name))
	}
	t.Run("UninstallRemovesAll", func(t *testing.T) {
		t.Parallel()
		s := setup(t)
		m := s.module("widgets", widgets+"---"+widget+"---"+config)
		s.install(m)
		forget(s, m)
		s.uninstall(m)
		if left := s.kubectl("get", "configmaps,customresourcedefinitions", "-A", "-o", "name", "-l", v1beta2.ApplySetPartOfLabel+"="+bundle.ApplySetID(m.Namespace, m.Name)); left != "" {
			t.Errorf("left behind: %s", left)
		}
	})
	t.Run("UpgradePrunes", func(t *testing.T) {
		t.Parallel()
		s := setup(t)
		dropped := strings.NewReplacer("kind: ConfigMap", "kind: Secret", "\ndata:", "\nstringData:").Replace(config)
		m := s.module("plain", config+"---"+dropped)
		s.install(m)
		forget(s, m)
		r := s.install(s.module("plain", config))
		if r.Count(mothership.ActionPrune) != 1 {
			t.Errorf("events: %v", actions(r.Objects))
		}
	})
}
