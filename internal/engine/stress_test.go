package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// busy is a key under stress: what was published for it, and what its runs have seen.
type busy struct {
	running         atomic.Int32
	published, seen atomic.Int64
}

// Many goroutines do everything at once. In the end each key has seen the last that was published before its last Add, and no
// two runs of one key overlapped.
func TestNothingIsLostUnderStress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lanes, width, publishers, rounds = 5, 2, 8, 400
		keys := map[Key]*busy{}
		var names []Key
		for i := range lanes * 6 {
			k := Key{Runtime: fmt.Sprint("r", i%lanes), Component: []string{"", "a", "b", "c", "d", "e"}[i/lanes]}
			keys[k], names = &busy{}, append(names, k)
		}
		var inLane [lanes]atomic.Int32
		e := start(t, RunnerFunc(func(ctx context.Context, r *Run) Result {
			b := keys[r.Key()]
			lane := &inLane[r.Key().Runtime[1]-'0']
			if b.running.Add(1) > 1 || lane.Add(1) > width {
				t.Errorf("too many runs of %s at once", r.Key())
			}
			defer lane.Add(-1)
			defer b.running.Add(-1)
			return b.run(ctx, r)
		}), Options{Workers: 6, PerRuntime: width})
		var all sync.WaitGroup
		for range publishers {
			all.Go(func() {
				for range rounds {
					publish(e, names[rand.IntN(len(names))], keys)
				}
			})
		}
		all.Wait()
		pass(24 * time.Hour)
		for k, b := range keys {
			if b.seen.Load() != b.published.Load() {
				t.Errorf("%s has seen %d of %d", k, b.seen.Load(), b.published.Load())
			}
		}
		for i := range lanes {
			expectIdle(t, e, fmt.Sprint("r", i))
		}
	})
}

// run sees what is published, and ends somehow; never so that only Add would help, once it has seen everything.
func (b *busy) run(ctx context.Context, r *Run) Result {
	r.Await("fact")
	now := b.published.Load()
	select {
	case <-ctx.Done():
	case <-time.After(time.Duration(rand.IntN(1000)) * time.Microsecond):
	}
	if r.Checkpoint() != nil {
		return Result{Outcome: Superseded}
	}
	switch rand.IntN(10) {
	case 0:
		return Result{Outcome: Retry}
	case 1:
		return Result{Outcome: Pending}
	case 2:
		return Result{Outcome: Unreachable}
	case 3:
		panic("now and then")
	}
	b.seen.Store(now)
	return Result{}
}

// publish changes what a run of the key looks at and triggers it, in one of the ways that must not be lost, amid
// others that change nothing.
func publish(e *Engine, k Key, keys map[Key]*busy) {
	keys[k].published.Add(1)
	switch rand.IntN(4) {
	case 0:
		e.Preempt(k)
	case 1:
		e.AddAfter(k, time.Duration(1+rand.IntN(5000))*time.Microsecond, PriorityRetry)
	default:
		e.Add(k, Priority(rand.IntN(priorities)))
	}
	switch rand.IntN(20) {
	case 0:
		e.Reset(k.Runtime)
	case 1:
		e.Wake(k.Runtime, "fact")
	case 2:
		e.Inspect(k.Runtime)
	case 3:
		e.Forget(k.Runtime)
		for other := range keys { // as after a restart: whoever forgets adds anew
			if other.Runtime == k.Runtime {
				e.Add(other, PriorityChange)
			}
		}
	}
	<-time.After(time.Duration(rand.IntN(2000)) * time.Microsecond)
}
