package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/cluster"
)

// list is the set's members of one kind; whole objects too where those are asked for. A kind that is not served (yet)
// has none; members of one that is served in another version only are listed in that.
func (s *Set) list(ctx context.Context, r cluster.Resource, whole bool) ([]metav1.PartialObjectMetadata, []unstructured.Unstructured, error) {
	items, full, err := lister{
		client: s.t.Client, selector: v1beta2.ApplySetPartOfLabel + "=" + s.setID,
		had: slices.Contains(s.parent.kinds, r.GVK().GroupKind()),
	}.list(ctx, r, whole)
	if err != nil {
		return nil, nil, fmt.Errorf("listing %s of module %s: %w", r.Resource, s.id, err)
	}
	return items, full, nil
}

// lister lists members of sets.
type lister struct {
	client   cluster.Client
	selector string
	// had says that there may be members of the kind; otherwise it is not looked for in other versions.
	had bool
}

func (l lister) list(ctx context.Context, r cluster.Resource, whole bool) ([]metav1.PartialObjectMetadata, []unstructured.Unstructured, error) {
	items, full, err := l.listAs(ctx, r, whole)
	if !errors.Is(err, cluster.ErrNotFound) {
		return items, full, err
	}
	if !l.had {
		return nil, nil, nil
	}
	other, found, err := servedAs(ctx, l.client, r)
	if err != nil || !found {
		return nil, nil, err
	}
	return l.listAs(ctx, other, whole)
}

// servedAs is a kind in the version in which the server has it, after it said that it has none of r; false if it does
// not have the kind at all.
func servedAs(ctx context.Context, c cluster.Client, r cluster.Resource) (cluster.Resource, bool, error) {
	c.Forget(r.GVK())
	_, err := c.Resource(ctx, r.GVK())
	noKind := (*cluster.NoKindError)(nil)
	switch {
	case err == nil:
		return cluster.Resource{}, false, nil // it has only just come into service
	case !errors.As(err, &noKind) || noKind.Stale:
		return cluster.Resource{}, false, fmt.Errorf("mapping %s: %w", r.Kind, err)
	case len(noKind.Versions) == 0:
		return cluster.Resource{}, false, nil
	}
	other, err := c.Resource(ctx, r.GVK().GroupKind().WithVersion(noKind.Versions[0]))
	if err != nil {
		return cluster.Resource{}, false, fmt.Errorf("mapping %s: %w", r.Kind, err)
	}
	return other, true, nil
}

// listAs lists in one version. A kind that is not served in it is ErrNotFound.
func (l lister) listAs(ctx context.Context, r cluster.Resource, whole bool) ([]metav1.PartialObjectMetadata, []unstructured.Unstructured, error) {
	o := cluster.ListOptions{LabelSelector: l.selector}
	if !whole {
		items, err := l.client.ListMeta(ctx, r, o)
		return items, nil, err
	}
	full, err := l.client.List(ctx, r, o)
	if err != nil {
		return nil, nil, err
	}
	items, err := metadataOf(full)
	return items, full, err
}

func metadataOf(objects []unstructured.Unstructured) ([]metav1.PartialObjectMetadata, error) {
	out := make([]metav1.PartialObjectMetadata, len(objects))
	for i := range objects {
		raw, err := encode(map[string]any{"metadata": objects[i].Object["metadata"]})
		if err != nil {
			return nil, err
		}
		if err := decodeInto(raw, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// inServedVersion calls with an extra's resource, and once more in the version that is served if that one is not: a kind that is
// not served in one version does not mean that the object is gone.
func (s *Set) inServedVersion(ctx context.Context, e *Extra, call func(cluster.Resource) error) error {
	err := call(e.Resource)
	if !errors.Is(err, cluster.ErrNoKind) {
		return err
	}
	other, found, mapErr := servedAs(ctx, s.t.Client, e.Resource)
	if mapErr != nil {
		return mapErr
	}
	if !found {
		return err
	}
	e.Resource = other
	return call(other)
}
