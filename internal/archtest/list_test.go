package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// root is the folder of the repository, seen from this package.
const root = "../.."

// self is the path of the root module.
const self = "github.com/kyma-project/mothership"

// modules are the folders of all Go modules of the repository.
var modules = []string{".", "api", "bench", "kube"}

// pkg is what is used of the output of `go list -json`.
type pkg struct {
	ImportPath string
	Name       string
	Doc        string
	Dir        string
	Standard   bool
	Imports    []string
	Module     *struct{ Path string }
}

// name is the import path within the repository, "." for the root package.
func (p pkg) name() string {
	if p.ImportPath == self {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, self+"/")
}

// list runs go list in a module, for linux without cgo so that the result is the same everywhere.
func list(t *testing.T, module string, args ...string) []pkg {
	t.Helper()
	args = append([]string{"list", "-json=ImportPath,Name,Doc,Dir,Standard,Imports,Module"}, args...)
	dec := json.NewDecoder(bytes.NewReader(run(t, module, args...)))
	var pkgs []pkg
	for {
		var p pkg
		err := dec.Decode(&p)
		if errors.Is(err, io.EOF) {
			return pkgs
		}
		if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}

// run runs the go command in a module and returns its output.
func run(t *testing.T, module string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(root, module)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), module, err, stderr.String())
	}
	return out
}

// walk calls f with every file of the repository whose name ends in ext, by its path from the root, slash-separated.
func walk(t *testing.T, ext string, f func(path string, content []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "bin" || d.Name() == "node_modules" || isHidden(d.Name())):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ext:
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("walking: %w", err)
		}
		rel, err := filepath.Rel(root, path)
		f(filepath.ToSlash(rel), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isHidden(name string) bool { return len(name) > 2 && name[0] == '.' }

// read returns the content of a file of the repository.
func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
