package schema

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// names are the rules of kinds whose names are not DNS subdomains.
var names = map[string]validation.ValidateNameFunc{
	"namespaces": validation.ValidateNamespaceName, "services": validation.NameIsDNS1035Label,
	"roles": segmentName, "clusterroles": segmentName,
	"rolebindings": segmentName, "clusterrolebindings": segmentName,
}

// segmentName is the rule of names that must be good for URLs only.
func segmentName(name string, _ bool) []string {
	if name == "." || name == ".." {
		return []string{fmt.Sprintf("may not be '%s'", name)}
	}
	for _, c := range []string{"/", "%"} {
		if strings.Contains(name, c) {
			return []string{fmt.Sprintf("may not contain '%s'", c)}
		}
	}
	return nil
}

func validateMeta(v *Version, object map[string]any) fieldErrors {
	rule := names[v.Plural]
	if rule == nil || v.Custom {
		rule = validation.NameIsDNSSubdomain
	}
	u := &unstructured.Unstructured{Object: object}
	return validation.ValidateObjectMetaAccessor(u, v.Namespaced, rule, field.NewPath("metadata"))
}

// frozen are the fields that an update must not change.
var frozen = map[string][]string{
	"deployments.apps": {"spec.selector"}, "daemonsets.apps": {"spec.selector"}, "replicasets.apps": {"spec.selector"},
	"statefulsets.apps": {"spec.selector", "spec.serviceName", "spec.volumeClaimTemplates", "spec.podManagementPolicy"},
	"jobs.batch":        {"spec.template", "spec.completionMode"},
	"secrets":           {"type"}, "storageclasses.storage.k8s.io": {"provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"},
	"rolebindings.rbac.authorization.k8s.io":         {"roleRef"},
	"clusterrolebindings.rbac.authorization.k8s.io":  {"roleRef"},
	"customresourcedefinitions.apiextensions.k8s.io": {"spec.group", "spec.scope", "spec.names.plural", "spec.names.kind"},
	"ingressclasses.networking.k8s.io":               {"spec.controller"}, "priorityclasses.scheduling.k8s.io": {"value"},
}

// required are fields without which nothing is made.
var required = map[string][]string{
	"deployments.apps": {"spec.selector", "spec.template.spec.containers"}, "statefulsets.apps": {"spec.selector", "spec.template.spec.containers"},
	"daemonsets.apps": {"spec.selector", "spec.template.spec.containers"}, "jobs.batch": {"spec.template.spec.containers"},
	"pods": {"spec.containers"}, "rolebindings.rbac.authorization.k8s.io": {"roleRef.name"},
	"clusterrolebindings.rbac.authorization.k8s.io":  {"roleRef.name"},
	"customresourcedefinitions.apiextensions.k8s.io": {"spec.group", "spec.scope", "spec.names.plural", "spec.names.kind", "spec.versions"},
}

func validateBuiltIn(v *Version, object, old map[string]any) fieldErrors {
	errs := validateMeta(v, object)
	resource := v.GroupResource().String()
	for _, f := range required[resource] {
		if value, ok := at(object, f); !ok || isEmpty(value) {
			errs = append(errs, field.Required(fieldPath(f), ""))
		}
	}
	errs = append(errs, validateSelector(object)...)
	if resource == "customresourcedefinitions.apiextensions.k8s.io" {
		errs = append(errs, validateDefinition(object)...)
	}
	if old == nil {
		return errs
	}
	for _, f := range frozen[resource] {
		now, _ := at(object, f)
		before, _ := at(old, f)
		if !reflect.DeepEqual(now, before) {
			errs = append(errs, field.Invalid(fieldPath(f), now, validation.FieldImmutableErrorMsg))
		}
	}
	return append(errs, validateImmutable(resource, object, old)...)
}

// validateSelector checks that a workload's template is what its selector selects.
func validateSelector(object map[string]any) fieldErrors {
	raw, ok := at(object, "spec.selector.matchLabels")
	template, isWorkload := at(object, "spec.template.metadata")
	if !ok || !isWorkload {
		return nil
	}
	labels, _ := template.(map[string]any)["labels"].(map[string]any)
	want, _ := raw.(map[string]any)
	for k, v := range want {
		if labels[k] != v {
			return fieldErrors{field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), labels, "`selector` does not match template `labels`")}
		}
	}
	return nil
}

// validateImmutable guards Secrets and ConfigMaps that say that they never change.
func validateImmutable(resource string, object, old map[string]any) fieldErrors {
	if resource != "secrets" && resource != "configmaps" || old["immutable"] != true {
		return nil
	}
	var errs fieldErrors
	if object["immutable"] != true {
		errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
	}
	for _, f := range []string{"data", "binaryData"} {
		if !reflect.DeepEqual(object[f], old[f]) {
			errs = append(errs, field.Forbidden(field.NewPath(f), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}

func validateDefinition(object map[string]any) fieldErrors {
	u := &unstructured.Unstructured{Object: object}
	plural, _, _ := unstructured.NestedString(object, "spec", "names", "plural")
	group, _, _ := unstructured.NestedString(object, "spec", "group")
	if want := plural + "." + group; u.GetName() != want {
		return fieldErrors{field.Invalid(field.NewPath("metadata", "name"), u.GetName(), `must be spec.names.plural+"."+spec.group`)}
	}
	if scope, _, _ := unstructured.NestedString(object, "spec", "scope"); scope != "Namespaced" && scope != "Cluster" {
		return fieldErrors{field.NotSupported(field.NewPath("spec", "scope"), scope, []string{"Cluster", "Namespaced"})}
	}
	return nil
}

// at finds a field by its dotted path.
func at(object map[string]any, dotted string) (any, bool) {
	value, ok, err := unstructured.NestedFieldNoCopy(object, strings.Split(dotted, ".")...)
	return value, ok && err == nil
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	}
	return false
}

func fieldPath(dotted string) *field.Path {
	first, rest, ok := strings.Cut(dotted, ".")
	if !ok {
		return field.NewPath(first)
	}
	return field.NewPath(first, strings.Split(rest, ".")...)
}

// MetaOf reads an object's metadata.
func MetaOf(object map[string]any) metav1.Object { return &unstructured.Unstructured{Object: object} }
