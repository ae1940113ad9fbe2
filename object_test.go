package mothership_test

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/internal/cluster"
)

func TestImmutableField(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("web", web)
	s.install(m)
	m.Template.Source = s.module("web", strings.NewReplacer("{app: web}", "{app: other}", "hello", "servus").Replace(webDropped)).Template.Source
	err := s.refused(m)
	wants(t, err.Error(), "Deployment.apps "+s.namespace+"/web", "422 invalid", "field is immutable")
	var object *mothership.ObjectError
	if !errors.As(err, &object) || !errors.Is(err, cluster.ErrInvalid) {
		t.Fatalf("error = %#v", err)
	}
	wants(t, object.Hint, "delete the object and install again")
	wants(t, s.members(m), "serviceaccount/web") // nothing is pruned
	if _, err := s.installer.Diff(t.Context(), s.cfg, m, mothership.CompareOptions{Timeout: time.Minute}); err == nil {
		t.Error("diff has no error")
	} else {
		wants(t, err.Error(), "Deployment.apps "+s.namespace+"/web", "field is immutable")
	}
	s.kubectl("delete", "deployment", "web") // what the hint says
	if r := s.install(m); r.Count(mothership.ActionCreate) != 1 || r.Count(mothership.ActionPrune) != 1 {
		t.Errorf("after the hint: %v", actions(r.Objects))
	}
}

func TestObjectsThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		yaml  string
		words []string
	}{
		"UnknownField":            {strings.Replace(web, "replicas: 2", "replicaz: 2", 1), []string{"Deployment.apps $NS/web", "replicaz"}},
		"WrongType":               {strings.Replace(web, "replicas: 2", `replicas: "two"`, 1), []string{"Deployment.apps $NS/web", "replicas"}},
		"InvalidValue":            {strings.Replace(web, "port: 80}]", "port: 99999}]", 1), []string{"Service $NS/web", "ports[0].port", "99999"}},
		"BadName":                 {strings.Replace(config, "name: config", "name: Config_1", 1), []string{"ConfigMap $NS/Config_1", "metadata.name"}},
		"NoSuchNamespace":         {strings.Replace(config, "name: config", "name: config, namespace: $NS-nowhere", 1), []string{"ConfigMap $NS-nowhere/config", "not found"}},
		"NoSuchVersion":           {strings.Replace(web, "apps/v1", "apps/v7", 1), []string{"Deployment.apps web", "kind Deployment of apps/v7 is not served", "v1"}},
		"BrokenDefinition":        {strings.Replace(widgets, "type: object, properties: {size", "type: banana, properties: {size", 1), []string{"CustomResourceDefinition.apiextensions.k8s.io widgets.$NS.test", "banana"}},
		"CustomResourceOffSchema": {widgets + "---" + strings.Replace(widget, "size: 1", "size: big", 1), []string{"Widget.$NS.test $NS/one", "size"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := setup(t)
			m := s.module("web", lettersV1)
			s.install(m)
			m.Template.Source = s.module("web", test.yaml).Template.Source
			err := s.refused(m)
			for _, w := range test.words {
				wants(t, err.Error(), s.fill(w))
			}
			var object *mothership.ObjectError
			if !errors.As(err, &object) {
				t.Errorf("%v is no ObjectError", err)
			}
			left := s.state(m)
			for _, name := range []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c"} {
				if left[name] == "" {
					t.Errorf("%s was pruned", name)
				}
			}
		})
	}
}

func TestPolicyDenies(t *testing.T) {
	t.Parallel()
	s := setup(t)
	s.input(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: $NS}
spec:
  failurePolicy: Fail
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]}
  validations: [{expression: "object.data['v'] != '2'", message: "two is unlucky"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: $NS}
spec:
  policyName: $NS
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}}
`, "apply", "-f", "-")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.forget(ctx, "validatingadmissionpolicybindings")
		s.forget(ctx, "validatingadmissionpolicies")
	})
	m := s.module("letters", lettersV1)
	s.install(m)
	eventually(t, func() string { // the server takes a moment to see a policy
		if s.dryRunDenied(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe"},"data":{"v":"2"}}`) {
			return ""
		}
		return "the policy does not hold yet"
	})
	before := s.state(m)
	m.Template.Source = s.module("letters", lettersV2).Template.Source
	err := s.refused(m)
	wants(t, err.Error(), "ConfigMap "+s.namespace+"/a", "two is unlucky", s.namespace)
	var object *mothership.ObjectError
	if !errors.As(err, &object) {
		t.Fatalf("%T is no ObjectError", err)
	}
	if strings.Contains(object.Hint, "delete") {
		t.Errorf("hint: %s", object.Hint)
	}
	after := s.state(m)
	for _, name := range []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c"} {
		if diff := cmp.Diff(before[name], after[name]); diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", name, diff)
		}
	}
}

