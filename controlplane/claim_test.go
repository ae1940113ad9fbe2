package controlplane_test

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
)

func TestRuntimeIsMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	k := s.unreachable(v1beta2.ReasonRuntimeMissing)
	if len(k.Status.Conditions) != 2 || k.Status.State != v1beta2.StateWarning || len(k.Status.Modules) > 0 {
		t.Errorf("status %+v", k.Status)
	}
	s.join()
	s.ready()
}

func TestRuntimeOfNoModulesIsMissing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.wants()
	s.unreachable(v1beta2.ReasonRuntimeMissing)
	s.join()
	s.ready()
}

func TestKymaWithoutRuntimeIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.offers("app", "1.0.0")
	s.offers("broken", "1.0.0", by("nobody"))
	s.wants(s.entry("app"), s.entry("broken"))
	s.unreachable(v1beta2.ReasonRuntimeMissing)
	s.state("broken", v1beta2.StateError)
	k := &v1beta2.Kyma{ObjectMeta: s.meta(s.name)}
	s.drop(k)
	gone(t, s.api, k, &v1beta2.KymaList{})
}

// second is another site for the same cluster.
func (s *site) second() *site {
	other := *s
	other.name += "-second"
	s.t.Cleanup(other.leave)
	return &other
}

func TestTwoKymasForOneCluster(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(abandoning)
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	first := s.ready()
	other := s.second()
	other.join()
	other.wants(s.entry("app"))
	k := other.unreachable(v1beta2.ReasonClusterTaken)
	if k.Status.RuntimeUID != "" {
		t.Errorf("it says that it is in cluster %s", k.Status.RuntimeUID)
	}
	if now := s.ready(); now.ResourceVersion != first.ResourceVersion {
		t.Errorf("the first was touched: %+v", now.Status)
	}
	s.drop(&v1beta2.Runtime{ObjectMeta: s.meta(s.name)})
	gone(t, s.api, &v1beta2.Kyma{ObjectMeta: s.meta(s.name)}, &v1beta2.KymaList{})
	k = other.ready()
	if k.Status.RuntimeUID != s.proxy.uid {
		t.Errorf("it is in cluster %s", k.Status.RuntimeUID)
	}
}

// The kubeconfig is replaced by that of another cluster: everything is installed there.
func TestClusterIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(watching)
	s.offers("app", "1.0.0")
	s.offers("other", "1.0.0")
	s.wants(s.entry("app"), s.entry("other"))
	s.ready()
	own, err := os.ReadFile(filepath.Join(s.dir, controlplane.KubeconfigFile)) // the control plane's own cluster is another one
	if err != nil {
		t.Fatal(err)
	}
	change(s, &corev1.Secret{}, s.name, func(secret *corev1.Secret) { secret.Data = map[string][]byte{"kubeconfig": own} })
	in := func(name string) client.ObjectKey { return client.ObjectKey{Namespace: s.name, Name: s.mod(name)} }
	await(t, s.api, &corev1.ConfigMapList{}, in("app"), "installed", func(*corev1.ConfigMap) bool { return true })
	await(t, s.api, &corev1.ConfigMapList{}, in("other"), "installed", func(*corev1.ConfigMap) bool { return true })
	s.event("ClusterReplaced", "another cluster")
	var system corev1.Namespace
	if err := s.api.Get(t.Context(), client.ObjectKey{Name: "kube-system"}, &system); err != nil {
		t.Fatal(err)
	}
	s.kyma("in the other cluster", func(k *v1beta2.Kyma) bool {
		return k.Status.RuntimeUID == string(system.UID) && k.Status.State == v1beta2.StateReady
	})
	// Drift is watched there, and not any more where it was.
	m := await(t, s.api, &corev1.ConfigMapList{}, in("app"), "there", func(*corev1.ConfigMap) bool { return true })
	if err := s.api.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	await(t, s.api, &corev1.ConfigMapList{}, in("app"), "made again", func(again *corev1.ConfigMap) bool { return again.UID != m.UID })
	s.proxy.forget()
	s.remove("app")
	s.during(observed)
	if asked := s.proxy.asked(); len(asked) > 0 || s.has("app") {
		t.Errorf("the old cluster is still looked after: %q", asked)
	}
}
