package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// helmFetcher fetches charts of Helm repositories. Indexes are kept as long as their ETag holds: a repository's may be
// tens of megabytes.
type helmFetcher struct {
	web *downloader
	// heavy is held while an index is parsed, which takes many times its size.
	heavy chan struct{}

	mu      sync.Mutex
	indexes []*keptIndex // most recently used first
}

// keptIndex is a repository's index. Whoever holds busy may look at the rest.
type keptIndex struct {
	key  string
	busy chan struct{}
	etag string
	x    *index
}

// maxIndexes bounds how many are kept.
const maxIndexes = 8

var _ Checker = (*helmFetcher)(nil)

func newHelmFetcher(web *downloader, heavy chan struct{}) *helmFetcher {
	return &helmFetcher{web: web, heavy: heavy}
}

// Fetch resolves the version by the index and downloads the chart, which must have the digest that the index says.
func (h *helmFetcher) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	w, err := h.web.open(ref, ref.Helm.Repository)
	if err != nil {
		return nil, err
	}
	defer w.close()
	v, err := h.resolve(ctx, w, ref)
	if err != nil {
		return nil, err
	}
	data, err := h.chart(ctx, w, v)
	if err != nil {
		return nil, err
	}
	if err := h.vouch(ctx, w, ref, v, data); err != nil {
		return nil, err
	}
	t, err := Unpack(ctx, ref, data, h.web.limits)
	if err != nil {
		return nil, err
	}
	t.Revision = v.revision(t.Digest)
	return t, nil
}

// Current compares what the index says now.
func (h *helmFetcher) Current(ctx context.Context, ref Ref, t *Tree) (bool, error) {
	w, err := h.web.open(ref, ref.Helm.Repository)
	if err != nil {
		return false, err
	}
	defer w.close()
	v, err := h.resolve(ctx, w, ref)
	if err != nil {
		return false, err
	}
	digest, err := v.digest()
	return err == nil && digest != "" && v.revision(digest) == t.Revision, err
}

// resolve asks the index which version a reference means.
func (h *helmFetcher) resolve(ctx context.Context, w *wire, ref Ref) (*chartVersion, error) {
	x, err := h.index(ctx, w, ref)
	if err != nil {
		return nil, err
	}
	return x.pick(ref.Helm.Chart, ref.Helm.Version)
}

// index of a reference's repository, downloaded if it has changed.
func (h *helmFetcher) index(ctx context.Context, w *wire, ref Ref) (*index, error) {
	kept := h.kept(indexKey(ref))
	select {
	case kept.busy <- struct{}{}:
		defer func() { <-kept.busy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	u := *w.origin
	u.Path = strings.TrimSuffix(u.Path, "/") + "/index.yaml"
	u.RawPath = ""
	got, err := w.bytes(ctx, ask{url: &u, etag: kept.etag})
	if err != nil {
		return nil, inIndex(err)
	}
	if got.data == nil {
		return kept.x, nil
	}
	x, err := h.parse(ctx, got.data)
	if err != nil {
		return nil, err
	}
	if got.etag != "" {
		kept.etag, kept.x = got.etag, x
	}
	return x, nil
}

// parse reads one index at a time.
func (h *helmFetcher) parse(ctx context.Context, data []byte) (*index, error) {
	select {
	case h.heavy <- struct{}{}:
		defer func() { <-h.heavy }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return parseIndex(data)
}

// kept is the place for a repository's index; it may be empty.
func (h *helmFetcher) kept(key string) *keptIndex {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.indexes, func(k *keptIndex) bool { return k.key == key })
	k := &keptIndex{key: key, busy: make(chan struct{}, 1)}
	if i >= 0 {
		k = h.indexes[i]
		h.indexes = slices.Delete(h.indexes, i, i+1)
	}
	h.indexes = slices.Insert(h.indexes, 0, k)
	h.indexes = h.indexes[:min(len(h.indexes), maxIndexes)]
	return k
}

// indexKey keeps the indexes of those with other credentials apart: they may see other charts.
func indexKey(ref Ref) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{ref.Helm.Repository, ref.CABundle, ref.credentialsName()}, "\x00")))
	return hex.EncodeToString(sum[:])
}

// inIndex says that it is the index that is missing, not the chart.
func inIndex(err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Entry != "" {
		return err
	}
	named := *e
	named.Entry, named.Problem = "index.yaml", "of the repository: "+e.Problem
	return &named
}

// chart downloads a chart's archive, or takes it from disk.
func (h *helmFetcher) chart(ctx context.Context, w *wire, v *chartVersion) ([]byte, error) {
	promised, err := v.digest()
	if err != nil {
		return nil, err
	}
	if data, ok := h.web.disk.Get(promised); ok {
		return data, nil
	}
	u, err := v.address(w.origin)
	if err != nil {
		return nil, err
	}
	got, err := w.bytes(ctx, ask{url: u})
	if err != nil {
		return nil, fromElsewhere(u, w.origin, err)
	}
	if digest := BytesDigest(got.data); promised != "" && digest != promised {
		return nil, &DigestError{Want: promised, Got: digest, Source: Redact(u.String())}
	}
	if promised != "" {
		h.web.disk.Put(got.data)
	}
	return got.data, nil
}

// vouch checks that the chart is signed as this version of this chart, where that is asked for.
func (h *helmFetcher) vouch(ctx context.Context, w *wire, ref Ref, v *chartVersion, data []byte) error {
	if ref.keyring() == "" {
		return nil
	}
	u, err := v.address(w.origin)
	if err != nil {
		return err
	}
	signed, err := h.web.vouch(ctx, w, ref, u, data)
	if err != nil {
		return err
	}
	return signed.isSigned(ref.Helm.Chart, v.Version)
}

// fromElsewhere names the address that failed if it is not the repository's own.
func fromElsewhere(u, repository *url.URL, err error) error {
	if sameOrigin(u, repository) {
		return err
	}
	return at("downloading chart", Redact(u.String()), err)
}
