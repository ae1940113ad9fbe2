package shard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What work on a slot ends with.
var (
	// ErrNotOwned: Guard was called for a runtime that is not ours now.
	ErrNotOwned = errors.New("another replica has the runtime")
	// ErrMoved is the cause when a slot goes to another replica.
	ErrMoved = errors.New("the runtime goes to another replica")
	// ErrLapsed is the cause when our lease was not renewed in time.
	ErrLapsed = errors.New("the replica's lease was not renewed in time")
	// ErrLeft is the cause when Run ends.
	ErrLeft = errors.New("the replica leaves")
)

// Leases is what is asked of the API; client-go's LeaseInterface has it.
type Leases interface {
	List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error)
	Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error)
	Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// Options of New. Replicas of one fleet should have the same.
type Options struct {
	// Leases of the control plane's namespace. Needed. Its rate limit must not be shared with work: a renewal cannot wait.
	Leases Leases
	// Identity is a name that no other process has or had, in lower case letters, digits and dashes. Needed.
	Identity string
	// LeaseDuration is how long a replica that says nothing counts as alive. Default: 15 s.
	LeaseDuration time.Duration
	// RenewEvery is the time between two renewals. Default: a third of LeaseDuration.
	RenewEvery time.Duration
	// RequestDeadline is the longest that a request to a runtime can take. Default: 20 s.
	RequestDeadline time.Duration
	// Now is the time. Default: time.Now.
	Now func() time.Time
	// Log says what moves, and what fails. Default: none.
	Log logr.Logger
}

// maxIdentity is what a Lease's name leaves for the identity.
const maxIdentity = validation.DNS1123LabelMaxLength - len(leasePrefix)

// Validate says what is wrong with the options.
func (o *Options) Validate() error {
	switch {
	case o.Leases == nil:
		return errors.New("set Leases: the API to keep leases in")
	case len(o.Identity) > maxIdentity || len(validation.IsDNS1123Label(o.Identity)) > 0:
		return fmt.Errorf("the replica's identity is %q: it must have 1 to %d lower case letters, digits and dashes", o.Identity, maxIdentity)
	case o.LeaseDuration < 0 || o.RenewEvery < 0 || o.RequestDeadline < 0:
		return errors.New("durations must be positive, or 0 for the default")
	case o.RenewEvery > 0 && o.RenewEvery > valid(o.withDefaults().LeaseDuration)/2:
		return fmt.Errorf("RenewEvery is %s: one renewal must be able to fail within the lease of %s", o.RenewEvery, o.withDefaults().LeaseDuration)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.LeaseDuration == 0 {
		o.LeaseDuration = 15 * time.Second
	}
	if o.RenewEvery == 0 {
		o.RenewEvery = o.LeaseDuration / 3
	}
	if o.RequestDeadline == 0 {
		o.RequestDeadline = 20 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	return o
}

// valid is how long a replica relies on its lease: clocks of different machines do not run equally fast.
func valid(lease time.Duration) time.Duration { return lease - lease/5 }

// Shard is one replica's part of the fleet. It is safe for concurrent use.
type Shard struct {
	o     Options
	lease *coordinationv1.Lease // ours, as last written; nil if unknown. Run's own.
	seen  members               // Run's own

	order sync.Mutex // held while slots change and subscribers are told, so that they learn it in the order in which it happened

	mu          sync.Mutex // guards what follows; taken after order
	slots       [Slots]slot
	renewed     time.Time // when the last accepted renewal began to be sent; zero before the first
	timer       *time.Timer
	subscribers []func(gained, lost []Slot)
}

// slot is what is known of one; Shard.mu guards it.
type slot struct {
	term  context.Context //nolint:containedctx // its end is that of all work on the slot; nil if it is not held
	end   context.CancelCauseFunc
	users int       // who has a guard
	cut   time.Time // when work on it was last cut short
}

// start begins a term.
func (sl *slot) start() { sl.term, sl.end = context.WithCancelCause(context.Background()) }

// finish ends it, and the work under it, for a cause.
func (sl *slot) finish(cause error) {
	sl.end(cause)
	sl.term, sl.end = nil, nil
}

// New makes a Shard that owns nothing before Run.
func New(o Options) (*Shard, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sharing the fleet: %w", err)
	}
	o = o.withDefaults()
	return &Shard{o: o, seen: members{
		seen: map[string]*sighting{}, own: sighting{duration: o.LeaseDuration, request: o.RequestDeadline},
	}}, nil
}

// Identity of this replica.
func (s *Shard) Identity() string { return s.o.Identity }

// Subscribe has a function told which slots are gained and lost. It is called in order, must not block for long, and must not
// call Run. What it is told as lost is not owned any more; its work has been told to end.
func (s *Shard) Subscribe(f func(gained, lost []Slot)) {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.subscribers = append(s.subscribers, f)
}

// Owns says whether a runtime is ours at this moment, by the clock.
func (s *Shard) Owns(runtime string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots[SlotOf(runtime)].term != nil && !s.expired()
}

// Held is how many slots are ours at this moment.
func (s *Shard) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for i := range s.slots {
		if s.slots[i].term != nil && !s.expired() {
			n++
		}
	}
	return n
}

