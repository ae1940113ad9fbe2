package mothership_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

// A source with credentials, its authority, a mirror and a folder for downloads: the second Installer downloads nothing.
func TestSources(t *testing.T) {
	t.Parallel()
	var downloads atomic.Int32
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		downloads.Add(1)
		_, _ = io.WriteString(w, config)
	}))
	t.Cleanup(srv.Close)
	place := mothership.Manifests("https://downloads.example.com/module.yaml")
	place.Manifests.CABundle = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}))
	place.Manifests.CredentialsRef = &v1beta2.SecretReference{Name: "mine"}
	place.Manifests.Digest = source.BytesDigest([]byte(config))
	m := mothership.Module{Name: "demo", Namespace: "demo", Template: v1beta2.ModuleTemplateSpec{Source: place}}
	cache := t.TempDir()
	with := func(token string) mothership.Options {
		return mothership.Options{Sources: mothership.Sources{
			CacheDir: cache, Mirrors: map[string]string{"downloads.example.com": srv.Listener.Addr().String()},
			Credentials: func(_ context.Context, name string) (map[string][]byte, error) {
				if name != "mine" {
					return nil, errors.New("not known")
				}
				return map[string][]byte{"token": []byte(token)}, nil
			},
		}}
	}
	_, err := mothership.New(with("wrong")).Render(t.Context(), m, mothership.RenderOptions{})
	if !errors.Is(err, source.ErrDenied) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("error is %v", err)
	}
	for range 2 {
		if _, err := mothership.New(with("s3cret")).Render(t.Context(), m, mothership.RenderOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := downloads.Load(); n != 1 {
		t.Errorf("%d downloads, want 1", n)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for place, want := range map[string]v1beta2.SourceRef{
		"dir":                       {Path: "dir"},
		"https://example.com/x.tgz": {URL: "https://example.com/x.tgz"},
		"oci://example.com/web:1.0": {OCI: &v1beta2.OCISource{URL: "oci://example.com/web", Tag: "1.0"}},
		"git+https://example.com/web@main#charts": {Git: &v1beta2.GitSource{URL: "https://example.com/web", Ref: "main", Path: "charts"}},
	} {
		got := mothership.Chart(place).Chart
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", place, diff)
		}
	}
}
