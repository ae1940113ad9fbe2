package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sort"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/kind"
)

// ErrEmpty says that a source rendered to no object. An empty result is never a desired state: it would remove
// everything.
var ErrEmpty = errors.New("the source rendered to no object at all, which is never a desired state")

// Error says what is wrong with one object of a source.
type Error struct {
	// Origin is the file of the source.
	Origin string
	// Ref is the object, as far as it is known.
	Ref Ref
	// Problem says what is wrong and what to do.
	Problem string
}

// Error is the message: origin, object, problem.
func (e *Error) Error() string {
	var parts []string
	if e.Origin != "" {
		parts = append(parts, e.Origin)
	}
	if e.Ref.Kind != "" {
		parts = append(parts, strings.TrimSpace(e.Ref.String()))
	}
	return strings.Join(append(parts, e.Problem), ": ")
}

// Manifest is one decoded object of a source.
type Manifest struct {
	// Object in the form that unstructured objects have: map[string]any, []any, string, bool, int64, float64, nil.
	// New takes it over and changes it.
	Object map[string]any
	// Origin is the file that it comes from, for messages.
	Origin string
	// Once says that the object is to be created once and never changed.
	Once bool
}

// Options of New.
type Options struct {
	// Module and Namespace are the module's identity in a runtime. Both are needed.
	Module, Namespace string
	// ScopeOf knows the scope of kinds that the catalogue declares; nil knows none. Built-in kinds and those that
	// the bundle defines itself are not asked for.
	ScopeOf func(schema.GroupKind) kind.Scope
	// Hooks, Images and Warnings are passed on to the bundle.
	Hooks    []Hook
	Images   []Image
	Warnings []string
}

// New makes a bundle of decoded manifests: Lists taken apart, namespaces defaulted, labels and digests added, each
// object serialised. Errors are *Error, several of them joined, or ErrEmpty. The result depends on nothing but the
// arguments.
func New(manifests []Manifest, o Options) (*Bundle, error) {
	if o.Module == "" || o.Namespace == "" {
		return nil, errors.New("a bundle needs a module name and a namespace")
	}
	flat, err := flatten(manifests)
	if err != nil {
		return nil, err
	}
	if len(flat) == 0 {
		return nil, ErrEmpty
	}
	scopes, err := newScopes(flat, o.ScopeOf)
	if err != nil {
		return nil, err
	}
	objects := make([]*Object, len(flat))
	errs := make([]error, len(flat))
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range flat {
		g.Go(func() error {
			objects[i], errs[i] = newObject(flat[i], o, scopes)
			return nil
		})
	}
	_ = g.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	sortObjects(objects)
	if err := refuseDuplicates(objects); err != nil {
		return nil, err
	}
	return &Bundle{
		Module: o.Module, Namespace: o.Namespace, Digest: digestOf(objects),
		Objects: objects, Hooks: o.Hooks, Images: o.Images, Warnings: o.Warnings,
	}, nil
}

