package source

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// newRegistry is a registry in memory.
func newRegistry() http.Handler { return registry.New(registry.Logger(log.New(io.Discard, "", 0))) }

// layer is one layer to push.
type layer struct {
	mediaType string
	data      []byte
}

// chartLayer is a Helm chart as Helm pushes it.
func chartLayer(t testing.TB) layer {
	t.Helper()
	return layer{helmLayer, packFiles(t, "demo/Chart.yaml", "name: demo\n")}
}

// push puts an artifact into a registry, as any client does, and returns the digest of its manifest.
func push(t testing.TB, h http.Handler, repository, tag string, layers ...layer) string {
	t.Helper()
	config := layer{"application/vnd.cncf.helm.config.v1+json", []byte("{}")}
	m := ocispec.Manifest{MediaType: ocispec.MediaTypeImageManifest, Config: descriptor(config)}
	m.SchemaVersion = 2
	for _, l := range layers {
		m.Layers = append(m.Layers, descriptor(l))
	}
	for _, l := range append(layers, config) {
		send(t, h, http.MethodPost, "/v2/"+repository+"/blobs/uploads/?digest="+BytesDigest(l.data), "application/octet-stream", l.data)
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return pushManifest(t, h, repository+"/manifests/"+tag, m.MediaType, data)
}

func pushManifest(t testing.TB, h http.Handler, place, mediaType string, data []byte) string {
	t.Helper()
	send(t, h, http.MethodPut, "/v2/"+place, mediaType, data)
	return BytesDigest(data)
}

func descriptor(l layer) (d ocispec.Descriptor) {
	d.MediaType, d.Size = l.mediaType, int64(len(l.data))
	if err := json.Unmarshal([]byte(`"`+BytesDigest(l.data)+`"`), &d.Digest); err != nil {
		panic(err)
	}
	return d
}

func send(t testing.TB, h http.Handler, method, path, mediaType string, data []byte) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, bytes.NewReader(data))
	req.Header.Set("Content-Type", mediaType)
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	if rec.Code >= http.StatusBadRequest {
		t.Fatalf("%s %s: %d %s", method, path, rec.Code, rec.Body)
	}
}

func ociRef(s *secure, kind Kind, tag, digest string) Ref {
	return Ref{Kind: kind, SourceRef: v1beta2.SourceRef{
		OCI: &v1beta2.OCISource{URL: "oci://" + s.Listener.Addr().String() + "/charts/demo", Tag: tag, Digest: digest}, CABundle: s.ca,
	}}
}

func TestOCI(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	chart := chartLayer(t)
	manifests := layer{"application/vnd.cncf.flux.content.v1.tar+gzip", packFiles(t, "deploy/a.yaml", "a: 1\n", "other/b.yaml", "b: 1\n")}
	provenance := layer{helmProvenance, []byte("signed")}
	chartDigest := push(t, reg, "charts/demo", "1.0.0", chart)
	push(t, reg, "charts/demo", "signed", provenance, chart)
	push(t, reg, "charts/demo", "manifests", manifests)
	push(t, reg, "charts/demo", "two", manifests, layer{"application/x-other", []byte("x")})
	push(t, reg, "charts/demo", "none")
	push(t, reg, "charts/demo", "image", layer{ocispec.MediaTypeImageLayerGzip, []byte("\x7fELF\x00")})
	srv := serveTLS(t, reg)
	m, _ := hurried(Options{})
	tests := map[string]struct {
		kind              Kind
		tag, digest, path string
		want              []string
		revision          string
		err               error
		says              string
	}{
		"Chart":     {kind: Chart, tag: "1.0.0", want: []string{"demo/Chart.yaml"}, revision: "1.0.0@" + chartDigest},
		"Signed":    {kind: Chart, tag: "signed", want: []string{"demo/Chart.yaml"}},
		"ByDigest":  {kind: Chart, digest: chartDigest, want: []string{"demo/Chart.yaml"}, revision: chartDigest},
		"Manifests": {kind: Manifests, tag: "manifests", path: "deploy", want: []string{"deploy/a.yaml"}},
		"TwoLayers": {kind: Manifests, tag: "two", err: ErrUnsupported, says: "artifact has 2 layers"},
		"NoLayer":   {kind: Manifests, tag: "none", err: ErrUnsupported, says: "artifact has 0 layers"},
		"Image":     {kind: Chart, tag: "image", err: ErrUnsupported, says: "neither a tar archive nor a text file"},
		"NoTag":     {kind: Chart, tag: "nope", err: ErrNotFound, says: "registry has no such artifact"},
		"NoDigest":  {kind: Chart, digest: BytesDigest([]byte("nope")), err: ErrNotFound, says: "registry has no such artifact"},
		"NoFolder":  {kind: Manifests, tag: "manifests", path: "nope", err: ErrNotFound, says: `"nope" is not a folder of the archive`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ref := ociRef(srv, tc.kind, tc.tag, tc.digest)
			ref.OCI.Path = tc.path
			tree, err := m.Fetch(t.Context(), ref)
			if tc.err != nil {
				wantError(t, err, tc.err, ref.String(), tc.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, tc.want...)
			if tree.Trusted || tc.revision != "" && tree.Revision != tc.revision {
				t.Errorf("revision is %s, want %s", tree.Revision, tc.revision)
			}
			if same, err := m.Current(t.Context(), ref, tree); err != nil || !same {
				t.Errorf("current is %t, %v", same, err)
			}
		})
	}
}

