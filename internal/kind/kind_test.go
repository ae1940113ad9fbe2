package kind

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		gvk   schema.GroupVersionKind
		want  Info
		known bool
	}{
		"Core":          {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Info{"configmaps", true}, true},
		"Cluster":       {schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Info{"namespaces", false}, true},
		"OddPlural":     {schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"}, Info{"networkpolicies", true}, true},
		"Extension":     {schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, Info{"customresourcedefinitions", false}, true},
		"Aggregated":    {schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"}, Info{"apiservices", false}, true},
		"NoSuchVersion": {schema.GroupVersionKind{Group: "apps", Version: "v1beta1", Kind: "Deployment"}, Info{}, false},
		"NotPersisted":  {schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "SubjectAccessReview"}, Info{}, false},
		"Custom":        {schema.GroupVersionKind{Group: "operator.kyma-project.io", Version: "v1beta2", Kind: "Kyma"}, Info{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, known := Lookup(test.gvk); got != test.want || known != test.known {
				t.Errorf("Lookup: %+v, %t; want %+v, %t", got, known, test.want, test.known)
			}
		})
	}
}

func TestBuiltIn(t *testing.T) {
	t.Parallel()
	for group, want := range map[string]bool{
		"": true, "apps": true, "gateway.networking.k8s.io": false, "operator.kyma-project.io": false,
	} {
		if got := BuiltIn(group); got != want {
			t.Errorf("BuiltIn(%q): %t; want %t", group, got, want)
		}
	}
}
