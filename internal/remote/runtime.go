package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// runtimeHost stands in URLs of the controller-runtime client until the gate puts the runtime's address there.
const runtimeHost = "https://runtime"

// errRedirect ends a redirected request of the controller-runtime client.
var errRedirect = errors.New("the runtime answers with a redirect, which is not followed")

// Client makes a controller-runtime client for component reconcilers. It has the same connection, limits, deadlines and
// counters, follows Swap, maps known kinds without discovery, and knows the types of client-go's scheme. Its errors are
// those of client-go, which also does its retries; warnings of the server are dropped. It does not watch.
func (c *Client) Client() (client.Client, error) {
	cfg := &rest.Config{Host: runtimeHost, QPS: -1, WarningHandlerWithContext: rest.NoWarnings{}}
	httpClient := &http.Client{
		Transport:     c.gate,
		CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirect },
	}
	cl, err := client.New(cfg, client.Options{HTTPClient: httpClient, Mapper: &mapper{c: c}})
	if err != nil {
		return nil, fmt.Errorf("making a controller-runtime client: %w", err)
	}
	return cl, nil
}

// mapTimeout bounds one look-up of the mapper, whose interface takes no context.
const mapTimeout = time.Minute

// mapper is a meta.RESTMapper over a client's mapping. What names a kind and a version costs no discovery if the kind is
// known; everything else reads the discovery documents.
type mapper struct{ c *Client }

var _ meta.RESTMapper = (*mapper)(nil)

// RESTMapping maps a kind in the first of the versions that is served.
func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	all, err := m.RESTMappings(gk, versions...)
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// RESTMappings maps a kind in all of the versions that are served, at least one.
func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	if len(versions) == 0 {
		return withAll(m, func(all meta.RESTMapper) ([]*meta.RESTMapping, error) { return all.RESTMappings(gk) })
	}
	ctx, cancel := context.WithTimeout(context.Background(), mapTimeout)
	defer cancel()
	var out []*meta.RESTMapping
	for _, v := range versions {
		r, err := m.c.Resource(ctx, gk.WithVersion(v))
		if errors.Is(err, ErrNoKind) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, &meta.RESTMapping{Resource: r.GroupVersionResource, GroupVersionKind: r.GVK(), Scope: scopeOf(r)})
	}
	if len(out) == 0 {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return out, nil
}

// KindFor finds the kind of a resource.
func (m *mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return withAll(m, func(all meta.RESTMapper) (schema.GroupVersionKind, error) { return all.KindFor(r) })
}

// KindsFor finds the kinds of a partial resource.
func (m *mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return withAll(m, func(all meta.RESTMapper) ([]schema.GroupVersionKind, error) { return all.KindsFor(r) })
}

// ResourceFor completes a partial resource.
func (m *mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return withAll(m, func(all meta.RESTMapper) (schema.GroupVersionResource, error) { return all.ResourceFor(r) })
}

// ResourcesFor finds the resources that a partial one may mean.
func (m *mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return withAll(m, func(all meta.RESTMapper) ([]schema.GroupVersionResource, error) { return all.ResourcesFor(r) })
}

// ResourceSingularizer gives the singular of a resource's name.
func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return withAll(m, func(all meta.RESTMapper) (string, error) { return all.ResourceSingularizer(resource) })
}

// withAll asks a mapper of everything that is declared or that the server serves now.
func withAll[T any](m *mapper, ask func(meta.RESTMapper) (T, error)) (T, error) {
	all, err := m.all()
	if err != nil {
		var none T
		return none, err
	}
	return ask(all)
}

func (m *mapper) all() (meta.RESTMapper, error) {
	ctx, cancel := context.WithTimeout(context.Background(), mapTimeout)
	defer cancel()
	var order []schema.GroupVersion
	kinds := m.c.mapping.allDeclared()
	for _, path := range []string{"/api", "/apis"} {
		doc, err := m.c.discover(ctx, path, m.c.mapping.document(path))
		if err != nil {
			return nil, err
		}
		order = append(order, doc.order...)
		for gvk, r := range doc.kinds {
			kinds[gvk] = r
		}
	}
	return newStaticMapper(kinds, order), nil
}

// newStaticMapper is apimachinery's mapper over the kinds given; where several fit, the one first in order wins.
func newStaticMapper(kinds map[schema.GroupVersionKind]Resource, order []schema.GroupVersion) meta.RESTMapper {
	all := meta.NewDefaultRESTMapper(order)
	for gvk, r := range kinds {
		_, singular := meta.UnsafeGuessKindToResource(gvk)
		all.AddSpecific(gvk, r.GroupVersionResource, singular, scopeOf(r))
	}
	p := meta.PriorityRESTMapper{Delegate: all}
	for _, gv := range order {
		p.ResourcePriority = append(p.ResourcePriority, gv.WithResource(meta.AnyResource))
		p.KindPriority = append(p.KindPriority, gv.WithKind(meta.AnyKind))
	}
	return p
}

func scopeOf(r Resource) meta.RESTScope {
	if r.Namespaced {
		return meta.RESTScopeNamespace
	}
	return meta.RESTScopeRoot
}
