package render

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/source"
)

// childArg makes the test binary the child of an isolated renderer.
const childArg = "render-child"

// parentArg makes it a program that has rendered in a child, says which, and waits to be killed.
const parentArg = "render-parent"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == childArg {
		os.Exit(ChildMain(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == parentArg {
		os.Exit(parentMain())
	}
	os.Exit(m.Run())
}

// tree makes a source of a txtar archive.
func tree(archive string) *source.Tree {
	t := &source.Tree{Root: ".", Digest: bundle.Digest([]byte(archive)), Trusted: true}
	for _, f := range txtar.Parse([]byte(archive)).Files {
		t.Files = append(t.Files, source.File{Path: f.Name, Data: f.Data})
	}
	slices.SortFunc(t.Files, func(a, b source.File) int { return strings.Compare(a.Path, b.Path) })
	return t
}

// request makes a request for a txtar archive.
func request(kind Kind, archive string) Request {
	return Request{Tree: tree(archive), Kind: kind, Module: "demo", Namespace: "demo-system"}
}

// chartYAML is the start of each test's chart.
const chartYAML = "-- Chart.yaml --\napiVersion: v2\nname: demo\nversion: 1.2.3\n"

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

func isolated(t testing.TB, o IsolatedOptions) *IsolatedRenderer {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o.Command = []string{exe, childArg}
	i := Isolated(o)
	t.Cleanup(i.Close)
	return i
}

// refs names a bundle's objects.
func refs(b *bundle.Bundle) []string {
	var out []string
	for _, o := range b.Objects {
		out = append(out, o.Ref.String())
	}
	slices.Sort(out)
	return out
}

func mustRender(t *testing.T, r Request) *bundle.Bundle {
	t.Helper()
	b, err := New(Options{}).Render(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantError checks the kind and the text of an error.
func wantError(t *testing.T, err, kind error, text string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v is not %v", err, kind)
	}
	if !strings.Contains(err.Error(), text) {
		t.Fatalf("error %q does not say %q", err, text)
	}
}

// bytesOf is the text of the object with that name.
func bytesOf(t *testing.T, b *bundle.Bundle, name string) string {
	t.Helper()
	for _, o := range b.Objects {
		if o.Name == name {
			return string(o.Bytes)
		}
	}
	t.Fatalf("no object %q in %v", name, refs(b))
	return ""
}

// readDir makes a source of a directory.
func readDir(t testing.TB, dir string) *source.Tree {
	t.Helper()
	out := &source.Tree{Root: ".", Digest: "sha256:" + dir, Trusted: true}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out.Files = append(out.Files, source.File{Path: filepath.ToSlash(name), Data: data})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// certManager is the real chart, from the Go module that the benchmarks pin.
func certManager(t testing.TB) Request {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/cert-manager/cert-manager")
	cmd.Dir = filepath.Join("..", "..", "bench")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("finding cert-manager's module: %v", err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "deploy", "charts", "cert-manager")
	return Request{
		Tree: readDir(t, dir), Kind: Chart, Module: "cert-manager", Namespace: "cert-manager",
		Values: map[string]any{"crds": map[string]any{"enabled": true}},
	}
}

func TestCertManager(t *testing.T) {
	t.Parallel()
	r := certManager(t)
	b := mustRender(t, r)
	count := map[string]int{}
	for _, o := range b.Objects {
		count[o.Kind]++
	}
	want := map[string]int{
		"ClusterRole": 13, "ClusterRoleBinding": 10, "CustomResourceDefinition": 6, "Deployment": 3,
		"MutatingWebhookConfiguration": 1, "Role": 3, "RoleBinding": 3, "Service": 3, "ServiceAccount": 3,
		"ValidatingWebhookConfiguration": 1,
	}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Error(diff)
	}
	var hooks []string
	for _, h := range b.Hooks {
		hooks = append(hooks, h.Ref.String()+" "+strings.Join(h.Events, ","))
	}
	wantHooks := []string{
		"ServiceAccount cert-manager/cert-manager-startupapicheck post-install",
	}
	if !slices.Contains(hooks, wantHooks[0]) {
		t.Errorf("hooks: %v", hooks)
	}
	again, err := isolated(t, IsolatedOptions{}).Render(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, again); diff != "" {
		t.Errorf("isolated differs: %s", diff)
	}
}

func TestRenderValidates(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*Request)
		kind   error
		text   string
	}{
		"NoFiles":      {func(r *Request) { r.Tree = &source.Tree{} }, ErrMalformed, "no files"},
		"NoTree":       {func(r *Request) { r.Tree = nil }, ErrMalformed, "no files"},
		"UnknownKind":  {func(r *Request) { r.Kind = "jsonnet" }, ErrMalformed, `"jsonnet" is no kind of source`},
		"NoNamespace":  {func(r *Request) { r.Namespace = "" }, ErrMalformed, "a name and a namespace"},
		"ValuesInYAML": {func(r *Request) { r.Values = map[string]any{"a": 1} }, ErrValues, "only charts take values"},
		"NoSecret":     {func(r *Request) { r.PerRuntime = "uid" }, ErrMalformed, "a secret of at least 16 bytes"},
		"KubeVersion":  {func(r *Request) { r.Capabilities.KubeVersion = "latest" }, ErrMalformed, `"latest" is no version`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := request(Manifests, "-- a.yaml --\n"+configMap("a"))
			tc.change(&r)
			for _, renderer := range []Renderer{New(Options{}), isolated(t, IsolatedOptions{})} {
				_, err := renderer.Render(context.Background(), r)
				wantError(t, err, tc.kind, tc.text)
			}
		})
	}
}

