package remote

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/kind"
)

// Resource is a kind as a server serves it.
type Resource = cluster.Resource

// groupKind is Kind.group, as messages name a kind.
func groupKind(r Resource) string {
	return schema.GroupKind{Group: r.Group, Kind: r.Kind}.String()
}

// mapping is what a client knows of kinds. It is safe for concurrent use.
type mapping struct {
	mu sync.RWMutex
	// declared kinds, and those that discovery gave instead of a forgotten one; guarded by mu.
	declared map[schema.GroupVersionKind]Resource
	// forgotten kinds are asked for anew; guarded by mu.
	forgotten map[schema.GroupVersionKind]bool
	// discovered documents by their path, /api and /apis; guarded by mu.
	discovered map[string]*document
	// fetching is held by the one who reads a document; buffered, so that waiting for it can end with a context.
	fetching chan struct{}
}

func newMapping() *mapping {
	return &mapping{
		declared:   map[schema.GroupVersionKind]Resource{},
		forgotten:  map[schema.GroupVersionKind]bool{},
		discovered: map[string]*document{},
		fetching:   make(chan struct{}, 1),
	}
}

func (m *mapping) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.forgotten)
	clear(m.discovered)
}

// lookup finds a kind without a request. doc is the discovery document seen, nil if none was read yet.
func (m *mapping) lookup(gvk schema.GroupVersionKind) (r Resource, doc *document, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	doc = m.discovered[documentOf(gvk.Group)]
	if m.forgotten[gvk] {
		return Resource{}, doc, false
	}
	if r, ok := builtIn(gvk); ok {
		return r, doc, true
	}
	if r, ok := m.declared[gvk]; ok {
		return r, doc, true
	}
	r, ok = doc.find(gvk)
	return r, doc, ok
}

// learn takes a kind from a fresh document over.
func (m *mapping) learn(r Resource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gvk := r.GVK()
	if m.forgotten[gvk] {
		delete(m.forgotten, gvk)
		m.declared[gvk] = r
	}
}

func (m *mapping) store(path string, doc *document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.discovered[path] = doc
}

func builtIn(gvk schema.GroupVersionKind) (Resource, bool) {
	info, ok := kind.Lookup(gvk)
	if !ok {
		return Resource{}, false
	}
	return Resource{GroupVersionResource: gvk.GroupVersion().WithResource(info.Resource), Kind: gvk.Kind, Namespaced: info.Namespaced}, true
}

// Declare makes kinds known, so that they need no discovery: those of the catalogue's or the bundle's CRDs. A kind that
// is declared again is replaced, and no longer forgotten; built-in kinds stay as they are.
func (c *Client) Declare(kinds ...Resource) {
	c.mapping.mu.Lock()
	defer c.mapping.mu.Unlock()
	for _, r := range kinds {
		c.mapping.declared[r.GVK()] = r
		delete(c.mapping.forgotten, r.GVK())
	}
}

// Forget drops the mapping of a kind, built in or not, so that discovery is asked when it is needed next: what to do
// after ErrNoKind.
func (c *Client) Forget(gvk schema.GroupVersionKind) {
	c.mapping.mu.Lock()
	defer c.mapping.mu.Unlock()
	delete(c.mapping.declared, gvk)
	c.mapping.forgotten[gvk] = true
}

// Resource maps a kind. Built-in, declared and already discovered kinds need no request; for others the server's
// discovery document is revalidated, once per call. Errors are *NoKindError where the server does not serve the kind or
// its APIService does not answer, else *Error.
func (c *Client) Resource(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	r, seen, ok := c.mapping.lookup(gvk)
	if ok {
		return r, nil
	}
	if gvk.Version == "" || gvk.Kind == "" {
		return Resource{}, fmt.Errorf("mapping %q: a version and a kind are needed", gvk)
	}
	doc, err := c.discover(ctx, documentOf(gvk.Group), seen)
	if err != nil {
		return Resource{}, err
	}
	if r, ok := doc.find(gvk); ok {
		c.mapping.learn(r)
		return r, nil
	}
	if doc.plain {
		return c.resourceByVersion(ctx, gvk)
	}
	return Resource{}, doc.noKind(gvk)
}

// resourceByVersion asks a server that has no aggregated discovery (before Kubernetes 1.26) for one group and version.
func (c *Client) resourceByVersion(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	list, err := c.groupVersion(ctx, gvk.GroupVersion())
	if err != nil {
		return Resource{}, err
	}
	for _, r := range list {
		if r.Kind == gvk.Kind {
			c.mapping.learn(r)
			return r, nil
		}
	}
	return Resource{}, &NoKindError{GVK: gvk}
}

// Served asks the server, past every cache, whether it serves a kind now. Errors are *Error.
func (c *Client) Served(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
	list, err := c.groupVersion(ctx, gvk.GroupVersion())
	if err != nil {
		return false, err
	}
	for _, r := range list {
		if r.Kind == gvk.Kind {
			return true, nil
		}
	}
	return false, nil
}

// groupVersion lists the resources of a group and version; none if it is not served.
func (c *Client) groupVersion(ctx context.Context, gv schema.GroupVersion) ([]Resource, error) {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	if !validSegments(gv.Group, gv.Version) {
		return nil, fmt.Errorf("discovering %q: it is not a group and version", gv)
	}
	q := &request{verb: VerbDiscovery, target: "the kinds of " + gv.String(), method: http.MethodGet, path: path, idempotent: true}
	var list metav1.APIResourceList
	if err := c.call(ctx, q, decodeInto(&list)); err != nil {
		if isNotServed(err) {
			return nil, nil
		}
		return nil, err
	}
	return resourcesOf(gv, list.APIResources), nil
}

// declaredAs is a declared kind in the most stable of its versions.
func (m *mapping) declaredAs(gk schema.GroupKind) (best Resource, ok bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for gvk, r := range m.declared {
		if gvk.GroupKind() == gk && (!ok || version.CompareKubeAwareVersionStrings(r.Version, best.Version) > 0) {
			best, ok = r, true
		}
	}
	return best, ok
}

// allDeclared is a copy of the declared kinds.
func (m *mapping) allDeclared() map[schema.GroupVersionKind]Resource {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return maps.Clone(m.declared)
}
