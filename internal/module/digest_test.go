package module

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// digester is a Reconciler that cannot render.
func digester(t *testing.T, key string) *Reconciler {
	return New(Options{
		Sources: source.New(source.Options{}), Key: []byte(key),
		Renderer: render.Func(func(context.Context, render.Request) (*bundle.Bundle, error) {
			t.Error("it renders")
			return nil, render.ErrCrash
		}),
	})
}

// chart is a folder with a chart that draws randomness.
func chart(t *testing.T, template string) *v1beta2.SourceRef {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "templates/all.yaml": template,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &v1beta2.SourceRef{Path: dir}
}

func raw(json string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(json)} }

// undigested are the fields of a template that change neither what is applied nor how, and why.
var undigested = map[string]string{
	"ModuleName": "the component's name is what counts",
	"Version":    "it is told, not applied",
	"Namespace":  "the component's namespace is what counts",
	"Needs":      "they say when, not what",
}

func TestEachFieldOfATemplateIsDigested(t *testing.T) {
	t.Parallel()
	r := digester(t, "key")
	base := reconciler.Component{Name: "web", Namespace: "demo"}
	base.Template.Source.Chart = chart(t, config("a", "1"))
	options := RenderOptions{Capabilities: render.Capabilities{KubeVersion: "v1.36.3"}, PerRuntime: "uid"}
	digest := func(c reconciler.Component) string {
		t.Helper()
		d, err := r.InputDigest(t.Context(), c, options)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := digest(base)
	changes := map[string]func(*v1beta2.ModuleTemplateSpec){
		"ModuleName":         func(s *v1beta2.ModuleTemplateSpec) { s.ModuleName = "other" },
		"Version":            func(s *v1beta2.ModuleTemplateSpec) { s.Version = "2.0.0" },
		"Namespace":          func(s *v1beta2.ModuleTemplateSpec) { s.Namespace = "other" },
		"Needs":              func(s *v1beta2.ModuleTemplateSpec) { s.Needs = []string{"x"} },
		"Reconciler":         func(s *v1beta2.ModuleTemplateSpec) { s.Reconciler = "mine" },
		"Source":             func(s *v1beta2.ModuleTemplateSpec) { s.Source.Chart = chart(t, config("a", "2")) },
		"Values":             func(s *v1beta2.ModuleTemplateSpec) { s.Values = raw(`{"a":1}`) },
		"Data":               func(s *v1beta2.ModuleTemplateSpec) { s.Data = raw(`{"kind":"Widget"}`) },
		"Manager":            func(s *v1beta2.ModuleTemplateSpec) { s.Manager = &v1beta2.Manager{Kind: "Widget", Version: "v1"} },
		"Health":             func(s *v1beta2.ModuleTemplateSpec) { s.Health = []v1beta2.HealthRule{{Kind: "Widget", Ready: "true"}} },
		"Yield":              func(s *v1beta2.ModuleTemplateSpec) { s.Yield = []v1beta2.YieldRule{{Paths: []string{"/data"}}} },
		"Adopt":              func(s *v1beta2.ModuleTemplateSpec) { s.Adopt = true },
		"PerRuntime":         func(s *v1beta2.ModuleTemplateSpec) { s.PerRuntime = true },
		"ServiceAccountName": func(s *v1beta2.ModuleTemplateSpec) { s.ServiceAccountName = "team" },
		"PostRender": func(s *v1beta2.ModuleTemplateSpec) {
			s.PostRender = &v1beta2.PostRender{Labels: map[string]string{"a": "b"}}
		},
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[v1beta2.ModuleTemplateSpec]()) {
		change := changes[field.Name]
		if change == nil {
			t.Errorf("%s: this test does not know the field: if it changes what is applied, or how, it belongs into treatment", field.Name)
			continue
		}
		c := base
		change(&c.Template)
		if reflect.DeepEqual(base.Template, c.Template) {
			t.Errorf("%s: the test changes nothing", field.Name)
		}
		if changed := digest(c) != before; changed == (undigested[field.Name] != "") {
			t.Errorf("%s: the digest changed: %t (%s)", field.Name, changed, undigested[field.Name])
		}
	}
}

func TestInputDigest(t *testing.T) {
	t.Parallel()
	c := reconciler.Component{Name: "web", Namespace: "demo", Values: map[string]any{"a": "b"}}
	c.Template.Source.Chart, c.Template.Data = chart(t, config("a", "1")), raw(`{"kind":"W","n":12345678901234567890}`)
	o := RenderOptions{Capabilities: render.Capabilities{KubeVersion: "v1.36.3"}}
	digest := func(key string, change func(*reconciler.Component, *RenderOptions)) string {
		t.Helper()
		c, o := c, o
		if change != nil {
			change(&c, &o)
		}
		d, err := digester(t, key).InputDigest(t.Context(), c, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	before := digest("key", nil)
	for name, change := range map[string]func(*reconciler.Component, *RenderOptions){
		"Name":      func(c *reconciler.Component, _ *RenderOptions) { c.Name = "other" },
		"Namespace": func(c *reconciler.Component, _ *RenderOptions) { c.Namespace = "other" },
		"Values":    func(c *reconciler.Component, _ *RenderOptions) { c.Values = nil },
		"Minor":     func(_ *reconciler.Component, o *RenderOptions) { o.Capabilities.KubeVersion = "v1.35.0" },
		"Number": func(c *reconciler.Component, _ *RenderOptions) {
			c.Template.Data = raw(`{"kind":"W","n":12345678901234567891}`)
		},
		"NoData": func(c *reconciler.Component, _ *RenderOptions) { c.Template.Data = nil },
	} {
		if digest("key", change) == before {
			t.Errorf("%s: the digest is the same", name)
		}
	}
	if digest("other key", nil) == before {
		t.Error("the key does not count")
	}
	if got := digest("", nil); got != "" {
		t.Errorf("without a key: %s", got)
	}
	for name, change := range map[string]func(*reconciler.Component, *RenderOptions){
		"Patch": func(_ *reconciler.Component, o *RenderOptions) { o.Capabilities.KubeVersion = "v1.36.9" },
		"Blank": func(c *reconciler.Component, _ *RenderOptions) {
			c.Template.Data = raw(`{ "n": 12345678901234567890, "kind": "W" }`)
		},
	} {
		if digest("key", change) != before {
			t.Errorf("%s: the digest is another", name)
		}
	}
	c.Template.PerRuntime = true
	if _, err := digester(t, "key").InputDigest(t.Context(), c, o); err == nil {
		t.Error("a module that is rendered per runtime has a digest without one")
	}
}

func TestDigestsOfReconcileAreKnownBefore(t *testing.T) {
	t.Parallel()
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: generated}\nstringData: {password: {{ randAlphaNum 20 | quote }}}\n"
	for name, perRuntime := range map[string]bool{"Shared": false, "PerRuntime": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			c := s.component("web", config("a", "1"))
			c.Template.PerRuntime, c.Template.Data = perRuntime, raw(defaultConfig("default"))
			if perRuntime {
				c.Template.Source = v1beta2.Source{Chart: chart(t, secret)}
			}
			r := s.install(c)
			uid, version := s.rt.Known()
			before := s.client.Stats().Total()
			want, err := s.reconciler.InputDigest(t.Context(), c, RenderOptions{
				Capabilities: render.Capabilities{KubeVersion: version}, PerRuntime: map[bool]string{true: uid}[perRuntime],
			})
			if err != nil || want == "" || r.InputDigest != want {
				t.Errorf("reported %q, computed %q, %v", r.InputDigest, want, err)
			}
			if s.client.Stats().Total() != before {
				t.Error("the runtime was asked")
			}
			session, err := s.reconciler.OpenReadOnly(t.Context(), s.rt, c)
			if err != nil {
				t.Fatal(err)
			}
			if got := session.Rendered(); got.InputDigest != want || got.Bundle.Digest != r.BundleDigest {
				t.Errorf("rendered %s, %s; reported %+v", got.InputDigest, got.Bundle.Digest, r)
			}
			if i := slices.IndexFunc(session.Rendered().Bundle.Objects, func(o *bundle.Object) bool { return o.Once }); i < 0 {
				t.Error("nothing is created once")
			}
		})
	}
}

// defaultConfig is a ConfigMap as a default custom resource could be given.
func defaultConfig(name string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"v":"1"}}`
}
