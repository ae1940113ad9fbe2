// Package poll asks sources that move, such as branches, tags and ranges of versions, whether they have moved, and has exactly the
// modules looked at that use one that has; and it asks sources that failed for a reason that a person has to mend whether that was done.
//
// # Overview
//
// Modules fetch through the Controller, so that it knows what failed. Once in an interval and a bit it fetches what is used and moves
// or has failed: who fetches for the fleet asks the server then, by ETag or the like. Where that gives another digest than the last
// time, or success instead of failure or the other way round, the modules in question are triggered, spread over some seconds: each of them compares
// digests and does what follows, at no cost for its runtime if that is nothing.
//
// # Invariants
//
// A source is polled by one goroutine at a time, and one that hangs delays no other. What nobody uses is not polled. Where nothing moves
// and nothing has failed, a look costs one list of the templates in memory.
//
// The package may import what is below the controllers.
package poll

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/source"
)

// Options of New. All but Interval and Log are needed.
type Options struct {
	// Sources fetches for the whole fleet, once.
	Sources source.Fetcher
	// Catalog says which module uses which source, Cache has the Kymas and the templates.
	Catalog *catalog.Store
	Cache   client.Reader
	Engine  *fleet.Queue
	// Interval between two polls of a source; it is up to a fifth longer. Default: 5 min.
	Interval time.Duration
	Log      logr.Logger
}

// Controller polls. It is safe for concurrent use.
type Controller struct {
	o Options

	mu      sync.Mutex
	watched map[string]*watched // by source.Ref.Key
	busy    int

	failures atomic.Int64 // how many of watched failed; written under mu
}

// watched is what is known of a source that moves or has failed. All but ref is guarded by Controller.mu.
type watched struct {
	ref source.Ref
	// digest that it last led to, "" before it is known; failure is what the last poll met with, nil if it went well or there was none.
	digest  string
	failure error
	// doubted says that a module met with a failure since, which the last poll did not, or the other way round: it may have reported
	// that to people.
	doubted bool
	made    time.Time
	due     time.Time
	// early asks for a poll before it is due, spared says that there was one since the last that was due: another must wait.
	early, spared bool
	polling       bool
}

// maxPolls bounds how many sources are asked at the same time.
const maxPolls = 64

// looks is how often in an interval it is looked for what is due.
const looks = 10

var _ source.Fetcher = (*Controller)(nil)

// New makes a Controller.
func New(o Options) *Controller {
	if o.Interval <= 0 {
		o.Interval = 5 * time.Minute
	}
	return &Controller{o: o, watched: map[string]*watched{}}
}

// Fetch fetches for a module, and remembers what failed.
func (c *Controller) Fetch(ctx context.Context, ref source.Ref) (*source.Tree, error) {
	tree, err := c.o.Sources.Fetch(ctx, ref)
	switch {
	case ref.IsLocal():
	case err == nil && c.failures.Load() == 0: // nobody was told otherwise
	case err == nil || ctx.Err() == nil && lasting(err):
		c.met(ref, err)
	}
	return tree, err
}

// lasting says whether an error needs a change by a person: what is unavailable is tried again by whoever needs it.
func lasting(err error) bool { return !errors.Is(err, source.ErrUnavailable) }

// met is told what a module met with. A source that failed is polled although it may not move. One that is not as the last poll found
// it is polled at once, if it was not lately: the poll tells all who use it, and whoever asked now tells nobody.
func (c *Controller) met(ref source.Ref, err error) {
	key := ref.Key()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[key]
	switch {
	case w == nil && err == nil:
	case w == nil && ref.Moves():
		c.watched[key] = &watched{ref: ref, doubted: true, early: true, made: time.Now(), due: c.next()}
	case w == nil:
		c.watched[key] = &watched{ref: ref, made: time.Now(), due: c.next()}
		c.found(c.watched[key], err)
	case !w.doubted && (w.failure == nil) != (err == nil):
		w.doubted, w.early = true, !w.spared
	}
}

