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

// recent remembers what was rendered last, by the digest of the bundle and that of the input. It is safe for concurrent use.
type recent struct {
	mu      sync.Mutex
	bundles map[string]*list.Element // of *Rendered, by bundle
	inputs  map[string]*Rendered     // by input, of those in bundles
	order   *list.List               // most recently used first
	bytes   int
}

func newRecent() *recent {
	return &recent{bundles: map[string]*list.Element{}, inputs: map[string]*Rendered{}, order: list.New()}
}

// add remembers what was rendered.
func (r *recent) add(out *Rendered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e := r.bundles[out.Bundle.Digest]; e != nil {
		r.drop(e) // another input may lead to the same
	}
	r.bundles[out.Bundle.Digest] = r.order.PushFront(out)
	r.inputs[out.InputDigest] = out
	r.bytes += sizeOf(out.Bundle)
	for r.order.Len() > maxRecent || r.bytes > maxRecentBytes {
		r.drop(r.order.Back())
	}
}

// drop forgets an element. The lock is held.
func (r *recent) drop(e *list.Element) {
	last := r.order.Remove(e).(*Rendered)
	delete(r.bundles, last.Bundle.Digest)
	delete(r.inputs, last.InputDigest)
	r.bytes -= sizeOf(last.Bundle)
}

// of is what was rendered of an input; nil if it is not remembered.
func (r *recent) of(inputDigest string) *Rendered {
	if inputDigest == "" {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.inputs[inputDigest]
	if out != nil {
		r.order.MoveToFront(r.bundles[out.Bundle.Digest])
	}
	return out
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
	return e.Value.(*Rendered).Bundle
}

func sizeOf(b *bundle.Bundle) int {
	n := 0
	for _, o := range b.Objects {
		n += len(o.Bytes)
	}
	return n
}
