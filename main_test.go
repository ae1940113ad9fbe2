package mothership_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/infra/local"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// renderChild is the argument by which the test's own executable becomes a rendering process.
const renderChild = "render-child"

// parallel is how many tests run at once at least: they wait for servers more than they compute.
const parallel = 4

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == renderChild {
		os.Exit(mothership.RenderChild())
	}
	flag.Parse()
	if n, err := strconv.Atoi(flag.Lookup("test.parallel").Value.String()); err == nil && n < parallel {
		_ = flag.Set("test.parallel", strconv.Itoa(parallel))
	}
	os.Exit(localtest.Main(m, func(o *local.Options) { o.Nodes, o.Controllers = true, local.WorkloadControllers }))
}

// site is a namespace of a real cluster and an Installer, for one test.
type site struct {
	t         *testing.T
	srv       *local.Server
	cfg       *rest.Config
	namespace string
	installer *mothership.Installer
}

func setup(t *testing.T) *site {
	t.Helper()
	srv := localtest.Server(t)
	return &site{
		t: t, srv: srv, cfg: srv.Config(), namespace: localtest.Namespace(t, srv),
		installer: mothership.New(mothership.Options{}),
	}
}

// fill replaces $NS by the site's namespace, which is also a name that no other test uses.
func (s *site) fill(text string) string { return strings.ReplaceAll(text, "$NS", s.namespace) }

// module is one of plain manifests, in the site's namespace.
func (s *site) module(name, yaml string, change ...func(*v1beta2.ModuleTemplateSpec)) mothership.Module {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), name+".yaml")
	if err := os.WriteFile(file, []byte(s.fill(yaml)), 0o600); err != nil {
		s.t.Fatal(err)
	}
	m := mothership.Module{Name: name, Namespace: s.namespace}
	m.Template.Source = mothership.Manifests(file)
	for _, c := range change {
		c(&m.Template)
	}
	return m
}

func adopting(t *v1beta2.ModuleTemplateSpec) { t.Adopt = true }

func (s *site) install(m mothership.Module) *mothership.Result {
	s.t.Helper()
	r, err := s.installer.Install(s.t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: time.Minute})
	if err != nil {
		s.t.Fatalf("installing %s: %v", m.Name, err)
	}
	return r
}

// refused installs a module that cannot be, and returns the error. It must come soon.
func (s *site) refused(m mothership.Module) error {
	s.t.Helper()
	start := time.Now()
	_, err := s.installer.Install(s.t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: 30 * time.Second})
	if err == nil {
		s.t.Fatalf("installing %s: no error", m.Name)
	}
	if took := time.Since(start); took > 15*time.Second {
		s.t.Errorf("the refusal took %s: %v", took, err)
	}
	return err
}

func (s *site) diff(m mothership.Module) *mothership.Comparison {
	s.t.Helper()
	c, err := s.installer.Diff(s.t.Context(), s.cfg, m, mothership.CompareOptions{Timeout: time.Minute})
	if err != nil {
		s.t.Fatalf("comparing %s: %v", m.Name, err)
	}
	return c
}

func (s *site) verify(m mothership.Module) *mothership.Comparison {
	s.t.Helper()
	c, err := s.installer.Verify(s.t.Context(), s.cfg, m, mothership.CompareOptions{Timeout: time.Minute})
	if err != nil {
		s.t.Fatalf("verifying %s: %v", m.Name, err)
	}
	return c
}

func (s *site) uninstall(m mothership.Module) *mothership.Result {
	s.t.Helper()
	r, err := s.installer.Uninstall(s.t.Context(), s.cfg, m, mothership.UninstallOptions{Timeout: time.Minute})
	if err != nil {
		s.t.Fatalf("uninstalling %s: %v", m.Name, err)
	}
	return r
}

func (s *site) kubectl(args ...string) string {
	s.t.Helper()
	return localtest.Kubectl(s.t, s.srv, append([]string{"--namespace=" + s.namespace}, args...)...)
}

