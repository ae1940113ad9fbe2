package artifact

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"
)

// The types of artifacts and their layers.
const (
	// ArtifactType of a catalogue, and LayerType of its one layer.
	ArtifactType = "application/vnd.kyma-project.mothership.catalog.v1"
	LayerType    = "application/vnd.kyma-project.mothership.catalog.content.v1.tar+gzip"
	// SourceType of a mirrored source, and SourceLayerType of its one layer.
	SourceType      = "application/vnd.kyma-project.mothership.source.v1"
	SourceLayerType = "application/vnd.kyma-project.mothership.source.content.v1.tar+gzip"
)

// Scheme begins the address of an artifact.
const Scheme = "oci://"

// maxManifest bounds a manifest in bytes, as registries do.
const maxManifest = 4 << 20

// Reference is the address of an artifact.
type Reference struct{ ref registry.Reference }

// ParseReference reads oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:DIGEST.
func ParseReference(address string) (Reference, error) {
	rest, ok := strings.CutPrefix(address, Scheme)
	if !ok {
		return Reference{}, fmt.Errorf("%q is not the address of an artifact: write oci://HOST/REPOSITORY:TAG", address)
	}
	ref, err := registry.ParseReference(rest)
	if err != nil || ref.Repository == "" {
		return Reference{}, fmt.Errorf("%q is not the address of an artifact: write oci://HOST/REPOSITORY:TAG, in lower case", address)
	}
	if ref.Reference == "" {
		return Reference{}, fmt.Errorf("%q names no artifact: add a tag, oci://HOST/REPOSITORY:TAG", address)
	}
	return Reference{ref}, nil
}

// String is the address.
func (r Reference) String() string {
	if _, err := r.ref.Digest(); err == nil {
		return r.Repository() + "@" + r.ref.Reference
	}
	return r.Repository() + ":" + r.ref.Reference
}

// Repository is the address without tag or digest.
func (r Reference) Repository() string { return Scheme + r.ref.Registry + "/" + r.ref.Repository }

// below is an artifact in a repository below this one's.
func (r Reference) below(name, tag string) Reference {
	r.ref.Repository += "/" + name
	r.ref.Reference = tag
	return r
}

// isDigest says whether the artifact is named by its digest.
func (r Reference) isDigest() bool {
	_, err := r.ref.Digest()
	return err == nil
}

// Options of NewRegistry. The zero value works.
type Options struct {
	// RootCAs verify the registries' certificates. Default: the system's.
	RootCAs *x509.CertPool
	// Credential returns what a registry (host or host:port) asks for. Its errors must not hold credentials. Default: nothing.
	Credential auth.CredentialFunc
}

// Registry speaks to registries. It is safe for concurrent use.
type Registry struct{ client *auth.Client }

// NewRegistry makes one. Proxies of the environment are honoured.
func NewRegistry(o Options) *Registry {
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	if o.RootCAs != nil {
		transport.TLSClientConfig.RootCAs = o.RootCAs
	}
	return &Registry{&auth.Client{
		Client: &http.Client{Transport: transport}, Header: http.Header{"User-Agent": {"mothership"}},
		Cache: auth.NewCache(), Credential: o.Credential,
	}}
}

func (r *Registry) repository(ref Reference) *remote.Repository {
	return &remote.Repository{Client: r.client, Reference: ref.ref, MaxMetadataBytes: maxManifest, SkipReferrersGC: true}
}

// Push makes an artifact of a catalogue and returns the digest of its manifest. The same files are the same artifact, and what the
// registry has already is not sent again.
func (r *Registry) Push(ctx context.Context, ref Reference, files Files) (string, error) {
	data, err := files.pack("")
	if err != nil {
		return "", err
	}
	pushed, err := r.push(ctx, ref, single{ArtifactType, LayerType, data})
	return pushed.manifest, err
}

// single is an artifact of one layer.
type single struct {
	artifact, layer string
	data            []byte
}

// pushed is what push made: the digests of manifest and layer, and whether the registry had it already.
type pushed struct {
	manifest, layer string
	had             bool
}

