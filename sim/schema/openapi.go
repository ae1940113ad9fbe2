package schema

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// openAPIs are the documents of a catalog, made when they are asked for.
type openAPIs struct {
	mu   sync.Mutex
	docs map[schema.GroupVersion]Document
}

// OpenAPI is the OpenAPI v3 document of a group and version: its operations with their parameters, which is what clients look for
// before they send an apply or a dry run; schemas for custom kinds, and for built-in ones the statement that there are fields.
func (c *Catalog) OpenAPI(gv schema.GroupVersion) Document {
	c.openAPI.mu.Lock()
	defer c.openAPI.mu.Unlock()
	if d, ok := c.openAPI.docs[gv]; ok {
		return d
	}
	d := newDocument(c.describe(gv))
	if c.openAPI.docs == nil {
		c.openAPI.docs = map[schema.GroupVersion]Document{}
	}
	c.openAPI.docs[gv] = d
	return d
}

func (c *Catalog) describe(gv schema.GroupVersion) map[string]any {
	paths, schemas := map[string]any{}, map[string]any{}
	for _, k := range c.kinds {
		v := k.Version(gv.Version)
		if k.Group != gv.Group || v == nil {
			continue
		}
		gvk := map[string]any{"group": gv.Group, "version": gv.Version, "kind": k.Kind}
		paths[objectPath(gv, k)] = map[string]any{
			"patch": map[string]any{
				"x-kubernetes-action": "patch", "x-kubernetes-group-version-kind": gvk, "parameters": writeParameters,
				"requestBody": map[string]any{"content": map[string]any{
					"application/apply-patch+yaml": map[string]any{}, "application/merge-patch+json": map[string]any{},
				}},
			},
			"put": map[string]any{"x-kubernetes-action": "put", "x-kubernetes-group-version-kind": gvk, "parameters": writeParameters},
		}
		schemas[modelName(gv, k.Kind)] = v.model(gvk)
	}
	return map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": "v1.36.3"},
		"paths": paths, "components": map[string]any{"schemas": schemas},
	}
}

func (v *Version) model(gvk map[string]any) map[string]any {
	out := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	for k, value := range v.openAPI {
		out[k] = value
	}
	out["x-kubernetes-group-version-kind"] = []any{gvk}
	return out
}

func modelName(gv schema.GroupVersion, kind string) string {
	if gv.Group == "" {
		return "io.k8s.api.core." + gv.Version + "." + kind
	}
	return gv.Group + "." + gv.Version + "." + kind
}

func objectPath(gv schema.GroupVersion, k *Kind) string {
	path := "/apis/" + gv.String()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	if k.Namespaced {
		path += "/namespaces/{namespace}"
	}
	return path + "/" + k.Plural + "/{name}"
}

var writeParameters = func() []any {
	var out []any
	for _, name := range []string{"dryRun", "fieldManager", "fieldValidation", "force"} {
		out = append(out, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string", "uniqueItems": true}})
	}
	return out
}()
