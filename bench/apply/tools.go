package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/kyma-project/mothership/internal/infra/local"
)

// tools are the executables.
type tools struct{ mothership, helm, kubectl, self string }

// findTools finds or builds them.
func findTools(ctx context.Context, o options, progress io.Writer) (tools, error) {
	var t tools
	var err error
	if t.mothership, err = filepath.Abs(o.mothership); err != nil {
		return t, err
	}
	if _, err := os.Stat(t.mothership); err != nil {
		return t, fmt.Errorf("finding mothership: %w: run make build", err)
	}
	assets, err := local.Assets()
	if err != nil {
		return t, err
	}
	t.kubectl = filepath.Join(assets, "kubectl")
	if t.self, err = os.Executable(); err != nil {
		return t, fmt.Errorf("finding this program: %w", err)
	}
	t.helm, err = buildHelm(ctx, progress)
	return t, err
}

const helmModule = "helm.sh/helm/v4"

// compared are the Go modules whose versions are reported.
var compared = map[string]string{
	helmModule: "helm", "github.com/fluxcd/pkg/ssa": "fluxcd/pkg/ssa",
	"github.com/cert-manager/cert-manager": "cert-manager", "k8s.io/client-go": "client-go",
}

// buildHelm builds Helm's command as its releases are built, from the version that go.mod pins, once, into a cache outside of
// the work tree.
func buildHelm(ctx context.Context, progress io.Writer) (string, error) {
	cache, err := cacheFolder()
	if err != nil {
		return "", err
	}
	version := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, dep := range info.Deps {
			if dep.Path == helmModule {
				version = dep.Version
			}
		}
	}
	file := filepath.Join(cache, "helm", version+"-"+runtime.Version(), "helm")
	if _, err := os.Stat(file); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	fmt.Fprintf(progress, "building helm %s, once\n", version)
	temporary := fmt.Sprintf("%s.%d", file, os.Getpid())
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", temporary, helmModule+"/cmd/helm")
	cmd.Env, cmd.Stderr = append(os.Environ(), "CGO_ENABLED=0"), progress
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building helm: %w", err)
	}
	return file, os.Rename(temporary, file)
}

// cacheFolder is the one of kube/build.sh.
func cacheFolder() (string, error) {
	if dir := os.Getenv("MOTHERSHIP_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("finding a folder for helm: %w", err)
	}
	return filepath.Join(dir, "mothership"), nil
}
