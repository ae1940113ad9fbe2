package source

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// What is known by its digest is downloaded once, also by the next process, and again if the disk is bad.
func TestDiskCache(t *testing.T) {
	t.Parallel()
	archive := packFiles(t, "demo/Chart.yaml", "name: demo\n")
	reg := newRegistry()
	manifest := push(t, reg, "charts/demo", "1", layer{helmLayer, archive})
	repo := newRepository(t, "d/a.yaml", "a: 1\n")
	tests := map[string]struct {
		handler http.Handler
		ref     func(*secure) Ref
		// content is what only a download asks for.
		content string
	}{
		"Archive": {
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(archive) }),
			func(s *secure) Ref {
				r := urlRef(Chart, s.URL+"/demo.tgz")
				r.CABundle, r.Digest = s.ca, BytesDigest(archive)
				return r
			}, "GET /demo.tgz",
		},
		"Helm": {newHelmRepository(t, "1.0.0"), func(s *secure) Ref { return helmRef(s, "") }, "GET /charts/demo-1.0.0.tgz"},
		"OCI":  {reg, func(s *secure) Ref { return ociRef(s, Chart, "", manifest) }, "GET /v2/charts/demo/blobs/"},
		"Git":  {repo.handler(t), func(s *secure) Ref { return gitRef(Manifests, s, "main", "d") }, "POST /repo.git/git-upload-pack"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serveTLS(t, tc.handler)
			dir := t.TempDir()
			fetch := func(downloads int) *Tree {
				t.Helper()
				m, _ := hurried(Options{CacheDir: dir}) // another process
				tree, err := m.Fetch(t.Context(), tc.ref(srv))
				if err != nil {
					t.Fatal(err)
				}
				if n := srv.asked(tc.content); n != downloads {
					t.Errorf("%d downloads, want %d", n, downloads)
				}
				return tree
			}
			first := fetch(1)
			second := fetch(1)
			if first.Digest != second.Digest || first.Revision != second.Revision || first.Root != second.Root || second.Trusted {
				t.Errorf("trees differ: %+v, %+v", first, second)
			}
			wantPaths(t, second, paths(first)...)
			damage(t, filepath.Join(dir, "blobs"))
			fetch(2)
			fetch(2)
		})
	}
}

// damage changes every file in a folder.
func damage(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		t.Fatalf("files are %v, %v", entries, err)
	}
	for _, e := range entries {
		if err := os.WriteFile(filepath.Join(dir, e.Name()), []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDownloadIsCurrent(t *testing.T) {
	t.Parallel()
	var etag atomic.Value
	etag.Store(`"1"`)
	var code atomic.Int32
	srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tag := etag.Load().(string)
		if tag != "" {
			w.Header().Set("Etag", tag)
		}
		switch {
		case code.Load() != 0:
			w.WriteHeader(int(code.Load()))
		case tag != "" && r.Header.Get("If-None-Match") == tag:
			w.WriteHeader(http.StatusNotModified)
		default:
			_, _ = w.Write([]byte("a: 1\n"))
		}
	}))
	ref := urlRef(Manifests, srv.URL+"/x.yaml")
	ref.CABundle = srv.ca
	m, _ := hurried(Options{})
	tree, err := m.Fetch(t.Context(), ref)
	if err != nil || tree.Validator != `"1"` {
		t.Fatalf("tree is %+v, %v", tree, err)
	}
	current := func(want bool, reason error) {
		t.Helper()
		same, err := m.Current(t.Context(), ref, tree)
		if same != want || (reason == nil) != (err == nil) {
			t.Errorf("current is %t, %v; want %t", same, err, want)
		}
		if reason != nil {
			wantError(t, err, reason, "checking ")
		}
	}
	current(true, nil)
	etag.Store(`"2"`)
	current(false, nil)
	etag.Store(`"1"`)
	code.Store(http.StatusMethodNotAllowed)
	current(false, nil)
	code.Store(http.StatusBadGateway)
	current(false, ErrUnavailable)
	if gets := srv.asked("GET"); gets != 1 {
		t.Errorf("%d downloads, want 1", gets)
	}
	etag.Store("")
	code.Store(0)
	if tree, err = m.Fetch(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	before := srv.asked("")
	current(false, nil)
	if srv.asked("") != before {
		t.Error("a server without ETags was asked")
	}
}

