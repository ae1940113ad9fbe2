package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/kind"
)

var _ cluster.Client = (*Client)(nil)

// ResourceFor maps a kind whose version does not matter: a built-in kind in its most stable version, a declared one in the
// most stable of those declared, others in the version that the server prefers. It costs what Resource does. Errors are
// those of Resource; the version that a *NoKindError names is meta.AnyVersion. Servers without aggregated discovery
// (before Kubernetes 1.26) know built-in and declared kinds only.
func (c *Client) ResourceFor(ctx context.Context, gk schema.GroupKind) (Resource, error) {
	if v, ok := kind.Preferred(gk); ok {
		return c.Resource(ctx, gk.WithVersion(v))
	}
	if r, ok := c.mapping.declaredAs(gk); ok {
		return r, nil
	}
	path := documentOf(gk.Group)
	doc := c.mapping.document(path)
	if _, ok := doc.preferred(gk); !ok {
		var err error
		if doc, err = c.discover(ctx, path, doc); err != nil {
			return Resource{}, err
		}
	}
	if v, ok := doc.preferred(gk); ok {
		return c.Resource(ctx, gk.WithVersion(v))
	}
	return Resource{}, doc.noKind(gk.WithVersion(meta.AnyVersion))
}

// Serves asks the server whether it answers for a resource: a definition that was just accepted is not served yet. It reads
// the discovery of the group and version; listing an object would make the server build the kind's storage, which takes
// it up to a tenth of a second. Counted as VerbWait: how often it is asked depends on how long the server takes.
func (c *Client) Serves(ctx context.Context, r Resource) (bool, error) {
	if !validSegments(r.Group, r.Version) {
		return false, fmt.Errorf("waiting for %q: it is not a group and version", r.GroupVersion())
	}
	q := &request{
		verb: VerbWait, target: groupKind(r), method: http.MethodGet, path: "/apis/" + r.Group + "/" + r.Version,
		accept: acceptJSON, idempotent: true,
	}
	var list metav1.APIResourceList
	if err := c.call(ctx, q, decodeInto(&list)); err != nil {
		if errors.Is(err, ErrNotFound) {
			return false, nil
		}
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(a metav1.APIResource) bool { return a.Name == r.Resource }), nil
}
