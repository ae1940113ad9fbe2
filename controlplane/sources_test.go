package controlplane_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// A module comes from a server that asks for a password, which a Secret has; the one whose Secret is missing waits for it and says so.
func TestSourcesWithCredentials(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	password := canary(s.name + "-source")
	yaml := configMap(s.mod("one"), map[string]string{"from": "afar"})
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, got, _ := r.BasicAuth(); user != "me" || got != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, yaml)
	}))
	t.Cleanup(srv.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	from := func(secret string) func(*v1beta2.ModuleTemplateSpec) {
		return func(t *v1beta2.ModuleTemplateSpec) {
			t.Source = v1beta2.Source{Manifests: &v1beta2.SourceRef{
				URL: srv.URL + "/one.yaml", CABundle: ca, CredentialsRef: &v1beta2.SecretReference{Name: secret},
			}}
		}
	}
	s.create(s.secret(s.name+"-source", map[string]string{"username": "me", "password": password}))
	s.offers("one", "1.0.0", from(s.name+"-source"))
	s.offers("two", "1.0.0", from(s.name+"-missing"))
	s.join()
	s.wants(s.entry("one"), s.entry("two"))
	s.state("one", v1beta2.StateReady)
	s.module("two", "says which Secret is missing", func(m v1beta2.ModuleStatus) bool {
		return strings.Contains(m.Message, `credentials "`+s.name+`-missing" cannot be read: reading Secret kcp-system/`+s.name+"-missing")
	})
}
