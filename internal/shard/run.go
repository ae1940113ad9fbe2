package shard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What is written into the control plane's namespace.
const (
	// leasePrefix begins the name of each replica's Lease.
	leasePrefix = "mothership-shard-"
	// tableName is the Lease that is the table.
	tableName = "mothership-shards"
	// label is on all of them; its value is one of the next two.
	label       = "operator.kyma-project.io/shard"
	replicaKind = "replica"
	tableKind   = "table"
	// tableAnnotation has the table, requestAnnotation a replica's RequestDeadline.
	tableAnnotation   = "operator.kyma-project.io/slots"
	requestAnnotation = "operator.kyma-project.io/request-deadline"
)

// attempts bounds how often a write of the table is based on a new look after a conflict, in one turn.
const attempts = 5

// Run keeps the replica's lease and takes its share, until the context ends; then it gives up everything. Work should have ended
// before: what is cut short keeps its slot until others have waited for it.
func (s *Shard) Run(ctx context.Context) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			s.leave(context.WithoutCancel(ctx))
			return nil
		case <-timer.C:
		}
		next := s.o.RenewEvery
		if err := s.turn(ctx); err != nil && ctx.Err() == nil {
			s.o.Log.Error(err, "Keeping the replica's share of the fleet", "replica", s.o.Identity)
			next /= 4
		}
		timer.Reset(next - rand.N(next/10+1)) // replicas that started together need not write together
	}
}

// turn renews the lease, looks who else there is, and moves what is to be moved.
func (s *Shard) turn(ctx context.Context) error {
	if err := s.renew(ctx); err != nil {
		return err
	}
	for range attempts {
		v, err := s.look(ctx)
		if err != nil {
			return err
		}
		if err = s.move(ctx, v); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return errBusy
}

// errBusy says that others wrote the table each time. What is held stays held.
var errBusy = errors.New("writing the table of slots: conflict after conflict")

// call bounds one request: several must fit into a lease.
func (s *Shard) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, max(s.o.LeaseDuration/3, time.Millisecond))
}

// renew writes our lease. The first time, it makes the table before, if there is nothing else: nobody can hold anything then.
func (s *Shard) renew(ctx context.Context) error {
	if s.lease == nil {
		if err := s.find(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := s.call(ctx)
	defer cancel()
	sent := s.o.Now()
	next := s.leaseAt(sent)
	var err error
	if next.ResourceVersion == "" {
		next, err = s.o.Leases.Create(ctx, next, metav1.CreateOptions{})
	} else {
		next, err = s.o.Leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		s.lease = nil // it may have been written all the same
		return fmt.Errorf("renewing the replica's lease: %w", err)
	}
	s.lease = next
	s.extend(sent)
	return nil
}

// find looks whether there is a lease of ours already, and makes the table of a fleet that has no replicas.
func (s *Shard) find(ctx context.Context) error {
	leases, err := s.list(ctx)
	if err != nil {
		return err
	}
	if len(leases) == 0 {
		ctx, cancel := s.call(ctx)
		defer cancel()
		t := table{}
		if s.renewedEver() { // somebody has deleted everything: who knows what the others hold
			t = all(unknown)
		}
		if err := s.create(ctx, &t); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	s.lease = &coordinationv1.Lease{}
	for i := range leases {
		if leases[i].Name == leaseName(s.o.Identity) {
			s.lease = &leases[i]
		}
	}
	return nil
}

func (s *Shard) renewedEver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.renewed.IsZero()
}

// leaseAt is our lease, renewed.
func (s *Shard) leaseAt(now time.Time) *coordinationv1.Lease {
	l := s.lease.DeepCopy()
	l.Name = leaseName(s.o.Identity)
	l.Labels = map[string]string{label: replicaKind}
	l.Annotations = map[string]string{requestAnnotation: s.o.RequestDeadline.String()}
	seconds := int32((s.o.LeaseDuration + time.Second - 1) / time.Second)
	renewed := metav1.NewMicroTime(now)
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds, l.Spec.RenewTime = &s.o.Identity, &seconds, &renewed
	if l.Spec.AcquireTime == nil {
		l.Spec.AcquireTime = &renewed
	}
	return l
}

// list asks for all leases of replicas and the table. The answer is true for some moment between question and answer.
func (s *Shard) list(ctx context.Context) ([]coordinationv1.Lease, error) {
	ctx, cancel := s.call(ctx)
	defer cancel()
	list, err := s.o.Leases.List(ctx, metav1.ListOptions{LabelSelector: label})
	if err != nil {
		return nil, fmt.Errorf("reading the leases of replicas: %w", err)
	}
	return list.Items, nil
}

// view is what a look has shown.
type view struct {
	asked    time.Time
	object   *coordinationv1.Lease // the table's; nil if there is none
	table    table
	replicas []coordinationv1.Lease
}

// look looks who there is, and who holds what. What the table does not say is ours is not ours.
func (s *Shard) look(ctx context.Context) (*view, error) {
	v := &view{asked: s.o.Now()}
	leases, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	answered := s.o.Now()
	for i := range leases {
		if leases[i].Labels[label] == tableKind {
			v.object = &leases[i]
			v.table, err = decode(leases[i].Annotations[tableAnnotation])
			continue
		}
		v.replicas = append(v.replicas, leases[i])
	}
	s.change(func() (gained, lost []Slot) {
		return nil, s.endTerms(ErrMoved, func(i Slot) bool { return v.table[i] != s.o.Identity })
	})
	if err != nil {
		return nil, err
	}
	s.seen.look(v.replicas, &v.table, v.asked, answered)
	return v, nil
}

// move gives up what others should have, and takes what we should. An error may be a conflict: then it is to be looked at again.
func (s *Shard) move(ctx context.Context, v *view) error {
	ctx, cancel := s.call(ctx)
	defer cancel()
	if v.object == nil {
		if err := s.create(ctx, new(all(unknown))); err != nil { // whoever holds something is waited for
			return err
		}
		return errNoTable
	}
	should := shareOut(s.seen.alive(v.asked))
	s.change(func() (gained, lost []Slot) {
		return nil, s.endTerms(ErrMoved, func(i Slot) bool { return should[i] != s.o.Identity })
	})
	next, taken, changes := s.plan(v, &should)
	if !changes {
		return s.tidy(ctx, v)
	}
	if err := s.write(ctx, v.object, next); err != nil {
		return err
	}
	s.begin(taken)
	return nil
}

// errNoTable says that the table was made anew.
var errNoTable = errors.New("the table of slots was deleted: nothing is worked on until every replica has let go")

// plan is the table as it should be written, and what is ours by that which we do not hold.
func (s *Shard) plan(v *view, should *table) (next table, taken []Slot, changes bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = v.table
	for i := range next {
		held, holder := s.slots[i].term != nil, v.table[i]
		switch {
		case held:
		case should[i] == s.o.Identity && (holder == "" || holder == s.o.Identity || s.seen.lapsed(holder, v.asked)):
			next[i] = s.o.Identity
			taken = append(taken, Slot(i))
		case holder == s.o.Identity && s.quiet(&s.slots[i]):
			next[i], changes = "", true
		}
	}
	return next, taken, changes || len(taken) > 0
}

// create makes the table.
func (s *Shard) create(ctx context.Context, t *table) error {
	text, err := t.encode()
	if err != nil {
		return err
	}
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Name: tableName, Labels: map[string]string{label: tableKind}, Annotations: map[string]string{tableAnnotation: text},
	}}
	if _, err = s.o.Leases.Create(ctx, l, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("making the table of slots: %w", err)
	}
	return nil
}

