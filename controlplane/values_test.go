package controlplane_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// shows is a chart whose ConfigMap shows a value.
const shows = `apiVersion: v1
kind: ConfigMap
metadata: {name: $NAME}
data:
  inline: {{ .Values.inline | default "none" | quote }}
  from: {{ .Values.from | default "none" | quote }}
  secret: {{ .Values.password | default "none" | sha256sum | quote }}
`

func (s *site) offersChart(name string) {
	s.t.Helper()
	s.offers(name, "1.0.0", func(t *v1beta2.ModuleTemplateSpec) {
		t.Source = s.chart(strings.ReplaceAll(shows, "$NAME", s.mod(name)))
	})
}

// from takes values from a Secret of the test.
func (s *site) from(name string, change ...func(*v1beta2.ValuesReference)) func(*v1beta2.Module) {
	ref := v1beta2.ValuesReference{Kind: "Secret", Name: s.mod(name)}
	for _, c := range change {
		c(&ref)
	}
	return func(m *v1beta2.Module) { m.ValuesFrom = append(m.ValuesFrom, ref) }
}

func optional(r *v1beta2.ValuesReference) { r.Optional = true }

func inline(json string) func(*v1beta2.Module) {
	return func(m *v1beta2.Module) { m.Values = &runtime.RawExtension{Raw: []byte(json)} }
}

func (s *site) data(name, key, want string) {
	s.t.Helper()
	s.object(name, key+" is "+want, func(m *corev1.ConfigMap) bool { return m.Data[key] == want })
}

func TestValues(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offersChart("app")
	s.wants(s.entry("app", inline(`{"inline": "one"}`)))
	s.data("app", "inline", "one")
	s.ready()
	s.changes(func(k *v1beta2.Kyma) { inline(`{"inline": "two"}`)(&k.Spec.Modules[0]) })
	s.data("app", "inline", "two")
	s.ready()
	s.written()
	s.proxy.forget()
	s.changes(func(k *v1beta2.Kyma) {
		inline(`{"inline":   "two"}`)(&k.Spec.Modules[0])
		k.Spec.SkipMaintenanceWindows = true
	})
	s.ready()
	if asked := s.proxy.asked(); len(asked) > 0 {
		t.Errorf("a change that changes nothing costs requests: %q", asked)
	}
}

func TestValuesFromSecret(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offersChart("app")
	s.wants(s.entry("app", s.from("absent", optional), s.from("later"), inline(`{"inline": "one"}`)))
	m := s.state("app", v1beta2.StateWaiting)
	if len(m.WaitingFor) != 1 || m.WaitingFor[0] != "values/secret/"+s.mod("later") {
		t.Errorf("it waits for %q", m.WaitingFor)
	}
	later := s.secret(s.mod("later"), map[string]string{"values.yaml": "from: first\ninline: overridden\npassword: " + canary("values")})
	s.create(later)
	s.data("app", "from", "first")
	s.data("app", "inline", "one")
	s.ready()

	set := func(text string) {
		change(s, &corev1.Secret{}, later.Name, func(s *corev1.Secret) { s.Data = map[string][]byte{"values.yaml": []byte(text)} })
	}
	set("from: second\npassword: " + canary("more"))
	s.data("app", "from", "second")
	s.ready()
	before := s.object("app", "there", func(*corev1.ConfigMap) bool { return true })
	for _, text := range []string{"password: [" + canary("broken"), "- " + canary("list")} {
		set(text)
		m = s.module("app", "in error", func(m v1beta2.ModuleStatus) bool { return m.State == v1beta2.StateError })
		if !strings.Contains(m.Message, "key values.yaml of Secret "+s.mod("later")) || strings.Contains(m.Message, canaryPrefix) {
			t.Errorf("message %q", m.Message)
		}
	}
	if now := s.object("app", "there", func(*corev1.ConfigMap) bool { return true }); now.ResourceVersion != before.ResourceVersion {
		t.Error("the runtime was changed by values that cannot be used")
	}
	set("from: third")
	s.data("app", "from", "third")
	s.ready()
	s.create(s.secret(s.mod("absent"), map[string]string{"values.yaml": "from: ignored\ninline: ignored\npassword: now"}))
	s.object("app", "with the optional values", func(m *corev1.ConfigMap) bool {
		return m.Data["secret"] != before.Data["secret"] && m.Data["from"] == "third"
	})
	s.drop(s.secret(s.mod("later"), nil))
	s.state("app", v1beta2.StateWaiting)
	if !s.has("app") {
		t.Error("it was removed for want of a Secret")
	}
}

// Values of a Secret that a chart refuses, or that somebody edits in the runtime, are in no message.
func TestValuesAreInNoMessage(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(watching)
	s.offers("strict", "1.0.0", func(t *v1beta2.ModuleTemplateSpec) {
		t.Source = s.chart("apiVersion: v1\nkind: Secret\nmetadata: {name: it}\nstringData: {password: {{ .Values.password | quote }}}\n")
		s.write(t.Source.Chart.Path+"/values.schema.json", `{"properties": {"password": {"type": "string", "pattern": "^[a-z0-9-]{0,40}$", "not": {"const": "`+canary("const")+`"}}}}`)
	})
	s.create(s.secret(s.mod("values"), map[string]string{"values.yaml": "password: NOT " + canary("pattern")}))
	s.wants(s.entry("strict", s.from("values")))
	m := s.state("strict", v1beta2.StateError)
	if strings.Contains(m.Message, canaryPrefix) {
		t.Errorf("message %q", m.Message)
	}
	change(s, &corev1.Secret{}, s.mod("values"), func(s *corev1.Secret) {
		s.Data = map[string][]byte{"values.yaml": []byte("password: " + canary("good"))}
	})
	s.ready()
	var it corev1.Secret
	if err := s.cloud.Get(t.Context(), s.in("it"), &it); err != nil || string(it.Data["password"]) != canary("good") {
		t.Fatalf("%v; %q", err, it.Data)
	}
	it.Data["password"] = []byte(canary("edited"))
	if err := s.cloud.Update(t.Context(), &it); err != nil {
		t.Fatal(err)
	}
	await(t, s.cloud, &corev1.SecretList{}, s.in("it"), "put back", func(it *corev1.Secret) bool { return string(it.Data["password"]) == canary("good") })
	s.event("DriftReverted", "Secret")
}

func TestCustomResourcePolicy(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	data := func(t *v1beta2.ModuleTemplateSpec) {
		t.Data = &runtime.RawExtension{Raw: []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + s.name + `-default","namespace":"` + s.name + `"}}`)}
	}
	s.offers("ignoring", "1.0.0", data)
	s.wants(s.entry("ignoring", func(m *v1beta2.Module) { m.CustomResourcePolicy = v1beta2.IgnoreCustomResource }))
	s.ready()
	if s.has("default") {
		t.Error("the default custom resource was made although it is to be ignored")
	}
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules[0].CustomResourcePolicy = v1beta2.CreateAndDelete })
	s.ready()
	if !s.has("default") {
		t.Error("the default custom resource was not made")
	}
	s.changes(func(k *v1beta2.Kyma) { k.Spec.Modules = nil })
	s.kyma("without modules", func(k *v1beta2.Kyma) bool {
		return len(k.Status.Modules) == 0 && k.Status.ObservedGeneration == k.Generation
	})
	if s.has("default") {
		t.Error("the default custom resource was not removed with the module")
	}
}
