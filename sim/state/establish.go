package state

import (
	"slices"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kyma-project/mothership/sim/schema"
)

// establish accepts a definition's names and serves it.
func (c *Cluster) establish(t *table, k key) {
	r, ok := t.get(k)
	if !ok || r.content.Deleting {
		return
	}
	if _, err := c.world.definitionOf(r.content); err != nil {
		return // a schema that is not structural is never established
	}
	c.edit(t, r, "establish", "", established)
	c.serve()
}

func established(object map[string]any, v *schema.Version) (map[string]any, error) {
	var d apiextensions.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &d); err != nil {
		return nil, err
	}
	if len(d.Status.Conditions) > 0 && slices.Contains(d.Finalizers, crdCleanup) && sameNames(d.Spec.Names, d.Status.AcceptedNames) {
		return object, nil
	}
	now := metav1.Now()
	d.Status.AcceptedNames = d.Spec.Names
	d.Status.StoredVersions = nil
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Storage {
			d.Status.StoredVersions = append(d.Status.StoredVersions, d.Spec.Versions[i].Name)
		}
	}
	d.Status.Conditions = []apiextensions.CustomResourceDefinitionCondition{
		{Type: apiextensions.NamesAccepted, Status: apiextensions.ConditionTrue, LastTransitionTime: now, Reason: "NoConflicts", Message: "no conflicts found"},
		{Type: apiextensions.Established, Status: apiextensions.ConditionTrue, LastTransitionTime: now, Reason: "InitialNamesAccepted", Message: "the initial names have been accepted"},
	}
	d.Finalizers = addFinalizer(d.Finalizers, crdCleanup)
	managed := schema.MetaOf(object).GetManagedFields()
	next, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&d)
	if err != nil {
		return nil, err
	}
	schema.MetaOf(next).SetManagedFields(managed)
	return v.Update(object, next, "kube-apiserver", schema.Status)
}

func sameNames(a, b apiextensions.CustomResourceDefinitionNames) bool {
	return a.Kind == b.Kind && a.Plural == b.Plural && a.Singular == b.Singular && a.ListKind == b.ListKind &&
		slices.Equal(a.ShortNames, b.ShortNames) && slices.Equal(a.Categories, b.Categories)
}

// serve makes the catalog that of the established definitions. It needs the lock.
func (c *Cluster) serve() {
	var established []*definition
	for _, r := range c.tables[definitions].records {
		if d, err := c.world.definitionOf(r.content); err == nil && d.established {
			established = append(established, d)
		}
	}
	c.catalog = c.world.catalogOf(established)
}

func isEstablished(object map[string]any) bool {
	status, _ := object["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, raw := range conditions {
		if condition, ok := raw.(map[string]any); ok && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