// Whoever runs us may send every request elsewhere, also to a private address, and also those of indexes that name
// hosts which cannot be reached.
func TestMirrors(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "d/a.yaml", "a: 1\n")
	charts := newHelmRepository(t, "1.0.0").edit("[demo-1.0.0.tgz]", `["https://downloads.example.com/charts/demo-1.0.0.tgz"]`)
	both := http.NewServeMux()
	both.Handle("/charts/", charts)
	both.Handle("/repo.git/", repo.handler(t))
	srv := serveTLS(t, guarded(both))
	mirror := srv.Listener.Addr().String()
	m, _ := hurried(Options{
		Mirrors:     map[string]string{"charts.example.com": mirror, "Downloads.Example.com": mirror, "git.example.com": mirror},
		Credentials: secrets(map[string]*Credentials{"me": {Username: "me", Password: "s3cret"}}),
	})
	helm := helmRef(srv, "").with("me")
	helm.Helm.Repository = "https://charts.example.com/charts"
	_, err := m.Fetch(t.Context(), helm) // the other host gets no credentials, by whatever name it is reached
	wantError(t, err, ErrDenied, "downloading chart https://downloads.example.com/charts/demo-1.0.0.tgz: server answers 401")
	charts.edit("https://downloads.example.com/charts/", "")
	if _, err := m.Fetch(t.Context(), helm); err != nil {
		t.Error(err)
	}
	git := gitRef(Manifests, srv, "", "d").with("me")
	git.Git.URL = "https://git.example.com/repo.git"
	if _, err := m.Fetch(t.Context(), git); err != nil {
		t.Error(err)
	}
}

// A proxy gets everything, and no credentials for itself.
func TestProxyForAll(t *testing.T) {
	t.Parallel()
	charts := newHelmRepository(t, "1.0.0")
	var asked atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.URL.Host != "charts.example.com" || r.Header.Get("Proxy-Authorization") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		charts.ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	m, _ := hurried(Options{})
	m.web.proxies = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	ref := Ref{Kind: Chart, SourceRef: v1beta2.SourceRef{Helm: &v1beta2.HelmSource{Repository: "http://charts.example.com/charts", Chart: "demo"}}}
	if _, err := m.Fetch(t.Context(), ref); err != nil || asked.Load() != 2 {
		t.Errorf("%d requests, %v", asked.Load(), err)
	}
}

func TestZipOverHTTP(t *testing.T) {
	t.Parallel()
	data := packZip(t, zipped{name: "demo/Chart.yaml", data: "name: demo\n"})
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	m, _ := hurried(Options{})
	tree, err := m.Fetch(t.Context(), urlRef(Chart, srv.URL+"/demo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, tree, "demo/Chart.yaml")
	if !strings.HasPrefix(tree.Digest, "sha256:") {
		t.Errorf("digest is %s", tree.Digest)
	}
}

// A server that answers because we have hung up has answered nothing, empty as it is.
func TestAnswerToHangingUpIsNone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStalled)
	_, err := newDownloader(Options{}).body(ctx, strings.NewReader(""))
	wantError(t, err, ErrUnavailable, "server stalls")
	wantError(t, registryError(ctx, errors.New("odd answer")), ErrUnavailable, "server stalls")
}

// What came by a password in an address is not kept: nobody else could be asked for it again.
func TestDiskHasNothingOfPasswordsInAddresses(t *testing.T) {
	t.Parallel()
	repo := newRepository(t, "d/a.yaml", "a: 1\n")
	srv := serveTLS(t, guarded(repo.handler(t)))
	dir := t.TempDir()
	m, _ := hurried(Options{CacheDir: dir})
	ref := gitRef(Manifests, srv, "main", "d")
	ref.Git.URL = strings.Replace(ref.Git.URL, "://", "://me:s3cret@", 1)
	if _, err := m.Fetch(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("kept are %v, %v", entries, err)
	}
	_, err := m.Fetch(t.Context(), gitRef(Manifests, srv, "main", "d"))
	wantError(t, err, ErrDenied, "server answers 401 Unauthorized")
}
