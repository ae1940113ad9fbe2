package state

import (
	"fmt"
	"hash/fnv"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// begin fills in what the API server itself adds to a new object of some kinds.
func begin(v *schema.Version, object map[string]any) {
	switch v.GroupResource().String() {
	case "namespaces":
		_ = unstructured.SetNestedStringSlice(object, []string{"kubernetes"}, "spec", "finalizers")
	case "services":
		allocate(object)
	}
	countTemplate(v, object, nil)
}

// countTemplate keeps the count of a DaemonSet's templates, as an annotation from before there were generations.
func countTemplate(v *schema.Version, object, before map[string]any) {
	if v.GroupResource().String() != "daemonsets.apps" {
		return
	}
	const annotation = "deprecated.daemonset.template.generation"
	n := 1
	if before != nil {
		n, _ = strconv.Atoi(schema.MetaOf(before).GetAnnotations()[annotation])
		now, _, _ := unstructured.NestedFieldNoCopy(object, "spec", "template")
		was, _, _ := unstructured.NestedFieldNoCopy(before, "spec", "template")
		if !reflect.DeepEqual(now, was) {
			n++
		}
	}
	m := schema.MetaOf(object)
	annotations := m.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[annotation] = strconv.Itoa(n)
	m.SetAnnotations(annotations)
}

// keep gives an updated object what clients need not repeat.
func keep(v *schema.Version, object, before map[string]any) {
	countTemplate(v, object, before)
	switch v.GroupResource().String() {
	case "namespaces":
		set(object, "spec", before["spec"])
	case "services":
		for _, f := range []string{"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"} {
			if _, ok, _ := unstructured.NestedFieldNoCopy(object, "spec", f); ok {
				continue
			}
			if value, ok, _ := unstructured.NestedFieldCopy(before, "spec", f); ok {
				_ = unstructured.SetNestedField(object, value, "spec", f)
			}
		}
	}
}

// allocate gives a Service its address: the same to the same Service of every cluster.
func allocate(object map[string]any) {
	spec, ok := object["spec"].(map[string]any)
	if !ok || spec["type"] == "ExternalName" {
		return
	}
	ip, _ := spec["clusterIP"].(string)
	if ip == "" {
		m := schema.MetaOf(object)
		h := fnv.New32a()
		_, _ = h.Write([]byte(m.GetNamespace() + "/" + m.GetName()))
		sum := h.Sum32()
		ip = fmt.Sprintf("10.%d.%d.%d", 96+sum>>24%16, sum>>8&0xff, sum&0xff)
	}
	spec["clusterIP"] = ip
	spec["clusterIPs"] = []any{ip}
	if spec["ipFamilies"] == nil && ip != "None" {
		spec["ipFamilies"] = []any{"IPv4"}
	}
	if spec["ipFamilies"] == nil {
		spec["ipFamilies"] = []any{"IPv4"}
	}
	if spec["ipFamilyPolicy"] == nil {
		spec["ipFamilyPolicy"] = "SingleStack"
	}
}

// withOwners is a content whose owners have other UIDs. Owners that are not in the table stay.
func withOwners(c *content.Content, uids map[types.UID]types.UID) (*content.Content, error) {
	if len(c.Owners) == 0 {
		return c, nil
	}
	object := copyTree(c.Tree())
	m := schema.MetaOf(object)
	refs := m.GetOwnerReferences()
	for i := range refs {
		if uid := uids[refs[i].UID]; uid != "" {
			refs[i].UID = uid
		}
	}
	m.SetOwnerReferences(refs)
	return content.New(object)
}
