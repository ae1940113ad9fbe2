package state

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kyma-project/mothership/sim/content"
	"github.com/kyma-project/mothership/sim/schema"
)

// Options of a World. The zero value works.
type Options struct {
	// MinDelay and MaxDelay are between what times workloads get ready, definitions established and namespaces emptied: drawn
	// for each. Default: 20 ms and 200 ms.
	MinDelay, MaxDelay time.Duration
	// History is how many changes a cluster remembers for watches. Default: 256.
	History int
	// Memo is how many merges are remembered. Default: 65,536.
	Memo int
}

func (o Options) withDefaults() Options {
	if o.MaxDelay <= 0 {
		o.MinDelay, o.MaxDelay = 20*time.Millisecond, 200*time.Millisecond
	}
	o.MinDelay = min(o.MinDelay, o.MaxDelay)
	if o.History <= 0 {
		o.History = 256
	}
	if o.Memo <= 0 {
		o.Memo = 1 << 16
	}
	return o
}

// World is what the clusters of a process share. It is safe for concurrent use.
type World struct {
	o     Options
	timer *timer
	memo  *memo

	mu       sync.Mutex
	served   map[*content.Content]*definition
	catalogs map[string]*schema.Catalog // by the numbers of the definitions
	last     int                        // number of the last definition
	plain    *schema.Catalog            // without definitions
}

// definition is what a CustomResourceDefinition makes. It is immutable.
type definition struct {
	kind        *schema.Kind
	number      int
	established bool
}

// maxDefinitions bounds how many are remembered before all are forgotten: they are made again when they are needed.
const maxDefinitions = 4096

// NewWorld makes a world without clusters. Nothing happens later than at once in it unless Run runs.
func NewWorld(o Options) *World {
	o = o.withDefaults()
	return &World{
		o: o, timer: newTimer(), memo: newMemo(o.Memo), plain: schema.NewCatalog(nil),
		catalogs: map[string]*schema.Catalog{}, served: map[*content.Content]*definition{},
	}
}

// Run lets time pass in the world until the context ends.
func (w *World) Run(ctx context.Context) { w.timer.run(ctx) }

// Pending is how much is still to happen by itself.
func (w *World) Pending() int { return w.timer.pending() }

// Merges are the writes that were remembered from another one, and all.
func (w *World) Merges() (remembered, all uint64) { return w.memo.hits.Load(), w.memo.calls.Load() }

// later has something happen after a drawn delay.
func (w *World) later(do func()) {
	w.timer.after(w.o.MinDelay+rand.N(w.o.MaxDelay-w.o.MinDelay+1), do)
}

// definitionOf is what a definition makes; equal definitions make one kind.
func (w *World) definitionOf(c *content.Content) (*definition, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d, ok := w.served[c]; ok {
		return d, nil
	}
	object := c.Tree()
	k, err := schema.Custom(object)
	if err != nil {
		return nil, err
	}
	if len(w.served) >= maxDefinitions {
		clear(w.served)
		clear(w.catalogs)
	}
	w.last++
	d := &definition{kind: k, number: w.last, established: isEstablished(object)}
	w.served[c] = d
	return d, nil
}

// catalogOf is the catalog with some definitions; equal sets have one.
func (w *World) catalogOf(definitions []*definition) *schema.Catalog {
	if len(definitions) == 0 {
		return w.plain
	}
	slices.SortFunc(definitions, func(a, b *definition) int { return cmp.Compare(a.number, b.number) })
	var key []byte
	kinds := make([]*schema.Kind, len(definitions))
	for i, d := range definitions {
		key = append(strconv.AppendInt(key, int64(d.number), 10), ',')
		kinds[i] = d.kind
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.catalogs[string(key)] == nil {
		w.catalogs[string(key)] = schema.NewCatalog(kinds)
	}
	return w.catalogs[string(key)]
}
