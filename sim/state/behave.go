package state

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// crdCleanup keeps a definition until its objects are gone.
const crdCleanup = "customresourcecleanup.apiextensions.k8s.io"

// written has happen what controllers do about a new or changed object. It needs the lock.
func (c *Cluster) written(t *table, old *record, r record) {
	k, gr := keyOf(r.content), t.kind.GroupResource()
	switch {
	case r.content.Deleting:
		c.later(func() { c.finalize(t, k) })
	case gr == definitions:
		c.later(func() { c.establish(t, k) })
	case behaviours[gr.String()] != nil:
		if old == nil || old.generation != r.generation || !t.kind.Generation && old.content != r.content {
			c.later(func() { c.progress(t, k) })
		}
	}
	if old == nil && len(r.content.Owners) > 0 {
		c.later(func() { c.collect(t, k) })
	}
}

// removed has happen what controllers do when an object is gone. It needs the lock.
func (c *Cluster) removed(t *table, r record) {
	if t.kind.GroupResource() == definitions {
		c.serve()
	}
	uid := c.object(r).Identity.UID
	c.later(func() { c.collectOf(uid) })
}

// later has something happen under the lock after a drawn delay, unless the cluster is closed by then.
func (c *Cluster) later(do func()) {
	c.world.later(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.closed {
			do()
		}
	})
}

// edit changes an object as a controller does, without asking anybody. The change is remembered under the verb and argument, so it
// must depend on nothing else but the content.
func (c *Cluster) edit(t *table, r record, verb, argument string, change func(object map[string]any, v *schema.Version) (map[string]any, error)) {
	if len(t.kind.Versions) == 0 {
		return
	}
	s := step{live: r.content, version: t.kind.Versions[0], verb: verb, manager: argument}
	out, err := c.world.memo.do(s, func() (outcome, error) {
		object, err := change(copyTree(r.content.Tree()), s.version)
		if err != nil {
			return outcome{}, err
		}
		next, err := content.New(object)
		return outcome{content: next}, err
	})
	if err != nil || out.content == r.content {
		return
	}
	next := r
	next.content, next.version = out.content, c.version+1
	c.store(t, &r, next)
}

// finalize does what the controllers of a deleted object do: its namespace is emptied, its dependents go or are let go.
func (c *Cluster) finalize(t *table, k key) {
	r, ok := t.get(k)
	if !ok || !r.content.Deleting {
		return
	}
	switch t.kind.GroupResource() {
	case namespaces:
		c.empty(t, r)
		return
	case definitions:
		if slices.Contains(r.content.Finalizers, crdCleanup) && c.emptyKind(r) {
			c.dropFinalizer(t, r, crdCleanup)
			return
		}
	}
	uid := c.object(r).Identity.UID
	if slices.Contains(r.content.Finalizers, metav1.FinalizerOrphanDependents) {
		c.orphan(uid)
		c.dropFinalizer(t, r, metav1.FinalizerOrphanDependents)
	}
	if slices.Contains(r.content.Finalizers, metav1.FinalizerDeleteDependents) {
		if c.deleteDependents(uid) == 0 {
			c.dropFinalizer(t, r, metav1.FinalizerDeleteDependents)
			return
		}
		c.later(func() { c.finalize(t, k) })
	}
}

func (c *Cluster) dropFinalizer(t *table, r record, finalizer string) {
	c.edit(t, r, "drop finalizer", finalizer, func(object map[string]any, _ *schema.Version) (map[string]any, error) {
		m := schema.MetaOf(object)
		m.SetFinalizers(slices.DeleteFunc(m.GetFinalizers(), func(f string) bool { return f == finalizer }))
		return object, nil
	})
}

// empty deletes what lives in a namespace, and the namespace when nothing is left.
func (c *Cluster) empty(t *table, r record) {
	left := 0
	for _, other := range c.allTables() {
		if !other.kind.Namespaced {
			continue
		}
		for _, o := range slices.Clone(other.namespace(r.content.Name)) {
			if _, gone, err := c.delete(other, o, Deletion{}); err != nil || !gone {
				left++
			}
		}
	}
	k := keyOf(r.content)
	if left > 0 {
		c.later(func() { c.finalize(t, k) })
		return
	}
	c.edit(t, r, "drop namespace finalizer", "", func(object map[string]any, _ *schema.Version) (map[string]any, error) {
		object["spec"] = map[string]any{}
		return object, nil
	})
}

// emptyKind deletes the objects of a definition, and says whether none is left.
func (c *Cluster) emptyKind(r record) bool {
	d, err := c.world.definitionOf(r.content)
	if err != nil {
		return true
	}
	t := c.tables[d.kind.GroupResource()]
	if t == nil {
		return true
	}
	for _, o := range slices.Clone(t.records) {
		_, _, _ = c.delete(t, o, Deletion{}) // what does not go is asked again
	}
	if len(t.records) == 0 {
		return true
	}
	crds, at := c.tables[definitions], keyOf(r.content)
	c.later(func() { c.finalize(crds, at) })
	return false
}

// allTables is a copy, so that tables may come while it is walked.
func (c *Cluster) allTables() []*table {
	out := make([]*table, 0, len(c.tables))
	for _, t := range c.tables {
		out = append(out, t)
	}
	return out
}

// dependents calls each object that belongs to another.
func (c *Cluster) dependents(uid types.UID, each func(*table, record)) {
	for _, t := range c.allTables() {
		for _, r := range slices.Clone(t.records) {
			if slices.Contains(r.content.Owners, uid) {
				each(t, r)
			}
		}
	}
}

// collectOf deletes what belonged to an object that is gone.
func (c *Cluster) collectOf(uid types.UID) {
	c.dependents(uid, func(t *table, r record) { c.collect(t, keyOf(r.content)) })
}

// collect deletes an object whose owners are all gone.
func (c *Cluster) collect(t *table, k key) {
	r, ok := t.get(k)
	if !ok || len(r.content.Owners) == 0 {
		return
	}
	for _, uid := range r.content.Owners {
		if c.exists(uid) {
			return
		}
	}
	_, _, _ = c.delete(t, r, Deletion{}) // it only fails when a content cannot be encoded
}

func (c *Cluster) exists(uid types.UID) bool {
	for _, t := range c.tables {
		for _, r := range t.records {
			if content.UID(c.seed, uint64(r.birth)) == uid {
				return true
			}
		}
	}
	return false
}

// deleteDependents deletes what belongs to an object, and says how much of it is still there and holds it up.
func (c *Cluster) deleteDependents(uid types.UID) int {
	left := 0
	c.dependents(uid, func(t *table, r record) {
		if _, gone, err := c.delete(t, r, Deletion{Propagation: metav1.DeletePropagationForeground}); err != nil || !gone {
			left++
		}
	})
	return left
}

// orphan lets go what belongs to an object.
func (c *Cluster) orphan(uid types.UID) {
	c.dependents(uid, func(t *table, r record) {
		c.edit(t, r, "orphan", string(uid), func(object map[string]any, _ *schema.Version) (map[string]any, error) {
			m := schema.MetaOf(object)
			m.SetOwnerReferences(slices.DeleteFunc(m.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == uid }))
			return object, nil
		})
	})
}
