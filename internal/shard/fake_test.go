package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// store keeps leases as an API server does: each write is guarded by the resourceVersion that it names, and one that changes nothing
// gives no new one.
type store struct {
	mu      sync.Mutex
	version int
	leases  map[string]*coordinationv1.Lease
	writes  int
	lists   int
}

func newStore() *store { return &store{leases: map[string]*coordinationv1.Lease{}} }

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (s *store) next() string {
	s.version++
	return strconv.Itoa(s.version)
}

func (s *store) list() *coordinationv1.LeaseList {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	out := &coordinationv1.LeaseList{}
	for _, name := range slices.Sorted(maps.Keys(s.leases)) {
		out.Items = append(out.Items, *s.leases[name].DeepCopy())
	}
	return out
}

func (s *store) create(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.leases[l.Name] != nil {
		return nil, apierrors.NewAlreadyExists(resource, l.Name)
	}
	l = l.DeepCopy()
	l.ResourceVersion, l.UID = s.next(), types.UID(fmt.Sprintf("uid-%d", s.version))
	s.leases[l.Name] = l
	return l.DeepCopy(), nil
}

func (s *store) update(l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	old := s.leases[l.Name]
	switch {
	case old == nil:
		return nil, apierrors.NewNotFound(resource, l.Name)
	case old.ResourceVersion != l.ResourceVersion:
		return nil, apierrors.NewConflict(resource, l.Name, errors.New("it has changed"))
	case fmt.Sprint(old.Spec, old.Annotations) == fmt.Sprint(l.Spec, l.Annotations):
		return old.DeepCopy(), nil
	}
	l = l.DeepCopy()
	l.ResourceVersion = s.next()
	s.leases[l.Name] = l
	return l.DeepCopy(), nil
}

func (s *store) delete(name string, o metav1.DeleteOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	old := s.leases[name]
	if old == nil {
		return apierrors.NewNotFound(resource, name)
	}
	if p := o.Preconditions; p != nil && (*p.UID != old.UID || *p.ResourceVersion != old.ResourceVersion) {
		return apierrors.NewConflict(resource, name, errors.New("it has changed"))
	}
	delete(s.leases, name)
	return nil
}

// table is what the store has; false if there is none.
func (s *store) table() (table, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.leases[tableName]
	if l == nil {
		return table{}, false
	}
	t, err := decode(l.Annotations[tableAnnotation])
	if err != nil {
		panic(err)
	}
	return t, true
}

// wire is one replica's way to the store. It is safe for concurrent use.
type wire struct {
	store *store

	mu sync.Mutex
	// down loses everything until it is false again.
	down bool
	// chaos is the chance that a request is late, and that it or its answer is lost.
	chaos float64
	// late is the longest that a request or an answer takes.
	late   time.Duration
	random *rand.Rand
	work   sync.WaitGroup // requests that the caller no longer waits for
}

var errLost = errors.New("lost")

// fate draws what happens to a request: how long it takes there and back, and whether it arrives, and its answer.
func (w *wire) fate() (there, back time.Duration, arrives, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.random == nil {
		return 0, 0, !w.down, true
	}
	there, back = time.Duration(w.random.Int64N(int64(5*time.Millisecond))), time.Duration(w.random.Int64N(int64(5*time.Millisecond)))
	if w.random.Float64() < w.chaos {
		there = time.Duration(w.random.Int64N(int64(w.late)))
	}
	if w.random.Float64() < w.chaos {
		back = time.Duration(w.random.Int64N(int64(w.late)))
	}
	return there, back, !w.down && w.random.Float64() >= w.chaos/2, w.random.Float64() >= w.chaos/2
}

// send has a request done, which arrives even if the caller gives up.
func send[T any](ctx context.Context, w *wire, do func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	there, back, arrives, answered := w.fate()
	answers := make(chan answer, 1)
	w.work.Go(func() {
		<-time.After(there)
		if !arrives {
			return
		}
		value, err := do()
		<-time.After(back)
		if answered {
			answers <- answer{value, err}
		}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("%w: %w", errLost, context.Cause(ctx))
	}
}

func (w *wire) List(ctx context.Context, _ metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	return send(ctx, w, func() (*coordinationv1.LeaseList, error) { return w.store.list(), nil })
}

func (w *wire) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return send(ctx, w, func() (*coordinationv1.Lease, error) { return w.store.create(l) })
}

func (w *wire) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return send(ctx, w, func() (*coordinationv1.Lease, error) { return w.store.update(l) })
}

func (w *wire) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	_, err := send(ctx, w, func() (struct{}, error) { return struct{}{}, w.store.delete(name, o) })
	return err
}

// cut loses everything, or nothing any more.
func (w *wire) cut(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}
