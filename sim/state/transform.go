package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	kjson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

func decode(body []byte) (map[string]any, error) {
	object := map[string]any{}
	if err := kjson.Unmarshal(body, &object); err != nil {
		return nil, apierrors.NewBadRequest("the object provided is unrecognized (must be of type JSON object): " + err.Error())
	}
	if _, ok := object["metadata"].(map[string]any); !ok {
		object["metadata"] = map[string]any{}
	}
	return object, nil
}

func copyTree(in map[string]any) map[string]any { return runtime.DeepCopyJSON(in) }

// tree is a copy of an object with its identity, in a version.
func tree(o Object, v *schema.Version) map[string]any {
	out := copyTree(o.Content.Tree())
	out["apiVersion"] = v.APIVersion()
	m := schema.MetaOf(out)
	m.SetUID(o.Identity.UID)
	m.SetResourceVersion(fmt.Sprint(o.Identity.ResourceVersion))
	m.SetCreationTimestamp(metav1.NewTime(o.Identity.Created))
	if o.Identity.Generation != 0 {
		m.SetGeneration(int64(o.Identity.Generation))
	}
	return out
}

// locate checks that an object is what its URL says, and completes its namespace.
func (w *Write) locate(object map[string]any) error {
	v, m := w.Version, schema.MetaOf(object)
	if object["kind"] == nil && object["apiVersion"] == nil {
		object["apiVersion"], object["kind"] = v.APIVersion(), v.Kind.Kind
	}
	if object["apiVersion"] != v.APIVersion() || object["kind"] != v.Kind.Kind {
		return apierrors.NewBadRequest(fmt.Sprintf("%v in version %q cannot be handled as a %s: no kind %q is registered here for version %q",
			object["kind"], object["apiVersion"], v.Kind.Kind, object["kind"], object["apiVersion"]))
	}
	if m.GetNamespace() == "" {
		m.SetNamespace(w.Namespace)
	}
	if m.GetNamespace() != w.Namespace {
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	if w.Name != "" && m.GetName() == "" {
		m.SetName(w.Name)
	}
	if w.Name != "" && m.GetName() != w.Name {
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", m.GetName(), w.Name))
	}
	if w.Name == "" {
		w.Name = m.GetName()
	}
	return nil
}

// patch applies a patch to a tree that is the caller's.
func patch(v *schema.Version, live map[string]any, body []byte, pt types.PatchType) (map[string]any, error) {
	before, err := json.Marshal(live)
	if err != nil {
		return nil, err
	}
	var after []byte
	switch pt {
	case types.MergePatchType:
		after, err = jsonpatch.MergePatch(before, body)
	case types.JSONPatchType:
		var p jsonpatch.Patch
		if p, err = jsonpatch.DecodePatch(body); err == nil {
			if after, err = p.Apply(before); err != nil {
				return nil, apierrors.NewGenericServerResponse(422, "", v.GroupResource(), "", err.Error(), 0, false)
			}
		}
	case types.StrategicMergePatchType:
		typed, noType := schema.Scheme.New(v.GVK())
		if noType != nil {
			return nil, Unsupported(pt)
		}
		after, err = strategicpatch.StrategicMergePatch(before, body, typed)
	default:
		return nil, Unsupported(pt)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return decode(after)
}

// Unsupported is the refusal of a patch of an unknown type.
func Unsupported(pt types.PatchType) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 415, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: application/json-patch+json, "+
			"application/merge-patch+json, application/apply-patch+yaml: %s", pt),
	}}
}

// made turns a new object into a content. fields gives it its managed fields; nil for those of a plain creation.
func (w *Write) made(object map[string]any, fields any) (outcome, error) {
	m := schema.MetaOf(object)
	out := outcome{}
	if m.GetResourceVersion() != "" {
		return out, apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
	}
	if m.GetName() == "" {
		m.SetName(w.Name)
	}
	if err := w.complete(object); err != nil {
		return out, err
	}
	if fields == nil {
		countTemplate(w.Version, object, nil)
		m.SetManagedFields(nil)
		var err error
		if object, err = w.Version.Update(nil, object, w.Manager, schema.Main); err != nil {
			return out, err
		}
	}
	m = schema.MetaOf(object)
	m.SetDeletionTimestamp(nil)
	m.SetDeletionGracePeriodSeconds(nil)
	w.resetStatus(object)
	begin(w.Version, object)
	return w.finish(object, nil, out)
}

// resetStatus leaves a new object with the status that its kind begins with.
func (w *Write) resetStatus(object map[string]any) {
	if !w.Version.Status {
		return
	}
	delete(object, "status")
	fresh := w.Version.New()
	if err := w.Version.Complete(fresh); err == nil && fresh["status"] != nil {
		object["status"] = fresh["status"]
	}
}

// complete does what decoding does in the API server. Managed fields go round it.
func (w *Write) complete(object map[string]any) error {
	meta, _ := object["metadata"].(map[string]any)
	managed := meta["managedFields"]
	delete(meta, "managedFields")
	if err := w.Version.Complete(object); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	if meta, ok := object["metadata"].(map[string]any); ok && managed != nil {
		meta["managedFields"] = managed
	}
	return nil
}

