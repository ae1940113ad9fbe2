package render

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/source"
)

const (
	commit = "0123456789012345678901234567890123456789"
	pin    = "sha256:0123456789012345678901234567890123456789012345678901234567890123"
)

// shelf is a Fetcher of what is on it, by the references' own text, and writes down what it was asked for.
type shelf struct {
	trees map[string]string // reference → txtar
	asked []string
}

func (s *shelf) Fetch(_ context.Context, ref source.Ref) (*source.Tree, error) {
	name := string(ref.Kind) + " " + ref.String() + " " + ref.Path + " " + ref.Digest
	s.asked = append(s.asked, name)
	for want, archive := range s.trees {
		if strings.Contains(name, want) {
			t := tree(archive)
			t.Trusted = false
			return t, nil
		}
	}
	return nil, &source.Error{Op: "fetching", Source: ref.String(), Problem: "is not on the shelf", Reason: source.ErrNotFound}
}

// remoteOverlay has remote bases of every form, and one of them has one itself.
const remoteOverlay = `
-- kustomization.yaml --
namePrefix: prod-
resources:
- local.yaml
- https://git.example.com/org/web.git//config/base?ref=` + commit + `&timeout=90s
- https://dl.example.com/crds.yaml?digest=` + pin + `
- oci://registry.example.com/org/base//deploy?digest=` + pin + `
components:
- github.com/org/repo/components/labels?ref=` + commit + `
-- local.yaml --
apiVersion: v1
kind: ConfigMap
metadata: {name: local}
`

