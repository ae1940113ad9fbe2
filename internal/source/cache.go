package source

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Cached returns a Fetcher that keeps the trees of references with url and digest in memory, at most maxBytes of them,
// the least recently used leaving first, and answers from there without a request. Whoever asks for the same url at
// the same time, with a digest or without, shares one fetch; one that gives up does not end it for the others, and the
// last one that gives up does. Local paths and standard input always go to f. It is safe for concurrent use.
func Cached(f Fetcher, maxBytes int64) Fetcher {
	return &cache{
		fetcher: f, max: maxBytes,
		kept: map[contentKey]*list.Element{}, order: list.New(), flights: map[flightKey]*flight{},
	}
}

// contentKey is what decides what a tree holds: the same bytes, wherever they come from.
type contentKey struct {
	digest, folder string
	kind           Kind
}

// flightKey is what decides how a fetch goes.
type flightKey struct {
	contentKey
	url string
}

// cache is the Fetcher of Cached.
type cache struct {
	fetcher Fetcher
	max     int64

	mu      sync.Mutex
	kept    map[contentKey]*list.Element // of *item
	order   *list.List                   // most recently used first
	bytes   int64
	flights map[flightKey]*flight
}

// item is a tree that is kept.
type item struct {
	key  contentKey
	tree *Tree
	size int64
}

// flight is a fetch that is under way. Its result may be read once done is closed; waiters is guarded by cache.mu.
type flight struct {
	done    chan struct{}
	cancel  context.CancelCauseFunc
	waiters int
	tree    *Tree
	err     error
}

// errAbandoned is the cause of the end of a fetch for which nobody waits any more.
var errAbandoned = errors.New("nobody waits for the source")

// Fetch answers from memory, or joins or starts a fetch.
func (c *cache) Fetch(ctx context.Context, ref Ref) (*Tree, error) {
	if ref.URL == "" {
		return c.fetcher.Fetch(ctx, ref)
	}
	key := flightKey{contentKey{ref.Digest, ref.Path, ref.Kind}, ref.URL}
	t, fl := c.join(ctx, key, ref)
	if t != nil {
		return t, nil
	}
	select {
	case <-fl.done:
		return fl.tree, fl.err
	case <-ctx.Done():
		c.leave(key, fl)
		return nil, at("fetching", ref.String(), context.Cause(ctx))
	}
}

// join returns a tree that is kept or the flight to wait for.
func (c *cache) join(ctx context.Context, key flightKey, ref Ref) (*Tree, *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.kept[key.contentKey]; ok {
		c.order.MoveToFront(e)
		return e.Value.(*item).tree, nil
	}
	fl, ok := c.flights[key]
	if !ok {
		fl = c.start(ctx, key, ref)
	}
	fl.waiters++
	return nil, fl
}

// start begins a flight with the first waiter's values but a life of its own: it ends when f does, which has a
// deadline, or when the last waiter leaves. The caller holds c.mu.
func (c *cache) start(ctx context.Context, key flightKey, ref Ref) *flight {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	fl := &flight{done: make(chan struct{}), cancel: cancel}
	c.flights[key] = fl
	go func() {
		defer cancel(nil)
		tree, err := c.fetcher.Fetch(ctx, ref)
		c.land(key, fl, tree, err)
	}()
	return fl
}

// land hands the result to the waiters and keeps a tree whose digest was asked for.
func (c *cache) land(key flightKey, fl *flight, tree *Tree, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fl.tree, fl.err = tree, err
	if c.flights[key] == fl {
		delete(c.flights, key)
	}
	if err == nil && key.digest != "" {
		c.keep(key.contentKey, tree)
	}
	close(fl.done)
}

// leave takes a waiter out of a flight, and ends the flight after the last one; who comes later starts a new one.
func (c *cache) leave(key flightKey, fl *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fl.waiters--
	if fl.waiters > 0 {
		return
	}
	if c.flights[key] == fl {
		delete(c.flights, key)
	}
	fl.cancel(errAbandoned)
}

// keep adds a tree and makes room for it. The caller holds c.mu.
func (c *cache) keep(key contentKey, t *Tree) {
	size := sizeOf(t)
	if _, ok := c.kept[key]; ok || size > c.max {
		return
	}
	c.kept[key] = c.order.PushFront(&item{key, t, size})
	for c.bytes += size; c.bytes > c.max; {
		oldest := c.order.Remove(c.order.Back()).(*item)
		delete(c.kept, oldest.key)
		c.bytes -= oldest.size
	}
}

// sizeOf is about what a tree takes in memory, in bytes.
func sizeOf(t *Tree) int64 {
	const perFile = 64
	n := int64(0)
	for _, f := range t.Files {
		n += int64(len(f.Path)+len(f.Data)) + perFile
	}
	return n
}
