package controlplane_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// needs makes a template need other modules of the test.
func (s *site) needs(names ...string) func(*v1beta2.ModuleTemplateSpec) {
	return func(t *v1beta2.ModuleTemplateSpec) {
		for _, name := range names {
			t.Needs = append(t.Needs, v1beta2.FactModulePrefix+s.mod(name))
		}
	}
}

func version(v string) func(*v1beta2.Module) { return func(m *v1beta2.Module) { m.Version = v } }
func channel(c string) func(*v1beta2.Module) { return func(m *v1beta2.Module) { m.Channel = c } }
func unmanaged(m *v1beta2.Module)            { m.Managed = new(bool) }

func TestProblemsAreThoseOfOneModule(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("good", "1.0.0")
	s.offers("else", "1.0.0")
	s.offers("versioned", "1.0.0")
	s.offers("mine", "1.0.0", s.needs("yours"))
	s.offers("yours", "1.0.0", s.needs("mine"))
	s.wants(s.entry("good"), s.entry("unknown"), s.entry("else", channel("rapid")), s.entry("versioned", version("7.0.0")),
		s.entry("mine"), s.entry("yours"))
	s.at("good", "1.0.0")
	for name, words := range map[string][]string{
		"unknown":   {`"` + s.mod("unknown") + `" is not in the catalogue`, "it has"},
		"else":      {`no channel "rapid"`, "regular (1.0.0)"},
		"versioned": {"version 7.0.0", "it has 1.0.0"},
		"mine":      {"ring of needs", s.mod("mine") + " → " + s.mod("yours") + " → " + s.mod("mine")},
		"yours":     {"ring of needs", s.mod("yours") + " → " + s.mod("mine") + " → " + s.mod("yours")},
	} {
		m := s.state(name, v1beta2.StateError)
		for _, text := range words {
			if !strings.Contains(m.Message, text) {
				t.Errorf("module %s: %q does not say %q", name, m.Message, text)
			}
		}
	}
	k := s.kyma("evaluated", func(k *v1beta2.Kyma) bool { return k.Status.ObservedGeneration == k.Generation })
	if k.Status.State != v1beta2.StateError || k.Status.ModulesReady != "1/6" {
		t.Errorf("state %s, ready %s", k.Status.State, k.Status.ModulesReady)
	}
	s.offers("unknown", "1.0.0") // mended in the catalogue
	s.at("unknown", "1.0.0")
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules = k.Spec.Modules[:2] }) // and by the user
	s.ready()
}

func TestDowngradeIsForbidden(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.template("app", "1.0.0")
	s.offers("app", "2.0.0")
	s.offers("other", "1.0.0", s.needs("app"))
	s.wants(s.entry("app"), s.entry("other"))
	s.ready()
	s.release("app", "1.0.0")
	m := s.state("app", v1beta2.StateWarning)
	if m.Version != "2.0.0" || !strings.Contains(m.Message, "1.0.0 is lower than the installed 2.0.0") {
		t.Errorf("version %s, message %q", m.Version, m.Message)
	}
	if got := s.object("app", "there", func(*corev1.ConfigMap) bool { return true }).Data["version"]; got != "2.0.0" {
		t.Errorf("the runtime has %s", got)
	}
	// What needs it works on: a module with a warning is there.
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules[1].Version = "1.0.0" })
	k := s.kyma("evaluated", func(k *v1beta2.Kyma) bool { return k.Status.ObservedGeneration == k.Generation })
	if m := moduleOf(k, s.mod("other")); m.State != v1beta2.StateReady {
		t.Errorf("what needs it is %s: %s", m.State, m.Message)
	}
	s.release("app", "2.0.0")
	s.ready()
}

// A version that cannot be installed was never there: the way back from it is no downgrade.
func TestFailedUpgradeCanBeTakenBack(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.offers("hungry", "1.0.0")
	s.wants(s.entry("app"), s.entry("hungry"))
	s.ready()
	s.template("app", "2.0.0", func(m *v1beta2.ModuleTemplateSpec) { m.Source = s.manifests("kind: [") })
	s.template("hungry", "2.0.0", s.needs("nothing"))
	s.release("app", "2.0.0")
	s.release("hungry", "2.0.0")
	if m := s.state("app", v1beta2.StateError); m.Version != "1.0.0" {
		t.Errorf("what is installed is 1.0.0 and not %s", m.Version)
	}
	s.state("hungry", v1beta2.StateWaiting)
	s.release("app", "1.0.0")
	s.release("hungry", "1.0.0")
	s.at("app", "1.0.0")
	s.at("hungry", "1.0.0")
	s.ready()
}

func TestNeedsOfAnotherModule(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("base", "1.0.0", func(t *v1beta2.ModuleTemplateSpec) {
		t.Source = s.manifests("apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\n" +
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")
	})
	s.offers("upper", "1.0.0", s.needs("base"))
	s.wants(s.entry("upper"))
	m := s.state("upper", v1beta2.StateWaiting)
	if len(m.WaitingFor) != 1 || m.WaitingFor[0] != "module."+s.mod("base") {
		t.Errorf("it waits for %q", m.WaitingFor)
	}
	// It asks the runtime for nothing while it waits.
	s.proxy.forget()
	s.changes(func(k *v1beta2.Kyma) { k.Annotations = map[string]string{v1beta2.ReconcileAnnotation: "now"} })
	s.during(observed)
	if asked := s.proxy.asked(); len(asked) > 0 {
		t.Errorf("requests while it waits: %q", asked)
	}
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules = append(k.Spec.Modules, s.entry("base")) })
	s.module("base", "in work", func(m v1beta2.ModuleStatus) bool {
		return m.State == v1beta2.StateProcessing && strings.Contains(m.Message, "not ready")
	})
	if s.has("upper") {
		t.Error("installed before what it needs is ready")
	}
	s.bind("disk")
	s.ready()
	m = s.at("upper", "1.0.0")
	if len(m.WaitingFor) > 0 || m.Message != "" {
		t.Errorf("it still waits: %+v", m)
	}
}

