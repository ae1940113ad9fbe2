package simtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// varying are fields whose values differ between servers: only that they are there is compared.
var varying = []string{
	"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp", "time", "lastTransitionTime", "lastUpdateTime", "continue",
	"clusterIP",
}

var (
	uuid    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	version = regexp.MustCompile(`(resource version|in object meta|in precondition)(:?) \d+( \(\d+\))?`)
)

// controllers are managers that write when they please.
var controllers = []any{"kube-controller-manager", "kube-apiserver"}

// normalise decodes an answer, of one value or of several, without what differs between servers.
func normalise(raw []byte, ns string) any {
	values := lines(asJSON(raw))
	for i := range values {
		values[i] = clean(values[i], ns)
	}
	switch len(values) {
	case 0:
		return string(raw)
	case 1:
		return values[0]
	}
	return values
}

// asJSON is an answer in Kubernetes' protobuf as JSON, with the word protobuf in it; all else stays as it is.
func asJSON(raw []byte) []byte {
	data, ok := bytes.CutPrefix(raw, []byte("k8s\x00"))
	if !ok {
		return raw
	}
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(data); err != nil {
		return fmt.Appendf(nil, "no protobuf: %v", err)
	}
	var object any
	var err error
	switch envelope.Kind {
	case "Status":
		status := &metav1.Status{}
		object, err = status, status.Unmarshal(envelope.Raw)
	default:
		meta := &metav1.PartialObjectMetadata{}
		object, err = meta, meta.Unmarshal(envelope.Raw)
	}
	if err != nil {
		return fmt.Appendf(nil, "no %s: %v", envelope.Kind, err)
	}
	out, err := json.Marshal(map[string]any{"protobuf": object, "apiVersion": envelope.APIVersion, "kind": envelope.Kind})
	if err != nil {
		return fmt.Appendf(nil, "no JSON: %v", err)
	}
	return out
}

func clean(value any, ns string) any {
	switch v := value.(type) {
	case map[string]any:
		for k, field := range v {
			text, isText := field.(string)
			if isText && slices.Contains(varying, k) && text != "None" && text != "" {
				v[k] = "<" + k + ">"
				continue
			}
			v[k] = clean(field, ns)
		}
		return withoutControllers(v)
	case []any:
		for i := range v {
			v[i] = clean(v[i], ns)
		}
	case string:
		text := uuid.ReplaceAllString(strings.ReplaceAll(v, ns, "$NS"), "<uid>")
		return version.ReplaceAllString(text, "$1$2 <version>")
	}
	return value
}

// withoutControllers leaves out what controllers write, at whatever time.
func withoutControllers(object map[string]any) map[string]any {
	if managed, ok := object["managedFields"].([]any); ok {
		object["managedFields"] = slices.DeleteFunc(managed, func(e any) bool {
			entry, ok := e.(map[string]any)
			return ok && slices.Contains(controllers, entry["manager"])
		})
	}
	if finalizers, ok := object["finalizers"].([]any); ok && len(finalizers) == 1 && finalizers[0] == "customresourcecleanup.apiextensions.k8s.io" {
		delete(object, "finalizers")
	}
	if object["kind"] == "PartialObjectMetadata" { // the API server's own store does not have it as an annotation
		dropAnnotation(object, "deprecated.daemonset.template.generation")
	}
	switch object["kind"] {
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "CustomResourceDefinition", "PersistentVolumeClaim", "PodDisruptionBudget", "Ingress":
		if object["spec"] != nil {
			delete(object, "status")
		}
	}
	if ips, ok := object["clusterIPs"].([]any); ok && len(ips) > 0 && ips[0] != "None" {
		object["clusterIPs"] = []any{"<ip>"}
	}
	return object
}

func dropAnnotation(object map[string]any, name string) {
	meta, _ := object["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	delete(annotations, name)
	if len(annotations) == 0 {
		delete(meta, "annotations")
	}
}
