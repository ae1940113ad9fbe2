package mothership_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kyma-project/mothership"
	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
)

// folder writes files, by path, and returns where.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// chartOf is a chart of one template.
func chartOf(t *testing.T, template string, more ...string) v1beta2.Source {
	t.Helper()
	files := map[string]string{
		"chart/Chart.yaml":                "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
		"chart/templates/everything.yaml": template,
	}
	for i := 0; i < len(more); i += 2 {
		files["chart/"+more[i]] = more[i+1]
	}
	return mothership.Chart(filepath.Join(folder(t, files), "chart"))
}

// archive is a tar.gz of entries.
func archive(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for _, h := range entries {
		text := []byte(config)
		if h.Typeflag != tar.TypeReg {
			text = nil
		}
		h.Mode, h.Size = 0o600, int64(len(text))
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// served is a source of manifests behind an address.
func served(t *testing.T, data []byte) v1beta2.Source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }))
	t.Cleanup(server.Close)
	return mothership.Manifests(server.URL + "/module.tar.gz")
}

// badSources are sources of a module that must change nothing in the cluster.
var badSources = map[string]struct {
	source func(*testing.T) v1beta2.Source
	values map[string]any
	is     error
	words  []string
}{
	"MalformedYAML": {
		source: func(t *testing.T) v1beta2.Source {
			return mothership.Manifests(folder(t, map[string]string{"a.yaml": config, "b.yaml": "kind: ConfigMap\n  broken: [\n"}))
		},
		is: render.ErrMalformed, words: []string{`module "letters"`, "b.yaml", "line 2"},
	},
	"Empty": {
		source: func(t *testing.T) v1beta2.Source {
			return mothership.Manifests(folder(t, map[string]string{"a.yaml": "# nothing\n"}))
		},
		is: render.ErrEmpty, words: []string{`module "letters"`, "no object"},
	},
	"EmptyChart": {
		source: func(t *testing.T) v1beta2.Source { return chartOf(t, "{{ if .Values.on }}\n"+config+"{{ end }}\n") },
		is:     render.ErrEmpty, words: []string{"no object"},
	},
	"DuplicateKey": {
		source: func(t *testing.T) v1beta2.Source {
			return mothership.Manifests(folder(t, map[string]string{"a.yaml": config + "data: {b: \"2\"}\n"}))
		},
		is: render.ErrMalformed, words: []string{"a.yaml", `"data"`, "set twice"},
	},
	"DuplicateObject": {
		source: func(t *testing.T) v1beta2.Source {
			return mothership.Manifests(folder(t, map[string]string{"a.yaml": config, "b.yaml": config}))
		},
		is: render.ErrMalformed, words: []string{"ConfigMap", "config", "defined twice", "a.yaml", "b.yaml"},
	},
	"NoName": {
		source: func(t *testing.T) v1beta2.Source {
			return mothership.Manifests(folder(t, map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"}))
		},
		is: render.ErrMalformed, words: []string{"a.yaml", "ConfigMap", "metadata.name"},
	},
	"MissingDefinition": {
		source: func(t *testing.T) v1beta2.Source {
			return mothership.Manifests(folder(t, map[string]string{"a.yaml": lettersV2, "b.yaml": strings.NewReplacer("$NS", "missing", "Widget", "Gadget").Replace(widget)}))
		},
		words: []string{"Gadget.missing.test one", "kind Gadget of missing.test/v1 is not served", "CustomResourceDefinition"},
	},
	"ValuesOfTheWrongType": {
		source: func(t *testing.T) v1beta2.Source {
			return chartOf(t, config, "values.schema.json", `{"type":"object","properties":{"image":{"type":"object","properties":{"tag":{"type":"string"}}}}}`)
		},
		values: map[string]any{"image": map[string]any{"tag": 7}},
		is:     render.ErrValues, words: []string{"/image/tag", "string"},
	},
	"TemplateFails": {
		source: func(t *testing.T) v1beta2.Source {
			return chartOf(t, config+`{{ required "name is needed" .Values.name }}`)
		},
		is: render.ErrTemplate, words: []string{"everything.yaml", "name is needed"},
	},
	"Randomness": {
		source: func(t *testing.T) v1beta2.Source { return chartOf(t, config+`# {{ randAlphaNum 5 }}`) },
		is:     render.ErrRandom, words: []string{"everything.yaml", "randAlphaNum", "perRuntime"},
	},
	"TemplateNeverEnds": {
		source: func(t *testing.T) v1beta2.Source {
			return chartOf(t, `{{ range until 3000 }}{{ range until 3000 }}{{ range until 3000 }}{{ end }}{{ end }}{{ end }}`)
		},
		is: render.ErrDeadline, words: []string{`module "letters"`, "3s"},
	},
	"TemplateEatsMemory": {
		source: func(t *testing.T) v1beta2.Source {
			return chartOf(t, `{{ $x := "0123456789abcdef" }}{{ range until 40 }}{{ $x = printf "%s%s" $x $x }}{{ end }}{{ $x }}`)
		},
		is: render.ErrMemory, words: []string{`module "letters"`, "256 MiB"},
	},
	"WrongDigest": {
		source: func(t *testing.T) v1beta2.Source {
			s := served(t, archive(t, tar.Header{Name: "a.yaml", Typeflag: tar.TypeReg}))
			s.Manifests.Digest = "sha256:" + strings.Repeat("0", 64)
			return s
		},
		is: source.ErrDigest, words: []string{"digest is sha256:", "expected sha256:0000"},
	},
	"ArchiveLeavesItsFolder": {
		source: func(t *testing.T) v1beta2.Source {
			return served(t, archive(t, tar.Header{Name: "../a.yaml", Typeflag: tar.TypeReg}))
		},
		is: source.ErrUnsafe, words: []string{"../a.yaml"},
	},
	"ArchiveWithAbsolutePath": {
		source: func(t *testing.T) v1beta2.Source {
			return served(t, archive(t, tar.Header{Name: "/etc/a.yaml", Typeflag: tar.TypeReg}))
		},
		is: source.ErrUnsafe, words: []string{"/etc/a.yaml"},
	},
	"ArchiveWithLink": {
		source: func(t *testing.T) v1beta2.Source {
			return served(t, archive(t, tar.Header{Name: "a.yaml", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}))
		},
		is: source.ErrUnsafe, words: []string{"a.yaml", "link"},
	},
	"HalfAnArchive": {
		source: func(t *testing.T) v1beta2.Source {
			whole := archive(t, tar.Header{Name: "a.yaml", Typeflag: tar.TypeReg})
			return served(t, whole[:len(whole)/2])
		},
		is: source.ErrInvalid, words: []string{"module.tar.gz"},
	},
	"NothingThere": {
		source: func(*testing.T) v1beta2.Source { return mothership.Chart("/nothing/is/here") },
		is:     source.ErrNotFound, words: []string{"/nothing/is/here", "does not exist"},
	},
	"TwoSources": {
		source: func(*testing.T) v1beta2.Source {
			return v1beta2.Source{Chart: &v1beta2.SourceRef{Path: "a"}, Manifests: &v1beta2.SourceRef{Path: "b"}}
		},
		is: source.ErrInvalid, words: []string{"one"},
	},
}

func TestBadSourcesChangeNothing(t *testing.T) {
	t.Parallel()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := setup(t)
	m := s.module("letters", lettersV1)
	s.install(m)
	before := s.state(m)
	for name, test := range badSources {
		t.Run(name, func(t *testing.T) {
			timeout := time.Minute // a busy machine takes long to fill the memory
			if errors.Is(test.is, render.ErrDeadline) {
				timeout = 3 * time.Second
			}
			s.installer = mothership.New(mothership.Options{
				Isolate:       &mothership.Isolation{Command: []string{executable, renderChild}, MemoryBytes: 256 << 20},
				RenderTimeout: timeout, IsolateAll: true,
			})
			bad := m
			bad.Template.Source, bad.Values = test.source(t), test.values
			err := s.refused(bad)
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("error = %v, want %v", err, test.is)
			}
			wants(t, err.Error(), test.words...)
			if diff := cmp.Diff(before, s.state(m)); diff != "" {
				t.Errorf("something was changed (-before +after):\n%s", diff)
			}
			if _, err := s.installer.Diff(t.Context(), s.cfg, bad, mothership.CompareOptions{Timeout: 30 * time.Second}); err == nil {
				t.Error("diff has no error")
			}
		})
	}
}

func TestBadNames(t *testing.T) {
	t.Parallel()
	s := setup(t)
	for name, test := range map[string]struct {
		change func(*mothership.Module)
		words  []string
	}{
		"NoName":        {func(m *mothership.Module) { m.Name = "" }, []string{"name is missing"}},
		"NoNamespace":   {func(m *mothership.Module) { m.Namespace = "" }, []string{"namespace is missing"}},
		"NameNotALabel": {func(m *mothership.Module) { m.Name = "My.Module" }, []string{`name "My.Module"`, "lower case"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := s.module("web", web)
			test.change(&m)
			wants(t, s.refused(m).Error(), test.words...)
			if _, err := s.installer.Uninstall(t.Context(), s.cfg, m, mothership.UninstallOptions{Timeout: time.Minute}); err == nil {
				t.Error("uninstall has no error")
			}
		})
	}
}