// bind gives a PersistentVolumeClaim what it is not ready without.
func (s *site) bind(name string) {
	s.t.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	if err := s.cloud.Get(s.t.Context(), s.in(name), claim); err != nil {
		s.t.Fatal(err)
	}
	claim.Status.Phase = corev1.ClaimBound
	if err := s.cloud.Status().Update(s.t.Context(), claim); err != nil {
		s.t.Fatal(err)
	}
}

func TestTemplateChangesUnderModule(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	name := s.mod("app") + "-1.0.0"
	change(s, &v1beta2.ModuleTemplate{}, name, func(t *v1beta2.ModuleTemplate) {
		t.Spec.Source = s.manifests(configMap(s.mod("app"), map[string]string{"version": "changed"}))
	})
	s.object("app", "changed", func(m *corev1.ConfigMap) bool { return m.Data["version"] == "changed" })
	s.ready()
	before := s.object("app", "there", func(*corev1.ConfigMap) bool { return true })

	var kept v1beta2.ModuleTemplate
	change(s, &kept, name, func(*v1beta2.ModuleTemplate) {})
	s.drop(&v1beta2.ModuleTemplate{ObjectMeta: s.meta(name)})
	m := s.state("app", v1beta2.StateError)
	if !strings.Contains(m.Message, "ModuleTemplate "+name+" does not exist") {
		t.Errorf("message %q", m.Message)
	}
	s.proxy.forget()
	s.create(&v1beta2.ModuleTemplate{ObjectMeta: s.meta(name), Spec: kept.Spec})
	s.ready()
	after := s.object("app", "there", func(*corev1.ConfigMap) bool { return true })
	if after.UID != before.UID || after.ResourceVersion != before.ResourceVersion {
		t.Error("the object did not stay as it was")
	}
	if wrote := s.proxy.asked(writing...); len(wrote) > 0 {
		t.Errorf("applied again: %q", wrote)
	}
}

func TestMandatoryModule(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.template("must", "1.0.0")
	s.create(&v1beta2.Kyma{ObjectMeta: metav1.ObjectMeta{Namespace: space, Name: s.name, Labels: map[string]string{"test": s.name}}, Spec: v1beta2.KymaSpec{Channel: "regular"}})
	release := &v1beta2.ModuleReleaseMeta{ObjectMeta: s.meta(s.mod("must")), Spec: v1beta2.ModuleReleaseMetaSpec{
		ModuleName: s.mod("must"), Mandatory: &v1beta2.MandatoryVersion{Version: "1.0.0"}, KymaSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"test": s.name}},
	}}
	s.create(release)
	s.at("must", "1.0.0")
	s.changes(func(k *v1beta2.Kyma) { k.Labels = nil })
	s.kyma("without it", func(k *v1beta2.Kyma) bool { return len(k.Status.Modules) == 0 && k.Status.State == v1beta2.StateReady })
	if s.has("must") {
		t.Error("it is not removed")
	}
	s.drop(release)
}

func TestUnmanagedAndRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.offers("other", "1.0.0")
	s.template("app", "2.0.0")
	s.wants(s.entry("app"), s.entry("other"))
	s.ready()
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules[0] = s.entry("app", unmanaged) })
	s.state("app", v1beta2.StateUnmanaged)
	s.ready()
	s.release("app", "2.0.0")
	s.kyma("left alone", func(k *v1beta2.Kyma) bool { return moduleOf(k, s.mod("app")).State == v1beta2.StateUnmanaged })
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules = k.Spec.Modules[1:] })
	s.kyma("forgotten", func(k *v1beta2.Kyma) bool { return moduleOf(k, s.mod("app")) == nil })
	if m := s.object("app", "there", func(*corev1.ConfigMap) bool { return true }); m.Data["version"] != "1.0.0" {
		t.Errorf("it was changed to %s", m.Data["version"])
	}
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules = append(k.Spec.Modules, s.entry("app")) }) // and managed again
	s.at("app", "2.0.0")
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules = nil })
	s.kyma("empty", func(k *v1beta2.Kyma) bool { return len(k.Status.Modules) == 0 && k.Status.State == v1beta2.StateReady })
	if s.has("app") || s.has("other") {
		t.Error("modules are left in the runtime")
	}
	s.event("ModuleRemoved", s.mod("other"))
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.template("app", "2.0.0")
	s.wants(s.entry("app"))
	s.ready()
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Suspend = true })
	suspended := func(k *v1beta2.Kyma) bool { return reasonOf(k) == v1beta2.ReasonSuspended }
	s.kyma("suspended", suspended)
	s.proxy.forget()
	s.release("app", "2.0.0")
	s.during(observed)
	if asked := s.proxy.asked(); len(asked) > 0 {
		t.Errorf("requests while suspended: %q", asked)
	}
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Suspend = false })
	s.at("app", "2.0.0")
	s.ready()
}
