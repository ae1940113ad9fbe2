package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fetcher fetches sources. It is the contract by which kinds of addresses are added to a Mux. A Fetcher
//
//   - ends when the context does, and by a deadline of its own if the context has none;
//   - returns a tree whose bytes were compared with ref.Digest, if it is set, before anything was unpacked or parsed,
//     or a *DigestError; without one it reports the digest of what it got;
//   - keeps to its Limits, refuses links and paths that leave the source, and returns a tree that Limits.Check
//     accepts;
//   - returns trees that nobody changes any more, with Trusted only for what is the caller's own;
//   - narrows the tree to what ref.Kind needs, as Unpack does;
//   - returns errors that match the sentinels of this package and hold no credentials;
//   - is safe for concurrent use.
type Fetcher interface {
	// Fetch returns the tree of a reference.
	Fetch(ctx context.Context, ref Ref) (*Tree, error)
}

// FetcherFunc is a function as a Fetcher.
type FetcherFunc func(ctx context.Context, ref Ref) (*Tree, error)

// Fetch calls the function.
func (f FetcherFunc) Fetch(ctx context.Context, ref Ref) (*Tree, error) { return f(ctx, ref) }

// Checker is a Fetcher that can say, for less than a download, whether a reference still leads to what it led to.
type Checker interface {
	Fetcher
	// Current says whether ref still leads to t, which Fetch returned for it. False means that it may not.
	Current(ctx context.Context, ref Ref, t *Tree) (bool, error)
}

// Options of New. The zero value works.
type Options struct {
	// Limits of each source.
	Limits Limits
	// Timeout of a whole fetch, redirects and retries included. Default 60 s.
	Timeout time.Duration
	// Stall is how long a server may be silent before an attempt is given up. Default 20 s.
	Stall time.Duration
	// Attempts is how often a download is tried in all, if the server is unavailable. Default 3.
	Attempts int
	// PerHost is how many fetches may go to one host at the same time. Default 4.
	PerHost int
	// Rate is how many fetches a second may begin at one host, in the long run; a tenfold of it at once. Default: as many
	// as there are.
	Rate float64
	// AllowPrivate allows redirects to loopback, link-local, private and cloud metadata addresses. Without it, such
	// an address is allowed only for the host that a reference names itself: whoever wrote the reference chose it.
	AllowPrivate bool
	// PrivateHosts are the names, addresses and networks (10.0.0.0/8) that AllowPrivate is for; more than that is refused.
	// Default: none. A link-local address, where clouds have their metadata, is refused without it even where a reference names it.
	PrivateHosts []string
	// RootCAs verify servers whose reference has no caBundle. Default: the system's.
	RootCAs *x509.CertPool
	// Credentials reads what the credentialsRef of a reference names. Default: there are none.
	Credentials CredentialsFunc
	// Mirrors are the places (host, host:port or either with a folder) to go to in place of others, such as "docker.io":
	// "mirror.local:5000/docker". Of several, the one with the longest folder counts; in registries, folders are those of
	// repositories. Mirrors may be private, and get the credentials that are meant for what they stand in for.
	Mirrors map[string]string
	// CacheDir is a folder in which downloads are kept by their digest, also for other processes and after a restart.
	// Default: nothing is kept. A folder that cannot be used is as good as none.
	CacheDir string
	// CacheBytes bounds CacheDir. Default 1 GiB.
	CacheBytes int64
}

// Mux fetches every kind of source that is known: local paths, http and https archives, Git, Helm repositories and OCI
// registries by itself, addresses of other schemes by the Fetchers that were registered. It is safe for concurrent use.
type Mux struct {
	limits      Limits
	timeout     time.Duration
	credentials CredentialsFunc
	gate        *gate
	web         *downloader
	git, oci    Fetcher
	helm        Fetcher

	mu      sync.RWMutex
	schemes map[string]Fetcher
}

var _ Checker = (*Mux)(nil)

// New makes a Mux.
func New(o Options) *Mux {
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	m := &Mux{
		limits: o.Limits.withDefaults(), timeout: o.Timeout, credentials: o.Credentials,
		gate: newGate(orDefault(o.PerHost, 4), o.Rate), schemes: map[string]Fetcher{},
	}
	m.web = newDownloader(o)
	heavy := make(chan struct{}, 1)
	m.git, m.helm, m.oci = &gitFetcher{web: m.web, heavy: heavy}, newHelmFetcher(m.web, heavy), &ociFetcher{web: m.web}
	m.Register("http", m.web)
	m.Register("https", m.web)
	return m
}