// Guard gives work on a runtime a context that ends with one of this package's errors as its cause when the runtime is no longer
// ours. Call release when the work is done: the slot does not go to another replica before. ErrNotOwned if it is not ours now.
func (s *Shard) Guard(ctx context.Context, runtime string) (guarded context.Context, release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl := &s.slots[SlotOf(runtime)]
	if sl.term == nil || s.expired() {
		return ctx, func() {}, ErrNotOwned
	}
	term := sl.term
	guarded, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(term, func() { cancel(context.Cause(term)) })
	sl.users++
	return guarded, sync.OnceFunc(func() {
		cutShort := guarded.Err() != nil
		stop()
		cancel(nil)
		s.released(sl, cutShort)
	}), nil
}

// released books the end of work on a slot.
func (s *Shard) released(sl *slot, cutShort bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl.users--
	if cutShort {
		sl.cut = s.o.Now()
	}
}

// quiet says whether no request of ours for a slot can be under way. The lock is held.
func (s *Shard) quiet(sl *slot) bool {
	return sl.users == 0 && (sl.cut.IsZero() || s.o.Now().Sub(sl.cut) >= s.o.RequestDeadline)
}

// expired says whether our lease may have ended for others, by either clock. The lock is held.
func (s *Shard) expired() bool {
	if s.renewed.IsZero() {
		return true
	}
	now, term := s.o.Now(), valid(s.o.LeaseDuration)
	return now.Sub(s.renewed) >= term || now.Round(0).Sub(s.renewed.Round(0)) >= term
}

// change changes slots, and tells the subscribers.
func (s *Shard) change(f func() (gained, lost []Slot)) {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	gained, lost := f()
	subscribers := s.subscribers
	s.mu.Unlock()
	if len(gained)+len(lost) == 0 {
		return
	}
	s.o.Log.Info("Slots have moved", "replica", s.o.Identity, "gained", len(gained), "lost", len(lost))
	for _, tell := range subscribers {
		tell(gained, lost)
	}
}

// endTerms ends the work on slots that match, for a cause, and returns them. The lock is held.
func (s *Shard) endTerms(cause error, match func(Slot) bool) (lost []Slot) {
	for i := range s.slots {
		sl := &s.slots[i]
		if sl.term == nil || !match(Slot(i)) {
			continue
		}
		sl.finish(cause)
		lost = append(lost, Slot(i))
	}
	return lost
}

func every(Slot) bool { return true }

// endLapsed ends everything if our lease was not renewed in time. The lock is held.
func (s *Shard) endLapsed() (lost []Slot) {
	if !s.expired() {
		return nil
	}
	return s.endTerms(ErrLapsed, every)
}

// lapse is called when our lease could have ended, unless it was renewed meanwhile.
func (s *Shard) lapse() {
	s.change(func() (gained, lost []Slot) { return nil, s.endLapsed() })
}

// extend books a renewal that was accepted. One that comes too late begins anew: others may have taken what was ours.
func (s *Shard) extend(sent time.Time) {
	s.change(func() (gained, lost []Slot) {
		lost = s.endLapsed()
		s.renewed = sent
		left := valid(s.o.LeaseDuration) - s.o.Now().Sub(sent)
		if s.timer == nil {
			s.timer = time.AfterFunc(left, s.lapse)
		} else {
			s.timer.Reset(left)
		}
		return nil, lost
	})
}

// begin begins terms of slots that the table says are ours now. If our lease has ended meanwhile, it begins none.
func (s *Shard) begin(taken []Slot) {
	s.change(func() (gained, lost []Slot) {
		if lost = s.endLapsed(); s.expired() {
			return nil, lost
		}
		for _, i := range taken {
			s.slots[i].start()
		}
		return taken, lost
	})
}

// leaseName is that of a replica's Lease.
func leaseName(identity string) string { return leasePrefix + identity }
