package controlplane_test

import (
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// edit changes the ConfigMap of a module in the runtime, as a person would.
func (s *site) edit(name, key, value string) {
	s.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.mod(name)}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"data":{"`+key+`":"`+value+`"}}`))
	if err := s.cloud.Patch(s.t.Context(), m, patch, client.FieldOwner("kubectl-edit")); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) remove(name string) {
	s.t.Helper()
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: s.mod(name)}}
	if err := s.cloud.Delete(s.t.Context(), m); err != nil {
		s.t.Fatal(err)
	}
}

func TestDriftIsWatched(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(watching)
	s.offers("app", "1.0.0")
	s.offers("other", "1.0.0")
	s.wants(s.entry("app"), s.entry("other"))
	s.ready()
	s.remove("app")
	s.data("app", "version", "1.0.0")
	s.event("DriftReverted", s.mod("app"))
	s.edit("other", "version", "9")
	s.data("other", "version", "1.0.0")
	s.event("DriftReverted", "kubectl-edit")

	// The kubeconfig is replaced by another for the same cluster: the watch goes on with it.
	next := newProxy(t, s.target.Config(), s.uid)
	next.uid = s.proxy.uid
	change(s, &corev1.Secret{}, s.name, func(secret *corev1.Secret) {
		secret.Data = map[string][]byte{"kubeconfig": next.kubeconfig(s.token)}
	})
	change(s, &v1beta2.Runtime{}, s.name, func(*v1beta2.Runtime) {})
	s.identified(next)
	s.edit("app", "version", "8")
	s.data("app", "version", "1.0.0")
	s.proxy.forget()
	s.edit("app", "version", "7")
	s.data("app", "version", "1.0.0")
	if asked := s.proxy.asked(); len(asked) > 0 {
		t.Errorf("the old address is still asked: %q", asked)
	}

	// Without a watch nobody looks.
	change(s, &v1beta2.Runtime{}, s.name, func(r *v1beta2.Runtime) { r.Spec.DriftDetection = v1beta2.DriftPoll })
	await(t, s.api, &v1beta2.RuntimeList{}, s.key(), "seen", func(r *v1beta2.Runtime) bool { return r.Status.ObservedGeneration == r.Generation })
}

// identified waits until the runtime was asked through a proxy who it is.
func (s *site) identified(p *proxy) {
	s.t.Helper()
	var secret corev1.Secret
	if err := s.api.Get(s.t.Context(), s.key(), &secret); err != nil {
		s.t.Fatal(err)
	}
	version := string(secret.UID) + "/" + secret.ResourceVersion
	r := await(s.t, s.api, &v1beta2.RuntimeList{}, s.key(), "identified", func(r *v1beta2.Runtime) bool {
		return factOf(r, v1beta2.FactKubeconfigVersion) == version
	})
	if got := factOf(r, v1beta2.FactRuntimeUID); got != p.uid {
		s.t.Fatalf("it is %s and not %s", got, p.uid)
	}
}

func factOf(r *v1beta2.Runtime, key string) string {
	for _, f := range r.Status.Facts {
		if f.Key == key {
			return f.Value
		}
	}
	return ""
}

func TestDriftIsFoundWhenAsked(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join()
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	s.edit("app", "version", "9")
	asks := 0
	ask := func() {
		asks++
		s.changes(func(k *v1beta2.Kyma) {
			k.Annotations = map[string]string{v1beta2.ReconcileAnnotation: strconv.Itoa(asks)}
		})
	}
	ask()
	s.data("app", "version", "1.0.0")

	// Sources are read again, too.
	var template v1beta2.ModuleTemplate
	if err := s.api.Get(t.Context(), client.ObjectKey{Namespace: space, Name: s.mod("app") + "-1.0.0"}, &template); err != nil {
		t.Fatal(err)
	}
	file := template.Spec.Source.Manifests.Path
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s.write(file, strings.ReplaceAll(string(text), "1.0.0", "new"))
	ask()
	s.data("app", "version", "new")
}

func TestContestedField(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(watching)
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	for i := range 6 { // more often than it is fought for
		s.edit("app", "version", "theirs-"+strconv.Itoa(i))
		if s.contested(i) {
			break
		}
	}
	m := s.state("app", v1beta2.StateWarning)
	if !strings.Contains(m.Message, ".data.version") || !strings.Contains(m.Message, "kubectl-edit") {
		t.Errorf("message %q", m.Message)
	}
	s.proxy.forget()
	s.during(observed)
	if wrote := s.proxy.asked(writing...); len(wrote) > 0 {
		t.Errorf("it is still fought for: %q", wrote)
	}
}

// contested waits until an edit was put back, or left; it says whether it was left.
func (s *site) contested(i int) bool {
	s.t.Helper()
	left := false
	s.kyma("settled", func(*v1beta2.Kyma) bool {
		for range polls {
			var m corev1.ConfigMap
			if err := s.cloud.Get(s.t.Context(), s.in(s.mod("app")), &m); err != nil {
				s.t.Fatal(err)
			}
			if m.Data["version"] == "1.0.0" {
				return true
			}
			var k v1beta2.Kyma
			if err := s.api.Get(s.t.Context(), s.key(), &k); err != nil {
				s.t.Fatal(err)
			}
			if left = moduleOf(&k, s.mod("app")).State == v1beta2.StateWarning; left {
				return true
			}
		}
		s.t.Fatalf("edit %d is neither put back nor left", i)
		return false
	})
	return left
}

// polls bounds how often something is looked at that no watch tells of.
const polls = 2000

// A server, or what stands before it, that ends each watch at once is not watched without a pause.
func TestWatchThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.proxy.has(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("watch") == "" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
		return true
	})
	s.join(watching)
	s.offers("app", "1.0.0")
	s.wants(s.entry("app"))
	s.ready()
	s.proxy.forget()
	s.during(2 * observed)
	if asked := s.proxy.asked(); len(asked) > 10 {
		t.Errorf("%d requests, the first of which are %q", len(asked), asked[:10])
	}
}
