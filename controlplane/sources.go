package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/internal/source"
)

// What is kept of sources, in memory more than the largest takes, and how often it is asked whether what moves, such as a
// branch, has moved.
const (
	sourceCacheBytes = 96 << 20
	sourceDiskBytes  = 1 << 30
	sourcePoll       = 5 * time.Minute
)

// sources fetches for the whole fleet, once.
func (cp *ControlPlane) sources(live client.Reader) source.Fetcher {
	o := source.Options{Credentials: secretsOf(live, cp.cfg.Namespace)}
	if cp.cfg.Local != nil {
		o.CacheDir, o.CacheBytes = filepath.Join(cp.cfg.Local.Dir, "sources"), sourceDiskBytes
	}
	return rooted(cp.cfg.SourceRoot, source.Polled(source.New(o), sourceCacheBytes, sourcePoll))
}

// secretsOf reads credentials from Secrets when they are used: nothing is kept of them.
func secretsOf(live client.Reader, namespace string) source.CredentialsFunc {
	return func(ctx context.Context, name string) (*source.Credentials, error) {
		var secret corev1.Secret
		if err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
		}
		return source.CredentialsOf(secret.Data)
	}
}

// rooted refuses local paths outside a folder: whoever may write templates must not read any file of the control plane's machine.
func rooted(root string, next source.Fetcher) source.Fetcher {
	return source.FetcherFunc(func(ctx context.Context, ref source.Ref) (*source.Tree, error) {
		if ref.IsLocal() && !within(root, ref.Path) {
			return nil, fmt.Errorf("source path %q: this control plane takes sources from %s only", ref.Path, allowed(root))
		}
		return next.Fetch(ctx, ref)
	})
}

func allowed(root string) string {
	if root == "" {
		return "URLs"
	}
	return "URLs and from the folder " + root
}

// within says whether a path is in a folder; links are followed first.
func within(root, path string) bool {
	if root == "" || path == "-" || !filepath.IsAbs(path) {
		return false
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		target = filepath.Clean(path) // it does not exist, which the fetch will say
	}
	rel, err := filepath.Rel(root, target)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
