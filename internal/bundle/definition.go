package bundle

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/kind"
)

var crdKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// Definition is a kind that a bundle defines by a CustomResourceDefinition.
type Definition struct {
	schema.GroupVersionKind
	// Resource is the plural name in URLs.
	Resource string
	// Namespaced says whether objects of the kind live in namespaces.
	Namespaced bool
	// CRD is the name of the CustomResourceDefinition.
	CRD string
}

// IsDefinition says whether the object is a CustomResourceDefinition.
func (o *Object) IsDefinition() bool { return o.GroupKind() == crdKind }

// definitionSpec is what is read of a CustomResourceDefinition.
type definitionSpec struct {
	Spec struct {
		Group string `json:"group"`
		Scope string `json:"scope"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
}

// Definitions are the kinds, one entry per served version, that the bundle defines itself.
func (b *Bundle) Definitions() ([]Definition, error) {
	var out []Definition
	for _, o := range b.Objects {
		if !o.IsDefinition() {
			continue
		}
		var crd definitionSpec
		if err := json.Unmarshal(o.Bytes, &crd); err != nil {
			return nil, &Error{Origin: o.Origin, Ref: o.Ref, Problem: "reading the definition: " + err.Error()}
		}
		for _, v := range crd.Spec.Versions {
			if v.Served {
				out = append(out, Definition{
					GroupVersionKind: schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind},
					Resource:         crd.Spec.Names.Plural, Namespaced: crd.Spec.Scope == "Namespaced", CRD: o.Name,
				})
			}
		}
	}
	return out, nil
}

// scopes knows the scope of built-in kinds, of those that the bundle defines, and of those declared from outside.
type scopes struct {
	own      map[schema.GroupKind]kind.Scope
	declared func(schema.GroupKind) kind.Scope
}

func newScopes(manifests []Manifest, declared func(schema.GroupKind) kind.Scope) (*scopes, error) {
	s := &scopes{own: map[schema.GroupKind]kind.Scope{}, declared: declared}
	for _, m := range manifests {
		if refOf(m.Object).GroupKind() != crdKind {
			continue
		}
		gk, scope, err := definedScope(m.Object)
		if err != nil {
			return nil, &Error{Origin: m.Origin, Ref: refOf(m.Object), Problem: err.Error()}
		}
		s.own[gk] = scope
	}
	return s, nil
}

func definedScope(obj map[string]any) (schema.GroupKind, kind.Scope, error) {
	spec, _ := obj["spec"].(map[string]any)
	names, _ := spec["names"].(map[string]any)
	group, _ := spec["group"].(string)
	k, _ := names["kind"].(string)
	if group == "" || k == "" {
		return schema.GroupKind{}, kind.ScopeUnknown, fmt.Errorf("spec.group and spec.names.kind are needed")
	}
	switch spec["scope"] {
	case "Namespaced":
		return schema.GroupKind{Group: group, Kind: k}, kind.ScopeNamespaced, nil
	case "Cluster":
		return schema.GroupKind{Group: group, Kind: k}, kind.ScopeCluster, nil
	}
	return schema.GroupKind{}, kind.ScopeUnknown, fmt.Errorf("spec.scope is %q: it must be Namespaced or Cluster", spec["scope"])
}

func (s *scopes) of(gvk schema.GroupVersionKind) kind.Scope {
	if info, ok := kind.Lookup(gvk); ok {
		if info.Namespaced {
			return kind.ScopeNamespaced
		}
		return kind.ScopeCluster
	}
	if scope, ok := s.own[gvk.GroupKind()]; ok {
		return scope
	}
	if s.declared != nil {
		return s.declared(gvk.GroupKind())
	}
	return kind.ScopeUnknown
}
