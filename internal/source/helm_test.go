package source

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// helmRepository is a Helm repository of chart demo, whose index can change.
type helmRepository struct {
	mu    sync.Mutex
	index string
	files map[string][]byte
}

// newHelmRepository has versions of a chart.
func newHelmRepository(t testing.TB, versions ...string) *helmRepository {
	t.Helper()
	h := &helmRepository{files: map[string][]byte{}, index: "apiVersion: v1\nentries:\n  demo:\n"}
	for _, v := range versions {
		h.add(t, v)
	}
	return h
}

// add a version, at the index's end.
func (h *helmRepository) add(t testing.TB, version string) {
	t.Helper()
	data := packFiles(t, "demo/Chart.yaml", "name: demo\nversion: "+version+"\n")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.files["/charts/demo-"+version+".tgz"] = data
	h.index += fmt.Sprintf("  - name: demo\n    version: %q\n    digest: %s\n    urls: [demo-%s.tgz]\n",
		version, strings.TrimPrefix(BytesDigest(data), "sha256:"), version)
}

// edit replaces something in the index.
func (h *helmRepository) edit(old, replacement string) *helmRepository {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.index = strings.ReplaceAll(h.index, old, replacement)
	return h
}

// ServeHTTP serves it below /charts, the index with an ETag.
func (h *helmRepository) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	index, files := h.index, maps.Clone(h.files)
	h.mu.Unlock()
	if r.URL.Path == "/charts/index.yaml" {
		etag := `"` + BytesDigest([]byte(index)) + `"`
		w.Header().Set("Etag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(index))
		return
	}
	if data, ok := files[r.URL.Path]; ok {
		_, _ = w.Write(data)
		return
	}
	http.NotFound(w, r)
}

// helmRef is a reference to chart demo of a server's repository.
func helmRef(s *secure, version string) Ref {
	return Ref{Kind: Chart, SourceRef: v1beta2.SourceRef{
		Helm: &v1beta2.HelmSource{Repository: s.URL + "/charts/", Chart: "demo", Version: version}, CABundle: s.ca,
	}}
}

func TestHelmVersions(t *testing.T) {
	t.Parallel()
	repo := newHelmRepository(t, "1.2.0", "v1.10.0", "1.9.0", "2.0.0-rc.1", "not a version", "1.3.0+build")
	srv := serveTLS(t, repo)
	m, _ := hurried(Options{})
	tests := map[string]struct {
		version, want string
		err           error
		says          string
	}{
		"Highest":      {want: "v1.10.0"},
		"Exact":        {version: "1.2.0", want: "1.2.0"},
		"ExactWithV":   {version: "v1.9.0", want: "1.9.0"},
		"ExactWithout": {version: "1.10.0", want: "v1.10.0"},
		"Prerelease":   {version: "2.0.0-rc.1", want: "2.0.0-rc.1"},
		"Build":        {version: "1.3.0+build", want: "1.3.0+build"},
		"Range":        {version: ">=1.2.0 <1.10", want: "1.9.0"},
		"Tilde":        {version: "~1.2", want: "1.2.0"},
		"RangeWithPre": {version: ">1.10.0-0", want: "2.0.0-rc.1"},
		"NoneInRange":  {version: "^3", err: ErrNotFound, says: `no version of chart "demo" that is "^3"`},
		"OtherBuild":   {version: "1.2.0+x", err: ErrNotFound, says: `no version of chart "demo"`},
		"NotARange":    {version: "latest", err: ErrInvalid, says: `version "latest" is neither a version nor a range`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tree, err := m.Fetch(t.Context(), helmRef(srv, tc.version))
			if tc.err != nil {
				wantError(t, err, tc.err, tc.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, "demo/Chart.yaml")
			if tree.Revision != tc.want+"@"+tree.Digest || tree.Trusted {
				t.Errorf("revision is %s, want %s", tree.Revision, tc.want)
			}
		})
	}
}

func TestHelmOddIndexes(t *testing.T) {
	t.Parallel()
	elsewhere := newHelmRepository(t, "1.0.0")
	other := serveTLS(t, elsewhere)
	_, port, _ := strings.Cut(strings.TrimPrefix(other.URL, "https://"), ":")
	tests := map[string]struct {
		old, new string
		err      error
		says     string
	}{
		"NoChart":        {"demo:", "other:", ErrNotFound, `no chart "demo"`},
		"NoEntries":      {"entries:", "things:", ErrInvalid, `"index.yaml" has no entries`},
		"NotYAML":        {"entries:", "\tentries: {", ErrInvalid, `"index.yaml" is malformed`},
		"WebPage":        {"apiVersion", "<html>", ErrUnsupported, "web page"},
		"NoURL":          {"urls: [demo-1.0.0.tgz]", "urls: []", ErrInvalid, `no url of version "1.0.0"`},
		"File":           {"[demo-1.0.0.tgz]", `["file:///etc/passwd"]`, ErrInvalid, "malformed url"},
		"FTP":            {"[demo-1.0.0.tgz]", `["ftp://example.com/x"]`, ErrUnsupported, `scheme "ftp"`},
		"Registry":       {"[demo-1.0.0.tgz]", `["oci://example.com/x:1"]`, ErrUnsupported, "set it as oci, oci://example.com/x:1"},
		"PlainHTTP":      {"[demo-1.0.0.tgz]", `["http://example.com/x"]`, ErrUnsafe, "has a url by http"},
		"Metadata":       {"[demo-1.0.0.tgz]", `["https://169.254.169.254/x"]`, ErrUnsafe, "a private address"},
		"OtherLoopback":  {"[demo-1.0.0.tgz]", `["https://localhost:` + port + `/charts/demo-1.0.0.tgz"]`, ErrUnsafe, "a private address"},
		"Missing":        {"[demo-1.0.0.tgz]", "[nope.tgz]", ErrNotFound, "server answers 404"},
		"OtherDigest":    {"digest: ", "digest: " + strings.Repeat("a", 64) + " #", ErrDigest, "expected sha256:" + strings.Repeat("a", 64)},
		"BadDigest":      {"digest: ", "digest: s3cret #", ErrInvalid, "malformed digest"},
		"Removed":        {"urls:", "removed: true\n    urls:", ErrNotFound, "no version"},
		"TwiceIsAllowed": {"apiVersion: v1", "apiVersion: v1\nkind: a\nkind: b", nil, ""},
		"NoDigest":       {"digest: ", "note: ", nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serveTLS(t, newHelmRepository(t, "1.0.0").edit(tc.old, tc.new))
			m, _ := hurried(Options{})
			_, err := m.Fetch(t.Context(), helmRef(srv, "1.0.0"))
			if tc.err == nil {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantError(t, err, tc.err, tc.says)
		})
	}
}

