package schema

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// withMeta makes a schema one for merging: with the metadata that every object has.
func withMeta(gvk schema.GroupVersionKind, root *spec.Schema) (managedfields.TypeConverter, error) {
	text := spec.Schema{SchemaProps: spec.SchemaProps{Type: spec.StringOrArray{"string"}}}
	root.Properties["apiVersion"], root.Properties["kind"] = text, text
	root.Properties["metadata"] = *spec.RefSchema("#/definitions/" + metaName)
	if root.Extensions == nil {
		root.Extensions = spec.Extensions{}
	}
	root.Extensions["x-kubernetes-group-version-kind"] = []any{
		map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
	}
	var meta spec.Schema
	if err := json.Unmarshal([]byte(metaSchema), &meta); err != nil {
		return nil, err
	}
	return managedfields.NewTypeConverter(map[string]*spec.Schema{"object": root, metaName: &meta}, false)
}

// parsedSchema is the merge schema of a kind that is written down here.
func parsedSchema(gvk schema.GroupVersionKind, written string) managedfields.TypeConverter {
	var root spec.Schema
	err := json.Unmarshal([]byte(written), &root)
	if err == nil {
		var converter managedfields.TypeConverter
		if converter, err = withMeta(gvk, &root); err == nil {
			return converter
		}
	}
	panic(fmt.Sprintf("the schema of %s: %v", gvk.Kind, err)) // a constant of this file
}

// writtenSchemas say how kinds merge whose types are not client-go's.
var writtenSchemas = map[string]string{
	"CustomResourceDefinition": `{"type": "object", "properties": {
  "spec": {"type": "object", "properties": {
    "group": {"type": "string"}, "scope": {"type": "string"}, "preserveUnknownFields": {"type": "boolean"}, "names": ` + namesSchema + `,
    "versions": ` + atomicList + `,
    "conversion": {"type": "object", "properties": {"strategy": {"type": "string"}, "webhook": {"type": "object", "properties": {
      "conversionReviewVersions": ` + textList + `, "clientConfig": {"type": "object", "properties": {
        "url": {"type": "string"}, "caBundle": {"type": "string"}, "service": ` + serviceSchema + `}}}}}}}},
  "status": {"type": "object", "properties": {
    "acceptedNames": ` + namesSchema + `, "storedVersions": ` + textList + `, "conditions": ` + conditionsSchema + `,
    "observedGeneration": {"type": "integer"}}}
}}`,
	"APIService": `{"type": "object", "properties": {
  "spec": {"type": "object", "properties": {
    "caBundle": {"type": "string"}, "group": {"type": "string"}, "groupPriorityMinimum": {"type": "integer"},
    "insecureSkipTLSVerify": {"type": "boolean"}, "service": ` + serviceSchema + `, "version": {"type": "string"},
    "versionPriority": {"type": "integer"}}},
  "status": {"type": "object", "properties": {"conditions": ` + conditionsSchema + `}}
}}`,
}

const (
	anyItem       = `{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`
	atomicList    = `{"type": "array", "x-kubernetes-list-type": "atomic", "items": ` + anyItem + `}`
	textList      = `{"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "string"}}`
	serviceSchema = `{"type": "object", "properties": {
      "name": {"type": "string"}, "namespace": {"type": "string"}, "path": {"type": "string"}, "port": {"type": "integer"}}}`
	namesSchema = `{"type": "object", "properties": {
      "categories": ` + textList + `, "kind": {"type": "string"}, "listKind": {"type": "string"}, "plural": {"type": "string"},
      "shortNames": ` + textList + `, "singular": {"type": "string"}}}`
	conditionsSchema = `{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
      "items": {"type": "object", "required": ["type"], "properties": {
        "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"}, "message": {"type": "string"},
        "lastTransitionTime": {"type": "string"}, "observedGeneration": {"type": "integer"}}}}`
)

// metaName is the name of the schema of metadata among a version's merge schemas.
const metaName = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"

// metaSchema says how metadata merge (k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta and its markers).
const metaSchema = `{"type": "object", "properties": {
  "name": {"type": "string"}, "generateName": {"type": "string"}, "namespace": {"type": "string"}, "selfLink": {"type": "string"},
  "uid": {"type": "string"}, "resourceVersion": {"type": "string"}, "generation": {"type": "integer"},
  "creationTimestamp": {"type": "string"}, "deletionTimestamp": {"type": "string"}, "deletionGracePeriodSeconds": {"type": "integer"},
  "labels": {"type": "object", "additionalProperties": {"type": "string"}},
  "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
  "finalizers": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
  "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic",
    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
  "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
    "items": {"type": "object", "x-kubernetes-map-type": "atomic", "required": ["apiVersion", "kind", "name", "uid"], "properties": {
      "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}, "uid": {"type": "string"},
      "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}}
}}`
