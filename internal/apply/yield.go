package apply

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

// yieldRules say which fields are set at creation and never fought for afterwards.
type yieldRules struct{ rules []v1beta2.YieldRule }

// alwaysYielded are fields that others are meant to fill: certificates injected into webhooks.
var alwaysYielded = map[schema.GroupKind][]string{
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: {"/webhooks/*/clientConfig/caBundle"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   {"/webhooks/*/clientConfig/caBundle"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:               {"/spec/conversion/webhook/clientConfig/caBundle"},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:                           {"/spec/caBundle"},
}

// yields says whether a field of an object is left to others.
func (y yieldRules) yields(ref bundle.Ref, p fieldPath) bool {
	at := p.pointer()
	if slices.ContainsFunc(alwaysYielded[ref.GroupKind()], func(pattern string) bool { return under(at, pattern) }) {
		return true
	}
	for _, r := range y.rules {
		if (r.Kind != "" && (r.Kind != ref.Kind || r.Group != ref.Group)) || (r.Name != "" && r.Name != ref.Name) {
			continue
		}
		if slices.ContainsFunc(r.Paths, func(pattern string) bool { return under(at, pattern) }) {
			return true
		}
	}
	return false
}

// under says whether a pointer is what a pattern names, or lies below it. "*" in either stands for any token.
func under(pointer, pattern string) bool {
	p, q := strings.Split(pointer, "/"), strings.Split(strings.TrimSuffix(pattern, "/"), "/")
	if len(q) > len(p) {
		return false
	}
	for i, token := range q {
		if token != p[i] && token != "*" && p[i] != "*" {
			return false
		}
	}
	return true
}

// scaled says whether the replicas were last set through the scale subresource, by a person or an autoscaler.
func scaled(meta *metav1.PartialObjectMetadata, p fieldPath) bool {
	if p.pointer() != "/spec/replicas" {
		return false
	}
	for i := range meta.ManagedFields {
		e := &meta.ManagedFields[i]
		if e.Subresource != "scale" {
			continue
		}
		if tree, err := parseFields(e.FieldsV1); err == nil && tree.owns(p) {
			return true
		}
	}
	return false
}

// without is a copy of an object's bytes in which fields are missing that belong to others now.
func without(o *bundle.Object, paths []fieldPath) ([]byte, error) {
	obj, err := decode(o.Bytes)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		drop(obj, p)
	}
	return encode(obj)
}

// drop removes the field at a path. List items stay: only fields in them are removed.
func drop(v any, p fieldPath) {
	for i, s := range p {
		switch node := v.(type) {
		case map[string]any:
			if i == len(p)-1 {
				delete(node, s.token)
				return
			}
			v = node[s.token]
		case []any:
			index := s.index()
			if index < 0 || index >= len(node) {
				return
			}
			v = node[index]
		default:
			return
		}
	}
}
