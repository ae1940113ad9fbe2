package remote

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/kind"
)

var _ cluster.Client = (*Client)(nil)

// ResourceFor maps a kind whose version does not matter: a built-in kind in its most stable version, a declared one in any,
// others in the version that the server prefers. Errors are those of Resource.
func (c *Client) ResourceFor(ctx context.Context, gk schema.GroupKind) (Resource, error) {
	if v, ok := kind.Preferred(gk); ok {
		return c.Resource(ctx, gk.WithVersion(v))
	}
	for gvk, r := range c.mapping.allDeclared() {
		if gvk.GroupKind() == gk {
			return r, nil
		}
	}
	// No server serves this version: the answer names those that it does serve.
	_, err := c.Resource(ctx, gk.WithVersion("v0"))
	noKind := (*NoKindError)(nil)
	if errors.As(err, &noKind) && len(noKind.Versions) > 0 {
		return c.Resource(ctx, gk.WithVersion(noKind.Versions[0]))
	}
	return Resource{}, err
}

// Serves asks the server for at most one object of a resource, to know whether it answers for it: a definition that was
// just accepted is not served yet. Counted as VerbWait: how often it is asked depends on how long the server takes.
func (c *Client) Serves(ctx context.Context, r Resource) (bool, error) {
	q, err := listRequest(r, listDefaults(ListOptions{Limit: 1}), acceptMetaList)
	if err != nil {
		return false, err
	}
	q.verb = VerbWait
	var list metav1.PartialObjectMetadataList
	err = c.call(ctx, q, decodeInto(&list))
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
