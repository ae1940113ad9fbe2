package state

import (
	"cmp"
	"slices"
	"time"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// record is an object of one cluster: 24 bytes, and a content that it shares. Its UID follows from its birth.
type record struct {
	content    *content.Content
	version    uint32 // resource version
	birth      uint32 // resource version at creation
	created    uint32 // seconds since 1970
	generation uint32
}

// table has the objects of one resource, in order of namespace and name.
type table struct {
	kind    *schema.Kind
	records []record
	// shared says that somebody else has the slice too: copy before writing.
	shared bool
}

func compareKey(r record, k key) int {
	return cmp.Or(cmp.Compare(r.content.Namespace, k.namespace), cmp.Compare(r.content.Name, k.name))
}

// key is an object's place in its table.
type key struct{ namespace, name string }

func keyOf(c *content.Content) key { return key{c.Namespace, c.Name} }

func (t *table) find(k key) (int, bool) { return slices.BinarySearchFunc(t.records, k, compareKey) }

func (t *table) get(k key) (record, bool) {
	i, ok := t.find(k)
	if !ok {
		return record{}, false
	}
	return t.records[i], true
}

// own makes the slice the table's alone.
func (t *table) own() {
	if t.shared {
		t.records, t.shared = slices.Clone(t.records), false
	}
}

func (t *table) put(r record) {
	t.own()
	i, ok := t.find(keyOf(r.content))
	if ok {
		t.records[i] = r
		return
	}
	t.records = slices.Insert(t.records, i, r)
}

func (t *table) remove(k key) {
	t.own()
	if i, ok := t.find(k); ok {
		t.records = slices.Delete(t.records, i, i+1)
	}
}

// namespace is the part of a table in a namespace; all of it for the empty one.
func (t *table) namespace(name string) []record {
	if name == "" {
		return t.records
	}
	from, _ := t.find(key{name, ""})
	to, _ := t.find(key{name + "\x00", ""})
	return t.records[from:to]
}

// Object is an object as it was at some time. Its content is shared.
type Object struct {
	Content  *content.Content
	Identity content.Identity
	// New says that the write that it is the answer to has made it.
	New bool
}

// object gives a record its identity.
func (c *Cluster) object(r record) Object {
	return Object{Content: r.content, Identity: content.Identity{
		UID: content.UID(c.seed, uint64(r.birth)), ResourceVersion: uint64(r.version),
		Created: time.Unix(int64(r.created), 0), Generation: r.generation,
	}}
}