func TestHelmIndexIsMissing(t *testing.T) {
	t.Parallel()
	m, _ := hurried(Options{})
	_, err := m.Fetch(t.Context(), helmRef(serveTLS(t, http.NotFoundHandler()), ""))
	wantError(t, err, ErrNotFound, `entry "index.yaml" of the repository: server answers 404 Not Found`)
}

func TestHelmIndexIsAskedForOnce(t *testing.T) {
	t.Parallel()
	repo := newHelmRepository(t, "1.0.0")
	var whole atomic.Int32
	srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/charts/index.yaml" && r.Header.Get("If-None-Match") == "" {
			whole.Add(1)
		}
		repo.ServeHTTP(w, r)
	}))
	m, _ := hurried(Options{})
	old, err := m.Fetch(t.Context(), helmRef(srv, ""))
	if err != nil {
		t.Fatal(err)
	}
	if same, err := m.Current(t.Context(), helmRef(srv, ""), old); err != nil || !same {
		t.Errorf("current is %t, %v", same, err)
	}
	if n := whole.Load(); n != 1 {
		t.Errorf("the index was sent %d times, want 1", n)
	}
	repo.add(t, "1.1.0")
	if same, err := m.Current(t.Context(), helmRef(srv, ""), old); err != nil || same {
		t.Errorf("after a release, current is %t, %v", same, err)
	}
	tree, err := m.Fetch(t.Context(), helmRef(srv, ""))
	if err != nil || !strings.HasPrefix(tree.Revision, "1.1.0@") {
		t.Errorf("after a release: %+v, %v", tree, err)
	}
}

func TestHelmKeepsFewIndexes(t *testing.T) {
	t.Parallel()
	h := newHelmFetcher(nil, nil)
	first := h.kept("0")
	for i := range 3 * maxIndexes {
		h.kept(fmt.Sprint(i))
	}
	if len(h.indexes) != maxIndexes || h.kept("0") == first {
		t.Errorf("%d indexes are kept", len(h.indexes))
	}
	if again := h.kept("0"); again != h.kept("0") {
		t.Error("what was used last is not kept")
	}
}

// A chart may be on another server than its index. The credentials are not for it.
func TestHelmCredentialsStayWithTheRepository(t *testing.T) {
	t.Parallel()
	repo := newHelmRepository(t, "1.0.0")
	var seen atomic.Pointer[http.Header]
	store := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := r.Header.Clone()
		seen.Store(&header)
		repo.ServeHTTP(w, r)
	}))
	repo.edit("[demo-1.0.0.tgz]", `["`+store.URL+`/charts/demo-1.0.0.tgz"]`)
	srv := serveTLS(t, guarded(repo))
	ref := helmRef(srv, "1.0.0").with("me")
	ref.CABundle += store.ca
	for name, creds := range map[string]*Credentials{"Password": {Username: "me", Password: "s3cret"}, "Token": {Token: "s3cret-token"}} {
		m, _ := hurried(Options{Credentials: secrets(map[string]*Credentials{"me": creds})})
		if _, err := m.Fetch(t.Context(), ref); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if auth := seen.Load().Get("Authorization"); auth != "" {
			t.Errorf("%s: the other server got credentials", name)
		}
	}
}

func FuzzIndex(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nentries:\n  demo:\n  - version: 1.0.0\n    urls: [demo.tgz]\n    digest: " + strings.Repeat("0", 64) + "\n",
		`{"entries":{"demo":[{"version":"v1.0","urls":["https://example.com/x.tgz"]}]}}`,
		"entries: {demo: [{version: 1, urls: [1]}]}", "entries: &a {demo: *a}", "entries:\n  demo: [null]", "<html>", "\t",
		"entries: {demo: [{version: 1.0.0, urls: ['oci://x/y:1']}]}", "entries: {demo: [{version: 1.0.0, urls: ['//h/%zz']}]}",
	} {
		f.Add(seed, "1.0.0")
		f.Add(seed, ">=0")
	}
	f.Fuzz(func(t *testing.T, data, version string) {
		x, err := parseIndex([]byte(data))
		if err != nil {
			return
		}
		v, err := x.pick("demo", version)
		if err != nil {
			return
		}
		if digest, err := v.digest(); err == nil && digest != "" && checkDigest(digest) != nil {
			t.Errorf("digest %q passes", digest)
		}
		u, err := v.address(mustURL(t, "https://charts.example.com/a"))
		if err == nil && (u.Scheme != "https" || u.Host == "" || u.User != nil) {
			t.Errorf("address %q passes", u)
		}
	})
}