func (r *Registry) push(ctx context.Context, ref Reference, s single) (pushed, error) {
	if ref.isDigest() {
		return pushed{}, fmt.Errorf("pushing %s: an artifact is pushed under a tag", ref)
	}
	repo := r.repository(ref)
	layer := content.NewDescriptorFromBytes(s.layer, s.data)
	m := ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: s.artifact,
		Config: ocispec.DescriptorEmptyJSON, Layers: []ocispec.Descriptor{layer},
	}
	data, err := json.Marshal(m)
	if err != nil {
		return pushed{}, fmt.Errorf("pushing %s: %w", ref, err)
	}
	manifest := content.NewDescriptorFromBytes(m.MediaType, data)
	out := pushed{manifest: manifest.Digest.String(), layer: layer.Digest.String()}
	if there, err := repo.Resolve(ctx, ref.ref.Reference); err == nil && there.Digest == manifest.Digest {
		out.had = true
		return out, nil
	}
	for _, blob := range []struct {
		of   ocispec.Descriptor
		data []byte
	}{{layer, s.data}, {ocispec.DescriptorEmptyJSON, ocispec.DescriptorEmptyJSON.Data}} {
		if err := pushBlob(ctx, repo, blob.of, blob.data); err != nil {
			return pushed{}, fmt.Errorf("pushing %s: %w", ref, explained(err))
		}
	}
	if err := repo.PushReference(ctx, manifest, strings.NewReader(string(data)), ref.ref.Reference); err != nil {
		return pushed{}, fmt.Errorf("pushing %s: %w", ref, explained(err))
	}
	return out, nil
}

// pushBlob sends a blob that the registry does not have.
func pushBlob(ctx context.Context, repo *remote.Repository, of ocispec.Descriptor, data []byte) error {
	if there, err := repo.Blobs().Exists(ctx, of); err == nil && there {
		return nil
	}
	return repo.Blobs().Push(ctx, of, strings.NewReader(string(data)))
}

// Pull reads a catalogue and the digest of its manifest. Manifest and layer are compared with their digests before anything of them is
// used.
func (r *Registry) Pull(ctx context.Context, ref Reference) (Files, string, error) {
	repo := r.repository(ref)
	desc, body, err := repo.FetchReference(ctx, ref.ref.Reference)
	if err != nil {
		return nil, "", fmt.Errorf("pulling %s: %w", ref, explained(err))
	}
	defer body.Close()
	if desc.Size > maxManifest {
		return nil, "", fmt.Errorf("pulling %s: %w: its manifest has %d bytes", ref, ErrTooLarge, desc.Size)
	}
	data, err := content.ReadAll(body, desc)
	if err != nil {
		return nil, "", fmt.Errorf("pulling %s: %w", ref, explained(err))
	}
	if got := digestOf(data); ref.isDigest() && got != ref.ref.Reference {
		return nil, "", fmt.Errorf("pulling %s: the registry sends %s", ref, got)
	}
	layer, err := catalogLayer(data)
	if err != nil {
		return nil, "", fmt.Errorf("pulling %s: %w", ref, err)
	}
	packed, err := content.FetchAll(ctx, repo.Blobs(), layer)
	if err != nil {
		return nil, "", fmt.Errorf("pulling %s: %w", ref, explained(err))
	}
	files, err := unpack(packed)
	if err != nil {
		return nil, "", fmt.Errorf("pulling %s: %w", ref, err)
	}
	return files, digestOf(data), nil
}

func digestOf(data []byte) string { return content.NewDescriptorFromBytes("", data).Digest.String() }

// catalogLayer is the layer of a manifest that must be a catalogue's.
func catalogLayer(manifest []byte) (ocispec.Descriptor, error) {
	var m ocispec.Manifest
	if err := json.Unmarshal(manifest, &m); err != nil {
		return ocispec.Descriptor{}, errors.New("its manifest is malformed")
	}
	if m.ArtifactType != ArtifactType || len(m.Layers) != 1 || m.Layers[0].MediaType != LayerType {
		return ocispec.Descriptor{}, fmt.Errorf("this is not a catalogue: its type is %.100q, not %s", m.ArtifactType, ArtifactType)
	}
	layer := m.Layers[0]
	if err := layer.Digest.Validate(); err != nil || !strings.HasPrefix(layer.Digest.String(), "sha256:") {
		return layer, errors.New("its manifest has a malformed digest")
	}
	if layer.Size < 0 || layer.Size > maxPacked {
		return layer, fmt.Errorf("%w: its layer has %d bytes, the limit is %d", ErrTooLarge, layer.Size, maxPacked)
	}
	return layer, nil
}

// explained says what registries mean.
func explained(err error) error {
	var answered *errcode.ErrorResponse
	switch {
	case errors.Is(err, errdef.ErrNotFound):
		return errors.New("the registry has no such artifact")
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return errors.New("the registry asks for credentials: see --registry-config")
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, content.ErrInvalidDescriptorSize):
		return errors.New("the registry sends other content than it promised")
	case errors.As(err, &answered) && (answered.StatusCode == http.StatusUnauthorized || answered.StatusCode == http.StatusForbidden):
		return fmt.Errorf("the registry refuses us (%d %s): see --registry-config", answered.StatusCode, http.StatusText(answered.StatusCode))
	case errors.As(err, &answered):
		return fmt.Errorf("the registry answers %d %s", answered.StatusCode, http.StatusText(answered.StatusCode))
	}
	return err
}
