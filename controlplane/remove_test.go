package controlplane_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// left says which objects of a site are still in the control plane.
func (s *site) left() []string {
	s.t.Helper()
	var out []string
	for _, obj := range []client.Object{&v1beta2.Kyma{}, &v1beta2.Runtime{}} {
		if err := s.api.Get(s.t.Context(), s.key(), obj); err == nil {
			out = append(out, strings.TrimPrefix(obj.GetObjectKind().GroupVersionKind().Kind+obj.GetName(), "*"))
		} else if client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
	}
	return out
}

// leaves deletes the Runtime and waits until it is gone.
func (s *site) leaves() {
	s.t.Helper()
	r := &v1beta2.Runtime{ObjectMeta: s.meta(s.name)}
	s.drop(r)
	gone(s.t, s.api, r, &v1beta2.RuntimeList{})
	gone(s.t, s.api, &v1beta2.Kyma{ObjectMeta: s.meta(s.name)}, &v1beta2.KymaList{})
	if left := s.left(); len(left) > 0 {
		s.t.Errorf("left: %q", left)
	}
}

func TestRuntimeOfSomebodyIsCleaned(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.offers("kept", "1.0.0")
	s.wants(s.entry("app"), s.entry("kept"))
	s.ready()
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules[1] = s.entry("kept", unmanaged) })
	s.state("kept", v1beta2.StateUnmanaged)
	s.leaves()
	if s.has("app") {
		t.Error("the module is left in the cluster")
	}
	if !s.has("kept") {
		t.Error("what is not managed was removed")
	}
}

func TestRuntimeIsAbandoned(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(abandoning)
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	s.proxy.forget()
	s.leaves()
	if !s.has("app") {
		t.Error("the module was removed")
	}
	if wrote := s.proxy.asked(writing...); len(wrote) > 0 {
		t.Errorf("written to the abandoned cluster: %q", wrote)
	}
}

func TestKymaIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.offers("upper", "1.0.0", s.needs("app"))
	s.wants(s.entry("app"), s.entry("upper"))
	s.ready()
	k := &v1beta2.Kyma{ObjectMeta: s.meta(s.name)}
	s.drop(k)
	gone(t, s.api, k, &v1beta2.KymaList{})
	if s.has("app") || s.has("upper") {
		t.Error("modules are left in the cluster")
	}
	if left := s.left(); len(left) != 1 {
		t.Errorf("the Runtime goes with its Kyma: %q", left)
	}
	s.wants(s.entry("app")) // and again
	s.ready()
}

func TestKymaOfUnreachableRuntimeIsDeleted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	s.proxy.has(refuses)
	s.drop(&v1beta2.Kyma{ObjectMeta: s.meta(s.name)})
	k := s.kyma("deleting, and why not", func(k *v1beta2.Kyma) bool {
		c := meta.FindStatusCondition(k.Status.Conditions, v1beta2.ConditionReady)
		return k.Status.State == v1beta2.StateDeleting && strings.HasPrefix(c.Message, "cannot remove the modules: ")
	})
	if len(k.Status.Modules) != 1 || k.Status.Modules[0].BundleDigest == "" {
		t.Errorf("modules %+v", k.Status.Modules)
	}
	s.drop(&v1beta2.Runtime{ObjectMeta: s.meta(s.name)})
	s.during(observed)
	if left := s.left(); len(left) != 2 {
		t.Fatalf("given up because nobody answers; left: %q", left)
	}
	change(s, &v1beta2.Runtime{}, s.name, abandoning)
	gone(t, s.api, &v1beta2.Runtime{ObjectMeta: s.meta(s.name)}, &v1beta2.RuntimeList{})
	gone(t, s.api, &v1beta2.Kyma{ObjectMeta: s.meta(s.name)}, &v1beta2.KymaList{})
	if left := s.left(); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}

// The same, but the runtime comes back.
func TestRemovalGoesOnWhenRuntimeComesBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	s.proxy.has(refuses)
	s.drop(&v1beta2.Kyma{ObjectMeta: s.meta(s.name)})
	s.unreachable(v1beta2.ReasonUnreachable)
	s.proxy.has(nil)
	gone(t, s.api, &v1beta2.Kyma{ObjectMeta: s.meta(s.name)}, &v1beta2.KymaList{})
	if s.has("app") {
		t.Error("the module is left in the cluster")
	}
}

func TestLocalRuntime(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.create(&v1beta2.Runtime{ObjectMeta: s.meta(s.name), Spec: v1beta2.RuntimeSpec{Provider: v1beta2.ProviderLocal, DriftDetection: v1beta2.DriftWatch}})
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.unreachable(v1beta2.ReasonRuntimeNotReady)
	s.ready()
	r := await(t, s.api, &v1beta2.RuntimeList{}, s.key(), "ready", func(r *v1beta2.Runtime) bool { return r.Status.State == v1beta2.StateReady })
	for _, key := range []string{v1beta2.FactKubernetesVersion, v1beta2.FactRuntimeUID, v1beta2.FactKubeconfigSecret, v1beta2.FactEndpoint} {
		if factOf(r, key) == "" {
			t.Errorf("there is no fact %s", key)
		}
	}
	var secret corev1.Secret
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: s.name + "-kubeconfig"}, &secret); err != nil {
		t.Fatal(err)
	}
	s.leaves()
	gone(t, s.api, &secret, &corev1.SecretList{})
}
