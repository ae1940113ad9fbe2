package simtest

import "fmt"

const (
	applyType = "application/apply-patch+yaml"
	mergeType = "application/merge-patch+json"
	jsonPatch = "application/json-patch+json"
	oneMeta   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
	protoMeta = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1," + oneMeta
	listMeta  = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
)

const configs = "/api/v1/namespaces/$NS/configmaps"

// config is a ConfigMap of one value.
func config(name, value string) string {
	return fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {text: %q}}", name, value)
}

// Scenarios are all conversations.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "Objects", Steps: objects},
		{Name: "Lists", Steps: lists},
		{Name: "Watches", Steps: watches},
		{Name: "Apply", Steps: applies},
		{Name: "ApplyKinds", Steps: applyKinds()},
		{Name: "CreateKinds", Steps: createKinds()},
		{Name: "DryRun", Steps: dryRuns},
		{Name: "Finalizers", Steps: finalizers},
		{Name: "Owners", Steps: owners},
		{Name: "Definitions", Steps: definitions},
		{Name: "Refusals", Steps: refusals},
	}
}

var objects = []Step{
	{Do: "POST " + configs, Body: config("a", "1"), Code: 201},
	{Do: "POST " + configs, Body: config("a", "1"), Code: 409},
	{Do: "GET " + configs + "/a", Code: 200},
	{Do: "GET " + configs + "/a", Accept: oneMeta, Code: 200},
	{Do: "GET " + configs + "/a", Accept: protoMeta, Code: 200},
	{Do: "GET " + configs + "/missing", Code: 404},
	{Do: "GET " + configs + "/missing", Accept: protoMeta, Code: 404},
	{Do: "PUT " + configs + "/a", Body: config("a", "2"), Code: 200},
	{Do: "PUT " + configs + "/a", Body: config("other", "2"), Code: 400},
	{Do: "PATCH " + configs + "/a", Type: mergeType, Body: "{data: {text: null, more: x}}", Code: 200},
	{Do: "PATCH " + configs + "/a", Type: mergeType, Body: "{data: {more: x}}", Code: 200},
	{Do: "PATCH " + configs + "/a", Type: jsonPatch, Body: `[{"op": "add", "path": "/data/third", "value": "y"}]`, Code: 200},
	{Do: "PATCH " + configs + "/a?fieldManager=somebody", Type: "application/strategic-merge-patch+json", Body: "{metadata: {labels: {a: b}}}", Code: 200},
	{Do: "PATCH " + configs + "/a", Type: mergeType, Body: `{metadata: {resourceVersion: "1"}, data: {more: z}}`, Code: 409},
	{Do: "PATCH " + configs + "/missing", Type: mergeType, Body: "{data: {more: x}}", Code: 404},
	{Do: "DELETE " + configs + "/a", Body: "{kind: DeleteOptions, apiVersion: v1, preconditions: {uid: other}}", Code: 409},
	{Do: "PATCH " + configs + "/a?fieldManager=m&force=true", Type: applyType, Accept: protoMeta, Body: config("a", "3"), Code: 200},
	{Do: "PATCH " + configs + "/a?fieldManager=other", Type: applyType, Accept: protoMeta, Body: config("a", "4"), Code: 409},
	{Do: "PATCH " + configs + "/b?fieldManager=m", Type: applyType, Accept: protoMeta, Body: config("b", "1"), Code: 201},
	{Do: "PATCH " + configs + "/c?fieldManager=m&dryRun=All", Type: applyType, Accept: protoMeta, Body: config("c", "1"), Code: 201},
	{Do: "DELETE " + configs + "/b", Accept: protoMeta, Code: 200},
	{Do: "DELETE " + configs + "/a", Code: 200},
	{Do: "DELETE " + configs + "/a", Code: 404},
}

var lists = []Step{
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {colour: red}}}", Code: 201},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, labels: {colour: blue}}}", Code: 201},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", Code: 201},
	{Do: "GET " + configs, Code: 200},
	{Do: "GET " + configs, Accept: listMeta, Code: 200},
	{Do: "GET " + configs + "?limit=2", Code: 200},
	{Do: "GET " + configs + "?limit=2&continue=bad", Code: 400, Only: "reason"},
	{Do: "GET " + configs + "?labelSelector=colour", Code: 200},
	{Do: "GET " + configs + "?labelSelector=colour%20notin%20(red)", Code: 200},
	{Do: "GET /api/v1/configmaps?labelSelector=colour%3Dred&fieldSelector=metadata.namespace%3D$NS", Code: 200},
	{Do: "GET " + configs + "?fieldSelector=metadata.name%3Db", Code: 200},
	{Do: "GET " + configs + "?fieldSelector=data.text%3Db", Code: 400, Only: "reason"},
	{Do: "DELETE " + configs + "?labelSelector=colour", Code: 200, Only: "kind", Until: "-"},
	{Do: "GET " + configs, Code: 200},
}

var watches = []Step{
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {seen: yes!}}}", Code: 422},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {seen: a}}}", Code: 201},
	{Do: "GET " + configs + "?watch=true&timeoutSeconds=1", Code: 200},
	{Do: "GET " + configs + "?watch=true&timeoutSeconds=1&labelSelector=seen", Accept: oneMeta, Code: 200},
	{Do: "GET " + configs + "?watch=true&timeoutSeconds=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan", Code: 200},
}

