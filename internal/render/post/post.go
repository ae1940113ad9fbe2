// Package post is the one step between what a source renders to and its bundle: images are taken from mirrors, pull secrets,
// labels and annotations are added.
//
// # Invariants
//
//   - It happens once per bundle, before anything is serialised, and depends on its arguments alone; the options are part of
//     the input digest. Applied twice, it changes nothing the second time.
//   - What an object says itself stays: a label or annotation that it has, and every selector.
//   - Namespaces get no labels and annotations: several modules may share them, and would fight.
//   - What is not understood is left alone: a field of the wrong type is the API server's to refuse.
//
// The package may import the api module, internal/bundle for its words, and k8s.io/apimachinery's rules of names.
package post

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
)

// Report is what Apply did, as far as people want to know of it.
type Report struct {
	// Images that were rewritten, in the order of the objects.
	Images []bundle.Image
	// Warnings of what could not be done.
	Warnings []string
}

// Apply changes decoded objects (the form that bundle.Manifest takes) as the options say, which Check accepts. The objects must
// be the caller's own.
func Apply(o v1beta2.PostRender, objects []map[string]any) Report {
	s := &step{o: o, mirrors: newMirrors(o.ImageMirrors), skipped: map[string]int{}}
	for _, obj := range objects {
		s.object(obj)
	}
	s.warnOfSkipped()
	return s.report
}

// step is one call of Apply.
type step struct {
	o       v1beta2.PostRender
	mirrors mirrors
	report  Report
	skipped map[string]int // "label team" → objects that have their own
}

func (s *step) object(obj map[string]any) {
	ref := refOf(obj)
	if ref.GroupKind() != namespaceKind {
		s.mark(obj)
	}
	if w, ok := workloads[ref.GroupKind()]; ok {
		s.workload(ref, obj, w)
	}
	if ref.GroupKind() == serviceAccountKind {
		s.pullSecrets(obj)
	}
	for _, f := range s.o.ImageFields {
		if f.Group == ref.Group && f.Kind == ref.Kind {
			s.imageField(ref, obj, f)
		}
	}
}

// workload treats what has Pods: their images, pull secrets and, where asked for, labels and annotations.
func (s *step) workload(ref bundle.Ref, obj map[string]any, w workload) {
	template, ok := walk(obj, w.template)
	if !ok {
		return
	}
	if s.o.Pods && len(w.template) > 0 {
		s.mark(template)
	}
	spec, ok := template["spec"].(map[string]any)
	if !ok {
		return
	}
	at := "/" + strings.Join(append(slices.Clone(w.template), "spec"), "/")
	for _, list := range containerLists {
		s.images(ref, spec[list], at+"/"+list, "image")
	}
	s.volumes(ref, spec, at+"/volumes")
	s.pullSecrets(spec)
}

// mark adds labels and annotations to the metadata of an object or a template.
func (s *step) mark(obj map[string]any) {
	if len(s.o.Labels)+len(s.o.Annotations) == 0 {
		return
	}
	meta, ok := child(obj, "metadata")
	if !ok {
		return
	}
	s.add(meta, "labels", "label", s.o.Labels)
	s.add(meta, "annotations", "annotation", s.o.Annotations)
}

// add adds to one map of the metadata what it does not have.
func (s *step) add(meta map[string]any, field, word string, more map[string]string) {
	if len(more) == 0 {
		return
	}
	have, ok := child(meta, field)
	if !ok {
		return
	}
	for k, v := range more {
		if old, ok := have[k]; ok {
			if old != v {
				s.skipped[word+" "+k]++
			}
			continue
		}
		have[k] = v
	}
}

// warnOfSkipped says which labels and annotations some objects have already, with another value.
func (s *step) warnOfSkipped() {
	var names []string
	for name := range s.skipped {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s.report.Warnings = append(s.report.Warnings,
			fmt.Sprintf("postRender: %s stays as the source sets it on %d objects or templates", name, s.skipped[name]))
	}
}

// pullSecrets adds names to the imagePullSecrets of the spec of a Pod or of a ServiceAccount.
func (s *step) pullSecrets(in map[string]any) {
	if len(s.o.ImagePullSecrets) == 0 {
		return
	}
	list, ok := in["imagePullSecrets"].([]any)
	if !ok && in["imagePullSecrets"] != nil {
		return
	}
	have := map[any]bool{}
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			have[m["name"]] = true
		}
	}
	for _, name := range s.o.ImagePullSecrets {
		if !have[name] {
			have[name] = true
			list = append(list, map[string]any{"name": name})
		}
	}
	in["imagePullSecrets"] = list
}

// child is a map within a map, made where it is missing or null; false if something else is there.
func child(m map[string]any, key string) (map[string]any, bool) {
	if m[key] == nil {
		m[key] = map[string]any{}
	}
	c, ok := m[key].(map[string]any)
	return c, ok
}

// walk follows keys through maps.
func walk(m map[string]any, keys []string) (map[string]any, bool) {
	for _, k := range keys {
		next, ok := m[k].(map[string]any)
		if !ok {
			return nil, false
		}
		m = next
	}
	return m, true
}

// refOf names an object as far as it says what it is.
func refOf(obj map[string]any) bundle.Ref {
	apiVersion, _ := obj["apiVersion"].(string)
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	meta, _ := obj["metadata"].(map[string]any)
	ref := bundle.Ref{Group: group}
	ref.Kind, _ = obj["kind"].(string)
	ref.Name, _ = meta["name"].(string)
	ref.Namespace, _ = meta["namespace"].(string)
	return ref
}
