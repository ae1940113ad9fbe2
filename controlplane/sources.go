package controlplane

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/source"
)

// sourceCacheBytes bounds what is kept of sources in memory; it is more than the largest takes.
const sourceCacheBytes = 96 << 20

// Sources says how what modules are made of is fetched: once for all runtimes. The zero value works. Proxies are those of the
// environment (HTTPS_PROXY, HTTP_PROXY, NO_PROXY).
type Sources struct {
	// Mirrors are the places (host, host:port or either with a folder) to go to in place of others, over the same protocol, such
	// as "ghcr.io": "mirror.example.com:5000/ghcr". They get the credentials that are meant for what they stand in for. Default: none.
	Mirrors map[string]string
	// CacheDir is a folder in which downloads are kept by their digest. Processes may share it, and it may be lost. Default: none,
	// except that a Local control plane has one in its folder.
	CacheDir string
	// CacheBytes bounds CacheDir: what was used least recently leaves first. Default: 1 GiB.
	CacheBytes int64
	// PerHost is how many fetches may go to one host at the same time. Default: 4.
	PerHost int
	// RatePerHost is how many fetches a second may begin at one host. Default: 10.
	RatePerHost float64
	// PrivateHosts are the names, addresses and networks (10.0.0.0/8) at private addresses that servers may send us to, by a
	// redirect, an index or a token realm. A template may name any private host but link-local ones itself. Default: none.
	PrivateHosts []string
	// PollInterval is how often it is asked whether what moves, such as a branch, has moved, give or take a fifth. Default: 5 min.
	PollInterval time.Duration
}

// Defaults of Sources.
const (
	defaultRatePerHost  = 10
	defaultPollInterval = 5 * time.Minute
	// minPollInterval is the shortest: servers are others'.
	minPollInterval = time.Second
)

// validate says what is wrong, and in which field.
func (s *Sources) validate() error {
	switch {
	case s.CacheBytes < 0:
		return fmt.Errorf("Sources.CacheBytes is %d: it must be positive, or 0 for the default", s.CacheBytes)
	case s.PerHost < 0:
		return fmt.Errorf("Sources.PerHost is %d: it must be positive, or 0 for the default", s.PerHost)
	case s.RatePerHost < 0:
		return fmt.Errorf("Sources.RatePerHost is %g: it must be positive, or 0 for the default", s.RatePerHost)
	case s.PollInterval != 0 && s.PollInterval < minPollInterval:
		return fmt.Errorf("Sources.PollInterval is %s: it must be at least %s, or 0 for the default", s.PollInterval, minPollInterval)
	}
	for from, to := range s.Mirrors {
		for _, place := range []string{from, to} {
			if host, _, _ := strings.Cut(place, "/"); host == "" || strings.ContainsAny(place, "@?# ") || strings.Contains(place, "://") {
				return fmt.Errorf("mirror %q of %q in Sources.Mirrors: both are HOST, HOST:PORT or either with a folder, without https://", to, from)
			}
		}
	}
	for _, host := range s.PrivateHosts {
		if strings.ContainsAny(host, "@?# ") || strings.Contains(host, "://") || host == "" {
			return fmt.Errorf("%q in Sources.PrivateHosts is neither a host's name nor an address nor a network such as 10.0.0.0/8", host)
		}
		if _, err := netip.ParsePrefix(host); err != nil && strings.Contains(host, "/") {
			return fmt.Errorf("%q in Sources.PrivateHosts is no network such as 10.0.0.0/8", host)
		}
	}
	return nil
}

// withDefaults fills in what is not set.
func (s Sources) withDefaults(local *Local) Sources {
	if s.CacheDir == "" && local != nil {
		s.CacheDir = filepath.Join(local.Dir, "sources")
	}
	if s.RatePerHost == 0 {
		s.RatePerHost = defaultRatePerHost
	}
	if s.PollInterval == 0 {
		s.PollInterval = defaultPollInterval
	}
	return s
}

// sources fetches for the whole fleet, once.
func (cp *ControlPlane) sources(live client.Reader) source.Fetcher {
	s := cp.cfg.Sources
	mux := source.New(source.Options{
		Credentials: secretsOf(live, cp.cfg.Namespace), Mirrors: s.Mirrors, CacheDir: s.CacheDir, CacheBytes: s.CacheBytes,
		PerHost: s.PerHost, Rate: s.RatePerHost, PrivateHosts: s.PrivateHosts,
	})
	polled := source.Polled(mux, sourceCacheBytes, s.PollInterval*4/5) // due, a fifth more included, whenever it is polled
	return rooted(cp.cfg.SourceRoot, recent(polled))
}

// secretsOf reads credentials from Secrets when they are used: nothing is kept of them. Only Secrets that say so are for sources:
// whoever may write templates could have any other sent to a server of his.
func secretsOf(live client.Reader, namespace string) source.CredentialsFunc {
	return func(ctx context.Context, name string) (*source.Credentials, error) {
		var secret corev1.Secret
		if err := live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &secret); err != nil {
			return nil, fmt.Errorf("reading Secret %s/%s: %w", namespace, name, err)
		}
		if secret.Labels[v1beta2.SourceCredentialsLabel] != "true" {
			return nil, fmt.Errorf(`reading Secret %s/%s: it is not for sources: if its owner agrees, label it %s: "true"`, namespace, name, v1beta2.SourceCredentialsLabel)
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