func TestManifests(t *testing.T) {
	t.Parallel()
	b := mustRender(t, request(Manifests, `
-- b.yml --
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: listed}}
- apiVersion: v1
  kind: ConfigMapList
  items:
  - metadata: {name: typed}
-- a.json --
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "two"}}
-- README.md --
not: [read
-- sub/c.yaml --
# only a comment
---
apiVersion: v1
kind: ConfigMap
metadata: {name: deep, namespace: elsewhere}
`))
	want := []string{
		"ConfigMap demo-system/listed", "ConfigMap demo-system/one", "ConfigMap demo-system/two",
		"ConfigMap demo-system/typed", "ConfigMap elsewhere/deep",
	}
	if diff := cmp.Diff(want, refs(b)); diff != "" {
		t.Error(diff)
	}
}

func TestManifestsAtRoot(t *testing.T) {
	t.Parallel()
	r := request(Manifests, "-- in/a.yaml --\n"+configMap("a")+"-- in/b.yaml --\n"+configMap("b")+"-- inside.yaml --\n"+configMap("c"))
	r.Tree.Root = "in"
	if diff := cmp.Diff([]string{"ConfigMap demo-system/a", "ConfigMap demo-system/b"}, refs(mustRender(t, r))); diff != "" {
		t.Error(diff)
	}
	r.Tree.Root = "inside.yaml"
	if diff := cmp.Diff([]string{"ConfigMap demo-system/c"}, refs(mustRender(t, r))); diff != "" {
		t.Error(diff)
	}
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	_, err := New(Options{}).Render(context.Background(), request(Manifests, "-- a.yaml --\n# nothing\n---\nnull\n"))
	wantError(t, err, ErrEmpty, "never a desired state")
	var e *Error
	if !errors.As(err, &e) || e.Module != "demo" {
		t.Errorf("error %#v does not name the module", err)
	}
	_, err = New(Options{}).Render(context.Background(), request(Chart, chartYAML+
		"-- templates/hook.yaml --\n"+configMap("h")+"  annotations: {helm.sh/hook: test}\n"))
	wantError(t, err, ErrEmpty, "1 hooks do not count")
}

func TestByTrust(t *testing.T) {
	t.Parallel()
	answer := func(name string) Renderer {
		return Func(func(context.Context, Request) (*bundle.Bundle, error) { return &bundle.Bundle{Module: name}, nil })
	}
	r := ByTrust(answer("trusted"), answer("untrusted"))
	for trusted, want := range map[bool]string{true: "trusted", false: "untrusted"} {
		b, err := r.Render(context.Background(), Request{Tree: &source.Tree{Trusted: trusted}})
		if err != nil || b.Module != want {
			t.Errorf("trusted %v: %v, %v", trusted, b, err)
		}
	}
}

func TestErrorMessages(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		`module "m": a.yaml, document 2, line 7: broken`:          &Error{Module: "m", Origin: "a.yaml", Document: 2, Line: 7, Problem: "broken"},
		`module "m": a.yaml, line 7 of the rendered text: broken`: &Error{Module: "m", Origin: "a.yaml", Line: 7, Rendered: true, Problem: "broken"},
		`broken`: &Error{Problem: "broken"},
		"module \"m\": the values do not fit the chart's schema:\n  /a: x": &ValuesError{Module: "m", Violations: []Violation{{"/a", "x"}}},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}
