package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// silentAt is a Writer to a runtime that does not answer one of the objects.
type silentAt struct {
	Writer
	at    int
	err   error
	asked int
}

// ApplyEach answers one object after the other.
func (w *silentAt) ApplyEach(_ context.Context, objects []cluster.Application, answered cluster.Answered) {
	for i, o := range objects {
		var err error
		if w.asked++; i == w.at {
			err = w.err
		}
		if !answered(i, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}, err) {
			return
		}
	}
}

// TestInTurnOfSilent: where objects are done in turn, a runtime that does not answer one of them is not asked for the others; what it
// refuses says nothing about the others.
func TestInTurnOfSilent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		err   error
		asked int
		fails bool
	}{
		{cluster.ErrUnreachable, 3, true}, {cluster.ErrTimeout, 3, true}, {cluster.ErrForbidden, 10, true}, {cluster.ErrConflict, 10, false},
	} {
		done := 0
		s := &Set{a: New(Options{Parallel: 4})}
		err := s.all(cluster.InTurn(t.Context()), 10, func(i int) error {
			if done++; i == 2 {
				return tc.err
			}
			return nil
		})
		if done != tc.asked || !errors.Is(err, tc.err) {
			t.Errorf("%v: %d objects were tried: %v", tc.err, done, err)
		}
		w := &silentAt{at: 2, err: tc.err}
		s.t.Writer = w
		steps := make([]*Step, 10)
		for i := range steps {
			steps[i] = &Step{Object: &bundle.Object{Manager: "m"}}
		}
		ok, err := s.advanceStage(cluster.InTurn(t.Context()), steps)
		if ok || w.asked != tc.asked || tc.fails != errors.Is(err, tc.err) {
			t.Errorf("%v: %d objects were asked for: %t, %v", tc.err, w.asked, ok, err)
		}
	}
}

// TestAll: as many objects at the same time as may be, one by one where the context says so; all are tried, and the errors of all are
// returned in their order.
func TestAll(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ctx  func(context.Context) context.Context
		n    int
		most int
		took time.Duration
	}{
		"None":     {func(ctx context.Context) context.Context { return ctx }, 0, 0, 0},
		"Few":      {func(ctx context.Context) context.Context { return ctx }, 2, 2, time.Second},
		"Parallel": {func(ctx context.Context) context.Context { return ctx }, 10, 4, 3 * time.Second},
		"InTurn":   {cluster.InTurn, 10, 1, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &Set{a: New(Options{Parallel: 4})}
				var mu sync.Mutex
				var now, most, done int
				begin := time.Now()
				err := s.all(tc.ctx(t.Context()), tc.n, func(i int) error {
					mu.Lock()
					now++
					most = max(most, now)
					mu.Unlock()
					<-time.After(time.Second)
					mu.Lock()
					now--
					done++
					mu.Unlock()
					if i%2 == 1 {
						return fmt.Errorf("object %d: %w", i, context.Canceled)
					}
					return nil
				})
				if most != tc.most || done != tc.n || time.Since(begin) != tc.took {
					t.Errorf("%d at the same time, %d in all, in %s; want %d, %d, %s", most, done, time.Since(begin), tc.most, tc.n, tc.took)
				}
				var want []error
				for i := 1; i < tc.n; i += 2 {
					want = append(want, fmt.Errorf("object %d: %w", i, context.Canceled))
				}
				if fmt.Sprint(err) != fmt.Sprint(errors.Join(want...)) {
					t.Errorf("error = %v, want %v", err, errors.Join(want...))
				}
			})
		})
	}
}
