package source

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// ociFetcher fetches artifacts of OCI registries: Helm charts, and archives that are the only layer of a manifest, which an index
// may name. A tag is resolved once, everything after that is read by digest.
type ociFetcher struct{ web *downloader }

var _ Checker = (*ociFetcher)(nil)

// maxManifest bounds a manifest in bytes, as registries do.
const maxManifest = 4 << 20

// Media types of layers.
const (
	helmLayer      = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	helmProvenance = "application/vnd.cncf.helm.chart.provenance.v1.prov"
	dockerImage    = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Fetch resolves the reference and downloads the layer.
func (o *ociFetcher) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	w, err := o.web.open(ref, registryAddress(ref))
	if err != nil {
		return nil, err
	}
	defer w.close()
	var data []byte
	var manifest ocispec.Descriptor
	err = o.web.retry(ctx, func(ctx context.Context, alive func()) error {
		repo, err := o.repository(w, ref, alive)
		if err != nil {
			return err
		}
		manifest, data, err = o.pull(ctx, repo, ref)
		return registryError(ctx, err)
	})
	if err != nil {
		return nil, err
	}
	t, err := Unpack(ctx, ref, data, o.web.limits)
	if err != nil {
		return nil, err
	}
	t.Revision = revisionOf(ref, manifest.Digest.String())
	return t, nil
}

// Current asks where the tag leads now.
func (o *ociFetcher) Current(ctx context.Context, ref Ref, t *Tree) (bool, error) {
	w, err := o.web.open(ref, registryAddress(ref))
	if err != nil {
		return false, err
	}
	defer w.close()
	same := false
	err = o.web.retry(ctx, func(ctx context.Context, alive func()) error {
		repo, err := o.repository(w, ref, alive)
		if err != nil {
			return err
		}
		found, err := repo.Resolve(ctx, tagOrDigest(ref))
		same = err == nil && revisionOf(ref, found.Digest.String()) == t.Revision
		return registryError(ctx, err)
	})
	return same, err
}

// registryAddress is where a registry's API is. Docker's registry has another host than its name.
func registryAddress(ref Ref) string {
	rest := strings.TrimPrefix(ref.OCI.URL, "oci://")
	host, path, _ := strings.Cut(rest, "/")
	if strings.EqualFold(host, "docker.io") {
		host = "registry-1.docker.io"
	}
	return "https://" + host + "/" + path
}

func tagOrDigest(ref Ref) string { return after("", ref.OCI.Tag) + ref.OCI.Digest }

func revisionOf(ref Ref, digest string) string {
	if ref.OCI.Tag == "" {
		return digest
	}
	return ref.OCI.Tag + "@" + digest
}

// repository is the registry's client, over the guarded wire.
func (o *ociFetcher) repository(w *wire, ref Ref, alive func()) (*remote.Repository, error) {
	repo, err := remote.NewRepository(strings.TrimPrefix(ref.OCI.URL, "oci://"))
	if err != nil {
		return nil, refuse(ErrInvalid, "", "this is not the address of an OCI repository: oci://HOST/REPOSITORY, in lower case")
	}
	credential, err := registryCredentials(ref, w.origin.Host)
	if err != nil {
		return nil, err
	}
	repo.MaxMetadataBytes = maxManifest
	repo.Client = &auth.Client{
		Client: &http.Client{Transport: &lively{w.rt, alive}, CheckRedirect: checkRedirect},
		Header: http.Header{"User-Agent": {"mothership"}}, Cache: auth.NewCache(),
		Credential: auth.StaticCredential(w.origin.Host, credential),
	}
	return repo, nil
}

// checkRedirect judges redirects as those of downloads. That credentials stay where they are meant to is the registry
// client's doing.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return refuse(ErrUnsupported, "", "server redirects more than %d times", maxRedirects)
	}
	_, err := redirect(via[len(via)-1].URL, req.URL.String())
	return err
}

// registryCredentials are those for a registry.
func registryCredentials(ref Ref, host string) (auth.Credential, error) {
	c := ref.creds
	switch {
	case c == nil:
		return auth.EmptyCredential, nil
	case c.Token != "":
		return auth.Credential{AccessToken: c.Token}, nil
	case len(c.Docker) == 0:
		return auth.Credential{Username: c.Username, Password: c.Password}, nil
	}
	entries, err := parseDocker(c.Docker)
	if err != nil {
		return auth.EmptyCredential, err
	}
	e, ok := entries[strings.ToLower(host)]
	if !ok {
		return auth.EmptyCredential, refuse(ErrDenied, "", ".dockerconfigjson has no credentials for %s", host)
	}
	if e.IdentityToken != "" || e.RegistryToken != "" {
		return auth.Credential{RefreshToken: e.IdentityToken, AccessToken: e.RegistryToken}, nil
	}
	return auth.Credential{Username: e.Username, Password: e.Password}, nil
}

