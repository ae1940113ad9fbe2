package state

import (
	"hash/fnv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// Cluster is one simulated cluster. It is safe for concurrent use.
type Cluster struct {
	world *World
	name  string
	seed  uint64

	mu      sync.Mutex
	version uint32 // the last resource version
	catalog *schema.Catalog
	tables  map[apischema.GroupResource]*table
	log     history
	pages   []page
	closed  bool
}

// The resources that behave in ways of their own.
var (
	namespaces  = apischema.GroupResource{Resource: "namespaces"}
	definitions = apischema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}
)

// systemNamespaces are in every new cluster.
var systemNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

// NewCluster makes a cluster as it is after its installation: with the namespaces of the system.
func (w *World) NewCluster(name string) (*Cluster, error) {
	c := w.empty(name)
	v := c.catalog.Resource(apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, ns := range systemNamespaces {
		body := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + ns + `"}}`)
		if _, err := c.Create(&Write{Version: v, Body: body, Manager: "kube-apiserver"}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (w *World) empty(name string) *Cluster {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return &Cluster{world: w, name: name, seed: h.Sum64(), catalog: w.plain, tables: map[apischema.GroupResource]*table{}}
}

// Name is what the cluster is called.
func (c *Cluster) Name() string { return c.name }

// Catalog is what the cluster serves now.
func (c *Cluster) Catalog() *schema.Catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.catalog
}

// Close makes what is still to happen not happen, and ends watches.
func (c *Cluster) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.log.close()
}

// Clone makes a cluster that has what this one has: other UIDs, the same contents. What is still to happen in this one happens
// here only, so clone one that has come to rest.
func (c *Cluster) Clone(name string) (*Cluster, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.world.empty(name)
	out.version, out.catalog = c.version, c.catalog
	out.log.floor = c.version
	uids := c.clonedUIDs(out.seed)
	for gr, t := range c.tables {
		if len(t.records) == 0 {
			continue
		}
		records := make([]record, len(t.records))
		copy(records, t.records)
		for i := range records {
			moved, err := withOwners(records[i].content, uids)
			if err != nil {
				return nil, err
			}
			records[i].content = moved
		}
		out.tables[gr] = &table{kind: t.kind, records: records}
	}
	return out, nil
}

// clonedUIDs are the new UIDs of objects that have dependents, by the old ones.
func (c *Cluster) clonedUIDs(seed uint64) map[types.UID]types.UID {
	out := map[types.UID]types.UID{}
	for _, t := range c.tables {
		for _, r := range t.records {
			for _, uid := range r.content.Owners {
				out[uid] = uid
			}
		}
	}
	if len(out) == 0 {
		return out
	}
	for _, t := range c.tables {
		for _, r := range t.records {
			if uid := content.UID(c.seed, uint64(r.birth)); out[uid] != "" {
				out[uid] = content.UID(seed, uint64(r.birth))
			}
		}
	}
	return out
}

// Count is the number of objects.
func (c *Cluster) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, t := range c.tables {
		n += len(t.records)
	}
	return n
}

// Equal says where this cluster and another differ in what their objects say, as "resource namespace/name"; empty for nowhere.
func (c *Cluster) Equal(other *Cluster) string {
	mine, others := c.contents(), other.contents()
	for place, m := range mine {
		if o, ok := others[place]; !ok || o != m {
			return place
		}
		delete(others, place)
	}
	for place := range others {
		return place
	}
	return ""
}

func (c *Cluster) contents() map[string]*content.Content {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[string]*content.Content{}
	for gr, t := range c.tables {
		for _, r := range t.records {
			out[gr.String()+" "+r.content.Namespace+"/"+r.content.Name] = r.content
		}
	}
	return out
}

// table finds or makes a kind's table. It needs the lock.
func (c *Cluster) table(k *schema.Kind) *table {
	gr := k.GroupResource()
	t := c.tables[gr]
	if t == nil {
		t = &table{kind: k}
		c.tables[gr] = t
	}
	t.kind = k
	return t
}

// Get reads an object.
func (c *Cluster) Get(v *schema.Version, namespace, name string) (Object, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.table(v.Kind).get(key{namespace, name})
	if !ok {
		return Object{}, apierrors.NewNotFound(v.GroupResource(), name)
	}
	return c.object(r), nil
}

// ResourceVersion is the last one.
func (c *Cluster) ResourceVersion() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.version)
}
