package mothership_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

func TestYieldedFields(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", web+`
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: $NS}
webhooks:
- name: one.$NS.test
  clientConfig: {url: "https://127.0.0.1:1/one", caBundle: e30=}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Ignore
  rules: [{apiGroups: [$NS.test], apiVersions: [v1], operations: [CREATE], resources: [nothings]}]
`, func(t *v1beta2.ModuleTemplateSpec) {
		t.Yield = []v1beta2.YieldRule{{Kind: "ConfigMap", Name: "web", Paths: []string{"/data/color"}}}
	})
	s.install(m)
	s.kubectl("patch", "configmap", "web", "-p", `{"data":{"color":"red"}}`)
	s.kubectl("scale", "deployment", "web", "--replicas=5")
	s.kubectl("patch", "validatingwebhookconfiguration", s.namespace, "--type=json", "-p",
		`[{"op":"replace","path":"/webhooks/0/clientConfig/caBundle","value":"bW9yZQ=="}]`)
	if c := s.verify(m); !c.Equal() {
		t.Errorf("drift of yielded fields: %v", changes(c))
	}
	// A change of the same objects leaves them alone, too.
	m.Template.Source = s.module("web", strings.NewReplacer("hello", "servus", "web:1", "web:2", "failurePolicy: Ignore", "failurePolicy: Ignore\n  timeoutSeconds: 3").
		Replace(readFile(t, m))).Template.Source
	if r := s.install(m); r.Count(mothership.ActionUpdate) != 3 {
		t.Errorf("update: %v", actions(r.Objects))
	}
	for what, want := range map[string]string{
		"configmap/web -o jsonpath={.data}":                                                             `{"color":"red","greeting":"servus"}`,
		"deployment/web -o jsonpath={.spec.replicas}{.spec.template.spec.containers[0].image}":          "5web:2",
		"validatingwebhookconfiguration/" + s.namespace + " -o jsonpath={..caBundle}{..timeoutSeconds}": "bW9yZQ==3",
	} {
		if got := s.kubectl(append([]string{"get"}, strings.Fields(what)...)...); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	if r := s.install(m); r.Changed() {
		t.Errorf("again: %v", actions(r.Objects))
	}
	s.uninstall(m)
}

func TestKeptObjectsLeaveTheSet(t *testing.T) {
	t.Parallel()
	s := setup(t)
	kept := func(name, annotation string) string {
		return "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", annotations: {" + annotation + ": keep}}\ndata: {precious: \"1\"}\n"
	}
	both := config + kept("by-helm", "helm.sh/resource-policy") + kept("by-us", v1beta2.KeepAnnotation)
	m := s.module("web", both)
	s.install(m)
	m.Template.Source = s.module("web", config+kept("by-us", v1beta2.KeepAnnotation)).Template.Source
	r := s.install(m)
	if diff := cmp.Diff([]string{"ConfigMap by-us: unchanged", "ConfigMap config: unchanged", "ConfigMap by-helm: kept"}, actions(r.Objects)); diff != "" {
		t.Errorf("prune (-want +got):\n%s", diff)
	}
	if got := s.members(m); strings.Contains(got, "by-helm") {
		t.Errorf("members: %s", got)
	}
	if r := s.install(m); r.Changed() || writes(r.Requests) != 0 {
		t.Errorf("again: %v, %v", actions(r.Objects), r.Requests)
	}
	r = s.uninstall(m)
	if diff := cmp.Diff([]string{"ConfigMap config: deleted", "ConfigMap by-us: kept"}, actions(r.Objects)); diff != "" {
		t.Errorf("uninstall (-want +got):\n%s", diff)
	}
	if got := s.members(m); got != "" || s.parent(m) != nil {
		t.Errorf("left of the set: %s", got)
	}
	wants(t, s.kubectl("get", "configmaps", "-o", "name"), "configmap/by-helm", "configmap/by-us")
	m.Template.Source = s.module("web", both).Template.Source
	if r := s.install(m); r.Count(mothership.ActionRefuse) != 0 {
		t.Errorf("installed anew: %v", actions(r.Objects))
	}
}

// foreign are ways in which an object of web can exist already.
var foreign = map[string]struct {
	yaml  string
	args  []string
	words string
}{
	"Created":           {words: "kubectl-create", args: []string{"create", "-f", "-"}},
	"ClientSideApplied": {words: "kubectl-client-side-apply", args: []string{"apply", "-f", "-"}},
	"ServerSideApplied": {words: "kubectl", args: []string{"apply", "--server-side", "-f", "-"}},
	"HelmRelease": {
		words: "belongs to Helm release shop/web", args: []string{"apply", "--server-side", "--field-manager=helm", "-f", "-"},
		yaml: "annotations: {meta.helm.sh/release-name: web, meta.helm.sh/release-namespace: shop}, labels: {app.kubernetes.io/managed-by: Helm}, ",
	},
}

func TestForeignObjects(t *testing.T) {
	t.Parallel()
	for name, test := range foreign {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			s.input("apiVersion: v1\nkind: ConfigMap\nmetadata: {"+test.yaml+"name: web}\ndata: {old: \"1\", greeting: other}\n", test.args...)
			before := s.kubectl("get", "configmap", "web", "-o", "yaml")

			m := s.module("web", web)
			err := s.refused(m)
			wants(t, err.Error(), "ConfigMap "+s.namespace+"/web", test.words)
			var object *mothership.ObjectError
			if !errors.As(err, &object) {
				t.Fatalf("%T is no ObjectError", err)
			}
			wants(t, object.Hint, "--adopt")
			if after := s.kubectl("get", "configmap", "web", "-o", "yaml"); after != before {
				t.Errorf("the object was changed (-before +after):\n%s", cmp.Diff(before, after))
			}
			if left := s.members(m); left != "" || s.parent(m) != nil {
				t.Errorf("something was applied: %s", left)
			}
			if diff := cmp.Diff(mothership.ActionRefuse, s.diff(m).Changes[1].Action); diff != "" {
				t.Errorf("diff: %s", diff)
			}

			adopting(&m.Template)
			if r := s.install(m); r.Count(mothership.ActionAdopt) != 1 {
				t.Errorf("adoption: %v", actions(r.Objects))
			}
			if got := s.kubectl("get", "configmap", "web", "-o", "jsonpath={.data}"); got != `{"color":"blue","greeting":"hello"}` {
				t.Errorf("the old owner's fields are left: %s", got)
			}
			left := s.kubectl("get", "configmap", "web", "-o", "yaml", "--show-managed-fields")
			for _, trace := range []string{"meta.helm.sh", "managed-by", "manager: helm", "last-applied", "kubectl"} {
				if strings.Contains(left, trace) {
					t.Errorf("%s is left in:\n%s", trace, left)
				}
			}
			if r := s.install(m); r.Changed() {
				t.Errorf("again: %v", actions(r.Objects))
			}
		})
	}
}

func TestTwoModulesShipOneObject(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first, second := s.module("first", config), s.module("second", web+"---"+config)
	s.install(first)
	before := s.state(first)
	err := s.refused(second)
	wants(t, err.Error(), "ConfigMap "+s.namespace+"/config", "belongs to module "+s.namespace+"/first")
	var object *mothership.ObjectError
	if !errors.As(err, &object) {
		t.Fatalf("%T is no ObjectError", err)
	}
	wants(t, object.Hint, "two modules cannot ship one object")
	if diff := cmp.Diff(before, s.state(first)); diff != "" {
		t.Errorf("the first module was changed (-before +after):\n%s", diff)
	}
	if left := s.members(second); left != "" || s.parent(second) != nil {
		t.Errorf("something of the second was applied: %s", left)
	}
}

func TestObjectThatLostItsLabelIsStillItsModules(t *testing.T) {
	t.Parallel()
	s := setup(t)
	first, second := s.module("first", config), s.module("second", config)
	s.install(first)
	s.kubectl("label", "configmap", "config", v1beta2.ApplySetPartOfLabel+"-")
	wants(t, s.refused(second).Error(), "ConfigMap "+s.namespace+"/config", "was not made by this module")
	if r := s.install(first); r.Count(mothership.ActionRepair) != 1 {
		t.Errorf("repair: %v", actions(r.Objects))
	}
	wants(t, s.refused(second).Error(), "belongs to module "+s.namespace+"/first")
}

func TestCopiesOfControllersAreNeverPruned(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", web)
	s.install(m)
	slices := func() string {
		return s.kubectl("get", "endpointslices", "-o", "name", "-l", v1beta2.ApplySetPartOfLabel+"="+bundle.ApplySetID(m.Namespace, m.Name))
	}
	eventually(t, func() string {
		if slices() == "" {
			return "no EndpointSlice with the Service's labels"
		}
		return ""
	})
	// A module that ships EndpointSlices lists them, and sees the copy.
	m.Template.Source = s.module("web", web+`
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: own}
addressType: IPv4
endpoints: [{addresses: [192.0.2.7]}]
ports: [{port: 80}]
`).Template.Source
	s.install(m)
	m.Template.Source = s.module("web", web).Template.Source
	r := s.install(m)
	if diff := cmp.Diff(1, r.Count(mothership.ActionPrune)); diff != "" {
		t.Errorf("pruned: %v", actions(r.Objects))
	}
	if got := slices(); strings.Contains(got, "own") || got == "" {
		t.Errorf("EndpointSlices left: %q", got)
	}
}

func TestFightIsGivenUp(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", web)
	s.install(m)
	edit := func(value string) {
		s.input("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {greeting: "+value+"}\n",
			"apply", "--server-side", "--force-conflicts", "--field-manager=rival", "-f", "-")
	}
	for _, value := range []string{"one", "two", "three"} {
		edit(value)
		r := s.install(m)
		if r.Count(mothership.ActionRepair) != 1 || len(r.Warnings) != 0 {
			t.Errorf("repair: %v, warnings %v", actions(r.Objects), r.Warnings)
		}
	}
	edit("four")
	r := s.install(m)
	if r.Changed() || len(r.Warnings) != 1 {
		t.Fatalf("the fight goes on: %v, warnings %v", actions(r.Objects), r.Warnings)
	}
	wants(t, r.Warnings[0], "FieldContested", "ConfigMap "+s.namespace+"/web", ".data.greeting", "rival")
	// Other fields of the object are still the module's.
	s.kubectl("patch", "configmap", "web", "-p", `{"data":{"color":"red"}}`)
	s.install(m)
	if got := s.kubectl("get", "configmap", "web", "-o", "jsonpath={.data}"); got != `{"color":"blue","greeting":"four"}` {
		t.Errorf("data: %s", got)
	}
}