func TestWithBases(t *testing.T) {
	t.Parallel()
	s := &shelf{trees: map[string]string{
		"git.example.com/org/web.git@0123": "-- kustomization.yaml --\nresources: [cm.yaml, 'https://git.example.com/org/deep//x?ref=" + commit + "']\n-- cm.yaml --\n" + configMap("web"),
		"git.example.com/org/deep":         "-- kustomization.yaml --\nresources: [cm.yaml]\n-- cm.yaml --\n" + configMap("deep"),
		"crds.yaml":                        "-- crds.yaml --\n" + configMap("file"),
		"oci://":                           "-- kustomization.yaml --\nresources: [cm.yaml]\n-- cm.yaml --\n" + configMap("oci"),
		"github.com/org/repo":              "-- kustomization.yaml --\napiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {part: x}}]\n",
	}}
	r := kustomizeRequest(remoteOverlay, ".")
	r.Tree.Trusted = true
	next := Func(func(ctx context.Context, r Request) (*bundle.Bundle, error) {
		if r.Tree.Trusted {
			t.Error("a tree with bases is trusted")
		}
		return New(Options{}).Render(ctx, r)
	})
	b, err := WithBases(s, next).Render(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{
		"ConfigMap demo-system/prod-deep", "ConfigMap demo-system/prod-file", "ConfigMap demo-system/prod-local", "ConfigMap demo-system/prod-oci", "ConfigMap demo-system/prod-web",
	}, refs(b)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(bytesOf(t, b, "prod-deep"), `"part":"x"`) {
		t.Error("the component was not used")
	}
	if diff := cmp.Diff([]string{
		"kustomize https://git.example.com/org/web.git@012345678901#config/base  ", "manifests https://dl.example.com/crds.yaml  " + pin,
		"kustomize oci://registry.example.com/org/base@" + pin + "  ", "kustomize https://github.com/org/repo@012345678901#components/labels  ",
		"kustomize https://git.example.com/org/deep@012345678901#x  ",
	}, s.asked); diff != "" {
		t.Error(diff)
	}
}

// TestWithBasesFetches has the real fetcher get a file from a real server, and refuse it when it is another.
func TestWithBasesFetches(t *testing.T) {
	t.Parallel()
	content := []byte(configMap("remote"))
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(content) }))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	sources := source.New(source.Options{RootCAs: roots})
	for digest, want := range map[string]error{source.BytesDigest(content): nil, pin: source.ErrDigest} {
		dir := t.TempDir()
		file := "resources: ['" + server.URL + "/cm.yaml?digest=" + digest + "']\n"
		if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		local, err := sources.Fetch(t.Context(), source.Ref{Kind: source.Kustomize, SourceRef: v1beta2.SourceRef{Path: dir}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := WithBases(sources, New(Options{})).Render(t.Context(), Request{Tree: local, Kind: Kustomize, Module: "demo", Namespace: "demo-system"})
		if !errors.Is(err, want) || want == nil && refs(b)[0] != "ConfigMap demo-system/remote" {
			t.Errorf("%s: %v, %v", digest, b, err)
		}
	}
}

func TestWithBasesRefuses(t *testing.T) {
	t.Parallel()
	pinned := "https://git.example.com/org/web//x?ref=" + commit
	ring := "-- kustomization.yaml --\nresources: ['" + pinned + "']\n"
	for name, tc := range map[string]struct {
		ref     string
		host    string
		trusted bool
		kind    error
		want    string
	}{
		"Branch":      {"https://git.example.com/org/web//x?ref=main", "", true, ErrRemote, "it is not pinned"},
		"NoRef":       {"https://git.example.com/org/web//x", "", true, ErrRemote, "it is not pinned"},
		"NoDigest":    {"https://dl.example.com/x.tgz", "", true, ErrRemote, "it is not pinned"},
		"HTTP":        {"http://dl.example.com/x.tgz?digest=" + pin, "", true, ErrRemote, "its scheme is not https or oci"},
		"SSH":         {"ssh://git@git.example.com/org/web?ref=" + commit, "", true, ErrRemote, "without user"},
		"Password":    {"https://u:hunter2@git.example.com/org/web?ref=" + commit, "", true, ErrRemote, "(git.example.com/org/web)"},
		"SCP":         {"git@git.example.com:org/web?ref=" + commit, "", true, ErrRemote, "refers to something remote"},
		"File":        {"file:///etc/passwd?digest=" + pin, "", true, ErrRemote, "refers to something remote"},
		"Digest":      {"https://dl.example.com/x.tgz?digest=sha256:1", "", true, ErrRemote, "64 hex digits"},
		"Parameter":   {"https://git.example.com/org/web?submodules=true&ref=" + commit, "", true, ErrRemote, `the parameter "submodules" is not accepted`},
		"Twice":       {"https://git.example.com/org/web?ref=a&ref=" + commit, "", true, ErrRemote, "is there twice"},
		"FolderUp":    {"https://git.example.com/org/web//../../x?ref=" + commit, "", true, ErrRemote, "its folder"},
		"OtherHost":   {pinned, "else.example.com", false, ErrRemote, "its host is not visited"},
		"NoHost":      {pinned, "", false, ErrRemote, "its host is not visited"},
		"Metadata":    {"https://169.254.169.254/latest/x.yaml?digest=" + pin, "git.example.com", false, ErrRemote, "its host is not visited"},
		"Unavailable": {"https://git.example.com/org/gone//x?ref=" + commit, "git.example.com", false, source.ErrNotFound, "is not on the shelf"},
		"Ring":        {pinned, "git.example.com", false, ErrMalformed, "more than 32 remote bases"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{trees: map[string]string{"org/web": ring}}
			r := kustomizeRequest("-- kustomization.yaml --\nresources:\n- '"+tc.ref+"'\n", ".")
			r.Tree.Trusted, r.SourceHost = tc.trusted, tc.host
			_, err := WithBases(s, New(Options{})).Render(t.Context(), r)
			wantError(t, err, tc.kind, tc.want)
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
			if len(s.asked) > 0 && errors.Is(err, ErrRemote) {
				t.Errorf("it was fetched: %v", s.asked)
			}
		})
	}
}

// TestBasesAreInTheDigest shows that whose host a tree is from counts only where it can make a difference.
func TestBasesAreInTheDigest(t *testing.T) {
	t.Parallel()
	plain, remote := kustomizeRequest("-- kustomization.yaml --\nresources: [a.yaml]\n", "."), kustomizeRequest(remoteOverlay, ".")
	for name, tc := range map[string]struct {
		r    Request
		same bool
	}{"Plain": {plain, true}, "Remote": {remote, false}} {
		other := tc.r
		other.SourceHost = "else.example.com"
		if same := InputDigest(nil, tc.r) == InputDigest(nil, other); same != tc.same {
			t.Errorf("%s: the same digest: %t", name, same)
		}
	}
}
