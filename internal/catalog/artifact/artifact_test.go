package artifact

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

// write makes a folder of "path", "content" pairs.
func write(t *testing.T, pairs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(pairs); i += 2 {
		name := filepath.Join(dir, pairs[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pairs[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func mustRead(t *testing.T, dir string) Files {
	t.Helper()
	files, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// template is a document of a template whose source is as given.
func template(module, source string) string {
	return fmt.Sprintf("apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate\nmetadata: {name: %s-1.0.0}\n"+
		"spec: {moduleName: %s, version: 1.0.0, source: %s}\n", module, module, source)
}

// serving is a registry, and what speaks to it.
type serving struct {
	registry *Registry
	host     string
	ca       *x509.CertPool
	writes   atomic.Int64
}

// serve runs a registry behind a handler, which may lie.
func serve(t *testing.T, wrap func(http.Handler) http.Handler) *serving {
	t.Helper()
	s := &serving{ca: x509.NewCertPool()}
	h := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	if wrap != nil {
		h = wrap(h)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			s.writes.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	t.Cleanup(srv.Close)
	s.ca.AddCert(srv.Certificate())
	s.registry, s.host = NewRegistry(Options{RootCAs: s.ca}), srv.Listener.Addr().String()
	return s
}

func (s *serving) ref(t *testing.T, rest string) Reference {
	t.Helper()
	ref, err := ParseReference(Scheme + s.host + "/" + rest)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func TestPushAndPull(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	dir := write(t, "web.yaml", template("web", "{chart: {path: web}}"), "web/Chart.yaml", "name: web\n", "web/big.bin", strings.Repeat("\x00\xff", 100_000), "empty", "")
	files := mustRead(t, dir)
	first, err := s.registry.Push(t.Context(), s.ref(t, "team/catalog:1"), files)
	if err != nil {
		t.Fatal(err)
	}
	writes := s.writes.Load()
	again, err := s.registry.Push(t.Context(), s.ref(t, "team/catalog:1"), mustRead(t, dir))
	if err != nil || again != first || s.writes.Load() != writes {
		t.Errorf("the same folder again is %s, not %s, with %d writes: %v", again, first, s.writes.Load()-writes, err)
	}
	for _, place := range []string{"team/catalog:1", "team/catalog@" + first} {
		got, digest, err := s.registry.Pull(t.Context(), s.ref(t, place))
		if err != nil || digest != first {
			t.Fatalf("%s: %s %v", place, digest, err)
		}
		if diff := cmp.Diff(files, got); diff != "" {
			t.Errorf("%s (-pushed +pulled):\n%s", place, diff)
		}
		back := filepath.Join(t.TempDir(), "back")
		if err := got.Write(back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(files, mustRead(t, back)); diff != "" {
			t.Errorf("on disk (-pushed +written):\n%s", diff)
		}
	}
	if err := files.Write(dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("writing over a folder: %v", err)
	}
}

// TestPullRefuses has registries that send something else than a catalogue.
func TestPullRefuses(t *testing.T) {
	t.Parallel()
	damage := func(part string, change func([]byte) []byte) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder()
				next.ServeHTTP(rec, r)
				body := rec.Body.Bytes()
				if r.Method == http.MethodGet && strings.Contains(r.URL.Path, part) {
					body = change(body)
				}
				for key, values := range rec.Header() {
					w.Header()[key] = values
				}
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				if r.Method == http.MethodHead {
					w.Header().Set("Content-Length", rec.Header().Get("Content-Length"))
				}
				w.WriteHeader(rec.Code)
				_, _ = w.Write(body)
			})
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 0x55; return b }
	tests := map[string]struct {
		wrap func(http.Handler) http.Handler
		says string
	}{
		"OtherManifest": {damage("/manifests/", flip), "sends other content than it promised"},
		"OtherLayer":    {damage("/blobs/", flip), "sends other content than it promised"},
		"LongerLayer":   {damage("/blobs/", func(b []byte) []byte { return append(b, 0) }), "mismatch Content-Length"},
		"ShorterLayer":  {damage("/blobs/", func(b []byte) []byte { return b[:len(b)-1] }), "mismatch Content-Length"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.wrap)
			files := Files{{"web.yaml", []byte(template("web", "{chart: {path: web}}"))}}
			if _, err := s.registry.Push(t.Context(), s.ref(t, "catalog:1"), files); err != nil {
				t.Fatal(err)
			}
			_, _, err := s.registry.Pull(t.Context(), s.ref(t, "catalog:1"))
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error: %v", err)
			}
		})
	}
	t.Run("AnotherKindOfArtifact", func(t *testing.T) {
		t.Parallel()
		s := serve(t, nil)
		if _, err := s.registry.push(t.Context(), s.ref(t, "chart:1"), single{SourceType, SourceLayerType, []byte("x")}); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.registry.Pull(t.Context(), s.ref(t, "chart:1"))
		if err == nil || !strings.Contains(err.Error(), "this is not a catalogue: its type is") {
			t.Errorf("error: %v", err)
		}
	})
	t.Run("ALayerThatIsTooLarge", func(t *testing.T) {
		t.Parallel()
		_, err := catalogLayer([]byte(fmt.Sprintf(`{"artifactType":%q,"layers":[{"mediaType":%q,"digest":"sha256:%064d","size":%d}]}`, ArtifactType, LayerType, 0, int64(maxPacked+1))))
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("error: %v", err)
		}
	})
}

// packed is a tar.gz of headers; their content is never there: what is refused is refused before it is read.
func packed(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range headers {
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestUnpackRefuses what reaches out of the folder, or is larger than any catalogue.
func TestUnpackRefuses(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	many := make([]tar.Header, maxFiles+1)
	for i := range many {
		many[i] = file(fmt.Sprintf("f%d", i))
	}
	tests := map[string]struct {
		headers []tar.Header
		err     error
	}{
		"Parent":      {[]tar.Header{file("../x")}, ErrUnsafe},
		"Inside":      {[]tar.Header{file("a/../../x")}, ErrUnsafe},
		"Absolute":    {[]tar.Header{file("/etc/x")}, ErrUnsafe},
		"Backslash":   {[]tar.Header{file(`a\b`)}, ErrUnsafe},
		"Link":        {[]tar.Header{{Typeflag: tar.TypeSymlink, Name: "a", Linkname: "/etc"}}, ErrUnsafe},
		"HardLink":    {[]tar.Header{{Typeflag: tar.TypeLink, Name: "a", Linkname: "b"}}, ErrUnsafe},
		"Device":      {[]tar.Header{{Typeflag: tar.TypeChar, Name: "a"}}, ErrUnsafe},
		"Twice":       {[]tar.Header{file("a"), file("a")}, ErrUnsafe},
		"Bomb":        {[]tar.Header{{Typeflag: tar.TypeReg, Name: "a", Size: maxBytes + 1}}, ErrTooLarge},
		"ManyEntries": {many, ErrTooLarge},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if files, err := unpack(packed(t, tc.headers...)); !errors.Is(err, tc.err) || files != nil {
				t.Errorf("error: %v", err)
			}
		})
	}
	if err := checkEntry(&tar.Header{Typeflag: tar.TypeReg, Name: "b", Size: 11}, map[string]bool{"a": true}, 10); !errors.Is(err, ErrTooLarge) {
		t.Errorf("more than is left: %v", err)
	}
	for _, data := range []string{"", "no gzip", "\x1f\x8b\x08"} {
		if _, err := unpack([]byte(data)); err == nil {
			t.Errorf("%q is unpacked", data)
		}
	}
}

func TestReadRefusesLinks(t *testing.T) {
	t.Parallel()
	dir := write(t, "web.yaml", "")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "secret is a link") {
		t.Errorf("error: %v", err)
	}
}

func TestParseReferenceRefuses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "registry.example.com/x:1", "https://registry.example.com/x:1", "oci://registry.example.com", "oci://registry.example.com/x", "oci://registry.example.com/X:1", "oci:///x:1"} {
		if ref, err := ParseReference(address); err == nil {
			t.Errorf("%q is read as %s", address, ref)
		}
	}
}

