package source

import (
	"context"
	"crypto/x509"
	"net/http"
	"net/url"
	"time"

	"github.com/kyma-project/mothership/internal/source/store"
)

// downloader is the Fetcher of http and https, and what the fetchers of other protocols use of HTTP. Every fetch has a
// transport of its own, so that no connection that was allowed for one reference is used for another, and none outlives
// it.
type downloader struct {
	limits       Limits
	timeout      time.Duration
	stall        time.Duration
	attempts     int
	allowPrivate bool
	private      allowed
	roots        *x509.CertPool
	mirrors      mirrors
	// disk keeps what was downloaded and is known by its digest; nil keeps nothing.
	disk *store.Store
	// proxies chooses the proxy of a request; tests replace it.
	proxies func(*http.Request) (*url.URL, error)
	// pause waits between attempts; tests replace it.
	pause func(context.Context, time.Duration) error
}

var _ Checker = (*downloader)(nil)

func newDownloader(o Options) *downloader {
	d := &downloader{
		limits: o.Limits.withDefaults(), timeout: o.Timeout, stall: o.Stall, attempts: orDefault(o.Attempts, 3),
		allowPrivate: o.AllowPrivate, private: newAllowed(o.PrivateHosts), roots: o.RootCAs, mirrors: newMirrors(o.Mirrors), disk: openStore(o),
		proxies: http.ProxyFromEnvironment, pause: pause,
	}
	if d.stall <= 0 {
		d.stall = 20 * time.Second
	}
	return d
}

// openStore is the cache on disk, if there is to be one.
func openStore(o Options) *store.Store {
	if o.CacheDir == "" {
		return nil
	}
	size := o.CacheBytes
	if size <= 0 {
		size = 1 << 30
	}
	return store.New(o.CacheDir, size)
}

// Fetch downloads, verifies and unpacks.
func (d *downloader) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, d.timeout, errTimeout)
	defer cancel()
	got, err := d.fetch(ctx, ref)
	if err != nil {
		return nil, at("downloading", ref.String(), err)
	}
	t, err := Unpack(ctx, ref, got.data, d.limits)
	if err != nil {
		return nil, err
	}
	t.Validator = got.etag
	return t, nil
}

// fetch gets the bytes of a reference, from disk if they are known by their digest.
func (d *downloader) fetch(ctx context.Context, ref Ref) (*answer, error) {
	w, err := d.open(ref, ref.URL)
	if err != nil {
		return nil, err
	}
	defer w.close()
	got, err := d.load(ctx, w, ref)
	if err == nil && ref.keyring() != "" {
		_, err = d.vouch(ctx, w, ref, w.origin, got.data)
	}
	return got, err
}

// load takes the bytes from disk, or downloads them.
func (d *downloader) load(ctx context.Context, w *wire, ref Ref) (*answer, error) {
	if data, ok := d.disk.Get(ref.Digest); ok {
		return &answer{data: data}, nil
	}
	got, err := w.bytes(ctx, ask{url: w.origin})
	if err == nil && ref.Digest == BytesDigest(got.data) {
		d.disk.Put(got.data)
	}
	return got, err
}

// Current asks by HEAD whether the server still has what it had, by its ETag. A server without ETags is asked for
// everything again.
func (d *downloader) Current(ctx context.Context, ref Ref, t *Tree) (bool, error) {
	if t.Validator == "" {
		return false, nil
	}
	w, err := d.open(ref, ref.URL)
	if err != nil {
		return false, at("checking", ref.String(), err)
	}
	defer w.close()
	same := false
	err = d.retry(ctx, func(ctx context.Context, _ func()) error {
		resp, err := w.do(ctx, ask{url: w.origin, method: http.MethodHead, etag: t.Validator})
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		same = resp.StatusCode == http.StatusNotModified ||
			resp.StatusCode == http.StatusOK && resp.Header.Get("Etag") == t.Validator
		if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= http.StatusInternalServerError {
			return statusError(resp)
		}
		return nil // whatever it is, the download says it better
	})
	return same, at("checking", ref.String(), err)
}