// next is when to poll again.
func (c *Controller) next() time.Time {
	return time.Now().Add(c.o.Interval + rand.N(c.o.Interval/5+1))
}

// Run polls until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	var polls sync.WaitGroup
	defer polls.Wait() // each ends with ctx
	tick := time.NewTicker(max(c.o.Interval/looks, time.Millisecond))
	defer tick.Stop()
	for { // ctx is its bound
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		asked := time.Now()
		used, err := c.used(ctx)
		if err != nil {
			c.o.Log.Error(err, "Reading which sources are in use")
			continue
		}
		for _, key := range c.due(used, asked) {
			polls.Go(func() { c.poll(ctx, key, used[key]) })
		}
	}
}

// due takes the sources whose time has come, and forgets those that nobody uses or that neither move nor fail any more. used was asked
// for at a time: what a module met with later may not be in it.
func (c *Controller) due(used map[string]source.Ref, asked time.Time) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, w := range c.watched {
		ref, in := used[key]
		rests := !ref.Moves() && w.failure == nil && !w.doubted
		if !w.polling && w.made.Before(asked) && (!in || rests) {
			c.found(w, nil)
			delete(c.watched, key)
		}
	}
	var out []string
	for key, ref := range used {
		w := c.watched[key]
		if w == nil {
			if ref.Moves() {
				c.watched[key] = &watched{ref: ref, made: time.Now(), due: c.next()}
			}
			continue
		}
		now := !time.Now().Before(w.due)
		if !w.polling && c.busy < maxPolls && (now || w.early) {
			w.polling, w.early, w.spared = true, false, !now
			c.busy++
			out = append(out, key)
		}
	}
	return out
}

// poll asks one source, and has the modules that use it looked at if the answer is another than before.
func (c *Controller) poll(ctx context.Context, key string, ref source.Ref) {
	defer c.polled(key)
	tree, err := c.o.Sources.Fetch(ctx, ref)
	if ctx.Err() != nil || !c.learn(key, tree, err) {
		return
	}
	if err != nil {
		c.o.Log.Info("A source that is in use failed", "source", ref.String(), "reason", err.Error())
	} else {
		c.o.Log.Info("A source that is in use leads to something new", "source", ref.String(), "revision", tree.Revision, "digest", tree.Digest)
	}
	if err := c.wake(ctx, key); err != nil {
		c.o.Log.Error(err, "Reading which modules use a source", "source", ref.String())
	}
}

// polled ends a poll.
func (c *Controller) polled(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched[key].polling = false
	c.busy--
}

// learn records an answer and says whether it is news. That a source is unavailable is none: what was there before holds. What a
// module has met with otherwise makes an answer news even if it is the one before: the failure may have come and gone between two polls.
func (c *Controller) learn(key string, tree *source.Tree, err error) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.watched[key]
	w.due = c.next()
	switch {
	case err != nil && !lasting(err):
		return false
	case err != nil:
		news = w.doubted || w.failure == nil
		c.found(w, err)
	default:
		news = w.doubted || w.failure != nil || w.digest != tree.Digest
		c.found(w, nil)
		w.digest = tree.Digest
	}
	w.doubted = false
	return news
}

// found records whether a source fails. The lock is held.
func (c *Controller) found(w *watched, failure error) {
	if (w.failure == nil) != (failure == nil) {
		if failure == nil {
			c.failures.Add(-1)
		} else {
			c.failures.Add(1)
		}
	}
	w.failure = failure
}

// perWake is the time that the triggers of one more module take, and maxSpread the most for all.
const (
	perWake   = time.Millisecond
	maxSpread = time.Minute
)

// wake triggers the modules that use a source, spread over a time that grows with their number.
func (c *Controller) wake(ctx context.Context, key string) error {
	keys, err := c.users(ctx, key)
	spread := min(time.Duration(len(keys))*perWake, maxSpread)
	for _, k := range keys {
		c.o.Engine.AddAfter(k, rand.N(spread+1), engine.PriorityChange)
	}
	return err
}
