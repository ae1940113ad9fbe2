package sim_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionapi "k8s.io/api/admission/v1"
	admission "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/sim"
)

// TestCloneIsLikeARealInstall compares a cloned cluster with one that the same was installed on.
func TestCloneIsLikeARealInstall(t *testing.T) {
	t.Parallel()
	s := start(t)
	m, i := certManager(t), mothership.New(mothership.Options{})
	for _, name := range []string{"template", "installed"} {
		if _, err := i.Install(t.Context(), add(t, s, name), m, mothership.InstallOptions{Wait: true, Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	settle(t, s)
	if err := s.Clone("template", "clone"); err != nil {
		t.Fatal(err)
	}
	clone, err := s.Cluster("clone")
	if err != nil {
		t.Fatal(err)
	}
	installed, err := s.Cluster("installed")
	if err != nil {
		t.Fatal(err)
	}
	if place := clone.Equal(installed); place != "" {
		t.Errorf("they differ at %s", place)
	}
	c, err := i.Verify(t.Context(), s.Config("clone"), m, mothership.CompareOptions{Timeout: time.Minute})
	if err != nil || len(c.Changes) > 0 {
		t.Errorf("the clone is not as installed: %v %v", c, err)
	}
	if a, b := systemUID(t, s, "template"), systemUID(t, s, "clone"); a == b {
		t.Error("a clone is the same cluster as its template")
	}
}

func typed(t *testing.T, s *sim.Server, name string) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(s.Config(name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func systemUID(t *testing.T, s *sim.Server, name string) string {
	t.Helper()
	ns, err := typed(t, s, name).CoreV1().Namespaces().Get(t.Context(), "kube-system", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(ns.UID)
}

// TestClonesKeepToThemselves changes one of two clones, and follows owners that were cloned with what they own.
func TestClonesKeepToThemselves(t *testing.T) {
	t.Parallel()
	s := start(t)
	add(t, s, "template")
	maps := typed(t, s, "template").CoreV1().ConfigMaps("default")
	owner, err := maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ref := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	if _, err = maps.Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owned", OwnerReferences: ref}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	if err := s.Clone("template", "clone"); err != nil {
		t.Fatal(err)
	}
	cloned := typed(t, s, "clone").CoreV1().ConfigMaps("default")
	if err := cloned.Delete(t.Context(), "owner", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	settle(t, s)
	if _, err := cloned.Get(t.Context(), "owned", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the clone's dependent: %v, want it collected", err)
	}
	for _, name := range []string{"owner", "owned"} {
		if _, err := maps.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Errorf("the template's %s: %v", name, err)
		}
	}
}

func TestWebhooksAreCalled(t *testing.T) {
	t.Parallel()
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionapi.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Error(err)
		}
		allowed := !strings.Contains(string(review.Request.Object.Raw), "forbidden-word")
		review.Response = &admissionapi.AdmissionResponse{UID: review.Request.UID, Allowed: allowed, Result: &metav1.Status{Message: "no such words"}}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(hook.Close)
	ca, err := cert.EncodeCertificates(hook.Certificate())
	if err != nil {
		t.Fatal(err)
	}
	s := start(t)
	add(t, s, "eu-1")
	c := typed(t, s, "eu-1")
	none := admission.SideEffectClassNone
	_, err = c.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admission.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "words"},
		Webhooks: []admission.ValidatingWebhook{{
			Name: "words.example.com", ClientConfig: admission.WebhookClientConfig{URL: &hook.URL, CABundle: ca},
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: []admission.RuleWithOperations{{
				Operations: []admission.OperationType{admission.Create, admission.Update},
				Rule:       admission.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps := c.CoreV1().ConfigMaps("default")
	cm := func(value string) *core.ConfigMap {
		return &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"k": value}}
	}
	if _, err := maps.Create(t.Context(), cm("forbidden-word"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "no such words") {
		t.Errorf("a forbidden word: %v", err)
	}
	if _, err := maps.Create(t.Context(), cm("fine"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	hook.Close()
	if _, err := maps.Update(t.Context(), cm("fine too"), metav1.UpdateOptions{}); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("a webhook that is gone: %v", err)
	}
}

func TestRequestsAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t)
	cfg := add(t, s, "eu-1")
	for range 3 {
		if err := ask(t, cfg); err != nil {
			t.Fatal(err)
		}
	}
	var counts map[string][]struct {
		Verb, Agent string
		N           int
	}
	admin(t, s, http.MethodDelete, "/requests", "", &counts)
	if got := fmt.Sprint(counts); got != "map[eu-1:[{version asker 3}]]" {
		t.Error(got)
	}
	counts = nil
	admin(t, s, http.MethodGet, "/requests", "", &counts)
	if len(counts) != 0 {
		t.Errorf("after a reset: %v", counts)
	}
}

func TestAdministration(t *testing.T) {
	t.Parallel()
	s := start(t)
	add(t, s, "template")
	var names []string
	admin(t, s, http.MethodPost, "/runtimes", `{"prefix":"r-","count":3,"from":"template"}`, &names)
	if got := strings.Join(names, " "); got != "r-0 r-1 r-2" {
		t.Error(got)
	}
	admin(t, s, http.MethodPut, "/dials", `{"prefix":"r-","dials":{"unauthorized":true}}`, &names)
	if err := ask(t, s.Config("r-2")); err == nil {
		t.Error("the dial was not turned")
	}
	admin(t, s, http.MethodDelete, "/runtimes/r-2", "", nil)
	var stats sim.Stats
	admin(t, s, http.MethodGet, "/stats", "", &stats)
	if stats.Runtimes != 3 || stats.Objects != 12 {
		t.Errorf("%+v", stats)
	}
	if err := s.Add("template"); !errors.Is(err, sim.ErrExists) {
		t.Errorf("a second one of the name: %v", err)
	}
	if err := s.Clone("none", "x"); !errors.Is(err, sim.ErrNotFound) {
		t.Errorf("a clone of nothing: %v", err)
	}
}

// admin asks the administration.
func admin(t *testing.T, s *sim.Server, method, path, body string, into any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.AdminURL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, path, resp.Status)
	}
	if into != nil {
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
}
