package state

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// Write is what all writes say.
type Write struct {
	Version *schema.Version
	// Namespace and Name as in the URL; no Name for Create.
	Namespace, Name string
	Sub             schema.Subresource
	// Body is JSON.
	Body []byte
	// Manager is the field manager.
	Manager string
	// Force takes others' fields, for apply.
	Force bool
	// DryRun changes nothing.
	DryRun bool
	// Admit is asked before a write happens; nil for none. It runs without the cluster's lock.
	Admit func(operation string, object, old *Object) error
}

// outcome is the result of a step.
type outcome struct {
	content *content.Content
	// spec says that the specification changed, same that nothing did.
	spec, same bool
	// uid and version are preconditions that the body carries.
	uid     types.UID
	version string
}

// Create makes an object.
func (c *Cluster) Create(w *Write) (Object, error) {
	object, err := decode(w.Body)
	if err != nil {
		return Object{}, err
	}
	if err := w.locate(object); err != nil {
		return Object{}, err
	}
	generateName(object)
	w.Name = schema.MetaOf(object).GetName()
	s := w.step("create", nil)
	return c.commit(w, false, func(r *record) (outcome, error) {
		if r != nil {
			return outcome{}, apierrors.NewAlreadyExists(w.Version.GroupResource(), w.Name)
		}
		return c.world.memo.do(s, func() (outcome, error) { return w.made(copyTree(object), nil) })
	})
}

// Update replaces an object, or makes it where the kind allows that.
func (c *Cluster) Update(w *Write) (Object, error) {
	object, err := decode(w.Body)
	if err != nil {
		return Object{}, err
	}
	if err := w.locate(object); err != nil {
		return Object{}, err
	}
	return c.commit(w, true, func(r *record) (outcome, error) {
		if r == nil {
			return outcome{}, w.notFound()
		}
		if w.Version.Custom && schema.MetaOf(object).GetResourceVersion() == "" {
			resource := apischema.GroupKind{Group: w.Version.Group, Kind: w.Version.Plural} // as the API server names it here
			return outcome{}, apierrors.NewInvalid(resource, w.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
			})
		}
		return w.changed(c.object(*r), copyTree(object), nil)
	})
}

// Patch changes an object by a patch of one of the known types. Only apply makes objects.
func (c *Cluster) Patch(w *Write, pt types.PatchType) (Object, error) {
	if pt == types.ApplyPatchType || pt == types.ApplyYAMLPatchType {
		return c.apply(w)
	}
	return c.commit(w, true, func(r *record) (outcome, error) {
		if r == nil {
			return outcome{}, w.notFound()
		}
		compute := func() (outcome, error) {
			live := c.object(*r)
			patched, err := patch(w.Version, tree(live, w.Version), w.Body, pt)
			if err != nil {
				return outcome{}, err
			}
			return w.changed(live, patched, nil)
		}
		if pt != types.MergePatchType || namesIdentity(w.Body) {
			return compute()
		}
		return c.world.memo.do(w.step("patch", r.content), func() (outcome, error) {
			out, err := compute()
			out.uid, out.version = "", "" // they are this cluster's, and the patch does not speak of them
			return out, err
		})
	})
}

// namesIdentity says whether a patch may speak of what is not of the content.
func namesIdentity(body []byte) bool {
	return bytes.Contains(body, []byte(`"resourceVersion"`)) || bytes.Contains(body, []byte(`"uid"`))
}

func (c *Cluster) apply(w *Write) (Object, error) {
	return c.commit(w, true, func(r *record) (outcome, error) {
		if r == nil {
			if w.Sub != schema.Main {
				return outcome{}, w.notFound()
			}
			return c.world.memo.do(w.step("apply", nil), func() (outcome, error) { return w.applied(Object{}) })
		}
		return c.world.memo.do(w.step("apply", r.content), func() (outcome, error) { return w.applied(c.object(*r)) })
	})
}

func (w *Write) notFound() error { return apierrors.NewNotFound(w.Version.GroupResource(), w.Name) }

func (w *Write) step(verb string, live *content.Content) step {
	return step{
		live: live, version: w.Version, sub: w.Sub, verb: verb, namespace: w.Namespace, name: w.Name,
		manager: w.Manager, force: w.Force, body: sha256.Sum256(w.Body),
	}
}

// generateName names an object that only has the beginning of a name.
func generateName(object map[string]any) {
	m := schema.MetaOf(object)
	if m.GetName() != "" || m.GetGenerateName() == "" {
		return
	}
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	suffix := make([]byte, 5)
	for i := range suffix {
		suffix[i] = letters[rand.IntN(len(letters))]
	}
	m.SetName(m.GetGenerateName() + string(suffix))
}

// attempts bounds how often a write is tried anew because the object changed while admission was asked.
const attempts = 5

