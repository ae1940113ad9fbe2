package source

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// fetch reads a local path with small limits.
func fetch(t *testing.T, ref Ref) (*Tree, error) {
	t.Helper()
	return New(Options{Limits: small}).Fetch(t.Context(), ref)
}

func TestDirectoryChart(t *testing.T) {
	t.Parallel()
	dir := write(t, "Chart.yaml", "name: demo", "templates/a.yaml", "a: 1", "templates/.hidden.yaml", "x",
		".helmignore", "# comment\n*.md\n/ci/\n", "README.md", "", "ci/values.yaml", "", ".git/config", "", "charts/sub/Chart.yaml", "")
	symlink(t, dir, "/etc", "ignored.md")
	tree, err := fetch(t, pathRef(Chart, dir))
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, tree, ".helmignore", "Chart.yaml", "charts/sub/Chart.yaml", "templates/a.yaml")
	if !tree.Trusted || tree.Root != "." || tree.Digest != TreeDigest(tree.Files) {
		t.Errorf("tree is %+v", tree)
	}
}

func TestDirectoryLocalArchive(t *testing.T) {
	t.Parallel()
	data := packFiles(t, "demo/Chart.yaml", "name: demo")
	dir := write(t, "demo.tgz", string(data))
	ref := pathRef(Chart, filepath.Join(dir, "demo.tgz"))
	ref.Digest = BytesDigest(data)
	tree, err := fetch(t, ref)
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, tree, "demo/Chart.yaml")
	if tree.Root != "demo" || !tree.Trusted {
		t.Errorf("tree is %+v", tree)
	}
}

func TestDirectoryManifests(t *testing.T) {
	t.Parallel()
	dir := write(t, "b.yaml", "b: 1", "a/c.json", "{}", "a/d.yml", "", "README.md", "", ".git/x.yaml", "", "other.txt", "")
	tree, err := fetch(t, pathRef(Manifests, dir))
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, tree, "a/c.json", "a/d.yml", "b.yaml")

	one, err := fetch(t, pathRef(Manifests, filepath.Join(dir, "b.yaml")))
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, one, "b.yaml")
}

func TestStdin(t *testing.T) {
	t.Parallel()
	ref := pathRef(Manifests, Stdin)
	_, err := fetch(t, ref)
	wantError(t, err, ErrInvalid, "checking source standard input: there is no standard input here")

	ref.Stdin = strings.NewReader("a: 1\n")
	tree, err := fetch(t, ref)
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, tree, "manifests.yaml")

	ref.Stdin = strings.NewReader(strings.Repeat("a", 2<<20))
	_, err = fetch(t, ref)
	wantError(t, err, ErrTooLarge, "reading standard input: is larger than the limit of 1048576 bytes")

	ref.Kind = Chart
	_, err = fetch(t, ref)
	wantError(t, err, ErrUnsupported, "only manifests")
}

func TestDirectoryLinks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		target, name string
		want         []string
		err          error
		says         string
	}{
		"ToFile":        {target: "real/a.yaml", name: "l.yaml", want: []string{"l.yaml", "real/a.yaml"}},
		"ToFolder":      {target: "real", name: "l", want: []string{"l/a.yaml", "real/a.yaml"}},
		"Leaving":       {target: "../secret.yaml", name: "l.yaml", err: ErrUnsafe, says: `entry "l.yaml" is a link to "../secret.yaml", which leaves the directory`},
		"LeavingFolder": {target: "..", name: "l", err: ErrUnsafe, says: `entry "l" is a link to ".."`},
		"Absolute":      {target: "/etc/passwd", name: "l.yaml", err: ErrUnsafe, says: "make it relative"},
		"Dangling":      {target: "nowhere.yaml", name: "l.yaml", err: ErrNotFound, says: `to "nowhere.yaml", which does not exist`},
		"ToItself":      {target: "l.yaml", name: "l.yaml", err: ErrUnsafe, says: "circle"},
		"ToTop":         {target: ".", name: "l", err: ErrUnsafe, says: "circle"},
		"ToParent":      {target: "..", name: "real/l", err: ErrUnsafe, says: "circle"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := write(t, "src/real/a.yaml", "a: 1", "secret.yaml", "")
			symlink(t, dir, tc.target, filepath.Join("src", tc.name))
			tree, err := fetch(t, pathRef(Manifests, filepath.Join(dir, "src")))
			if tc.err != nil {
				wantError(t, err, tc.err, tc.says)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantPaths(t, tree, tc.want...)
		})
	}
}

func TestDirectoryNamedByLink(t *testing.T) {
	t.Parallel()
	dir := write(t, "real/a.yaml", "a: 1")
	symlink(t, dir, "real", "l")
	tree, err := fetch(t, pathRef(Manifests, filepath.Join(dir, "l")))
	if err != nil {
		t.Fatal(err)
	}
	wantPaths(t, tree, "a.yaml")
}

func TestDirectoryRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		make func(t *testing.T, dir string)
		err  error
		says string
	}{
		"Pipe": {func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "p.yaml"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, ErrUnsupported, `"p.yaml" is a pipe`},
		"Socket": {func(t *testing.T, dir string) {
			l, err := net.Listen("unix", filepath.Join(dir, "s.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { l.Close() })
		}, ErrUnsupported, `"s.yaml" is a socket`},
		"LinkToPipe": {func(t *testing.T, dir string) {
			if err := syscall.Mkfifo(filepath.Join(dir, "p"), 0o600); err != nil {
				t.Fatal(err)
			}
			symlink(t, dir, "p", "l.yaml")
		}, ErrUnsupported, `"l.yaml" is a pipe`},
		"LargeFile": {file("a.yaml", 65<<10), ErrTooLarge, `"a.yaml" is larger than the limit of 65536 bytes`},
		"LargeTree": {func(t *testing.T, dir string) {
			for i := range 20 {
				file(fmt.Sprintf("%d.yaml", i), 60<<10)(t, dir)
			}
		}, ErrTooLarge, "unpacks to more than the limit of 1048576 bytes"},
		"TooManyEntries": {func(t *testing.T, dir string) {
			for i := range 101 {
				file(fmt.Sprintf("%d.yaml", i), 1)(t, dir)
			}
		}, ErrTooLarge, "more than 100 entries"},
		"TooDeep": {func(t *testing.T, dir string) {
			if err := os.MkdirAll(filepath.Join(dir, strings.Repeat("d/", 9)), 0o755); err != nil {
				t.Fatal(err)
			}
		}, ErrTooLarge, "more than 8 folders deep"},
		"Newline":   {file("a\nb.yaml", 1), ErrUnsafe, "control character"},
		"Backslash": {file(`a\b.yaml`, 1), ErrUnsafe, "backslash"},
		"Empty":     {func(*testing.T, string) {}, ErrNotFound, "holds no *.yaml"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp("", "src") // a socket's path must be short
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			tc.make(t, dir)
			_, err = fetch(t, pathRef(Manifests, dir))
			wantError(t, err, tc.err, "reading directory "+dir+": ", tc.says)
		})
	}
}

// file makes one file of a size.
func file(name string, size int) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPathRefuses(t *testing.T) {
	t.Parallel()
	dir := write(t, "a.yaml", "a: 1", "chart/values.yaml", "", "bad/.helmignore", "**/x", "bad/Chart.yaml", "")
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		ref  Ref
		err  error
		says string
	}{
		"Missing":     {pathRef(Chart, dir+"/nope"), ErrNotFound, "nope: does not exist"},
		"Pipe":        {pathRef(Manifests, pipe), ErrUnsupported, "this is a pipe"},
		"FileAsChart": {pathRef(Chart, dir+"/a.yaml"), ErrUnsupported, "is a folder or an archive"},
		"NoChart":     {pathRef(Chart, dir+"/chart"), ErrNotFound, `"Chart.yaml" is missing`},
		"BadIgnore":   {pathRef(Chart, dir+"/bad"), ErrInvalid, `".helmignore" is malformed`},
		"Address":     {pathRef(Chart, "https://u:secret@example.com/x"), ErrInvalid, "https://example.com/x: an address is not a path"},
		"Nothing":     {Ref{Kind: Chart}, ErrInvalid, "has no place: set one of path, url, git, helm and oci"},
		"NoKind":      {pathRef("", dir), ErrInvalid, "one of chart, kustomize and manifests"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := fetch(t, tc.ref)
			wantError(t, err, tc.err, tc.says)
		})
	}
}

func TestDirectoryDigest(t *testing.T) {
	t.Parallel()
	dir := write(t, "a.yaml", "a: 1", "b/c.yaml", "c: 1", "b.yaml", "")
	tree, err := fetch(t, pathRef(Manifests, dir))
	if err != nil {
		t.Fatal(err)
	}
	recipe := exec.CommandContext(t.Context(), "sh", "-c", `find . -type f -printf '%P\0' | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum`)
	recipe.Dir = dir
	out, err := recipe.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "sha256:" + strings.Fields(string(out))[0]; tree.Digest != want {
		t.Errorf("digest is %s, the documented recipe says %s", tree.Digest, want)
	}

	ref := pathRef(Manifests, dir)
	ref.Digest = tree.Digest
	if _, err := fetch(t, ref); err != nil {
		t.Fatal(err)
	}
	file("a.yaml", 3)(t, dir)
	_, err = fetch(t, ref)
	wantError(t, err, ErrDigest, tree.Digest)
}

func TestDirectoryEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := New(Options{}).Fetch(ctx, pathRef(Manifests, write(t, "a.yaml", "")))
	wantError(t, err, context.Canceled)
}