var applies = []Step{
	{Do: "PATCH " + configs + "/a?fieldManager=one", Type: applyType, Body: config("a", "1"), Code: 201},
	{Do: "PATCH " + configs + "/a?fieldManager=one", Type: applyType, Body: config("a", "1"), Code: 200},
	{Do: "PATCH " + configs + "/a?fieldManager=two", Type: applyType, Body: config("a", "2"), Code: 409},
	{Do: "PATCH " + configs + "/a?fieldManager=two&force=true", Type: applyType, Body: config("a", "2"), Code: 200},
	{Do: "PATCH " + configs + "/a?fieldManager=one", Type: applyType, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: x}}", Code: 200},
	{Do: "PATCH " + configs + "/a?fieldManager=editor", Type: mergeType, Body: "{data: {mine: changed}}", Code: 200},
	{Do: "PATCH " + configs + "/a?fieldManager=one", Type: applyType, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {mine: x}}", Code: 409},
	{Do: "PATCH " + configs + "/a?fieldManager=two", Type: applyType, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", Code: 200},
	{Do: "PATCH " + configs + "/a?fieldManager=one", Type: applyType, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, unknown: x}", Code: 500},
	{Do: "PATCH " + configs + "/a", Type: applyType, Body: config("a", "1"), Code: 422, Only: "reason"},
	{Do: "PATCH " + configs + "/a?fieldManager=one", Type: applyType, Body: config("b", "1"), Code: 400, Only: "reason"},
	{Do: "PATCH " + configs + "/b?fieldManager=one", Type: applyType, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: b, uid: 0f5bb0a4-0000-4000-8000-000000000000}}", Code: 409, Only: "reason"},
}

var dryRuns = []Step{
	{Do: "POST " + configs + "?dryRun=All", Body: config("a", "1"), Code: 201},
	{Do: "GET " + configs + "/a", Code: 404},
	{Do: "PATCH " + configs + "/a?fieldManager=one&dryRun=All", Type: applyType, Body: config("a", "1"), Code: 201},
	{Do: "POST " + configs, Body: config("a", "1"), Code: 201},
	{Do: "PATCH " + configs + "/a?fieldManager=one&dryRun=All&force=true", Type: applyType, Body: config("a", "2"), Code: 200},
	{Do: "GET " + configs + "/a", Code: 200},
	{Do: "DELETE " + configs + "/a", Body: "{kind: DeleteOptions, apiVersion: v1, dryRun: [All]}", Code: 200},
	{Do: "GET " + configs + "/a", Code: 200},
	{Do: "POST " + configs + "?dryRun=some", Body: config("b", "1"), Code: 422, Only: "reason"},
}

var finalizers = []Step{
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/hold]}}", Code: 201},
	{Do: "DELETE " + configs + "/a", Code: 200},
	{Do: "GET " + configs + "/a", Code: 200},
	{Do: "PATCH " + configs + "/a", Type: mergeType, Body: "{metadata: {finalizers: [example.com/hold, example.com/more]}}", Code: 422, Only: "reason"},
	{Do: "PATCH " + configs + "/a", Type: mergeType, Body: "{metadata: {finalizers: null}}", Code: 200},
	{Do: "GET " + configs + "/a", Code: 404},
	{Do: "POST /api/v1/namespaces", Body: "{apiVersion: v1, kind: Namespace, metadata: {name: $NS-x}}", Code: 201},
	{Do: "POST /api/v1/namespaces/$NS-x/configmaps", Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, finalizers: [example.com/hold]}}", Code: 201},
	{Do: "DELETE /api/v1/namespaces/$NS-x", Code: 200, Only: "status.phase"},
	{Do: "POST /api/v1/namespaces/$NS-x/configmaps", Body: config("b", "1"), Code: 403},
	{Do: "GET /api/v1/namespaces/$NS-x/configmaps/a", Code: 200, Until: "deletionTimestamp"},
	{Do: "PATCH /api/v1/namespaces/$NS-x/configmaps/a", Type: mergeType, Body: "{metadata: {finalizers: null}}", Code: 200},
	{Do: "GET /api/v1/namespaces/$NS-x", Code: 404, Until: "-"},
	{Do: "POST /api/v1/namespaces/$NS-x/configmaps", Body: config("b", "1"), Code: 404},
}

// owned is a ConfigMap of an owner that there is not.
const owned = `{apiVersion: v1, kind: ConfigMap, metadata: {name: owned, ownerReferences: [
  {apiVersion: v1, kind: ConfigMap, name: gone, uid: 0f5bb0a4-1111-4111-8111-111111111111}]}}`

var owners = []Step{
	{Do: "POST " + configs, Body: owned, Code: 201},
	{Do: "GET " + configs + "/owned", Code: 404, Until: "-"},
}

var refusals = []Step{
	{Do: "GET /api/v1/namespaces/$NS/gadgets", Code: 404, Only: "-"},
	{Do: "GET /apis/none.example.com/v1/gadgets", Code: 404, Only: "-"},
	{Do: "POST /api/v1/namespaces/missing-namespace/configmaps", Body: config("a", "1"), Code: 404},
	{Do: "POST " + configs, Body: config("Not_A_Name", "1"), Code: 422},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {}}", Code: 422},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: Secret, metadata: {name: a}}", Code: 400, Only: "reason"},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}", Code: 400},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {n: 1}}", Code: 400, Only: "reason"},
	{Do: "PATCH " + configs + "/a", Type: "application/unknown", Body: "{}", Code: 415, Only: "reason"},
	{Do: "POST " + configs, Body: "{apiVersion: v1, kind: ConfigMap, metadata: {name: fixed}, immutable: true, data: {a: b}}", Code: 201},
	{Do: "PATCH " + configs + "/fixed", Type: mergeType, Body: "{data: {a: c}}", Code: 422},
	{Do: "DELETE /api/v1/configmaps", Code: 405, Only: "reason"},
}
