package source

import (
	"container/list"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Cached returns a Fetcher that keeps the trees of references with a digest in memory, at most maxBytes of them, the
// least recently used leaving first, and answers from there without a request. Whoever asks for the same reference at
// the same time, with a digest or without, shares one fetch; one that gives up does not end it for the others, and the
// last one that gives up does. Local paths and standard input always go to f. It is safe for concurrent use.
func Cached(f Fetcher, maxBytes int64) Fetcher { return Polled(f, maxBytes, 0) }

// Polled is Cached that also keeps the trees of references that move, such as branches, and asks whether they have moved
// no sooner than an interval after the last time, give or take a fifth, so that a fleet asks once. A Checker is asked
// whether it has before anything is downloaded. While a server is unavailable, what it had last is the answer.
func Polled(f Fetcher, maxBytes int64, interval time.Duration) Fetcher {
	return &cache{
		fetcher: f, max: maxBytes, interval: interval,
		kept: map[contentKey]*list.Element{}, order: list.New(), flights: map[flightKey]*flight{},
	}
}

// contentKey is what decides what a tree holds: the same bytes, wherever they come from; or, without a digest, what was
// asked for and by whom.
type contentKey struct {
	digest, folder string
	kind           Kind
	identity       string
	// signers are the keys by which it was found to be signed.
	signers string
}

// flightKey is what decides how a fetch goes.
type flightKey struct {
	contentKey
	place string
}

func keyOf(ref Ref) flightKey {
	key := flightKey{contentKey{digest: ref.Digest, folder: ref.folder(), kind: ref.Kind, signers: ref.signers()}, ref.identity()}
	if ref.Digest == "" {
		key.identity = key.place
	}
	return key
}

// cache is the Fetcher of Cached and Polled.
type cache struct {
	fetcher  Fetcher
	max      int64
	interval time.Duration

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
	// due is when to ask whether the reference has moved; zero is never.
	due time.Time
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
	if ref.IsLocal() {
		return c.fetcher.Fetch(ctx, ref)
	}
	key := keyOf(ref)
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
	var old *Tree
	if e, ok := c.kept[key.contentKey]; ok {
		c.order.MoveToFront(e)
		kept := e.Value.(*item)
		if kept.due.IsZero() || time.Now().Before(kept.due) {
			return kept.tree, nil
		}
		old = kept.tree
	}
	fl, ok := c.flights[key]
	if !ok {
		fl = c.start(ctx, key, ref, old)
	}
	fl.waiters++
	return nil, fl
}

// start begins a flight with the first waiter's values but a life of its own: it ends when f does, which has a
// deadline, or when the last waiter leaves. The caller holds c.mu.
func (c *cache) start(ctx context.Context, key flightKey, ref Ref, old *Tree) *flight {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	fl := &flight{done: make(chan struct{}), cancel: cancel}
	c.flights[key] = fl
	go func() {
		defer cancel(nil)
		tree, err := c.refresh(ctx, ref, old)
		c.land(key, fl, outcome{tree, err, c.due(ref, err != nil), !ref.moves() || c.interval > 0})
	}()
	return fl
}

// refresh fetches, unless a reference still leads to what it did, or the server cannot be asked: then the answer is the
// old tree, in the latter case together with why.
func (c *cache) refresh(ctx context.Context, ref Ref, old *Tree) (*Tree, error) {
	if old == nil {
		return c.fetcher.Fetch(ctx, ref)
	}
	if checker, ok := c.fetcher.(Checker); ok {
		same, err := checker.Current(ctx, ref, old)
		if same || errors.Is(err, ErrUnavailable) {
			return old, err
		}
		if err != nil {
			return nil, err
		}
	}
	t, err := c.fetcher.Fetch(ctx, ref)
	if errors.Is(err, ErrUnavailable) {
		return old, err
	}
	return t, err
}

// outcome is how a fetch ended; a tree together with an error is the old one.
type outcome struct {
	tree *Tree
	err  error
	due  time.Time
	keep bool
}

// due is when to ask again: after the interval, give or take a fifth, or sooner after a failure.
func (c *cache) due(ref Ref, failed bool) time.Time {
	if c.interval <= 0 || !ref.moves() {
		return time.Time{}
	}
	wait := c.interval
	if failed {
		wait /= 5
	}
	spread := max(wait/5, 1)
	return time.Now().Add(wait - spread + rand.N(2*spread))
}

// land hands the result to the waiters, and keeps the tree if it may answer others.
func (c *cache) land(key flightKey, fl *flight, o outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fl.tree, fl.err = o.tree, o.err
	if fl.tree != nil {
		fl.err = nil
	}
	if c.flights[key] == fl {
		delete(c.flights, key)
	}
	if o.tree != nil && o.keep {
		c.keep(&item{key: key.contentKey, tree: o.tree, size: sizeOf(o.tree), due: o.due})
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

// keep puts a tree in the place of what was kept there, and makes room for it. The caller holds c.mu.
func (c *cache) keep(i *item) {
	if e, ok := c.kept[i.key]; ok {
		c.drop(e)
	}
	if i.size > c.max {
		return
	}
	c.kept[i.key] = c.order.PushFront(i)
	for c.bytes += i.size; c.bytes > c.max; {
		c.drop(c.order.Back())
	}
}

// drop forgets a tree. The caller holds c.mu.
func (c *cache) drop(e *list.Element) {
	i := c.order.Remove(e).(*item)
	delete(c.kept, i.key)
	c.bytes -= i.size
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
