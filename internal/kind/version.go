package kind

import (
	"sort"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Preferred is the most stable version of a built-in kind, and false for any other kind.
func Preferred(gk schema.GroupKind) (string, bool) {
	v, ok := preferred[gk]
	return v, ok
}

// preferred is the most stable version by kind, in Kubernetes' order of versions.
var preferred = func() map[schema.GroupKind]string {
	versions := map[schema.GroupKind][]string{}
	for gvk := range table {
		versions[gvk.GroupKind()] = append(versions[gvk.GroupKind()], gvk.Version)
	}
	out := map[schema.GroupKind]string{}
	for gk, list := range versions {
		sort.Slice(list, func(i, j int) bool { return version.CompareKubeAwareVersionStrings(list[i], list[j]) > 0 })
		out[gk] = list[0]
	}
	return out
}()