// pull reads the manifest and its layer. The descriptor is that of what the reference leads to, which may be an index.
func (o *ociFetcher) pull(ctx context.Context, repo *remote.Repository, ref Ref) (ocispec.Descriptor, []byte, error) {
	desc, data, err := o.manifest(ctx, repo, ref)
	if err != nil {
		return desc, nil, err
	}
	if err := checkCosign(ctx, repo, ref, desc); err != nil {
		return desc, nil, err
	}
	m, err := fromIndex(ctx, repo, desc.MediaType, data)
	if err != nil {
		return desc, nil, err
	}
	layer, err := m.layer()
	if err != nil {
		return desc, nil, err
	}
	blob, err := o.layer(ctx, repo, layer)
	if err != nil {
		return desc, nil, err
	}
	return desc, blob, o.vouch(ctx, repo, ref, m, blob)
}

// manifest reads what a reference leads to.
func (o *ociFetcher) manifest(ctx context.Context, repo *remote.Repository, ref Ref) (ocispec.Descriptor, []byte, error) {
	desc, data, err := readReference(ctx, repo, tagOrDigest(ref))
	if err == nil && ref.OCI.Digest != "" && BytesDigest(data) != ref.OCI.Digest {
		err = &DigestError{Want: ref.OCI.Digest, Got: BytesDigest(data), Source: ref.String()}
	}
	return desc, data, err
}

// vouch checks the provenance of a chart, which is a layer beside it.
func (o *ociFetcher) vouch(ctx context.Context, repo *remote.Repository, ref Ref, m *ociManifest, blob []byte) error {
	if ref.keyring() == "" {
		return nil
	}
	i := slices.IndexFunc(m.Layers, func(l ocispec.Descriptor) bool { return l.MediaType == helmProvenance })
	if i < 0 {
		return refuse(ErrSignature, "", "chart is not signed: the artifact has no layer with a provenance file")
	}
	file, err := o.layer(ctx, repo, m.Layers[i])
	if err != nil {
		return err
	}
	_, err = checkProvenance(ref.keyring(), blob, file)
	return err
}

// layer downloads a layer, or takes it from disk. Its size and digest are those of the manifest, or it is refused.
func (o *ociFetcher) layer(ctx context.Context, repo *remote.Repository, layer ocispec.Descriptor) ([]byte, error) {
	limit := o.web.limits.Download
	switch {
	case checkDigest(layer.Digest.String()) != nil:
		return nil, refuse(ErrInvalid, "", "manifest has the malformed digest %s", quote(layer.Digest.String()))
	case layer.Size < 0:
		return nil, refuse(ErrInvalid, "", "manifest has a layer of a negative size")
	case layer.Size > limit:
		return nil, refuse(ErrTooLarge, "", "layer has %d bytes, the limit is %d", layer.Size, limit)
	}
	if data, ok := o.web.disk.Get(layer.Digest.String()); ok {
		return data, nil
	}
	r, err := repo.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := content.ReadAll(r, layer)
	if err != nil {
		return nil, err
	}
	o.web.disk.Put(data)
	return data, nil
}

// registryError explains an error of the registry's client. Where it says more than we know, it is quoted, shortened: no
// credentials are in it, for they are in headers only.
func registryError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if d, ok := errors.AsType[*DigestError](err); ok {
		return d
	}
	if cause := context.Cause(ctx); cause != nil {
		return transportError(ctx, cause, "ended in the middle")
	}
	if answered, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		return statusError(&http.Response{StatusCode: answered.StatusCode, Header: http.Header{}})
	}
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return refuse(ErrNotFound, "", "registry has no such artifact")
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return refuse(ErrDenied, "", "registry asks for credentials")
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return refuse(ErrDigest, "", "registry sends other content than it promised")
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return refuse(ErrTooLarge, "", "manifest is larger than the limit of %d bytes", maxManifest)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return transportError(ctx, io.ErrUnexpectedEOF, "ended in the middle")
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return transportError(ctx, request.Err, "cannot be reached")
	}
	return &Error{Problem: "registry answers something that is not understood", Reason: ErrUnsupported, Err: shortened(err)}
}

// lively calls alive for every read of an answer that brings something.
type lively struct {
	next  http.RoundTripper
	alive func()
}

// RoundTrip wraps the body.
func (l *lively) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(req)
	if resp != nil {
		resp.Body = &livelyBody{touching{resp.Body, l.alive}, resp.Body}
	}
	return resp, err
}

type livelyBody struct {
	touching
	io.Closer
}
