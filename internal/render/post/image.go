package post

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

var (
	namespaceKind      = schema.GroupKind{Kind: "Namespace"}
	serviceAccountKind = schema.GroupKind{Kind: "ServiceAccount"}
)

// workload is a kind that has Pods.
type workload struct {
	// template are the keys that lead to what has the metadata and the spec of its Pods; none for a Pod itself.
	template []string
}

// workloads are the built-in kinds with Pods.
var workloads = map[schema.GroupKind]workload{
	{Kind: "Pod"}:                        {},
	{Kind: "PodTemplate"}:                {[]string{"template"}},
	{Kind: "ReplicationController"}:      {[]string{"spec", "template"}},
	{Group: "apps", Kind: "Deployment"}:  {[]string{"spec", "template"}},
	{Group: "apps", Kind: "StatefulSet"}: {[]string{"spec", "template"}},
	{Group: "apps", Kind: "DaemonSet"}:   {[]string{"spec", "template"}},
	{Group: "apps", Kind: "ReplicaSet"}:  {[]string{"spec", "template"}},
	{Group: "batch", Kind: "Job"}:        {[]string{"spec", "template"}},
	{Group: "batch", Kind: "CronJob"}:    {[]string{"spec", "jobTemplate", "spec", "template"}},
}

// containerLists are the lists of a Pod's spec whose items have an image.
var containerLists = []string{"containers", "initContainers", "ephemeralContainers"}

// images rewrites a field of each item of a list.
func (s *step) images(ref bundle.Ref, list any, at, field string) {
	items, _ := list.([]any)
	for i, item := range items {
		if m, ok := item.(map[string]any); ok {
			s.rewrite(ref, m, field, fmt.Sprintf("%s/%d/%s", at, i, field), "")
		}
	}
}

// volumes rewrites the images that are mounted as volumes.
func (s *step) volumes(ref bundle.Ref, spec map[string]any, at string) {
	items, _ := spec["volumes"].([]any)
	for i, item := range items {
		volume, _ := item.(map[string]any)
		if image, ok := volume["image"].(map[string]any); ok {
			s.rewrite(ref, image, "reference", fmt.Sprintf("%s/%d/image/reference", at, i), "")
		}
	}
}

// rewrite rewrites the image in a field of a map.
func (s *step) rewrite(ref bundle.Ref, m map[string]any, field, at, prefix string) {
	if from, ok := m[field].(string); ok {
		m[field] = s.rewritten(ref, at, prefix, from)
	}
}

// rewritten is a field's text with the image of a mirror in it, and notes what was changed.
func (s *step) rewritten(ref bundle.Ref, at, prefix, text string) string {
	image, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return text
	}
	to, ok := s.mirrors.of(image)
	if !ok {
		return text
	}
	s.report.Images = append(s.report.Images, bundle.Image{Ref: ref, Path: at, From: image, To: to})
	return prefix + to
}

// imageField rewrites the images at the end of a JSON pointer.
func (s *step) imageField(ref bundle.Ref, obj map[string]any, f v1beta2.ImageField) {
	s.follow(ref, obj, tokens(f.Path), "", f)
}

// follow returns what is to stand in place of v, whose images at the end of a path were rewritten.
func (s *step) follow(ref bundle.Ref, v any, path []string, at string, f v1beta2.ImageField) any {
	if len(path) == 0 {
		text, ok := v.(string)
		if !ok {
			s.report.Warnings = append(s.report.Warnings, fmt.Sprintf("postRender: %s of %s holds no text, so no image is rewritten there", at, ref))
			return v
		}
		return s.rewritten(ref, at, f.Prefix, text)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if path[0] == k || path[0] == "*" {
				v[k] = s.follow(ref, v[k], path[1:], at+"/"+escape(k), f)
			}
		}
	case []any:
		for i := range v {
			if path[0] == strconv.Itoa(i) || path[0] == "*" {
				v[i] = s.follow(ref, v[i], path[1:], at+"/"+strconv.Itoa(i), f)
			}
		}
	}
	return v
}

// tokens takes a JSON pointer (RFC 6901) apart.
func tokens(pointer string) []string {
	parts := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, p := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
	}
	return parts
}

// escape escapes a token of a JSON pointer.
func escape(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }
