package mothership

import (
	"context"

	"github.com/kyma-project/mothership/internal/source"
)

// Sources says how what is not on the local disk is fetched. The zero value works.
type Sources struct {
	// Credentials returns the data of what the credentialsRef of a source names, with the keys of a Secret: username and
	// password, or token, or ssh-privatekey and known_hosts, or .dockerconfigjson, and tls.crt and tls.key. It is called for each fetch, and must be
	// safe for concurrent use; its errors must not hold credentials. Default: there are none.
	Credentials func(ctx context.Context, name string) (map[string][]byte, error)
	// Mirrors are the places (host, host:port or either with a folder) to go to in place of others. Default: none.
	Mirrors map[string]string
	// CacheDir is a folder in which downloads are kept by their digest, at most 1 GiB, for later and for other processes.
	// Default: nothing is kept.
	CacheDir string
}

// fetcher fetches, once for all who ask at the same time.
func (s Sources) fetcher() source.Fetcher {
	o := source.Options{Mirrors: s.Mirrors, CacheDir: s.CacheDir}
	if s.Credentials != nil {
		o.Credentials = func(ctx context.Context, name string) (*source.Credentials, error) {
			data, err := s.Credentials(ctx, name)
			if err != nil {
				return nil, err
			}
			return source.CredentialsOf(data)
		}
	}
	return source.Cached(source.New(o), sourceCacheBytes)
}
