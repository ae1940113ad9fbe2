package module

import (
	"container/list"
	"sync"

	"github.com/kyma-project/mothership/internal/bundle"
)

// maxRecent is how many bundles are remembered, and maxRecentBytes how much they may take: those of the versions that a fleet is on its
// way between. Most of them are in the cache of renders too, and take no memory of their own.
const (
	maxRecent      = 128
	maxRecentBytes = 16 << 20
)

// recent remembers the bundles that were rendered last, by digest. It is safe for concurrent use.
type recent struct {
	mu      sync.Mutex
	bundles map[string]*list.Element // of *bundle.Bundle
	order   *list.List               // most recently used first
	bytes   int
}

func newRecent() *recent { return &recent{bundles: map[string]*list.Element{}, order: list.New()} }

// add remembers a bundle.
func (r *recent) add(b *bundle.Bundle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.bundles[b.Digest]; e != nil {
		r.order.MoveToFront(e)
		return
	}
	r.bundles[b.Digest] = r.order.PushFront(b)
	r.bytes += sizeOf(b)
	for r.order.Len() > maxRecent || r.bytes > maxRecentBytes {
		last := r.order.Remove(r.order.Back()).(*bundle.Bundle)
		delete(r.bundles, last.Digest)
		r.bytes -= sizeOf(last)
	}
}

// get is a bundle by its digest; nil if it is not remembered.
func (r *recent) get(digest string) *bundle.Bundle {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.bundles[digest]
	if e == nil {
		return nil
	}
	r.order.MoveToFront(e)
	return e.Value.(*bundle.Bundle)
}

func sizeOf(b *bundle.Bundle) int {
	n := 0
	for _, o := range b.Objects {
		n += len(o.Bytes)
	}
	return n
}
