package drift

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Between two watches, of which the first failed or ended too soon, these times go by, doubling from the first to the last.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// watch watches one kind of a runtime, watch after watch, until the context ends. A server that ends watches at once is not asked for
// the next one at once.
func (w *watches) watch(ctx context.Context, name types.NamespacedName, kind cluster.Resource) {
	log := w.o.Log.WithValues("runtime", name.String(), "kind", kind.Kind)
	pause, from := firstPause, ""
	for ctx.Err() == nil {
		began := time.Now()
		err := w.once(ctx, name, kind, &from)
		if time.Since(began) >= lastPause {
			pause = firstPause
			if err == nil {
				continue
			}
		}
		if ctx.Err() != nil {
			return
		}
		log.V(1).Info("Watching again", "reason", fmt.Sprint(err))
		if errors.Is(err, cluster.ErrExpired) {
			from = ""
		}
		if !sleep(ctx, pause/2+rand.N(pause/2)) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// once is one watch, which the server ends after some minutes. from is the version that it goes on from, and then that of the last
// event. Without one everything is listed first: what happened before the watch is not missed.
func (w *watches) once(ctx context.Context, name types.NamespacedName, kind cluster.Resource, from *string) error {
	rt, release, err := w.o.Access.Get(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	if *from == "" {
		items, version, err := rt.ListMeta(ctx, kind, cluster.ListOptions{LabelSelector: v1beta2.ApplySetPartOfLabel})
		if err != nil {
			return err
		}
		w.compare(ctx, name, kind, items)
		*from = version
	}
	o := cluster.WatchOptions{LabelSelector: v1beta2.ApplySetPartOfLabel, ResourceVersion: *from}
	return rt.WatchMeta(ctx, kind, o, func(e cluster.WatchEvent) {
		*from = e.ResourceVersion
		w.judge(ctx, name, kind, e)
	})
}

// compare judges a list: what is there, and what is not.
func (w *watches) compare(ctx context.Context, name types.NamespacedName, kind cluster.Resource, items []metav1.PartialObjectMetadata) {
	for i := range items {
		w.judge(ctx, name, kind, cluster.WatchEvent{Type: cluster.WatchAdded, Object: &items[i]})
	}
	for set, baseline := range w.baselines(name) {
		for _, ref := range baseline.Missing(kind, items) {
			meta := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: ref.Namespace, Name: ref.Name, Labels: map[string]string{v1beta2.ApplySetPartOfLabel: set},
			}}
			w.judge(ctx, name, kind, cluster.WatchEvent{Type: cluster.WatchDeleted, Object: meta})
		}
	}
}

// baselines are those of a runtime's modules, by the ID of the set.
func (w *watches) baselines(name types.NamespacedName) map[string]*apply.Baseline {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := map[string]*apply.Baseline{}
	if r := w.runtimes[name]; r != nil {
		for set, m := range r.modules {
			out[set] = m.baseline
		}
	}
	return out
}

// sleep waits; false when the context ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
