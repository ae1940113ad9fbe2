package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	fastjson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// acceptDiscovery asks for the aggregated form (KEP-3352) in the versions that differ in their name only, else the plain.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

// document is a discovery document, /api or /apis. It is immutable; a nil one is empty.
type document struct {
	etag string
	// plain says that the server has no aggregated discovery: the document knows no kinds.
	plain bool
	kinds map[schema.GroupVersionKind]Resource
	// order of groups and versions, the preferred ones first.
	order []schema.GroupVersion
	// versions of each kind, the preferred one first.
	versions map[schema.GroupKind][]string
	// groups of each kind name, in the server's order.
	groups map[string][]string
	// stale groups and versions did not answer the server.
	stale map[schema.GroupVersion]bool
}

// documentOf is the path of the document that has a group.
func documentOf(group string) string {
	if group == "" {
		return "/api"
	}
	return "/apis"
}

func (d *document) find(gvk schema.GroupVersionKind) (Resource, bool) {
	if d == nil {
		return Resource{}, false
	}
	r, ok := d.kinds[gvk]
	return r, ok
}

// preferred is the server's preferred version of a kind.
func (d *document) preferred(gk schema.GroupKind) (string, bool) {
	if d == nil || len(d.versions[gk]) == 0 {
		return "", false
	}
	return d.versions[gk][0], true
}

// isStale says whether a group and version did not answer; with meta.AnyVersion, any of the group.
func (d *document) isStale(gv schema.GroupVersion) bool {
	if gv.Version != meta.AnyVersion {
		return d.stale[gv]
	}
	for stale := range d.stale {
		if stale.Group == gv.Group {
			return true
		}
	}
	return false
}

// noKind says what there is instead of a kind.
func (d *document) noKind(gvk schema.GroupVersionKind) *NoKindError {
	err := &NoKindError{GVK: gvk, Stale: d.isStale(gvk.GroupVersion())}
	err.Versions = slices.Clone(d.versions[gvk.GroupKind()])
	for _, g := range d.groups[gvk.Kind] {
		if g != gvk.Group {
			err.Groups = append(err.Groups, g)
		}
	}
	return err
}

// discover reads a document, or revalidates the one that the caller has seen. Callers that miss at the same time share
// one request: who waited for another's takes its result.
func (c *Client) discover(ctx context.Context, path string, seen *document) (*document, error) {
	select {
	case c.mapping.fetching <- struct{}{}:
		defer func() { <-c.mapping.fetching }()
	case <-ctx.Done():
		return nil, discoveryRequest(path, nil).interrupted(context.Cause(ctx), nil)
	}
	if now := c.mapping.document(path); now != nil && now != seen {
		return now, nil
	}
	doc, err := c.fetch(ctx, path, seen)
	if err != nil {
		return nil, err
	}
	c.mapping.store(path, doc)
	return doc, nil
}

func (m *mapping) document(path string) *document {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.discovered[path]
}

func discoveryRequest(path string, last *document) *request {
	q := &request{
		verb: VerbDiscovery, target: "the kinds of the server", method: http.MethodGet, path: path,
		accept: acceptDiscovery, idempotent: true,
	}
	if last != nil {
		q.etag = last.etag
	}
	return q
}

// fetch reads a document. An unchanged one comes back as a copy, so that it counts as newer than the last.
func (c *Client) fetch(ctx context.Context, path string, last *document) (*document, error) {
	var doc *document
	err := c.call(ctx, discoveryRequest(path, last), func(resp *http.Response) error {
		if resp.StatusCode == http.StatusNotModified {
			same := *last
			doc = &same
			return nil
		}
		if err := checkJSON(resp); err != nil {
			return err
		}
		var list apidiscovery.APIGroupDiscoveryList
		if err := decodeWhole(resp, &list); err != nil {
			return err
		}
		doc = newDocument(&list, resp.Header.Get("Etag"))
		return nil
	})
	return doc, err
}

func decodeWhole(resp *http.Response, into any) error {
	dec := jsontext.NewDecoder(resp.Body, fast)
	if err := fastjson.UnmarshalDecode(dec, into); err != nil {
		return undecodable(err)
	}
	return atEnd(dec)
}

func newDocument(list *apidiscovery.APIGroupDiscoveryList, etag string) *document {
	d := &document{
		etag: etag, plain: list.Kind != "APIGroupDiscoveryList",
		kinds: map[schema.GroupVersionKind]Resource{}, versions: map[schema.GroupKind][]string{},
		groups: map[string][]string{}, stale: map[schema.GroupVersion]bool{},
	}
	if d.plain {
		return d
	}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			gv := schema.GroupVersion{Group: group.Name, Version: version.Version}
			if version.Freshness == apidiscovery.DiscoveryFreshnessStale {
				d.stale[gv] = true
			}
			d.order = append(d.order, gv)
			for i := range version.Resources {
				d.add(gv, &version.Resources[i])
			}
		}
	}
	return d
}

func (d *document) add(gv schema.GroupVersion, in *apidiscovery.APIResourceDiscovery) {
	if in.ResponseKind == nil || in.ResponseKind.Kind == "" {
		return // it has subresources only
	}
	r := Resource{
		GroupVersionResource: gv.WithResource(in.Resource), Kind: in.ResponseKind.Kind,
		Namespaced: in.Scope == apidiscovery.ScopeNamespace,
	}
	gvk := r.GVK()
	if _, taken := d.kinds[gvk]; taken || !validSegments(r.Group, r.Version, r.Resource) {
		return
	}
	d.kinds[gvk] = r
	d.versions[gvk.GroupKind()] = append(d.versions[gvk.GroupKind()], gvk.Version)
	if groups := d.groups[gvk.Kind]; !slices.Contains(groups, gvk.Group) {
		d.groups[gvk.Kind] = append(groups, gvk.Group)
	}
}

// resourcesOf are the resources, without subresources, of a plain discovery list.
func resourcesOf(gv schema.GroupVersion, list []metav1.APIResource) []Resource {
	var out []Resource
	for _, r := range list {
		if !strings.Contains(r.Name, "/") && validSegments(r.Name) {
			out = append(out, Resource{GroupVersionResource: gv.WithResource(r.Name), Kind: r.Kind, Namespaced: r.Namespaced})
		}
	}
	return out
}

func isNotServed(err error) bool { return errors.Is(err, ErrNotFound) }

var errSegment = errors.New("it cannot be part of a URL")

// validSegments says whether strings can be segments of a URL's path as they are.
func validSegments(segments ...string) bool {
	for _, s := range segments {
		if s == "." || s == ".." || strings.ContainsAny(s, "/%") {
			return false
		}
	}
	return true
}

func checkSegments(segments ...string) error {
	for _, s := range segments {
		if !validSegments(s) {
			return fmt.Errorf("%q: %w", s, errSegment)
		}
	}
	return nil
}
