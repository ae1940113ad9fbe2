package module

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

func TestMain(m *testing.M) { os.Exit(localtest.Main(m)) }

// site is a namespace of a real cluster, a runtime that leads there, and a Reconciler.
type site struct {
	t          *testing.T
	namespace  string
	client     *remote.Client
	rt         *Runtime
	reconciler *Reconciler

	mu        sync.Mutex
	baselines map[string]*apply.Baseline // by module; guarded by mu
}

func setup(t *testing.T) *site {
	t.Helper()
	return setupOn(t, localtest.Server(t))
}

func setupOn(t *testing.T, srv *local.Server) *site {
	t.Helper()
	client, err := remote.New(srv.Config(), remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	s := &site{
		t: t, namespace: localtest.Namespace(t, srv), client: client, rt: NewRuntime("eu-1", client),
		baselines: map[string]*apply.Baseline{},
	}
	s.reconciler = New(Options{
		Sources: source.New(source.Options{}), Renderer: render.Cached(render.New(render.Options{}), 1<<20),
		Applier: apply.New(apply.Options{}), Key: []byte("the key of these tests"), Applied: s.applied,
	})
	return s
}

func (s *site) applied(runtime string, b *apply.Baseline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if runtime != "eu-1" {
		s.t.Errorf("a baseline of runtime %q", runtime)
	}
	s.baselines[b.ID().Module] = b
}

func (s *site) baseline(module string) *apply.Baseline {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.baselines[module]
}

// component is a module of plain manifests. $NS stands for the site's namespace.
func (s *site) component(name string, yaml ...string) reconciler.Component {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), name+".yaml")
	text := strings.ReplaceAll(strings.Join(yaml, "---\n"), "$NS", s.namespace)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	c := reconciler.Component{Name: name, Namespace: s.namespace}
	c.Template.Version, c.Template.Source.Manifests = "1.0.0", &v1beta2.SourceRef{Path: file}
	return c
}

// run is one pass.
func (s *site) run(c reconciler.Component) reconciler.Result {
	s.t.Helper()
	return s.reconciler.Reconcile(s.t.Context(), reconciler.Request{Component: c, Runtime: s.rt})
}

// install is one pass that must end well.
func (s *site) install(c reconciler.Component) reconciler.Result {
	s.t.Helper()
	r := s.run(c)
	if r.Outcome != reconciler.OutcomeDone {
		s.t.Fatalf("installing %s: %s: %s %v", c.Name, r.Outcome, r.Message, r.Err)
	}
	return r
}

// until runs passes until one is done.
func (s *site) until(c reconciler.Component) {
	s.t.Helper()
	eventually(s.t, func() string {
		if r := s.run(c); r.Outcome != reconciler.OutcomeDone {
			return fmt.Sprintf("%s: %s %v", r.Outcome, r.Message, r.Err)
		}
		return ""
	})
}

var configMaps = cluster.Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

// widgetsOf is the kind that the test's definition defines.
func (s *site) widgetsOf() cluster.Resource {
	return cluster.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: s.namespace + ".test", Version: "v1", Resource: "widgets"},
		Kind:                 "Widget", Namespaced: true,
	}
}

func (s *site) patch(r cluster.Resource, name, patch string) {
	s.t.Helper()
	err := s.client.Patch(s.t.Context(), r, s.namespace, name, types.MergePatchType, []byte(patch), cluster.PatchOptions{Manager: "kubectl-edit"}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) delete(r cluster.Resource, name string) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(), r, s.namespace, name, cluster.DeleteOptions{Propagation: metav1.DeletePropagationBackground}); err != nil {
		s.t.Fatal(err)
	}
}

// configs are the names of the ConfigMaps of a module, sorted by the server.
func (s *site) configs(c reconciler.Component) string {
	s.t.Helper()
	items, err := s.client.ListMeta(s.t.Context(), configMaps, cluster.ListOptions{Namespace: s.namespace, LabelSelector: partOf(c)})
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, item := range items {
		names = append(names, item.Name)
	}
	return strings.Join(names, " ")
}

// config is a ConfigMap.
func config(name, value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\ndata: {v: \"" + value + "\"}\n"
}

// widgets defines a kind in a group of the test's own; its schema drops what it does not know.
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
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
`

// widget is an instance of it.
func widget(name string) string {
	return "apiVersion: $NS.test/v1\nkind: Widget\nmetadata: {name: " + name + "}\nspec: {size: 1}\n"
}

// eventually polls until done says nothing is missing, for half a minute.
func eventually(t *testing.T, done func() string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for {
		missing := done()
		if missing == "" {
			return
		}
		select {
		case <-deadline:
			t.Fatal(missing)
		case <-tick.C:
		}
	}
}