// flatten takes Lists apart, one level deep, and checks that each object says what it is.
func flatten(manifests []Manifest) ([]Manifest, error) {
	var out []Manifest
	var errs []error
	for _, m := range manifests {
		items, isList := listItems(m.Object)
		if !isList {
			out = append(out, m)
			continue
		}
		for i, item := range items {
			obj, ok := item.(map[string]any)
			if !ok {
				errs = append(errs, &Error{Origin: m.Origin, Problem: fmt.Sprintf("item %d of the List is not an object", i)})
				continue
			}
			out = append(out, Manifest{Object: obj, Origin: m.Origin, Once: m.Once})
		}
	}
	for _, m := range out {
		if err := checkIdentity(m); err != nil {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func listItems(obj map[string]any) ([]any, bool) {
	k, _ := obj["kind"].(string)
	items, ok := obj["items"].([]any)
	return items, ok && strings.HasSuffix(k, "List")
}

func checkIdentity(m Manifest) error {
	ref := refOf(m.Object)
	problem := func(s string) error { return &Error{Origin: m.Origin, Ref: ref, Problem: s} }
	apiVersion, _ := m.Object["apiVersion"].(string)
	if apiVersion == "" {
		return problem("has no apiVersion")
	}
	if _, err := schema.ParseGroupVersion(apiVersion); err != nil {
		return problem(fmt.Sprintf("apiVersion %q is not <group>/<version>", apiVersion))
	}
	if ref.Kind == "" {
		return problem("has no kind")
	}
	meta, ok := m.Object["metadata"].(map[string]any)
	if !ok {
		return problem("has no metadata")
	}
	if ref.Name == "" {
		if _, generated := meta["generateName"]; generated {
			return problem("metadata.generateName makes a new object each time: give it a name")
		}
		return problem("has no metadata.name")
	}
	for _, field := range []string{"labels", "annotations"} {
		if err := checkStrings(meta, field); err != "" {
			return problem(err)
		}
	}
	return nil
}

// checkStrings says what is wrong with a map of strings of the metadata, or "".
func checkStrings(meta map[string]any, field string) string {
	value, ok := meta[field]
	if !ok || value == nil {
		return ""
	}
	m, ok := value.(map[string]any)
	if !ok {
		return fmt.Sprintf("metadata.%s is not a map", field)
	}
	for k, v := range m {
		if _, ok := v.(string); !ok {
			return fmt.Sprintf("metadata.%s[%q] is not a string: quote it", field, k)
		}
	}
	return ""
}

func refOf(obj map[string]any) Ref {
	apiVersion, _ := obj["apiVersion"].(string)
	gv, _ := schema.ParseGroupVersion(apiVersion)
	k, _ := obj["kind"].(string)
	meta, _ := obj["metadata"].(map[string]any)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	return Ref{Group: gv.Group, Kind: k, Namespace: namespace, Name: name}
}

// serverFields of the metadata belong to the server: a source that carries them was read from a cluster.
var serverFields = []string{"creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"}

func newObject(m Manifest, o Options, scopes *scopes) (*Object, error) {
	ref := refOf(m.Object)
	gv, _ := schema.ParseGroupVersion(m.Object["apiVersion"].(string))
	obj := &Object{Ref: ref, Version: gv.Version, DefaultNamespace: o.Namespace, Once: m.Once, Origin: m.Origin, Stage: StageOf(ref.GroupKind())}
	obj.Scope = scopes.of(obj.GVK())
	obj.Member = ref.GroupKind() != (schema.GroupKind{Kind: "Namespace"})

	meta := m.Object["metadata"].(map[string]any)
	for _, f := range serverFields {
		delete(meta, f)
	}
	delete(m.Object, "status")
	if err := encodeSecret(m.Object, ref); err != nil {
		return nil, &Error{Origin: m.Origin, Ref: ref, Problem: err.Error()}
	}
	switch obj.Scope {
	case kind.ScopeCluster:
		obj.Namespace = ""
		delete(meta, "namespace")
	case kind.ScopeNamespaced:
		if obj.Namespace == "" {
			obj.Namespace = o.Namespace
		}
		meta["namespace"] = obj.Namespace
	case kind.ScopeUnknown: // the runtime knows: the namespace goes into the URL then
	}
	annotations := stringMap(meta, "annotations")
	obj.Keep = annotations["helm.sh/resource-policy"] == "keep" || annotations[v1beta2.KeepAnnotation] == "keep"
	if obj.Member {
		stringMap(meta, "labels")[v1beta2.ApplySetPartOfLabel] = ApplySetID(o.Namespace, o.Module)
	}
	obj.Manager, obj.DigestKey = v1beta2.FieldManager, v1beta2.DigestAnnotation
	if !obj.Member {
		obj.Manager, obj.DigestKey = SharedManager(ApplySetID(o.Namespace, o.Module)), sharedDigestKey(o)
	}
	annotations[obj.DigestKey] = noDigest
	if err := obj.serialise(m.Object); err != nil {
		return nil, &Error{Origin: m.Origin, Ref: ref, Problem: err.Error()}
	}
	return obj, nil
}

// sharedManager begins the field managers of objects that several sets may share.
const sharedManager = v1beta2.FieldManager + "."

// SharedManager is the field manager under which a set applies Namespaces: each set has its own, so that two sets can own
// a Namespace's fields side by side.
func SharedManager(setID string) string { return sharedManager + setID }

// SharedBy is the ID of the set whose SharedManager a field manager is, and false for any other manager.
func SharedBy(manager string) (setID string, ok bool) {
	return strings.CutPrefix(manager, sharedManager)
}

// sharedDigestKey is the annotation for the digest of a Namespace: one per set.
func sharedDigestKey(o Options) string {
	sum := sha256.Sum256([]byte(ApplySetID(o.Namespace, o.Module)))
	return v1beta2.DigestAnnotation + "." + hex.EncodeToString(sum[:6])
}

// encodeSecret moves a Secret's stringData into data, as the server would: stringData is write-only, so a change of the value
// behind it would not take the field from us and would go unseen.
func encodeSecret(obj map[string]any, ref Ref) error {
	plain, ok := obj["stringData"].(map[string]any)
	if ref.GroupKind() != (schema.GroupKind{Kind: "Secret"}) || !ok {
		return nil
	}
	data, ok := obj["data"].(map[string]any)
	if !ok {
		data = map[string]any{}
		obj["data"] = data
	}
	for k, v := range plain {
		text, ok := v.(string)
		if !ok {
			return fmt.Errorf("stringData[%q] is not a string: quote it", k)
		}
		data[k] = base64.StdEncoding.EncodeToString([]byte(text))
	}
	delete(obj, "stringData")
	return nil
}

func stringMap(meta map[string]any, field string) map[string]any {
	if m, ok := meta[field].(map[string]any); ok {
		return m
	}
	m := map[string]any{}
	meta[field] = m
	return m
}

// noDigest stands in the digest annotation while the digest is computed, so that the bytes are made only once.
const noDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"

// serialise makes the bytes and puts their digest into the annotation.
func (o *Object) serialise(obj map[string]any) error {
	raw, err := json.Marshal(obj)
	if err != nil {
		return fmt.Errorf("serialising: %w", err)
	}
	at, err := o.digestAt(obj, raw)
	if err != nil {
		return err
	}
	o.Digest = Digest(raw)
	copy(raw[at:], o.Digest)
	o.Bytes = raw
	return nil
}

// digestAt is where the digest annotation's value stands in the bytes of an object. The same text may stand in its data, too: then
// it is where they differ with another value.
func (o *Object) digestAt(obj map[string]any, raw []byte) (int, error) {
	slot := []byte(`"` + o.DigestKey + `":"` + noDigest + `"`)
	at := bytes.Index(raw, slot)
	if at < 0 {
		return 0, errors.New("serialising: the digest annotation is gone")
	}
	if bytes.LastIndex(raw, slot) == at {
		return at + len(slot) - len(noDigest) - 1, nil
	}
	annotations := stringMap(obj["metadata"].(map[string]any), "annotations")
	annotations[o.DigestKey] = strings.ToUpper(noDigest)
	other, err := json.Marshal(obj)
	annotations[o.DigestKey] = noDigest
	if err != nil {
		return 0, fmt.Errorf("serialising: %w", err)
	}
	for at = range raw {
		if raw[at] != other[at] {
			return at, nil
		}
	}
	return 0, errors.New("serialising: the digest annotation is gone")
}

func sortObjects(objects []*Object) {
	sort.SliceStable(objects, func(i, j int) bool {
		a, b := objects[i], objects[j]
		switch {
		case a.Stage != b.Stage:
			return a.Stage < b.Stage
		case a.Group != b.Group:
			return a.Group < b.Group
		case a.Kind != b.Kind:
			return a.Kind < b.Kind
		case a.Namespace != b.Namespace:
			return a.Namespace < b.Namespace
		}
		return a.Name < b.Name
	})
}

func refuseDuplicates(objects []*Object) error {
	first := map[Ref]*Object{}
	var errs []error
	for _, o := range objects {
		if other, ok := first[o.Ref]; ok {
			errs = append(errs, &Error{Origin: o.Origin, Ref: o.Ref, Problem: "is defined twice, also in " + other.Origin})
			continue
		}
		first[o.Ref] = o
	}
	return errors.Join(errs...)
}

func digestOf(objects []*Object) string {
	var b bytes.Buffer
	for _, o := range objects {
		b.WriteString(o.Ref.String())
		b.WriteByte(0)
		b.WriteString(o.Digest)
		b.WriteByte(0)
	}
	return Digest(b.Bytes())
}

// With is the bundle with further objects, such as a module's default custom resource. The bundle itself is not changed.
func (b *Bundle) With(manifests []Manifest, scopeOf func(schema.GroupKind) kind.Scope) (*Bundle, error) {
	definitions, err := b.Definitions()
	if err != nil {
		return nil, err
	}
	more, err := New(manifests, Options{Module: b.Module, Namespace: b.Namespace, ScopeOf: func(gk schema.GroupKind) kind.Scope {
		for _, d := range definitions {
			if d.GroupKind() == gk {
				if d.Namespaced {
					return kind.ScopeNamespaced
				}
				return kind.ScopeCluster
			}
		}
		if scopeOf != nil {
			return scopeOf(gk)
		}
		return kind.ScopeUnknown
	}})
	if err != nil {
		return nil, err
	}
	out := *b
	out.Objects = append(append([]*Object{}, b.Objects...), more.Objects...)
	sortObjects(out.Objects)
	out.Digest = digestOf(out.Objects)
	return &out, refuseDuplicates(out.Objects)
}
