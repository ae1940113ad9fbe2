package module

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/infra/local/localtest"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/reconciler"
)

const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s}\n"

// five are modules that have most kinds in common.
func (s *site) five() []reconciler.Component {
	s.t.Helper()
	var out []reconciler.Component
	for i := range 5 {
		name := fmt.Sprintf("m%d", i)
		parts := []string{config(name, "1"), config(name+"-b", "1"), fmt.Sprintf(account, name)}
		switch i {
		case 0:
			parts = append(parts, "apiVersion: v1\nkind: Namespace\nmetadata: {name: $NS, labels: {mine: \"yes\"}}\n")
		case 1:
			parts = append(parts, widgets, widget("one"))
		}
		out = append(out, s.component(name, parts...))
	}
	out[2].Template.PerRuntime = true
	out[2].Template.Source = v1beta2.Source{Chart: chart(s.t, config("m2", "1")+"---\n"+
		"apiVersion: v1\nkind: Secret\nmetadata: {name: generated}\nstringData: {password: {{ randAlphaNum 20 | quote }}}\n")}
	out[3].Template.Data = raw(defaultConfig("default"))
	return out
}

// verify compares, and returns the names and reasons of what has drifted, sorted.
func (s *site) verify(components []reconciler.Component) []string {
	s.t.Helper()
	drifted, err := s.reconciler.Verify(s.t.Context(), s.rt, components)
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, d := range drifted {
		out = append(out, d.Component+": "+strings.ReplaceAll(d.Reason, s.namespace, "$NS"))
	}
	slices.Sort(out)
	return out
}