func TestOCITagMoves(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	first := push(t, reg, "charts/demo", "latest", chartLayer(t))
	srv := serveTLS(t, reg)
	m, _ := hurried(Options{})
	ref := ociRef(srv, Chart, "latest", "")
	old, err := m.Fetch(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	push(t, reg, "charts/demo", "latest", layer{helmLayer, packFiles(t, "demo/Chart.yaml", "name: demo\nversion: 2.0.0\n")})
	if same, err := m.Current(t.Context(), ref, old); err != nil || same {
		t.Errorf("current is %t, %v", same, err)
	}
	ref.Digest = old.Digest
	_, err = m.Fetch(t.Context(), ref)
	wantError(t, err, ErrDigest, "expected "+old.Digest)
	if tree, err := m.Fetch(t.Context(), ociRef(srv, Chart, "", first)); err != nil || tree.Digest != old.Digest {
		t.Errorf("by the old digest: %+v, %v", tree, err)
	}
}

// A registry that lies, about sizes, digests or what it has.
func TestOCIOddRegistries(t *testing.T) {
	t.Parallel()
	good := newRegistry()
	push(t, good, "charts/demo", "1", chartLayer(t))
	big := newRegistry()
	push(t, big, "charts/demo", "1", layer{helmLayer, bytes.Repeat([]byte("x"), 2<<20)})
	bad := func(data string) http.Handler {
		reg := newRegistry()
		pushManifest(t, reg, "charts/demo/manifests/1", ocispec.MediaTypeImageManifest, []byte(data))
		return reg
	}
	manifest := func(digest string, size int) string {
		return fmt.Sprintf(`{"schemaVersion":2,"layers":[{"mediaType":%q,"digest":%q,"size":%d}]}`, helmLayer, digest, size)
	}
	tests := map[string]struct {
		handler http.Handler
		err     error
		says    string
	}{
		"OtherBlob":    {damaging(good, BytesDigest(chartLayer(t).data)), ErrDigest, "registry sends other content than it promised"},
		"CutBlob":      {cutting(good, BytesDigest(chartLayer(t).data), 20), ErrUnavailable, "ended in the middle"},
		"TooLarge":     {big, ErrTooLarge, "layer has 2097152 bytes, the limit is 1048576"},
		"NegativeSize": {bad(manifest(BytesDigest(nil), -1)), ErrInvalid, "negative size"},
		"NotADigest":   {bad(manifest("sha256:../../etc/passwd", 1)), ErrInvalid, "malformed digest"},
		"OtherHash":    {bad(manifest("sha512:"+strings.Repeat("0", 128), 1)), ErrInvalid, "malformed digest"},
		"BlobMissing":  {bad(manifest(BytesDigest([]byte("nope")), 4)), ErrNotFound, "registry has no such artifact"},
		"NotJSON":      {bad("{"), ErrInvalid, "manifest is malformed"},
		"Empty":        {bad("{}"), ErrUnsupported, "artifact has 0 layers"},
		"WebPage":      {answering("text/html", "<html>"), ErrUnsupported, `manifests of type "text/html" are not supported`},
		"HugeManifest": {bad("{}" + strings.Repeat(" ", 5<<20)), ErrTooLarge, "manifest is larger than"},
		"Down":         {http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }), ErrUnavailable, "server answers 502 Bad Gateway"},
		"Metadata":     {redirecting("https://169.254.169.254/v2/"), ErrUnsafe, "169.254.169.254, a private address"},
		"PlainHTTP":    {redirecting("http://example.com/v2/"), ErrUnsafe, "redirects from https to http"},
		"RealmInside":  {challenging("https://169.254.169.254/token"), ErrUnsupported, "169.254.169.254"},
		"RealmByHTTP":  {challenging("http://example.com/token"), ErrUnsupported, "uses http"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serveTLS(t, tc.handler)
			m, _ := hurried(Options{Credentials: secrets(map[string]*Credentials{"me": {Username: "me", Password: "s3cret"}})})
			_, err := m.Fetch(t.Context(), ociRef(srv, Chart, "1", "").with("me"))
			wantError(t, err, tc.err, tc.says)
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("message shows a credential: %v", err)
			}
		})
	}
}

