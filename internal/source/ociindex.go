package source

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
)

// readReference reads the manifest that a tag or digest leads to, as the registry's headers describe it.
func readReference(ctx context.Context, repo *remote.Repository, reference string) (ocispec.Descriptor, []byte, error) {
	desc, r, err := repo.Manifests().FetchReference(ctx, reference)
	if err != nil {
		return desc, nil, err
	}
	defer r.Close()
	if desc.Size > maxManifest {
		return desc, nil, refuse(ErrTooLarge, "", "manifest is larger than the limit of %d bytes", maxManifest)
	}
	data, err := content.ReadAll(r, desc)
	return desc, data, err
}

// ociManifest is a manifest or an index.
type ociManifest struct {
	Layers    []ocispec.Descriptor `json:"layers"`
	Manifests []ocispec.Descriptor `json:"manifests"`
}

// attestation is what builders put beside an image's manifests: signatures and statements, of a platform that is none.
const attestation = "vnd.docker.reference.type"

// readManifest reads a manifest or an index, and says which.
func readManifest(mediaType string, data []byte) (m *ociManifest, isIndex bool, err error) {
	m = &ociManifest{}
	malformed := json.Unmarshal(data, m) != nil
	switch {
	case mediaType == ocispec.MediaTypeImageIndex, mediaType == dockerIndex, len(m.Manifests) > 0:
		isIndex = true
	case mediaType != ocispec.MediaTypeImageManifest && mediaType != dockerImage:
		return nil, false, refuse(ErrUnsupported, "", "manifests of type %s are not supported", quote(mediaType))
	}
	if malformed {
		return nil, false, refuse(ErrInvalid, "", "manifest is malformed")
	}
	return m, isIndex, nil
}

// fromIndex returns the manifest that the data is or, if it is an index, the one in it that is meant.
func fromIndex(ctx context.Context, repo *remote.Repository, mediaType string, data []byte) (*ociManifest, error) {
	m, isIndex, err := readManifest(mediaType, data)
	if err != nil || !isIndex {
		return m, err
	}
	desc, err := m.only()
	if err != nil {
		return nil, err
	}
	_, data, err = readReference(ctx, repo, desc.Digest.String())
	switch {
	case err != nil:
		return nil, err
	case int64(len(data)) != desc.Size || BytesDigest(data) != desc.Digest.String():
		return nil, refuse(ErrDigest, "", "registry sends another manifest than its index promised")
	}
	inner, isIndex, err := readManifest(desc.MediaType, data)
	if isIndex {
		return nil, refuse(ErrUnsupported, "", "this is an index in an index: name a manifest by its digest")
	}
	return inner, err
}

// only is the manifest of an index that is meant: the only one, or the only one that is not of a platform.
func (m *ociManifest) only() (ocispec.Descriptor, error) {
	all := slices.DeleteFunc(slices.Clone(m.Manifests), func(d ocispec.Descriptor) bool { return d.Annotations[attestation] != "" })
	if len(all) > 1 {
		all = slices.DeleteFunc(all, func(d ocispec.Descriptor) bool { return d.Platform != nil })
	}
	switch {
	case len(all) != 1:
		return ocispec.Descriptor{}, refuse(ErrUnsupported, "",
			"this is an index of %d manifests, of which not exactly one is of no platform: name one by its digest%s", len(m.Manifests), listed(m.Manifests))
	case checkDigest(all[0].Digest.String()) != nil || all[0].Size < 0:
		return ocispec.Descriptor{}, refuse(ErrInvalid, "", "index has a malformed manifest")
	case all[0].Size > maxManifest:
		return ocispec.Descriptor{}, refuse(ErrTooLarge, "", "manifest is larger than the limit of %d bytes", maxManifest)
	}
	return all[0], nil
}

// listed names a few manifests, for the message.
func listed(manifests []ocispec.Descriptor) string {
	const most = 3
	var names []string
	for _, d := range manifests {
		if len(names) == most || checkDigest(d.Digest.String()) != nil {
			break
		}
		name := d.Digest.String()
		if d.Platform != nil {
			name = fmt.Sprintf("%s (%s)", name, quote(d.Platform.OS+"/"+d.Platform.Architecture))
		}
		names = append(names, name)
	}
	return after(", such as ", strings.Join(names, ", "))
}

// layer of a manifest that holds the source.
func (m *ociManifest) layer() (ocispec.Descriptor, error) {
	if i := slices.IndexFunc(m.Layers, func(l ocispec.Descriptor) bool { return l.MediaType == helmLayer }); i >= 0 {
		return m.Layers[i], nil
	}
	layers := slices.DeleteFunc(slices.Clone(m.Layers), func(l ocispec.Descriptor) bool { return l.MediaType == helmProvenance })
	if len(layers) != 1 {
		return ocispec.Descriptor{}, refuse(ErrUnsupported, "", "artifact has %d layers: it must be a Helm chart, or one tar.gz archive", len(layers))
	}
	return layers[0], nil
}