// write writes the table over what was seen. It always differs: a write that changes nothing has no new resourceVersion.
func (s *Shard) write(ctx context.Context, seen *coordinationv1.Lease, t table) error {
	text, err := t.encode()
	if err != nil {
		return err
	}
	l := seen.DeepCopy()
	transitions := int32(1)
	if l.Spec.LeaseTransitions != nil {
		transitions = *l.Spec.LeaseTransitions%maxTransitions + 1
	}
	renewed := metav1.NewMicroTime(s.o.Now())
	l.Spec.LeaseTransitions, l.Spec.HolderIdentity, l.Spec.RenewTime = &transitions, &s.o.Identity, &renewed
	l.Annotations[tableAnnotation] = text
	if _, err = s.o.Leases.Update(ctx, l, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the table of slots: %w", err)
	}
	return nil
}

// maxTransitions is where counting begins anew.
const maxTransitions = 1 << 30

// tidy deletes the leases of replicas that lapsed and hold nothing. One that comes back makes its own anew.
func (s *Shard) tidy(ctx context.Context, v *view) error {
	holds := map[string]bool{}
	for _, holder := range v.table {
		holds[holder] = true
	}
	for i := range v.replicas {
		l := &v.replicas[i]
		if name := holderOf(l); holds[name] || name == s.o.Identity || !s.seen.lapsed(name, v.asked) {
			continue
		}
		err := s.o.Leases.Delete(ctx, l.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting the lease of a replica that is gone: %w", err)
		}
	}
	return nil
}

// leave ends all work, frees what is quiet, and deletes our lease. What cannot be done, others wait for.
func (s *Shard) leave(ctx context.Context) {
	s.change(func() (gained, lost []Slot) { return nil, s.endTerms(ErrLeft, every) })
	s.mu.Lock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Unlock()
	ctx, cancel := s.call(ctx)
	defer cancel()
	err := s.free(ctx)
	if err == nil {
		err = s.o.Leases.Delete(ctx, leaseName(s.o.Identity), metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		s.o.Log.Error(err, "Leaving: the other replicas wait until the lease has ended", "replica", s.o.Identity)
	}
}

// free frees all slots that are quiet.
func (s *Shard) free(ctx context.Context) error {
	for range attempts {
		v, err := s.look(ctx)
		if err != nil || v.object == nil {
			return err
		}
		next, _, changes := s.plan(v, &table{})
		if !changes {
			return nil
		}
		if err := s.write(ctx, v.object, next); !apierrors.IsConflict(err) {
			return err
		}
	}
	return errBusy
}