// commit runs a transformation of an object, and makes its result the object. r is nil if there is none.
func (c *Cluster) commit(w *Write, retry bool, transform func(r *record) (outcome, error)) (Object, error) {
	for range attempts {
		out, admitted, err := c.try(w, transform, nil)
		if err != nil || admitted == nil {
			return out, err
		}
		operation := "UPDATE"
		if admitted.old == nil {
			operation = "CREATE"
		}
		if err := w.Admit(operation, &out, admitted.old); err != nil {
			return Object{}, err
		}
		out, admitted, err = c.try(w, transform, admitted)
		if err != nil || admitted == nil {
			return out, err
		}
		if !retry {
			break
		}
	}
	return Object{}, apierrors.NewConflict(w.Version.GroupResource(), w.Name, errModified)
}

var errModified = fmt.Errorf("the object has been modified; please apply your changes to the latest version and try again")

// admission is what was admitted: a change of this object. old is nil for a new one.
type admission struct {
	old *Object
	at  *content.Content
}

// try does a write, unless admission must be asked first, which it says by returning what to admit and the object as it would be.
func (c *Cluster) try(w *Write, transform func(r *record) (outcome, error), admitted *admission) (Object, *admission, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table(w.Version.Kind)
	var old *record
	if r, ok := t.get(key{w.Namespace, w.Name}); ok {
		old = &r
	}
	out, err := transform(old)
	if err != nil {
		return Object{}, nil, err
	}
	if err := c.allowed(w, old, out); err != nil {
		return Object{}, nil, err
	}
	if old != nil && out.same {
		return c.object(*old), nil, nil
	}
	next := c.next(t, old, out)
	if w.Admit != nil {
		now := &admission{}
		if old != nil {
			o := c.object(*old)
			now.old, now.at = &o, old.content
		}
		if admitted == nil || admitted.at != now.at {
			return c.object(next), now, nil
		}
	}
	if w.DryRun {
		next.version = 0
		if old != nil {
			next.version = old.version
		}
	}
	o := c.object(next)
	if !w.DryRun {
		o = c.store(t, old, next)
	}
	o.New = old == nil
	return o, nil, nil
}

// next is the record after a write.
func (c *Cluster) next(t *table, old *record, out outcome) record {
	r := record{content: out.content, version: c.version + 1}
	if old == nil {
		r.birth, r.created = r.version, uint32(time.Now().Unix())
		if t.kind.Generation {
			r.generation = 1
		}
		return r
	}
	r.birth, r.created, r.generation = old.birth, old.created, old.generation
	if out.spec && t.kind.Generation {
		r.generation++
	}
	return r
}

// store makes a record the object, and has happen what follows from it.
func (c *Cluster) store(t *table, old *record, r record) Object {
	c.version = r.version
	ch := change{table: t, now: r}
	if old != nil {
		ch.before = old.content
	}
	if r.content.Deleting && len(r.content.Finalizers) == 0 && !c.holds(t, r) {
		t.remove(keyOf(r.content))
		ch.gone = true
		c.log.add(c.world.o.History, ch)
		c.removed(t, r)
		return c.object(r)
	}
	t.put(r)
	c.log.add(c.world.o.History, ch)
	c.written(t, old, r)
	return c.object(r)
}

// allowed checks what depends on the cluster: preconditions, namespaces.
func (c *Cluster) allowed(w *Write, old *record, out outcome) error {
	if old == nil {
		if out.uid != "" && w.Name != "" {
			return apierrors.NewConflict(w.Version.GroupResource(), w.Name, fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: ", out.uid)) //nolint:revive,staticcheck // as the API server says it
		}
		return c.roomFor(w)
	}
	id := c.object(*old).Identity
	if out.uid != "" && out.uid != id.UID {
		return apierrors.NewConflict(w.Version.GroupResource(), w.Name, fmt.Errorf("Precondition failed: UID in precondition: %s, UID in object meta: %s", out.uid, id.UID)) //nolint:revive,staticcheck // as the API server says it
	}
	if out.version != "" && out.version != fmt.Sprint(id.ResourceVersion) {
		return apierrors.NewConflict(w.Version.GroupResource(), w.Name, errModified)
	}
	return nil
}

// roomFor checks that a new object's namespace is there to stay.
func (c *Cluster) roomFor(w *Write) error {
	if !w.Version.Namespaced {
		return nil
	}
	t := c.tables[namespaces]
	if t == nil {
		return apierrors.NewNotFound(namespaces, w.Namespace)
	}
	ns, ok := t.get(key{name: w.Namespace})
	if !ok {
		return apierrors.NewNotFound(namespaces, w.Namespace)
	}
	if ns.content.Deleting {
		err := apierrors.NewForbidden(w.Version.GroupResource(), w.Name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", w.Namespace))
		return withCause(err, w.Namespace)
	}
	return nil
}