// challenging asks for a token of somebody else.
func challenging(realm string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Www-Authenticate", `Bearer realm="`+realm+`",service="test"`)
		w.WriteHeader(http.StatusUnauthorized)
	})
}

// tokens guards a registry as most are: a token is got by password, and shown.
func tokens(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, basic := r.BasicAuth()
		switch {
		case r.URL.Path == "/token" && basic && user == "me" && password == "s3cret":
			_, _ = io.WriteString(w, `{"token":"s3cret-token"}`)
		case r.URL.Path == "/token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.Header.Get("Authorization") == "Bearer s3cret-token":
			next.ServeHTTP(w, r)
		default:
			w.Header().Set("Www-Authenticate", `Bearer realm="https://`+r.Host+`/token",service="test"`)
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
}

func TestOCIMirror(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	push(t, reg, "charts/demo", "1", chartLayer(t))
	srv := serveTLS(t, reg)
	m, _ := hurried(Options{Mirrors: map[string]string{"docker.io": srv.Listener.Addr().String(), "registry.example.com:5000": srv.Listener.Addr().String()}})
	for _, host := range []string{"docker.io", "registry.example.com:5000"} {
		ref := ociRef(srv, Chart, "1", "")
		ref.OCI.URL = "oci://" + host + "/charts/demo"
		if _, err := m.Fetch(t.Context(), ref); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

// A thousand runtimes ask for one new artifact at the same time.
func TestOneDownloadForTheFleet(t *testing.T) {
	t.Parallel()
	reg := newRegistry()
	push(t, reg, "charts/demo", "1", chartLayer(t))
	var open atomic.Bool
	release, arrived := make(chan struct{}), make(chan struct{})
	srv := serveTLS(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open.CompareAndSwap(false, true) {
			close(arrived)
			<-release
		}
		reg.ServeHTTP(w, r)
	}))
	m, _ := hurried(Options{})
	fleet := Polled(m, 1<<20, 1<<40)
	var all sync.WaitGroup
	for range 1000 {
		all.Go(func() {
			if _, err := fleet.Fetch(t.Context(), ociRef(srv, Chart, "1", "")); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	close(release)
	all.Wait()
	if blobs := srv.asked("GET /v2/charts/demo/blobs/"); blobs != 1 {
		t.Errorf("%d downloads, want 1", blobs)
	}
	if n := srv.asked(""); n != 2 {
		t.Errorf("%d requests, want 2: a manifest and a layer", n)
	}
}

// manifestSize is how many bytes a manifest has.
func manifestSize(t testing.TB, h http.Handler, digest string) int {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/charts/demo/manifests/"+digest, nil))
	return rec.Body.Len()
}