// Register adds or replaces the Fetcher of a scheme, such as "s3".
func (m *Mux) Register(scheme string, f Fetcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.schemes[strings.ToLower(scheme)] = f
}

// Fetch returns the verified tree of a reference, within the timeout. Errors are *Error or *DigestError.
func (m *Mux) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	var t *Tree
	err := m.visit(ctx, ref, func(ctx context.Context, ref Ref, f Fetcher) (err error) {
		if t, err = f.Fetch(ctx, ref); err != nil {
			return err
		}
		return m.check(ref, t)
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Current asks the server whether a reference still leads to a tree. What cannot be asked may not.
func (m *Mux) Current(ctx context.Context, ref Ref, t *Tree) (bool, error) {
	same := false
	err := m.visit(ctx, ref, func(ctx context.Context, ref Ref, f Fetcher) (err error) {
		if c, ok := f.(Checker); ok {
			same, err = c.Current(ctx, ref, t)
		}
		return err
	})
	return same, err
}

// visit calls the Fetcher of a reference, with credentials, within the timeout and when it is its turn.
func (m *Mux) visit(ctx context.Context, ref Ref, call func(context.Context, Ref, Fetcher) error) error {
	if err := ref.validate(); err != nil {
		return at("checking source", ref.String(), err)
	}
	f, err := m.fetcher(ref)
	if err != nil {
		return at("fetching", ref.String(), err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.timeout, errTimeout)
	defer cancel()
	if ref, err = m.withCredentials(ctx, ref); err != nil {
		return at("fetching", ref.String(), err)
	}
	leave, err := m.turn(ctx, ref)
	if err != nil {
		return at("fetching", ref.String(), err)
	}
	defer leave()
	return at("fetching", ref.String(), m.explain(ctx, call(ctx, ref, f)))
}

// turn waits until the reference's host may be asked.
func (m *Mux) turn(ctx context.Context, ref Ref) (leave func(), err error) {
	if u, err := url.Parse(ref.address()); err == nil && u.Host != "" {
		return m.gate.enter(ctx, strings.ToLower(u.Host))
	}
	return func() {}, nil
}

// errTimeout is the cause of the end of a fetch that took too long.
var errTimeout = errors.New("fetch timed out")

// explain says that the timeout ended a fetch, where it did. A server's last answer says more, so it stays.
func (m *Mux) explain(ctx context.Context, err error) error {
	ended := errors.Is(err, errTimeout) || errors.Is(err, context.DeadlineExceeded)
	if !ended || !errors.Is(context.Cause(ctx), errTimeout) {
		return err
	}
	return &Error{Reason: ErrUnavailable, Err: context.DeadlineExceeded,
		Problem: fmt.Sprintf("did not end within %s", m.timeout)}
}

// fetcher is who fetches a reference.
func (m *Mux) fetcher(ref Ref) (Fetcher, error) {
	switch {
	case ref.Git != nil:
		return m.git, nil
	case ref.Helm != nil:
		return m.helm, nil
	case ref.OCI != nil:
		return m.oci, nil
	case ref.URL == "":
		return FetcherFunc(m.local), nil
	}
	scheme := schemeOf(ref.URL)
	m.mu.RLock()
	defer m.mu.RUnlock()
	if f, ok := m.schemes[scheme]; ok {
		return f, nil
	}
	known := make([]string, 0, len(m.schemes))
	for s := range m.schemes {
		known = append(known, s)
	}
	slices.Sort(known)
	return nil, refuse(ErrUnsupported, "", "addresses of scheme %s are not supported: use one of %s, or a local path",
		quote(scheme), strings.Join(known, ", "))
}

// schemeOf is the scheme of an address in lower case, or "".
func schemeOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme)
}

// check makes sure that no Fetcher breaks the contract unseen.
func (m *Mux) check(ref Ref, t *Tree) error {
	if err := m.limits.Check(t); err != nil {
		return err
	}
	return verify(ref, t.Digest)
}
