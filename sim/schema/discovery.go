package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Document is an answer that many clusters give.
type Document struct {
	Body []byte
	// ETag with its quotes.
	ETag string
}

func newDocument(body any) Document {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // types of Kubernetes, filled in here
	}
	sum := sha256.Sum256(encoded)
	return Document{Body: encoded, ETag: `"` + hex.EncodeToString(sum[:]) + `"`}
}

// documents are the discovery documents of a catalog, made when they are asked for.
type documents struct {
	core, groups func() Document
}

func (d *documents) init(c *Catalog) {
	d.core = sync.OnceValue(func() Document { return newDocument(c.aggregated(func(g string) bool { return g == "" })) })
	d.groups = sync.OnceValue(func() Document { return newDocument(c.aggregated(func(g string) bool { return g != "" })) })
}

// Discovery is the aggregated document of /api (core) or /apis.
func (c *Catalog) Discovery(core bool) Document {
	if core {
		return c.discovery.core()
	}
	return c.discovery.groups()
}

// HalfDiscovery is the aggregated document of /apis when every second group does not answer.
func (c *Catalog) HalfDiscovery() Document {
	list := c.aggregated(func(g string) bool { return g != "" })
	for i := range list.Items {
		for j := range list.Items[i].Versions {
			if i%2 == 1 {
				v := &list.Items[i].Versions[j]
				v.Freshness, v.Resources = apidiscovery.DiscoveryFreshnessStale, nil
			}
		}
	}
	return newDocument(list)
}

func (c *Catalog) aggregated(wanted func(group string) bool) *apidiscovery.APIGroupDiscoveryList {
	out := &apidiscovery.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"},
	}
	for _, g := range c.Groups() {
		if !wanted(g.Name) {
			continue
		}
		item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.Name}}
		for _, version := range g.Versions {
			item.Versions = append(item.Versions, apidiscovery.APIVersionDiscovery{
				Version: version, Freshness: apidiscovery.DiscoveryFreshnessCurrent,
				Resources: c.discovered(schema.GroupVersion{Group: g.Name, Version: version}),
			})
		}
		out.Items = append(out.Items, item)
	}
	return out
}

func (c *Catalog) discovered(gv schema.GroupVersion) []apidiscovery.APIResourceDiscovery {
	var out []apidiscovery.APIResourceDiscovery
	for _, r := range c.Resources(gv) {
		scope := apidiscovery.ScopeCluster
		if r.Namespaced {
			scope = apidiscovery.ScopeNamespace
		}
		kind := &metav1.GroupVersionKind{Group: gv.Group, Version: gv.Version, Kind: r.Kind}
		if main, sub, ok := cutSlash(r.Name); ok {
			last := len(out) - 1
			if last >= 0 && out[last].Resource == main {
				out[last].Subresources = append(out[last].Subresources, apidiscovery.APISubresourceDiscovery{
					Subresource: sub, ResponseKind: kind, Verbs: r.Verbs,
				})
			}
			continue
		}
		out = append(out, apidiscovery.APIResourceDiscovery{
			Resource: r.Name, ResponseKind: kind, Scope: scope, SingularResource: r.SingularName,
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	return out
}

func cutSlash(name string) (main, sub string, ok bool) {
	for i := range name {
		if name[i] == '/' {
			return name[:i], name[i+1:], true
		}
	}
	return name, "", false
}

var (
	allVerbs = metav1.Verbs{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	subVerbs = metav1.Verbs{"get", "patch", "update"}
	ask      = metav1.Verbs{"create"}
)

// reviews are the kinds that can only be asked.
var reviews = map[schema.GroupVersion][]metav1.APIResource{
	{Group: "authentication.k8s.io", Version: "v1"}: {
		{Name: "selfsubjectreviews", Kind: "SelfSubjectReview", SingularName: "selfsubjectreview", Verbs: ask},
		{Name: "tokenreviews", Kind: "TokenReview", SingularName: "tokenreview", Verbs: ask},
	},
	{Group: "authorization.k8s.io", Version: "v1"}: {
		{Name: "localsubjectaccessreviews", Kind: "LocalSubjectAccessReview", SingularName: "localsubjectaccessreview", Namespaced: true, Verbs: ask},
		{Name: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview", SingularName: "selfsubjectaccessreview", Verbs: ask},
		{Name: "selfsubjectrulesreviews", Kind: "SelfSubjectRulesReview", SingularName: "selfsubjectrulesreview", Verbs: ask},
		{Name: "subjectaccessreviews", Kind: "SubjectAccessReview", SingularName: "subjectaccessreview", Verbs: ask},
	},
}

// Resources are those of one group and version, sub-resources behind theirs.
func (c *Catalog) Resources(gv schema.GroupVersion) []metav1.APIResource {
	out := append([]metav1.APIResource(nil), reviews[gv]...)
	for _, k := range c.kinds {
		if k.Group != gv.Group || k.Version(gv.Version) == nil {
			continue
		}
		r := metav1.APIResource{
			Name: k.Plural, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.Kind, Verbs: allVerbs,
			ShortNames: k.ShortNames, Categories: k.Categories,
		}
		out = append(out, r)
		if k.Status {
			out = append(out, metav1.APIResource{Name: k.Plural + "/status", Namespaced: k.Namespaced, Kind: k.Kind, Verbs: subVerbs})
		}
		if gv.Group == "" && k.Plural == "serviceaccounts" {
			out = append(out, metav1.APIResource{
				Name: "serviceaccounts/token", Namespaced: true, Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest", Verbs: ask,
			})
		}
	}
	return out
}
