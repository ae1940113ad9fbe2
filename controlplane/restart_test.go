package controlplane_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/controlplane"
	"github.com/kyma-project/mothership/internal/journal"
	"github.com/kyma-project/mothership/internal/remote"
)

// another starts a control plane of the test's own, from a folder, and returns what ends it.
func (s *site) another(dir string, change ...func(*controlplane.Config)) (stop func()) {
	s.t.Helper()
	cfg := controlplane.Config{Local: &controlplane.Local{Dir: dir}, Log: s.log.logger(), RequestTimeout: requestTimeout}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), startTimeout)
	defer cancel()
	cp, err := controlplane.Start(s.t.Context(), cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	stop = func() {
		if err := cp.Close(); err != nil {
			s.t.Error(err)
		}
	}
	s.t.Cleanup(stop)
	if err := awaitReady(ctx, cp); err != nil {
		s.t.Fatal(err)
	}
	world := *s.world
	world.cp = cp
	if world.api, err = connect(cp.Config()); err != nil {
		s.t.Fatal(err)
	}
	s.world = &world
	return stop
}

// beside is a site of the same test with a runtime of its own.
func (s *site) beside(name string) *site {
	other := *s
	other.name, other.proxy = s.name+"-"+name, newProxy(s.t, s.target.Config(), s.uid)
	return &other
}

// inside gives a client of the site's own local runtime.
func (s *site) inside() client.WithWatch {
	s.t.Helper()
	var secret corev1.Secret
	if err := s.api.Get(s.t.Context(), client.ObjectKey{Namespace: space, Name: s.name + "-kubeconfig"}, &secret); err != nil {
		s.t.Fatal(err)
	}
	cfg, err := remote.LoadKubeconfig(secret.Data["kubeconfig"], "")
	if err != nil {
		s.t.Fatal(err)
	}
	c, err := connect(cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// A control plane that starts again from its folder knows everything: it asks runtimes that are not watched for nothing, applies
// nothing, and who has which cluster stays as it was.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newBareSite(t)
	stop := s.another(dir)
	s.join()
	s.offers("app", "1.0.0")
	s.offersChart("chart")
	s.create(s.secret(s.mod("values"), map[string]string{"values.yaml": "password: " + canary("restart")}))
	modules := []v1beta2.Module{s.entry("app"), s.entry("chart", s.from("values"))}
	s.wants(modules...)
	before := s.ready()
	taken := s.beside("taken")
	taken.proxy = s.proxy
	taken.join()
	taken.wants(s.entry("app"))
	taken.unreachable(v1beta2.ReasonClusterTaken)
	taken.changes(func(k *v1beta2.Kyma) { k.Spec.Suspend = true }) // so that it asks nobody
	watched := s.beside("watched")
	watched.create(&v1beta2.Runtime{ObjectMeta: watched.meta(watched.name), Spec: v1beta2.RuntimeSpec{Provider: v1beta2.ProviderLocal, DriftDetection: v1beta2.DriftWatch}})
	watched.wants(s.entry("app"))
	watched.ready()
	watched.cloud = watched.inside()
	key := client.ObjectKey{Namespace: s.name, Name: s.mod("app")}
	var object corev1.ConfigMap
	if err := watched.cloud.Get(t.Context(), key, &object); err != nil {
		t.Fatal(err)
	}
	noted := &corev1.ConfigMap{ObjectMeta: s.meta(s.mod("journal")), Data: map[string]string{"modules": space + "/nobody/app"}}
	noted.Labels = map[string]string{journal.Label: "segment"}
	s.create(noted)
	stop()
	s.proxy.forget()

	s.another(dir)
	taken.world, watched.world = s.world, s.world
	gone(t, s.api, noted, &corev1.ConfigMapList{}) // the runtime was while nobody looked
	s.during(2 * observed)
	if asked := s.proxy.asked(); len(asked) > 0 {
		t.Errorf("asked after a restart with nothing to do: %q", asked)
	}
	if after := s.ready(); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the status was written: %+v", after.Status)
	}
	taken.changes(func(k *v1beta2.Kyma) { k.Spec.Suspend = false })
	taken.unreachable(v1beta2.ReasonClusterTaken)
	if wrote := s.proxy.asked(writing...); len(wrote) > 0 {
		t.Errorf("the second Kyma has taken the cluster: %q", wrote)
	}
	runtime := watched.inside()
	await(t, runtime, &corev1.ConfigMapList{}, key, "as it was", func(m *corev1.ConfigMap) bool { return m.ResourceVersion == object.ResourceVersion })
	await(t, s.api, &v1beta2.RuntimeList{}, watched.key(), "ready", func(r *v1beta2.Runtime) bool { return r.Status.State == v1beta2.StateReady })
	if err := runtime.Delete(t.Context(), &object); err != nil {
		t.Fatal(err)
	}
	await(t, runtime, &corev1.ConfigMapList{}, key, "put back", func(m *corev1.ConfigMap) bool { return m.UID != object.UID })
}

// A runtime that is away when the control plane starts is looked at when it is back: before that, nobody knows what is to be watched.
func TestWatchOfWhoWasAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := newBareSite(t)
	probing := func(c *controlplane.Config) { c.ProbeInterval = probeInterval }
	stop := s.another(dir, probing)
	s.join(watching)
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	stop()
	s.proxy.has(says(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	s.another(dir, probing)
	s.unreachable(v1beta2.ReasonUnavailable)
	s.proxy.has(nil)
	s.ready()
	s.edit("app", "version", "9")
	s.data("app", "version", "1.0.0")
}

// Where nothing is watched, drift is found by verification.
func TestVerification(t *testing.T) {
	t.Parallel()
	s := newBareSite(t)
	s.another(t.TempDir(), func(c *controlplane.Config) { c.VerifyInterval, c.Address = time.Second, "none" })
	s.join()
	s.offers("app", "1.0.0")
	s.offers("other", "1.0.0")
	s.wants(s.entry("app"), s.entry("other"))
	before := s.ready()
	s.edit("app", "version", "9")
	s.remove("other")
	s.data("app", "version", "1.0.0")
	s.data("other", "version", "1.0.0")
	s.event("DriftReverted", "kubectl-edit")
	s.proxy.forget()
	s.during(3 * time.Second)
	if wrote := s.proxy.asked(writing...); len(wrote) > 0 {
		t.Errorf("verification writes where nothing has drifted: %q", wrote)
	}
	if asked := s.proxy.asked(); len(asked) == 0 || len(asked) > 20 {
		t.Errorf("%d requests of some verifications: %q", len(asked), asked)
	}
	if after := s.ready(); after.Status.Modules[0].LastTransitionTime != before.Status.Modules[0].LastTransitionTime {
		t.Errorf("a repair changes the state: %+v", after.Status)
	}
	if s.cp.Address() != "" {
		t.Errorf("it listens at %s", s.cp.Address())
	}
}