// TestMirrorOfFolders copies each kind of source into a registry, and from there into a folder: what is rendered stays the same.
func TestMirrorOfFolders(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	dir := write(t,
		"all.yaml", template("chart", "{chart: {path: c}}")+"---\n"+template("plain", "{manifests: {path: m}}")+"---\n"+template("kustom", "{kustomize: {path: k/overlay}}"),
		"c/Chart.yaml", "name: chart\n", "c/.helmignore", "ignored\n", "c/ignored", "x", "c/templates/a.yaml", "a: 1\n",
		"m/a.yaml", "a: 1\n", "m/readme.txt", "no manifest",
		"k/base/kustomization.yaml", "resources: [a.yaml]\n", "k/base/a.yaml", "a: 1\n", "k/overlay/kustomization.yaml", "resources: [../base]\n", "k/other", "x",
	)
	sources := source.New(source.Options{RootCAs: s.ca})
	to := s.ref(t, "mirror/catalog:1")
	var said []Copied
	report, err := Mirror(t.Context(), mustRead(t, dir), MirrorOptions{
		Dir: dir, Sources: sources, To: Target{Registry: s.registry, Reference: to, CredentialsRef: "far"},
		Progress: func(c Copied) { said = append(said, c) },
		Images: func(_ context.Context, t *v1beta2.ModuleTemplate) ([]string, error) {
			if t.Spec.ModuleName == "kustom" {
				return nil, errors.New("it needs values")
			}
			return []string{"nginx:1", t.Spec.ModuleName + ":2"}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"chart:2", "nginx:1", "plain:2"}, report.Images); diff != "" || len(said) != 3 {
		t.Errorf("%d were copied, images (-want +got):\n%s", len(said), diff)
	}
	if len(report.Warnings) != 1 || report.Warnings[0] != "the container images of kustom-1.0.0 are not known: it needs values" {
		t.Errorf("warnings: %q", report.Warnings)
	}
	files, _, err := s.registry.Pull(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range mustDecode(t, files) {
		if name := RefOf(&e.Template.Spec.Source).CredentialsRef.Name; name != "far" {
			t.Errorf("%s names credentials %q", e.Template.Name, name)
		}
		RefOf(&e.Template.Spec.Source).CredentialsRef = nil
	}
	without := Files{}
	for _, f := range files {
		f.Data = bytes.ReplaceAll(f.Data, []byte("      credentialsRef:\n        name: far\n"), nil)
		without = append(without, f)
	}
	out := filepath.Join(t.TempDir(), "folder")
	for range 2 {
		if _, err := Mirror(t.Context(), without, MirrorOptions{Sources: sources, To: Target{Dir: out}}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string][]string{"chart": {"a.yaml"}, "plain": {"a.yaml"}, "kustom": {"base/a.yaml", "base/kustomization.yaml", "overlay/kustomization.yaml"}}
	for _, e := range mustDecode(t, mustRead(t, out)) {
		ref, err := source.RefOf(Rooted(e.Template.Spec.Source, out))
		if err != nil {
			t.Fatal(err)
		}
		tree, err := sources.Fetch(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range tree.Files {
			names = append(names, f.Path)
		}
		for _, name := range want[e.Template.Spec.ModuleName] {
			if !strings.Contains(strings.Join(names, " "), name) {
				t.Errorf("%s has %q, without %s", e.Template.Name, names, name)
			}
		}
		for _, name := range names {
			if strings.HasSuffix(name, "ignored") || strings.HasSuffix(name, ".txt") || strings.HasSuffix(name, "other") {
				t.Errorf("%s has %s, which its kind leaves out", e.Template.Name, name)
			}
		}
	}
}

func mustDecode(t *testing.T, files Files) []Entry {
	t.Helper()
	entries, problems := files.Decode()
	if len(problems) > 0 || len(entries) != 3 {
		t.Fatalf("%d entries: %v", len(entries), problems)
	}
	return entries
}

// TestMirrorStopsAtWhatItCannotCopy: a catalogue that names what is not there must not look like one that is whole.
func TestMirrorStopsAtWhatItCannotCopy(t *testing.T) {
	t.Parallel()
	dir := write(t, "a.yaml", template("a", "{manifests: {path: m}}")+"---\n"+template("b", "{manifests: {path: none}}"), "m/a.yaml", "a: 1\n")
	out := filepath.Join(t.TempDir(), "out")
	report, err := Mirror(t.Context(), mustRead(t, dir), MirrorOptions{Dir: dir, Sources: source.New(source.Options{}), To: Target{Dir: out}})
	if err == nil || !strings.HasPrefix(err.Error(), "mirroring b-1.0.0: ") || len(report.Copied) != 1 {
		t.Fatalf("%+v: %v", report, err)
	}
	if entries, _ := mustRead(t, out).Decode(); len(entries) != 0 {
		t.Errorf("the mirror has a catalogue: %+v", entries)
	}
}

func TestImages(t *testing.T) {
	t.Parallel()
	pod := map[string]any{
		"containers":          []any{map[string]any{"image": "a:1"}, map[string]any{"image": "b:1"}, "malformed"},
		"initContainers":      []any{map[string]any{"image": "a:1"}},
		"ephemeralContainers": []any{map[string]any{"name": "none"}},
		"volumes":             []any{map[string]any{"image": map[string]any{"reference": "models:1"}}, map[string]any{"emptyDir": map[string]any{}}},
	}
	object := map[string]any{"kind": "CronJob", "spec": map[string]any{"jobTemplate": map[string]any{"spec": pod}}, "image": "no container"}
	if diff := cmp.Diff([]string{"a:1", "b:1", "models:1"}, Images(object, nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
