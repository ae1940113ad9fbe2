package render

import (
	"container/list"
	"context"
	"crypto/rand"
	"errors"
	"sync"

	"github.com/kyma-project/mothership/internal/bundle"
)

// Cache keeps the bundles that another renderer makes, the most recently used ones up to a size, and renders equal
// requests once at a time. Refusals are kept as well: a fleet of runtimes with one broken module costs one rendering.
type Cache struct {
	next     Renderer
	key      []byte // of the input digests, which never leave the process
	maxBytes int64

	mu      sync.Mutex
	bytes   int64
	entries map[string]*list.Element // of *cached
	recent  *list.List               // most recently used first
	flights map[string]*flight
}

var _ Renderer = (*Cache)(nil)

// cached is one result.
type cached struct {
	digest string
	bundle *bundle.Bundle
	err    error
	bytes  int64
}

// flight is a rendering that is under way, for all who wait for it.
type flight struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int
	bundle  *bundle.Bundle
	err     error
}

// Cached returns a cache of at most maxBytes over next. Bundles larger than that are not kept. Requests are told apart
// by InputDigest, so ScopeDigest must be set where ScopeOf is.
func Cached(next Renderer, maxBytes int64) *Cache {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return &Cache{
		next: next, key: key, maxBytes: maxBytes,
		entries: map[string]*list.Element{}, recent: list.New(), flights: map[string]*flight{},
	}
}

// Render implements Renderer. A rendering goes on as long as anybody waits for it, and is cancelled when nobody does.
func (c *Cache) Render(ctx context.Context, r Request) (*bundle.Bundle, error) {
	digest := InputDigest(c.key, r)
	c.mu.Lock()
	if e, ok := c.entries[digest]; ok {
		c.recent.MoveToFront(e)
		hit := e.Value.(*cached)
		c.mu.Unlock()
		return hit.bundle, hit.err
	}
	f := c.flights[digest]
	if f == nil {
		f = c.start(ctx, digest, r)
	}
	f.waiting++
	c.mu.Unlock()
	select {
	case <-f.done:
		return f.bundle, f.err
	case <-ctx.Done():
		c.leave(digest, f)
		return nil, interruptedWait(ctx, &r)
	}
}

func interruptedWait(ctx context.Context, r *Request) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &Error{Module: r.Module, Problem: "rendering " + r.what() + " was not done in time", Err: ErrDeadline}
	}
	return context.Cause(ctx)
}

// start begins a flight. The lock is held.
func (c *Cache) start(ctx context.Context, digest string, r Request) *flight {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel}
	c.flights[digest] = f
	go func() { // ends with the rendering, which leave cancels
		defer cancel()
		f.bundle, f.err = c.next.Render(ctx, r)
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.flights[digest] == f {
			delete(c.flights, digest)
		}
		c.keep(&cached{digest: digest, bundle: f.bundle, err: f.err})
		close(f.done)
	}()
	return f
}

// leave gives up waiting. The last one cancels the rendering.
func (c *Cache) leave(digest string, f *flight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return
	}
	f.cancel()
	if c.flights[digest] == f {
		delete(c.flights, digest)
	}
}

// keep stores a result and drops the least recently used ones. The lock is held.
func (c *Cache) keep(e *cached) {
	if e.err != nil && !isFinal(e.err) {
		return
	}
	e.bytes = sizeOf(e.bundle)
	if e.bytes > c.maxBytes || c.entries[e.digest] != nil {
		return
	}
	c.entries[e.digest] = c.recent.PushFront(e)
	for c.bytes += e.bytes; c.bytes > c.maxBytes; {
		last := c.recent.Remove(c.recent.Back()).(*cached)
		delete(c.entries, last.digest)
		c.bytes -= last.bytes
	}
}

// isFinal says whether an error is the same at the next try.
func isFinal(err error) bool {
	if errors.Is(err, ErrDeadline) || errors.Is(err, ErrMemory) || errors.Is(err, ErrCrash) || errors.Is(err, context.Canceled) {
		return false
	}
	var problem *Error
	var values *ValuesError
	return errors.As(err, &problem) || errors.As(err, &values)
}

// objectOverhead is about what an object of a bundle takes besides its bytes, and an entry besides its bundle.
const objectOverhead = 1 << 10

func sizeOf(b *bundle.Bundle) int64 {
	size := int64(objectOverhead)
	if b == nil {
		return size
	}
	for _, o := range b.Objects {
		size += int64(len(o.Bytes)) + objectOverhead
	}
	return size
}

// Bytes is the size of what is kept.
func (c *Cache) Bytes() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes
}
