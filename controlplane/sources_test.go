package controlplane_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// A module comes from a server that asks for a password, which a Secret has; the one whose Secret is missing waits for it and says so,
// and so does the one whose Secret is for something else.
func TestSourcesWithCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	password := canary(s.name + "-source")
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, got, _ := r.BasicAuth(); user != "me" || got != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, configMap(path.Base(strings.TrimSuffix(r.URL.Path, ".yaml")), map[string]string{"from": "afar"}))
	}))
	t.Cleanup(srv.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	from := func(secret string) func(*v1beta2.ModuleTemplateSpec) {
		return func(t *v1beta2.ModuleTemplateSpec) {
			t.Source = v1beta2.Source{Manifests: &v1beta2.SourceRef{
				URL: srv.URL + "/" + secret + ".yaml", CABundle: ca, CredentialsRef: &v1beta2.SecretReference{Name: secret},
			}}
		}
	}
	keys := map[string]string{"username": "me", "password": password}
	allowed := s.secret(s.name+"-source", keys)
	allowed.SetLabels(map[string]string{v1beta2.SourceCredentialsLabel: "true"})
	s.create(allowed, s.secret(s.name+"-else", keys))
	s.offers("one", "1.0.0", from(s.name+"-source"))
	s.offers("two", "1.0.0", from(s.name+"-missing"))
	s.offers("three", "1.0.0", from(s.name+"-else"))
	s.join()
	s.wants(s.entry("one"), s.entry("two"), s.entry("three"))
	s.state("one", v1beta2.StateReady)
	s.module("two", "says which Secret is missing", func(m v1beta2.ModuleStatus) bool {
		return strings.Contains(m.Message, `credentials "`+s.name+`-missing" cannot be read: reading Secret kcp-system/`+s.name+"-missing")
	})
	s.module("three", "says that the Secret is for something else", func(m v1beta2.ModuleStatus) bool {
		return strings.Contains(m.Message, "Secret kcp-system/"+s.name+`-else: it is not for sources: if its owner agrees, label it `+v1beta2.SourceCredentialsLabel+`: "true"`)
	})
	s.label(s.name + "-else")
	s.state("three", v1beta2.StateReady)
}

// label lets sources use a Secret.
func (s *site) label(name string) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: s.meta(name)}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+v1beta2.SourceCredentialsLabel+`":"true"}}}`))
	if err := s.api.Patch(s.t.Context(), secret, patch); err != nil {
		s.t.Fatal(err)
	}
}