// input runs kubectl with manifests to read.
func (s *site) input(yaml string, args ...string) {
	s.t.Helper()
	localtest.KubectlInput(s.t, s.srv, s.fill(yaml), append([]string{"--namespace=" + s.namespace}, args...)...)
}

// dryRunDenied says whether the server would refuse a ConfigMap.
func (s *site) dryRunDenied(body string) bool {
	s.t.Helper()
	err := localtest.Client(s.t, s.srv).CoreV1().RESTClient().Post().Namespace(s.namespace).Resource("configmaps").
		Param("dryRun", "All").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(s.t.Context()).Error()
	return err != nil
}

// forget deletes what a test named after itself of an admission kind, when the test's own context is over.
func (s *site) forget(ctx context.Context, resource string) {
	for _, name := range []string{s.namespace, "guard-" + s.namespace} {
		err := localtest.Client(s.t, s.srv).AdmissionregistrationV1().RESTClient().Delete().Resource(resource).Name(name).Do(ctx).Error()
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Errorf("deleting %s %s: %v", resource, name, err)
		}
	}
}

// readFile is the text of a module of one file.
func readFile(t *testing.T, m mothership.Module) string {
	t.Helper()
	text, err := os.ReadFile(m.Template.Source.Manifests.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// memberKinds are the kinds that the modules of these tests are made of.
const memberKinds = "configmaps,secrets,services,serviceaccounts,deployments,jobs,endpointslices,clusterroles,crds," +
	"validatingwebhookconfigurations"

// members are the objects that carry a set's label, one "kind/name" per line, sorted by kubectl.
func (s *site) members(m mothership.Module) string {
	s.t.Helper()
	return s.kubectl("get", memberKinds, "-A", "-o", "name", "-l",
		v1beta2.ApplySetPartOfLabel+"="+bundle.ApplySetID(m.Namespace, m.Name))
}

// parent is the inventory of a module, or nil.
func (s *site) parent(m mothership.Module) *corev1.ConfigMap {
	s.t.Helper()
	list, err := localtest.Client(s.t, s.srv).CoreV1().ConfigMaps(v1beta2.SystemNamespace).List(s.t.Context(), metav1.ListOptions{
		FieldSelector: "metadata.name=" + bundle.ParentName(m.Namespace, m.Name),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	return &list.Items[0]
}

// state is the members of a module and its inventory, by name, with what tells whether they were written to.
func (s *site) state(m mothership.Module) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	if p := s.parent(m); p != nil {
		out["parent"] = p.ResourceVersion
	}
	raw := s.kubectl("get", "configmaps,secrets", "-o", "json", "-l",
		v1beta2.ApplySetPartOfLabel+"="+bundle.ApplySetID(m.Namespace, m.Name))
	var list struct {
		Items []metav1.PartialObjectMetadata `json:"items"`
	}
	if err := json.Unmarshal([]byte(raw), &list); err != nil {
		s.t.Fatal(err)
	}
	for _, item := range list.Items {
		out[item.Kind+"/"+item.Name] = string(item.UID) + "@" + item.ResourceVersion
	}
	return out
}

// actions are what happened to each object, as "ConfigMap a: created".
func actions(events []mothership.Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%s %s: %s", e.Object.Kind, e.Object.Name, e.Action))
	}
	return out
}

// changes are what a comparison found, as "ConfigMap a: repaired .data.x by kubectl-patch".
func changes(c *mothership.Comparison) []string {
	var out []string
	for _, change := range c.Changes {
		line := fmt.Sprintf("%s %s: %s", change.Object.Kind, change.Object.Name, change.Action)
		for _, f := range change.Fields {
			line += " " + f.Path
			if f.Manager != "" {
				line += " by " + f.Manager
			}
		}
		out = append(out, line)
	}
	return out
}

// wants fails the test unless a text has all the words.
func wants(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in: %s", w, text)
		}
	}
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }

// eventually polls until done says nothing is missing, for half a minute.
func eventually(t *testing.T, done func() string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
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
