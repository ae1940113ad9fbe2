package schema

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Catalog is what a cluster serves. It is immutable; clusters with the same definitions share one.
type Catalog struct {
	kinds     []*Kind
	resources map[schema.GroupVersionResource]*Version
	discovery documents
	openAPI   openAPIs
}

// NewCatalog joins the built-in kinds and custom ones.
func NewCatalog(custom []*Kind) *Catalog {
	c := &Catalog{kinds: slices.Concat(BuiltIn(), custom), resources: map[schema.GroupVersionResource]*Version{}}
	slices.SortStableFunc(c.kinds, func(a, b *Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural)) })
	for _, k := range c.kinds {
		for _, v := range k.Versions {
			c.resources[v.GVK().GroupVersion().WithResource(k.Plural)] = v
		}
	}
	c.discovery.init(c)
	return c
}

// Resource finds a served version of a resource, or nil.
func (c *Catalog) Resource(gvr schema.GroupVersionResource) *Version { return c.resources[gvr] }

// Kinds are all kinds, in order of groups and names. The slice is shared.
func (c *Catalog) Kinds() []*Kind { return c.kinds }

// Groups are the API groups with their versions, the preferred ones first.
func (c *Catalog) Groups() []Group {
	var out []Group
	for _, k := range c.kinds {
		if len(out) == 0 || out[len(out)-1].Name != k.Group {
			out = append(out, Group{Name: k.Group})
		}
		g := &out[len(out)-1]
		for _, v := range k.Versions {
			if !slices.Contains(g.Versions, v.Name) {
				g.Versions = append(g.Versions, v.Name)
			}
		}
	}
	for _, extra := range reviewGroups {
		if !slices.ContainsFunc(out, func(g Group) bool { return g.Name == extra }) {
			out = append(out, Group{Name: extra, Versions: []string{"v1"}})
		}
	}
	slices.SortStableFunc(out, func(a, b Group) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// Group is an API group.
type Group struct {
	Name     string
	Versions []string
}

// reviewGroups have kinds that can only be asked.
var reviewGroups = []string{"authentication.k8s.io", "authorization.k8s.io"}
