package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Kind is the kind of content that a source must have.
type Kind string

// The kinds.
const (
	// Chart is a Helm chart: a folder or an archive with Chart.yaml.
	Chart Kind = "chart"
	// Kustomize is a kustomization: a folder or an archive with kustomization.yaml.
	Kustomize Kind = "kustomize"
	// Manifests are YAML or JSON files: one, or all of a folder or archive.
	Manifests Kind = "manifests"
)

// Stdin is the path that stands for standard input.
const Stdin = "-"

// Ref is the place of a source and what is expected there.
type Ref struct {
	v1beta2.SourceRef
	// Kind of the content.
	Kind Kind
	// Stdin is read to its end for the path "-", which only Manifests may have. A read that blocks cannot be ended
	// from here: the caller owns the reader.
	Stdin io.Reader
}

// RefOf is the reference in a source of a module template, of which exactly one field must be set.
func RefOf(s v1beta2.Source) (Ref, error) {
	var refs []Ref
	for _, r := range []struct {
		kind Kind
		ref  *v1beta2.SourceRef
	}{{Chart, s.Chart}, {Kustomize, s.Kustomize}, {Manifests, s.Manifests}} {
		if r.ref != nil {
			refs = append(refs, Ref{SourceRef: *r.ref, Kind: r.kind})
		}
	}
	if len(refs) != 1 {
		return Ref{}, refuse(ErrInvalid, "", "source has %d of chart, kustomize and manifests set: set exactly one", len(refs))
	}
	return refs[0], nil
}

// String is the address or path for messages, without user, query and fragment.
func (r Ref) String() string {
	switch {
	case r.URL != "":
		return Redact(r.URL)
	case r.Path == Stdin:
		return "standard input"
	}
	return r.Path
}

// folder is the folder inside of an archive that the reference names, or "".
func (r Ref) folder() string {
	if r.URL == "" {
		return ""
	}
	return r.Path
}

// validate checks what can be known without fetching.
func (r Ref) validate() error {
	switch r.Kind {
	case Chart, Kustomize, Manifests:
	default:
		return refuse(ErrInvalid, "", "kind %s is not one of chart, kustomize and manifests", quote(string(r.Kind)))
	}
	switch {
	case r.URL == "" && r.Path == "":
		return refuse(ErrInvalid, "", "source of kind %s has neither path nor url", r.Kind)
	case r.URL == "" && strings.Contains(r.Path, "://"):
		return &Error{Source: Redact(r.Path), Reason: ErrInvalid, Problem: "an address is not a path: give it as url"}
	case r.Path == Stdin && r.URL == "" && r.Kind != Manifests:
		return refuse(ErrUnsupported, "", "only manifests are read from standard input")
	case r.Path == Stdin && r.URL == "" && r.Stdin == nil:
		return refuse(ErrInvalid, "", "there is no standard input here")
	case r.Digest != "":
		return checkDigest(r.Digest)
	}
	return nil
}

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
	// AllowPrivate allows redirects to loopback, link-local, private and cloud metadata addresses. Without it, such
	// an address is allowed only for the host that a reference names itself: whoever wrote the reference chose it.
	AllowPrivate bool
	// RootCAs verify servers. Default: the system's.
	RootCAs *x509.CertPool
}

// Mux fetches every kind of source that is known: local paths, http and https by itself, other schemes by the Fetchers
// that were registered. It is safe for concurrent use.
type Mux struct {
	limits  Limits
	timeout time.Duration
	web     *downloader

	mu      sync.RWMutex
	schemes map[string]Fetcher
}

var _ Fetcher = (*Mux)(nil)

// New makes a Mux for local paths, http and https.
func New(o Options) *Mux {
	if o.Timeout <= 0 {
		o.Timeout = time.Minute
	}
	m := &Mux{limits: o.Limits.withDefaults(), timeout: o.Timeout, schemes: map[string]Fetcher{}}
	m.web = newDownloader(o)
	m.Register("http", m.web)
	m.Register("https", m.web)
	return m
}

// Register adds or replaces the Fetcher of a scheme, such as "oci".
func (m *Mux) Register(scheme string, f Fetcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.schemes[strings.ToLower(scheme)] = f
}

// Fetch returns the verified tree of a reference, within the timeout. Errors are *Error or *DigestError.
func (m *Mux) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	if err := ref.validate(); err != nil {
		return nil, at("checking source", ref.String(), err)
	}
	f, err := m.fetcher(ref)
	if err != nil {
		return nil, at("fetching", ref.String(), err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, m.timeout, errTimeout)
	defer cancel()
	t, err := f.Fetch(ctx, ref)
	if err == nil {
		err = m.check(ref, t)
	}
	if err != nil {
		return nil, at("fetching", ref.String(), m.explain(ctx, err))
	}
	return t, nil
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
	if ref.URL == "" {
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
