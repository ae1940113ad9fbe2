package schema

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/kind"
)

// traits are what discovery and generations need to know of a built-in kind besides its place in URLs.
//
//	s: status  c: scale  g: generation
var traits = map[string]string{
	"namespaces": "s ns", "nodes": "s no", "pods": "sg po", "services": "s svc", "persistentvolumes": "s pv",
	"persistentvolumeclaims": "s pvc", "replicationcontrollers": "scg rc", "resourcequotas": "s quota", "podtemplates": "g",
	"configmaps": "- cm", "endpoints": "- ep", "events": "- ev", "limitranges": "- limits", "serviceaccounts": "- sa",
	"daemonsets.apps": "sg ds", "deployments.apps": "scg deploy", "replicasets.apps": "scg rs", "statefulsets.apps": "scg sts",
	"horizontalpodautoscalers.autoscaling": "s hpa", "cronjobs.batch": "sg cj", "jobs.batch": "sg",
	"certificatesigningrequests.certificates.k8s.io": "s csr", "ingresses.networking.k8s.io": "sg ing",
	"networkpolicies.networking.k8s.io": "g netpol", "poddisruptionbudgets.policy": "sg pdb", "ingressclasses.networking.k8s.io": "g",
	"customresourcedefinitions.apiextensions.k8s.io": "sg crd,crds", "apiservices.apiregistration.k8s.io": "s",
	"mutatingwebhookconfigurations.admissionregistration.k8s.io":     "g",
	"validatingwebhookconfigurations.admissionregistration.k8s.io":   "g",
	"validatingadmissionpolicies.admissionregistration.k8s.io":       "sg",
	"validatingadmissionpolicybindings.admissionregistration.k8s.io": "g",
	"flowschemas.flowcontrol.apiserver.k8s.io":                       "sg", "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": "sg",
	"priorityclasses.scheduling.k8s.io": "g pc", "storageclasses.storage.k8s.io": "- sc", "servicecidrs.networking.k8s.io": "s",
}

// notServed are kinds of stable versions that exist in the table and are left out here.
func notServed(gvk schema.GroupVersionKind) bool {
	return strings.Contains(gvk.Version, "alpha") || strings.Contains(gvk.Version, "beta") ||
		gvk.Group == "autoscaling" && gvk.Version == "v1" || gvk.Group == "internal.apiserver.k8s.io"
}

// builtIn are the kinds that every cluster has, in order of groups and names.
var builtIn = sync.OnceValue(func() []*Kind {
	var out []*Kind
	for _, gvk := range kind.All() {
		if notServed(gvk) {
			continue
		}
		info, _ := kind.Lookup(gvk)
		out = append(out, newBuiltIn(gvk, info))
	}
	slices.SortFunc(out, func(a, b *Kind) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Plural, b.Plural)) })
	return out
})

// BuiltIn are the kinds that every cluster has, in order of groups and names. The slice is shared.
func BuiltIn() []*Kind { return builtIn() }

func newBuiltIn(gvk schema.GroupVersionKind, info kind.Info) *Kind {
	k := &Kind{
		Group: gvk.Group, Kind: gvk.Kind, Plural: info.Resource, Singular: singular(gvk.Kind), ListKind: gvk.Kind + "List",
		Namespaced: info.Namespaced,
	}
	flags, short, _ := strings.Cut(traits[k.GroupResource().String()], " ")
	k.Status, k.Scale, k.Generation = strings.Contains(flags, "s"), strings.Contains(flags, "c"), strings.Contains(flags, "g")
	if short != "" {
		k.ShortNames = strings.Split(short, ",")
	}
	v := &Version{Kind: k, Name: gvk.Version}
	v.fields = newFields(v, converterOf(gvk))
	v.complete = func(object map[string]any) error { return completeBuiltIn(gvk, object) }
	v.newObject = func() map[string]any { return emptyBuiltIn(gvk) }
	v.validate = func(object, old map[string]any) fieldErrors { return validateBuiltIn(v, object, old) }
	k.Versions = []*Version{v}
	return k
}
