package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoAssets says that the Kubernetes executables are not there. The error that wraps it says what to do.
var ErrNoAssets = errors.New("the Kubernetes executables are missing")

// The executables of the assets folder.
const (
	binEtcd              = "etcd"
	binAPIServer         = "kube-apiserver"
	binControllerManager = "kube-controller-manager"
)

// Assets returns the folder of kube-apiserver, kube-controller-manager, etcd and kubectl: KUBEBUILDER_ASSETS where it is
// set, else the one that kube/build.sh of the module around the working directory builds into. The error wraps
// ErrNoAssets where there is no such module or nothing was built yet.
func Assets() (string, error) {
	dir := os.Getenv("KUBEBUILDER_ASSETS")
	if dir == "" {
		script, err := findScript()
		if err != nil {
			return "", err
		}
		if dir, err = scriptPath(script); err != nil {
			return "", err
		}
	}
	return dir, checkAssets(dir, binEtcd, binAPIServer)
}

// checkAssets says which of the executables is missing in the folder.
func checkAssets(dir string, bins ...string) error {
	for _, bin := range bins {
		if info, err := os.Stat(filepath.Join(dir, bin)); err != nil || info.Mode()&0o111 == 0 {
			return fmt.Errorf("finding %s in %s: %w: run make kube", bin, dir, ErrNoAssets)
		}
	}
	return nil
}

// findScript walks up from the working directory to the folder that has kube/build.sh.
func findScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding kube/build.sh: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		script := filepath.Join(at, "kube", "build.sh")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("finding kube/build.sh above %s: %w: run make kube in a checkout, or set KUBEBUILDER_ASSETS", dir, ErrNoAssets)
		}
	}
}

// scriptPath asks the build script for its folder: the key of the cache is computed in one place only.
func scriptPath(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, script, "path").Output()
	if err != nil {
		return "", fmt.Errorf("running %s path: %w", script, err)
	}
	return strings.TrimSpace(string(out)), nil
}