func TestVerifyCostsAListPerKind(t *testing.T) {
	t.Parallel()
	s := setup(t)
	components := s.five()
	for _, c := range components {
		s.until(c)
	}
	clear(s.baselines)
	before := s.client.Stats()
	if drifted := s.verify(components); len(drifted) != 0 {
		t.Errorf("drifted: %q", drifted)
	}
	// ConfigMaps, ServiceAccounts, Secrets, definitions and Widgets; the inventories, the Namespaces and the seed.
	if diff := cmp.Diff(remote.Stats{"list": 5 + 2, "get": 1}, s.client.Stats().Sub(before)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	for _, c := range components {
		if s.baseline(c.Name) == nil {
			t.Errorf("%s has no baseline", c.Name)
		}
	}
}

func TestVerifyNamesWhatDrifted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	components := s.five()
	for _, c := range components {
		s.until(c)
	}
	changed := slices.Clone(components)
	changed[4] = s.component("m4", config("m4", "2"), config("m4-b", "1"))
	broken := append(slices.Clone(components), s.component("broken", "kind: ["), s.component("new", config("new", "1")))
	unlabelled := `{"metadata":{"labels":{"` + v1beta2.ApplySetPartOfLabel + `":null}}}`
	for _, test := range []struct {
		name   string
		damage func()
		of     []reconciler.Component
		want   []string
	}{
		{"FieldChanged", func() { s.patch(configMaps, "m0", `{"data":{"v":"9"}}`) }, components, []string{"m0: ConfigMap $NS/m0: .data.v was changed by kubectl-edit"}},
		{"FieldRemoved", func() { s.patch(configMaps, "m1", `{"data":null}`) }, components, []string{"m1: ConfigMap $NS/m1: .data.v was removed"}},
		{"FieldAdded", func() { s.patch(configMaps, "m0", `{"data":{"theirs":"1"}}`) }, components, nil},
		{"Deleted", func() { s.delete(configMaps, "m1-b") }, components, []string{"m1: ConfigMap $NS/m1-b: is missing, or has lost the label of its module"}},
		{"LabelTaken", func() { s.patch(configMaps, "m3", unlabelled) }, components, []string{"m3: ConfigMap $NS/m3: is missing, or has lost the label of its module"}},
		{"CustomResource", func() { s.patch(s.widgetsOf(), "one", `{"spec":{"size":7}}`) }, components, []string{"m1: Widget.$NS.test $NS/one: .spec.size was changed by kubectl-edit"}},
		{"Namespace", func() { s.patchNamespace(`{"metadata":{"labels":{"mine":"no"}}}`) }, components, []string{"m0: Namespace $NS: .metadata.labels.mine was changed by kubectl-edit"}},
		{"CreatedOnce", func() { s.patch(configMaps, "default", `{"data":{"v":"7"}}`) }, components, nil},
		{"CreatedOnceAndGone", func() { s.delete(configMaps, "default") }, components, []string{"m3: ConfigMap $NS/default: is missing, or has lost the label of its module"}},
		{"CreatedOnceAndUnlabelled", func() { s.patch(configMaps, "default", unlabelled) }, components, nil},
		{"Inventory", func() { s.deleteInventory("m2") }, components, []string{"m2: ConfigMap mothership-system/$NS.m2, its inventory, is missing"}},
		{"InventoryUnlabelled", func() { s.patchInventory("m2", `{"metadata":{"labels":null}}`) }, components, nil},
		{"ForeignInventory", func() {
			s.patchInventory("m2", `{"metadata":{"annotations":{"`+v1beta2.OwnerAnnotation+`":"other"}}}`)
		}, components, []string{"m2: the module belongs to somebody else: module $NS/m2 is managed by control plane other: change it there"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.damage()
			if diff := cmp.Diff(test.want, s.verify(test.of)); diff != "" {
				t.Errorf("drifted (-want +got):\n%s", diff)
			}
			if test.name == "ForeignInventory" {
				s.patchInventory("m2", `{"metadata":{"annotations":{"`+v1beta2.OwnerAnnotation+`":"`+v1beta2.EmbeddedOwner+`"}}}`)
			}
			for _, c := range test.of {
				s.until(c)
			}
			if again := s.verify(test.of); len(again) != 0 {
				t.Errorf("after a run: %q", again)
			}
		})
	}

	t.Run("OtherBundle", func(t *testing.T) {
		got := s.verify(changed)
		if len(got) != 1 || !strings.HasPrefix(got[0], "m4: another bundle was applied") {
			t.Errorf("drifted: %q", got)
		}
	})
	t.Run("NotRenderedAndNotInstalled", func(t *testing.T) {
		got := s.verify(broken)
		if len(got) != 2 || !strings.HasPrefix(got[0], `broken: module "broken"`) || !strings.Contains(got[1], "new: ConfigMap mothership-system/$NS.new, its inventory, is missing") {
			t.Errorf("drifted: %q", got)
		}
	})
	t.Run("MoreThanWanted", func(t *testing.T) {
		c := components[0]
		extra := strings.ReplaceAll(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"left","labels":{"$LABEL":"`+bundle.ApplySetID(c.Namespace, c.Name)+`"}}}`, "$LABEL", v1beta2.ApplySetPartOfLabel)
		if err := s.client.Apply(t.Context(), configMaps, s.namespace, "left", []byte(extra), cluster.ApplyOptions{Manager: v1beta2.FieldManager}, nil); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"m0: ConfigMap $NS/left: is no longer part of the module"}, s.verify(components)); diff != "" {
			t.Errorf("drifted (-want +got):\n%s", diff)
		}
	})
	t.Run("BeingDeletedIsLeftOut", func(t *testing.T) {
		deleting := slices.Clone(components)
		for i := range deleting {
			deleting[i].Deleting = true
		}
		if got := s.verify(deleting); len(got) != 0 {
			t.Errorf("drifted: %q", got)
		}
	})
}

// TestKeptDefinitionIsNoDrift: a definition that is no longer wanted stays as long as there are instances, and wakes nobody.
func TestKeptDefinitionIsNoDrift(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.until(s.component("web", widgets, config("a", "1")))
	body := strings.ReplaceAll(`{"apiVersion":"$NS.test/v1","kind":"Widget","metadata":{"name":"mine"}}`, "$NS", s.namespace)
	if err := s.client.Create(t.Context(), s.widgetsOf(), s.namespace, []byte(body), nil); err != nil {
		t.Fatal(err)
	}
	c := s.component("web", config("a", "1"))
	s.until(c)
	if got := s.verify([]reconciler.Component{c}); len(got) != 0 {
		t.Errorf("drifted: %q", got)
	}
	s.delete(s.widgetsOf(), "mine")
	if got := s.verify([]reconciler.Component{c}); len(got) != 1 || !strings.Contains(got[0], "no longer part of the module") {
		t.Errorf("without instances: %q", got)
	}
	s.until(c)
	eventually(t, func() string { return s.leftOf(c) })
}

// TestVerifyGoesOnWithoutOneKind: a list that fails holds up the modules that have the kind, and no other.
func TestVerifyGoesOnWithoutOneKind(t *testing.T) {
	t.Parallel()
	srv := localtest.Server(t)
	s := setup(t)
	a, b := s.component("a", config("a", "1")), s.component("b", fmt.Sprintf(account, "b"))
	s.install(a)
	s.install(b)
	s.patch(configMaps, "a", `{"data":{"v":"2"}}`)
	s.client, s.rt = s.limited(srv.Config())
	drifted, err := s.reconciler.Verify(t.Context(), s.rt, []reconciler.Component{a, b})
	if err == nil || !strings.Contains(err.Error(), `verifying module "b": listing serviceaccounts`) || strings.Contains(err.Error(), `module "a"`) {
		t.Errorf("error: %v", err)
	}
	if len(drifted) != 1 || drifted[0].Component != "a" {
		t.Errorf("drifted: %v", drifted)
	}
}

// limited is a connection of somebody who may list ConfigMaps and nothing else.
func (s *site) limited(cfg *rest.Config) (*remote.Client, *Runtime) {
	s.t.Helper()
	role := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"$NS"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]}]}`
	binding := `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"$NS"},` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"$NS"},"subjects":[{"kind":"User","name":"$NS"}]}`
	for kind, body := range map[string]string{"ClusterRole": role, "ClusterRoleBinding": binding} {
		r, err := s.client.Resource(s.t.Context(), schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: kind})
		if err != nil {
			s.t.Fatal(err)
		}
		if err := s.client.Create(s.t.Context(), r, "", []byte(strings.ReplaceAll(body, "$NS", s.namespace)), nil); err != nil {
			s.t.Fatal(err)
		}
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Impersonate.UserName = s.namespace
	client, err := remote.New(cfg, remote.Options{})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.Close)
	eventually(s.t, func() string { // the server takes a moment to see a binding
		if _, err := client.ListMeta(s.t.Context(), configMaps, cluster.ListOptions{}); err != nil {
			return err.Error()
		}
		return ""
	})
	rt := NewRuntime("eu-1", client)
	rt.SetKnown(s.rt.Known())
	return client, rt
}

func (s *site) patchNamespace(patch string) {
	s.t.Helper()
	err := s.client.Patch(s.t.Context(), namespaces, "", s.namespace, types.MergePatchType, []byte(patch), cluster.PatchOptions{Manager: "kubectl-edit"}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) patchInventory(module, patch string) {
	s.t.Helper()
	name := bundle.ParentName(s.namespace, module)
	err := s.client.Patch(s.t.Context(), configMaps, v1beta2.SystemNamespace, name, types.MergePatchType, []byte(patch), cluster.PatchOptions{Manager: "kubectl-edit"}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) deleteInventory(module string) {
	s.t.Helper()
	err := s.client.Delete(s.t.Context(), configMaps, v1beta2.SystemNamespace, bundle.ParentName(s.namespace, module), cluster.DeleteOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}
