// Package kind knows the built-in kinds of Kubernetes: their resource names and scopes, from a table, so that nobody
// needs a cluster's discovery for them.
//
// The table (table.go) is generated from the discovery of the kube-apiserver that the kube module builds, with every
// API and feature enabled; a test compares the two. It has what can be kept in a cluster: kinds that can only be asked
// (SubjectAccessReview) and sub-resources are left out. The package may import k8s.io/apimachinery's schema package
// only. All functions are pure and safe for concurrent use.
package kind

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

//go:generate go test . -run TestTableIsTheServersDiscovery -count=1 -update

// Info is what is known of a kind.
type Info struct {
	// Resource is the plural name in URLs.
	Resource string
	// Namespaced says whether objects of the kind live in namespaces.
	Namespaced bool
}

// Lookup returns the entry of a built-in kind, and false for any other.
func Lookup(gvk schema.GroupVersionKind) (Info, bool) {
	info, ok := table[gvk]
	return info, ok
}

// All are the built-in kinds, in no order.
func All() []schema.GroupVersionKind { return slices.Collect(maps.Keys(table)) }

// Scope says where objects of a kind live.
type Scope int

// The scopes.
const (
	// ScopeUnknown is the scope of kinds that are neither built in nor declared.
	ScopeUnknown Scope = iota
	// ScopeNamespaced objects live in a namespace.
	ScopeNamespaced
	// ScopeCluster objects do not.
	ScopeCluster
)

// BuiltIn says whether the API group belongs to Kubernetes itself.
func BuiltIn(group string) bool { return groups[group] }

// groups are the API groups of the table.
var groups = func() map[string]bool {
	g := map[string]bool{}
	for gvk := range table {
		g[gvk.Group] = true
	}
	return g
}()
