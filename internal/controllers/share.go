package controllers

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/journal"
	"github.com/kyma-project/mothership/internal/shard"
)

// share is the part of the fleet that this replica works on. A slot that is gained is worked on when our caches show all that the
// replica before us can have written and acted on: else an old state could win over a newer one.
type share struct {
	fleet *Fleet
	shard *shard.Shard // nil: everything is ours

	mu      sync.Mutex
	active  [shard.Slots]bool
	waiting map[shard.Slot]bool // gained, and not active yet
	gained  chan struct{}       // holds one word that something waits
}

func newShare(f *Fleet) *share {
	s := &share{fleet: f, shard: f.o.Shard, waiting: map[shard.Slot]bool{}, gained: make(chan struct{}, 1)}
	if s.shard != nil {
		s.shard.Subscribe(s.moved)
	}
	return s
}

// owns says whether this replica works on a runtime, by its name in the engine.
func (s *share) owns(runtime string) bool {
	if s.shard == nil {
		return true
	}
	s.mu.Lock()
	active := s.active[shard.SlotOf(runtime)]
	s.mu.Unlock()
	return active && s.shard.Owns(runtime)
}

// has is owns by the name of a Kyma or Runtime.
func (s *share) has(name types.NamespacedName) bool { return s.owns(name.String()) }

// held is how many slots this replica works on.
func (s *share) held() int {
	if s.shard == nil {
		return shard.Slots
	}
	return s.shard.Held()
}

// hasIfShared is has, or nil where there is nobody to share with.
func (s *share) hasIfShared() func(types.NamespacedName) bool {
	if s.shard == nil {
		return nil
	}
	return s.has
}

// admit is asked right before each request to a runtime.
func (s *share) admit(name types.NamespacedName) error {
	if s.has(name) {
		return nil
	}
	return shard.ErrNotOwned
}

// guard gives work on a runtime a context that ends when another replica gets it.
func (s *share) guard(ctx context.Context, name types.NamespacedName) (guarded context.Context, release func(), err error) {
	switch {
	case s.shard == nil:
		return ctx, func() {}, nil
	case !s.has(name):
		return ctx, func() {}, shard.ErrNotOwned
	}
	return s.shard.Guard(ctx, name.String())
}

// start joins the other replicas, until stop is called, which waits until all is given up. Stop the work before.
func (s *share) start(ctx context.Context) (stop func() error) {
	if s.shard == nil {
		return func() error { return nil }
	}
	sharing, leave := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	taking := make(chan struct{})
	go func() { ended <- s.shard.Run(sharing) }() // ended by stop
	go func() {                                   // ended by ctx, and waited for by stop
		defer close(taking)
		s.takeUp(ctx)
	}()
	return func() error {
		<-taking
		leave()
		return <-ended
	}
}

// moved is told by the shard which slots come and go.
func (s *share) moved(gained, lost []shard.Slot) {
	s.mu.Lock()
	for _, slot := range gained {
		s.waiting[slot] = true
	}
	gone := map[shard.Slot]bool{}
	for _, slot := range lost {
		delete(s.waiting, slot)
		gone[slot] = s.active[slot]
		s.active[slot] = false
	}
	s.mu.Unlock()
	s.letGo(gone)
	if len(gained) > 0 {
		select {
		case s.gained <- struct{}{}:
		default: // it is known already
		}
	}
}

// letGo ends what goes on with the runtimes of slots, and forgets them.
func (s *share) letGo(slots map[shard.Slot]bool) {
	if len(slots) == 0 {
		return
	}
	s.fleet.journal.Leave(func(slot journal.Slot) bool { return slots[shard.Slot(slot)] })
	ctx, cancel := context.WithTimeout(context.Background(), freshTimeout)
	defer cancel()
	err := s.each(ctx, slots, func(k *v1beta2.Kyma) { s.fleet.kymas.Lost(ctx, k) }, func(r *v1beta2.Runtime) {
		s.fleet.engine.Forget(client.ObjectKeyFromObject(r).String())
		s.fleet.forget(client.ObjectKeyFromObject(r))
	})
	if err != nil { // nothing of it goes on all the same: the context of each run has ended
		s.fleet.o.Log.Error(err, "Forgetting runtimes that another replica has now")
	}
}

// takeUp begins with slots that were gained, until the context ends.
func (s *share) takeUp(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.gained:
		}
		for slots := s.next(); len(slots) > 0 && ctx.Err() == nil; slots = s.next() {
			if err := s.begin(ctx, slots); err != nil && ctx.Err() == nil {
				s.fleet.o.Log.Error(err, "Taking up runtimes from another replica")
				pass(ctx, freshPause)
			}
		}
	}
}

// next are the slots that wait. They wait on until they are begun with; those that go and come again meanwhile wait anew.
func (s *share) next() map[shard.Slot]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots := map[shard.Slot]bool{}
	for slot := range s.waiting {
		s.waiting[slot], slots[slot] = false, true
	}
	return slots
}

// begin waits until the caches are as new as what the replica before us saw, and has everything looked at.
func (s *share) begin(ctx context.Context, slots map[shard.Slot]bool) error {
	if err := s.fresh(ctx, slots); err != nil {
		return err
	}
	left, err := s.fleet.remember(ctx, func(slot journal.Slot) bool { return slots[shard.Slot(slot)] })
	if err != nil {
		return err
	}
	s.activate(slots)
	s.fleet.forgetGone(ctx, left)
	return s.each(ctx, slots, func(k *v1beta2.Kyma) { s.fleet.kymas.Gained(ctx, k) }, func(r *v1beta2.Runtime) {
		s.fleet.runtimes.Gained(ctx, r)
		if name := client.ObjectKeyFromObject(r); r.Spec.DriftDetection == v1beta2.DriftWatch && s.has(name) {
			s.fleet.engine.Add(fleet.RuntimeKey(name), engine.PriorityVerify) // what it should look like is known afterwards
		}
	})
}

// activate begins with slots that were not lost meanwhile; it leaves only those.
func (s *share) activate(slots map[shard.Slot]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for slot := range slots {
		if anew, waits := s.waiting[slot]; anew || !waits {
			delete(slots, slot)
			continue
		}
		delete(s.waiting, slot)
		s.active[slot] = true
	}
}

// each calls for all Kymas and Runtimes of some slots, as the caches have them.
func (s *share) each(ctx context.Context, slots map[shard.Slot]bool, kyma func(*v1beta2.Kyma), runtime func(*v1beta2.Runtime)) error {
	if len(slots) == 0 {
		return nil
	}
	var kymas v1beta2.KymaList
	var runtimes v1beta2.RuntimeList
	cache := s.fleet.o.Manager.GetClient()
	err := errors.Join(cache.List(ctx, &kymas, client.UnsafeDisableDeepCopy), cache.List(ctx, &runtimes, client.UnsafeDisableDeepCopy))
	for i := range runtimes.Items {
		if r := &runtimes.Items[i]; slots[slotOf(r)] {
			runtime(r)
		}
	}
	for i := range kymas.Items {
		if k := &kymas.Items[i]; slots[slotOf(k)] {
			kyma(k)
		}
	}
	return err
}

func slotOf(obj client.Object) shard.Slot {
	return shard.SlotOf(client.ObjectKeyFromObject(obj).String())
}

// pass waits, or until the context ends.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
