package state

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
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
	catalogs map[string]*schema.Catalog        // by the definitions; few
	kinds    map[*content.Content]*schema.Kind // by the definition
	names    map[*schema.Kind]string           // keys of catalogs are made of these
	plain    *schema.Catalog                   // without definitions
}

// NewWorld makes a world without clusters. Nothing happens later than at once in it unless Run runs.
func NewWorld(o Options) *World {
	o = o.withDefaults()
	return &World{
		o: o, timer: newTimer(), memo: newMemo(o.Memo), plain: schema.NewCatalog(nil),
		catalogs: map[string]*schema.Catalog{}, kinds: map[*content.Content]*schema.Kind{}, names: map[*schema.Kind]string{},
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

// kindOf is the kind of a definition; equal definitions have one.
func (w *World) kindOf(definition *content.Content) (*schema.Kind, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k, ok := w.kinds[definition]; ok {
		return k, nil
	}
	k, err := schema.Custom(definition.Tree())
	if err != nil {
		return nil, err
	}
	w.kinds[definition] = k
	w.names[k] = fmt.Sprint(len(w.names))
	return k, nil
}

// catalogOf is the catalog with some custom kinds; equal sets have one.
func (w *World) catalogOf(custom []*schema.Kind) *schema.Catalog {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := make([]string, len(custom))
	for i, k := range custom {
		names[i] = w.names[k]
	}
	slices.Sort(names)
	key := strings.Join(names, ",")
	if key == "" {
		return w.plain
	}
	if w.catalogs[key] == nil {
		w.catalogs[key] = schema.NewCatalog(custom)
	}
	return w.catalogs[key]
}
