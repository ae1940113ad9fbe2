package shard

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// runtimes stand for the clusters of TestChaos: what each takes requests from.
type runtimes struct {
	mu    sync.Mutex
	under [Slots]map[string]int // requests under way, by replica
	done  map[string]int
	bad   []string
}

func newRuntimes() *runtimes {
	out := &runtimes{done: map[string]int{}}
	for s := range out.under {
		out.under[s] = map[string]int{}
	}
	return out
}

// takes a request, which is under way until end is called.
func (r *runtimes) takes(s Slot, from string) (end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.under[s] {
		if other != from {
			r.bad = append(r.bad, fmt.Sprintf("%s: %s and %s both write to slot %d", time.Now().Format(time.TimeOnly), other, from, s))
		}
	}
	r.under[s][from]++
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.done[from]++
		if r.under[s][from]--; r.under[s][from] == 0 {
			delete(r.under[s], from)
		}
	}
}

// works has a replica work on random runtimes until the context ends. Each request goes on until it is through, also if its sender
// has given up: it may take as long as a request can.
func works(ctx context.Context, r *replica, fleet *runtimes, random *rand.Rand, sent *sync.WaitGroup) {
	for ctx.Err() == nil {
		name := names()[random.IntN(Slots)]
		guarded, release, err := r.Guard(ctx, name)
		if err != nil {
			pass(ctx, 100*time.Millisecond)
			continue
		}
		for range 1 + random.IntN(5) {
			if !r.Owns(name) { // asked before each request, as the gate does
				break
			}
			end, took := fleet.takes(SlotOf(name), r.Identity()), time.Duration(random.Int64N(int64(request)))
			if random.IntN(10) > 0 {
				took /= 100
			}
			sent.Go(func() {
				<-time.After(took)
				end()
			})
			if pass(guarded, took); guarded.Err() != nil {
				break
			}
		}
		release()
	}
}

// pass waits, or until the context ends.
func pass(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Whatever requests to the API are lost, late or answered in vain, and whoever comes, goes, dies or is cut off: no runtime ever
// gets requests of two replicas at the same time. And when all is well again, the fleet is shared as it should be.
func TestChaos(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { chaos(t, rand.New(rand.NewPCG(seed, 1))) }) //nolint:gosec // it must be repeatable
		})
	}
}

func chaos(t *testing.T, random *rand.Rand) {
	s, fleet := newStore(), newRuntimes()
	var all []*replica
	var workers, sent sync.WaitGroup
	enter := func() {
		r := join(t, s, fmt.Sprintf("r%d", len(all)))
		r.wire.mu.Lock()
		r.wire.random, r.wire.late, r.wire.chaos = rand.New(rand.NewPCG(random.Uint64(), 2)), 2*lease, 0.1 //nolint:gosec // it must be repeatable
		r.wire.mu.Unlock()
		all = append(all, r)
		ctx, stop := context.WithCancel(t.Context())
		end := r.stop
		r.stop = func() { stop(); end() }
		for range 3 {
			own := rand.New(rand.NewPCG(random.Uint64(), 3)) //nolint:gosec // it must be repeatable
			workers.Go(func() { works(ctx, r, fleet, own, &sent) })
		}
	}
	alive := map[int]bool{}
	for range 3 {
		alive[len(all)] = true
		enter()
	}
	for range 40 {
		after(time.Duration(random.Int64N(int64(2 * lease))))
		i := random.IntN(len(all))
		switch {
		case !alive[i]:
			alive[len(all)] = len(all) < 8
			if alive[len(all)] {
				enter()
			}
		case random.IntN(4) == 0 && len(all) < 8:
			alive[i] = false
			go all[i].stop()
			alive[len(all)] = true
			enter()
		case random.IntN(4) == 0 && len(all) < 8:
			alive[i] = false
			go all[i].die()
			alive[len(all)] = true
			enter()
		default:
			all[i].wire.cut(true)
			after(time.Duration(random.Int64N(int64(3 * lease))))
			all[i].wire.cut(!alive[i])
		}
	}
	settle(t, all, alive)
	for _, r := range all {
		r.stop()
	}
	workers.Wait()
	sent.Wait()
	fleet.verdict(t)
}

// settle lets all be well, and checks the shares.
func settle(t *testing.T, all []*replica, alive map[int]bool) {
	t.Helper()
	var left []*replica
	for i, r := range all {
		r.wire.mu.Lock()
		r.wire.chaos = 0
		r.wire.mu.Unlock()
		if alive[i] {
			left = append(left, r)
		}
	}
	after(10 * (lease + request))
	shared(t, left...)
}

func (r *runtimes) verdict(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, bad := range r.bad[:min(len(r.bad), 5)] {
		t.Error(bad)
	}
	total := 0
	for _, n := range r.done {
		total += n
	}
	if total < 1000 {
		t.Errorf("%d requests in all: the test shows little", total)
	}
}
