package schema

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Subresource is what of an object is written.
type Subresource string

// The parts that can be written.
const (
	// Main is the object without its status, where that is written separately.
	Main Subresource = ""
	// Status is the status.
	Status Subresource = "status"
)

// fields keeps managed fields of one version, by the code that the API server uses.
type fields struct {
	v         *Version
	converter managedfields.TypeConverter
	main      func() (*managedfields.FieldManager, error)
	status    func() (*managedfields.FieldManager, error)
}

func newFields(v *Version, converter managedfields.TypeConverter) *fields {
	f := &fields{v: v, converter: converter}
	f.main = sync.OnceValues(func() (*managedfields.FieldManager, error) { return f.manager(Main) })
	f.status = sync.OnceValues(func() (*managedfields.FieldManager, error) { return f.manager(Status) })
	return f
}

func (f *fields) manager(sub Subresource) (*managedfields.FieldManager, error) {
	gvk := f.v.GVK()
	return managedfields.NewDefaultCRDFieldManager(f.converter, sameVersion{}, noDefaults{}, creator{f.v}, gvk, gvk.GroupVersion(),
		string(sub), f.resets(sub))
}

// resets are the fields that a write to a part does not reach, and therefore does not own.
func (f *fields) resets(sub Subresource) map[fieldpath.APIVersion]fieldpath.Filter {
	if !f.v.Status {
		return nil
	}
	out := []string{"status"}
	if sub == Status {
		out = []string{"spec"}
		if f.v.Custom {
			out = append(out, "metadata")
		}
	}
	var paths []fieldpath.Path
	for _, name := range out {
		paths = append(paths, fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]fieldpath.Filter{
		fieldpath.APIVersion(f.v.APIVersion()): fieldpath.NewExcludeSetFilter(fieldpath.NewSet(paths...)),
	}
}

func (f *fields) of(sub Subresource) (*managedfields.FieldManager, error) {
	if sub == Status {
		return f.status()
	}
	return f.main()
}

// Update gives the new object managed fields for a write by another way than apply. live is nil at creation; both trees may be
// changed. The result is object, or another.
func (v *Version) Update(live, object map[string]any, manager string, sub Subresource) (map[string]any, error) {
	m, err := v.fields.of(sub)
	if err != nil {
		return nil, err
	}
	if live == nil {
		live = v.New()
	} else {
		setUID(live)
	}
	out := m.UpdateNoErrors(&unstructured.Unstructured{Object: live}, &unstructured.Unstructured{Object: object}, manager)
	return content(out)
}

// Apply merges a configuration into an object, which is an empty one at creation. Both trees may be changed. Errors are conflicts
// (*apierrors.StatusError) and whatever does not fit the schema.
func (v *Version) Apply(live, patch map[string]any, manager string, force bool, sub Subresource) (map[string]any, error) {
	m, err := v.fields.of(sub)
	if err != nil {
		return nil, err
	}
	out, err := m.Apply(&unstructured.Unstructured{Object: live}, &unstructured.Unstructured{Object: patch}, manager, force)
	if err != nil {
		return nil, err
	}
	return content(out)
}

// setUID marks an object as one that exists: the field manager asks for it.
func setUID(live map[string]any) {
	if meta, ok := live["metadata"].(map[string]any); ok {
		meta["uid"] = "exists"
	}
}

func content(o runtime.Object) (map[string]any, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("merging gave a %T", o)
	}
	return u.Object, nil
}

// creator makes empty objects of one version.
type creator struct{ v *Version }

// New makes an empty object.
func (c creator) New(schema.GroupVersionKind) (runtime.Object, error) {
	return &unstructured.Unstructured{Object: c.v.New()}, nil
}

type noDefaults struct{}

// Default does nothing: Version.Complete does it all.
func (noDefaults) Default(runtime.Object) {}

// sameVersion converts between versions by their names, as definitions without conversion do.
type sameVersion struct{}

var errNoConversion = errors.New("objects are converted by ConvertToVersion only")

// Convert is never called.
func (sameVersion) Convert(_, _, _ any) error { return errNoConversion }

// ConvertToVersion renames the version.
func (sameVersion) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, errNoConversion
	}
	gvk := u.GroupVersionKind()
	to, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{gvk})
	if !ok || to == gvk {
		return in, nil
	}
	out := make(map[string]any, len(u.Object))
	for k, v := range u.Object {
		out[k] = v
	}
	out["apiVersion"] = to.GroupVersion().String()
	return &unstructured.Unstructured{Object: out}, nil
}

// ConvertFieldLabel is never called.
func (sameVersion) ConvertFieldLabel(schema.GroupVersionKind, string, string) (string, string, error) {
	return "", "", errNoConversion
}
