package state

import (
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// Deletion says how to delete.
type Deletion struct {
	// UID and Version are preconditions; empty for none.
	UID     types.UID
	Version string
	// Propagation to dependents. Default: Background.
	Propagation metav1.DeletionPropagation
	DryRun      bool
	// Admit is asked before; nil for none. It runs without the cluster's lock.
	Admit func(operation string, object, old *Object) error
}

// Delete removes an object, or marks it when finalizers keep it. gone says which; the object is as it is afterwards.
func (c *Cluster) Delete(v *schema.Version, namespace, name string, d Deletion) (out Object, gone bool, err error) {
	if d.Admit != nil {
		old, err := c.Get(v, namespace, name)
		if err != nil {
			return Object{}, false, err
		}
		if err := d.Admit("DELETE", nil, &old); err != nil {
			return Object{}, false, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.table(v.Kind)
	r, ok := t.get(key{namespace, name})
	if !ok {
		return Object{}, false, apierrors.NewNotFound(v.GroupResource(), name)
	}
	if err := c.mayDelete(v, r, d); err != nil {
		return Object{}, false, err
	}
	return c.delete(t, r, d)
}

func (c *Cluster) mayDelete(v *schema.Version, r record, d Deletion) error {
	id := c.object(r).Identity
	kind := apischema.GroupResource{Group: v.Group, Resource: v.Kind.Kind} // as the API server names it here
	if d.UID != "" && d.UID != id.UID {
		return apierrors.NewConflict(kind, r.content.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", d.UID, id.UID))
	}
	if d.Version != "" && d.Version != fmt.Sprint(id.ResourceVersion) {
		return apierrors.NewConflict(kind, r.content.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the "+
			"ResourceVersion in record (%d). The object might have been modified", d.Version, id.ResourceVersion))
	}
	return nil
}

// delete removes or marks. It needs the lock.
func (c *Cluster) delete(t *table, r record, d Deletion) (Object, bool, error) {
	finalizers := slices.Clone(r.content.Finalizers)
	switch d.Propagation {
	case metav1.DeletePropagationOrphan:
		finalizers = addFinalizer(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		finalizers = addFinalizer(finalizers, metav1.FinalizerDeleteDependents)
	}
	if len(finalizers) == 0 && !c.holds(t, r) {
		if !d.DryRun {
			c.remove(t, r)
		}
		return c.object(r), true, nil
	}
	if r.content.Deleting {
		return c.object(r), false, nil
	}
	marked, err := mark(r.content, finalizers)
	if err != nil {
		return Object{}, false, err
	}
	next := r
	next.content, next.version = marked, c.version+1
	if t.kind.Generation {
		next.generation++ // as the API server does, so that observers see it
	}
	if d.DryRun {
		return c.object(next), false, nil
	}
	return c.store(t, &r, next), false, nil
}

func addFinalizer(in []string, f string) []string {
	if slices.Contains(in, f) {
		return in
	}
	return append(in, f)
}

// mark is a content that is being deleted.
func mark(in *content.Content, finalizers []string) (*content.Content, error) {
	object := copyTree(in.Tree())
	m := schema.MetaOf(object)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	m.SetDeletionTimestamp(&now)
	m.SetDeletionGracePeriodSeconds(new(int64))
	m.SetFinalizers(finalizers)
	if in.Kind == "Namespace" && in.APIVersion == "v1" {
		object["status"] = map[string]any{"phase": "Terminating"}
	}
	return content.New(object)
}

// remove takes an object out of its table. It needs the lock.
func (c *Cluster) remove(t *table, r record) {
	c.version++
	before := r.content
	r.version = c.version
	t.remove(keyOf(r.content))
	c.log.add(c.world.o.History, change{table: t, now: r, before: before, gone: true})
	c.removed(t, r)
}

// holds says whether something besides finalizers keeps a deleted object: what lives in a namespace, or is of a definition. It
// needs the lock.
func (c *Cluster) holds(t *table, r record) bool {
	switch t.kind.GroupResource() {
	case namespaces:
		spec, _ := r.content.Tree()["spec"].(map[string]any)
		finalizers, _ := spec["finalizers"].([]any)
		return len(finalizers) > 0
	default:
		return false
	}
}

// DeleteCollection deletes what a filter matches, and gives the list of it.
func (c *Cluster) DeleteCollection(v *schema.Version, f Filter, d Deletion) (*List, error) {
	list, err := c.List(v, f, 0, "")
	if err != nil {
		return nil, err
	}
	for _, o := range list.Objects {
		one := d
		one.UID = o.Identity.UID
		_, _, err := c.Delete(v, o.Content.Namespace, o.Content.Name, one)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return nil, err
		}
	}
	return list, nil
}