// changed turns an object's successor into a content. merged says that its managed fields are right already.
func (w *Write) changed(live Object, object map[string]any, merged any) (outcome, error) {
	m := schema.MetaOf(object)
	out := outcome{uid: m.GetUID(), version: m.GetResourceVersion()}
	if err := w.complete(object); err != nil {
		return out, err
	}
	before := tree(live, w.Version)
	if merged == nil {
		var err error
		if object, err = w.Version.Update(copyTree(before), object, w.Manager, w.Sub); err != nil {
			return out, err
		}
	}
	w.restrict(object, before)
	return w.finish(object, before, out)
}

// restrict takes back what a write to this part does not reach.
func (w *Write) restrict(object, before map[string]any) {
	m, old := schema.MetaOf(object), schema.MetaOf(before)
	m.SetDeletionTimestamp(old.GetDeletionTimestamp())
	m.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	m.SetName(old.GetName())
	m.SetNamespace(old.GetNamespace())
	if w.Sub == schema.Status {
		status, managed := object["status"], m.GetManagedFields()
		clear(object)
		for k, v := range copyTree(before) {
			object[k] = v
		}
		set(object, "status", status)
		schema.MetaOf(object).SetManagedFields(managed)
		return
	}
	if w.Version.Status {
		set(object, "status", before["status"])
	}
	keep(w.Version, object, before)
}

func set(object map[string]any, field string, value any) {
	if value == nil {
		delete(object, field)
		return
	}
	object[field] = value
}

// applied merges a configuration. live is empty at creation.
func (w *Write) applied(live Object) (outcome, error) {
	var config map[string]any
	if err := yaml.Unmarshal(w.Body, &config); err != nil {
		return outcome{}, apierrors.NewBadRequest("error decoding YAML: " + err.Error())
	}
	encoded, err := json.Marshal(config)
	if err != nil {
		return outcome{}, apierrors.NewBadRequest(err.Error())
	}
	if config, err = decode(encoded); err != nil {
		return outcome{}, err
	}
	m := schema.MetaOf(config)
	uid, version, namespaced := m.GetUID(), m.GetResourceVersion(), m.GetNamespace() != ""
	if err := w.locate(config); err != nil {
		return outcome{}, err
	}
	if !namespaced {
		m.SetNamespace("") // it is not part of what was applied
	}
	base := w.Version.New()
	if live.Content != nil {
		base = tree(live, w.Version)
	} else {
		b := schema.MetaOf(base)
		b.SetName(w.Name)
		b.SetNamespace(w.Namespace)
	}
	object, err := w.Version.Apply(base, config, w.Manager, w.Force, w.Sub)
	if err != nil {
		return outcome{}, applyError(err)
	}
	if live.Content == nil {
		schema.MetaOf(object).SetUID("")
		out, err := w.made(object, w)
		out.uid = uid
		return out, err
	}
	m = schema.MetaOf(object)
	m.SetUID(uid)
	m.SetResourceVersion(version)
	return w.changed(live, object, w)
}

// applyError gives what is no Status of its own the form of the API server: 500 without a reason.
func applyError(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: err.Error()}}
}

// finish checks an object, and says how it differs from the one before.
func (w *Write) finish(object, before map[string]any, out outcome) (outcome, error) {
	if w.Sub == schema.Main {
		if errs := append(w.Version.Validate(object, before), newFinalizers(object, before)...); len(errs) > 0 {
			return out, apierrors.NewInvalid(w.Version.GroupKind(), w.Name, errs)
		}
	}
	if before != nil {
		out.spec = specChanged(w.Version, object, before)
		if !out.spec && sameButTimes(object, before) {
			out.same = true
		}
	}
	var err error
	out.content, err = content.New(object)
	return out, err
}

// newFinalizers refuses those that are added to an object that is being deleted.
func newFinalizers(object, before map[string]any) field.ErrorList {
	if before == nil || schema.MetaOf(before).GetDeletionTimestamp() == nil {
		return nil
	}
	return validation.ValidateNoNewFinalizers(schema.MetaOf(object).GetFinalizers(), schema.MetaOf(before).GetFinalizers(),
		field.NewPath("metadata", "finalizers"))
}

// specChanged says whether anything besides metadata and, where it is a part of its own, status did.
func specChanged(v *schema.Version, object, before map[string]any) bool {
	for k, value := range object {
		if k == "metadata" || k == "status" && v.Status || k == "apiVersion" {
			continue
		}
		if !reflect.DeepEqual(value, before[k]) {
			return true
		}
	}
	for k := range before {
		if _, ok := object[k]; !ok && k != "status" {
			return true
		}
	}
	return false
}

// sameButTimes says whether two objects are equal, but for identities and the times of managed fields.
func sameButTimes(object, before map[string]any) bool {
	if !reflect.DeepEqual(object["status"], before["status"]) {
		return false
	}
	return reflect.DeepEqual(timeless(object), timeless(before))
}

func timeless(object map[string]any) map[string]any {
	raw, _ := object["metadata"].(map[string]any)
	meta := make(map[string]any, len(raw))
	for k, v := range raw {
		meta[k] = v
	}
	for _, f := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "selfLink"} {
		delete(meta, f)
	}
	managed, _ := meta["managedFields"].([]any)
	entries := make([]any, 0, len(managed))
	for _, e := range managed {
		entry, _ := e.(map[string]any)
		entry = runtime.DeepCopyJSON(entry)
		delete(entry, "time")
		entries = append(entries, entry)
	}
	meta["managedFields"] = entries
	return meta
}

// withCause adds to a refusal why: the namespace is ending.
func withCause(err *apierrors.StatusError, namespace string) error {
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: core.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", namespace), Field: "metadata.namespace",
	})
	return err
}