// admission is a webhook that answers what it is told to.
type admission struct {
	url, ca string
	failing atomic.Bool // says that it answers 500
	denying atomic.Bool // says that it denies
}

func newAdmission(t *testing.T) *admission {
	t.Helper()
	a := &admission{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(a.answer))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	a.url = server.URL + "/validate"
	a.ca = base64.StdEncoding.EncodeToString(pemOf(server))
	return a
}

func (a *admission) answer(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if a.failing.Load() || json.NewDecoder(r.Body).Decode(&review) != nil {
		http.Error(w, "not now", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": map[string]any{
			"uid": review.Request.UID, "allowed": !a.denying.Load(),
			"status": map[string]any{"message": "the guard says no"},
		},
	})
}

func TestAdmissionWebhook(t *testing.T) {
	t.Parallel()
	s := setup(t)
	hook := newAdmission(t)
	m := s.module("letters", lettersV1)
	s.install(m)
	hook.failing.Store(true)
	s.input(strings.NewReplacer("$URL", hook.url, "$CA", hook.ca).Replace(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard-$NS}
webhooks:
- name: guard.$NS.test
  clientConfig: {url: "$URL", caBundle: $CA}
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 2
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps]}]
`), "apply", "-f", "-")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.forget(ctx, "validatingwebhookconfigurations")
	})
	eventually(t, func() string {
		if s.dryRunDenied(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"probe"}}`) {
			return ""
		}
		return "the webhook is not called yet"
	})
	before := s.state(m)
	m.Template.Source = s.module("letters", lettersV2).Template.Source
	_, err := s.installer.Install(t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: 5 * time.Second})
	var timeout *mothership.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("error = %v: a webhook that cannot be called is passing", err)
	}
	wants(t, err.Error(), "ConfigMap "+s.namespace+"/", "failed calling webhook", "guard."+s.namespace+".test")

	hook.denying.Store(true)
	hook.failing.Store(false)
	err = s.refused(m)
	wants(t, err.Error(), "ConfigMap "+s.namespace+"/a", "guard."+s.namespace+".test", "the guard says no")
	after := s.state(m)
	for _, name := range []string{"ConfigMap/a", "ConfigMap/b", "ConfigMap/c"} {
		if diff := cmp.Diff(before[name], after[name]); diff != "" {
			t.Errorf("%s was changed (-before +after):\n%s", name, diff)
		}
	}

	hook.failing.Store(true)
	heal := time.AfterFunc(700*time.Millisecond, func() { hook.denying.Store(false); hook.failing.Store(false) })
	defer heal.Stop()
	s.install(m) // outlasts the failure
}

func TestDefinitionWhoseNamesAreTaken(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("first", widgets+"---"+config)
	s.install(m)
	// Another definition of the same group wants the same kind under another plural.
	second := s.module("second", strings.NewReplacer("widgets.$NS", "wodgets.$NS", "plural: widgets", "plural: wodgets").Replace(widgets)+"---"+
		strings.Replace(config, "name: config", "name: other", 1)+`---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: $NS-late}
`)
	err := s.refused(second)
	wants(t, err.Error(), "CustomResourceDefinition.apiextensions.k8s.io wodgets."+s.namespace+".test", "names are not accepted")
	if got := s.kubectl("get", "validatingwebhookconfigurations", "-o", "name"); strings.Contains(got, s.namespace) {
		t.Error("a stage that needs definitions in service was applied")
	}
	s.uninstall(second)
	s.uninstall(m)
	if left := s.members(second); left != "" {
		t.Errorf("left: %s", left)
	}
}

func TestNamespaceBeingDeleted(t *testing.T) {
	t.Parallel()
	s := setup(t)
	m := s.module("letters", lettersV1)
	m.Namespace = s.namespace + "-own"
	s.install(m)
	s.input(`{apiVersion: v1, kind: ConfigMap, metadata: {name: held, namespace: $NS-own, finalizers: [test/hold]}}`, "create", "-f", "-", "--namespace="+m.Namespace)
	s.kubectl("delete", "namespace", m.Namespace, "--wait=false")
	eventually(t, func() string { return s.members(m) })
	_, err := s.installer.Install(t.Context(), s.cfg, m, mothership.InstallOptions{Timeout: time.Second})
	var timeout *mothership.TimeoutError
	if !errors.As(err, &timeout) {
		t.Fatalf("error = %v, want a timeout: it passes", err)
	}
	wants(t, err.Error(), "ConfigMap "+m.Namespace+"/a", "because it is being terminated")

	s.kubectl("patch", "configmap", "held", "--namespace="+m.Namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	if r := s.install(m); r.Count(mothership.ActionCreate) != 3 {
		t.Errorf("made anew: %v", actions(r.Objects))
	}
	if c := s.verify(m); !c.Equal() {
		t.Errorf("afterwards: %v", changes(c))
	}
	s.kubectl("delete", "namespace", m.Namespace, "--wait=false")
}
