package drift

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
)

// watches are the metadata watches of all runtimes that ask for them: one for each kind in use.
type watches struct {
	o       Options
	suspect func(runtime types.NamespacedName, module string)
	running sync.WaitGroup

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // of Run: watches live as long as it does
	runtimes map[types.NamespacedName]*watched
}

// watched is one runtime.
type watched struct {
	modules map[string]*watchedModule // by ID of the set
	kinds   map[cluster.Resource]context.CancelFunc
}

// watchedModule is one module of it.
type watchedModule struct {
	name     string
	baseline *apply.Baseline
	// working counts the runs under way. What is seen meanwhile is judged afterwards, when it is known what was applied.
	working int
	seen    map[bundle.Ref]sighting
}

// sighting is the last that was seen of an object.
type sighting struct {
	resource cluster.Resource
	event    cluster.WatchEvent
}

func newWatches(o Options, suspect func(types.NamespacedName, string)) *watches {
	return &watches{o: o, suspect: suspect, runtimes: map[types.NamespacedName]*watched{}}
}

// Watches holds the watches until the context ends. What a runtime should look like is known after a start by verifying it.
func (c *Controller) Watches(ctx context.Context) error {
	w := c.watches
	w.mu.Lock()
	w.ctx = ctx
	for name, r := range w.runtimes {
		w.follow(name, r)
	}
	w.mu.Unlock()
	var runtimes v1beta2.RuntimeList
	if err := c.o.Cache.List(ctx, &runtimes); err != nil { // they are verified at their interval then
		c.o.Log.Error(err, "Reading which runtimes are watched")
	}
	for i := range runtimes.Items {
		if runtimes.Items[i].Spec.DriftDetection == v1beta2.DriftWatch {
			c.o.Engine.Add(fleet.RuntimeKey(client.ObjectKeyFromObject(&runtimes.Items[i])), engine.PriorityVerify)
		}
	}
	<-ctx.Done()
	w.mu.Lock()
	w.ctx = nil // no watch begins any more
	w.mu.Unlock()
	w.running.Wait()
	return nil
}

// Watch is told what a module's objects look like while nothing drifts. It watches their kinds from then on, if the Runtime says so.
// It does not block.
func (c *Controller) Watch(runtime string, b *apply.Baseline) {
	name := fleet.RuntimeOf(engine.Key{Runtime: runtime})
	if !c.wantsWatch(name) {
		c.Forget(name)
		return
	}
	w := c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runtimes[name]
	if r == nil {
		r = &watched{modules: map[string]*watchedModule{}, kinds: map[cluster.Resource]context.CancelFunc{}}
		w.runtimes[name] = r
	}
	m := r.modules[b.SetID()]
	if m == nil {
		m = &watchedModule{}
		r.modules[b.SetID()] = m
	}
	m.name, m.baseline = b.ID().Module, b
	w.follow(name, r)
}

func (c *Controller) wantsWatch(name types.NamespacedName) bool {
	var r v1beta2.Runtime
	err := c.o.Cache.Get(context.Background(), name, &r)
	return err == nil && r.DeletionTimestamp == nil && r.Spec.DriftDetection == v1beta2.DriftWatch
}

// has says whether it is known what a runtime should look like.
func (w *watches) has(name types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.runtimes[name] != nil
}

// Working says that a module is being worked on, until done is called: its objects change by our own doing.
func (c *Controller) Working(name types.NamespacedName, module string) (done func()) {
	w := c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.module(name, module)
	if m == nil {
		return func() {}
	}
	m.working++
	return func() { w.worked(name, m) }
}

// module is a watched module by name, nil if it is not watched. The lock is held.
func (w *watches) module(name types.NamespacedName, module string) *watchedModule {
	r := w.runtimes[name]
	if r == nil {
		return nil
	}
	for _, m := range r.modules {
		if m.name == module {
			return m
		}
	}
	return nil
}

// worked judges what was seen during a run.
func (w *watches) worked(name types.NamespacedName, m *watchedModule) {
	w.mu.Lock()
	m.working--
	drifted, contested := false, false
	if m.working == 0 {
		for _, s := range m.seen {
			drifted = drifted || m.drifts(s.resource, s.event)
			contested = contested || m.contested(s.resource, s.event)
		}
		m.seen = nil
	}
	module := m.name
	w.mu.Unlock()
	if drifted || (contested && w.is(name, module, v1beta2.StateReady)) {
		w.suspect(name, module)
	}
}

// drifts says whether an event is drift.
func (m *watchedModule) drifts(r cluster.Resource, e cluster.WatchEvent) bool {
	if e.Type == cluster.WatchDeleted {
		return m.baseline.Wants(refOf(r, e.Object))
	}
	return !m.baseline.Holds(r, e.Object)
}

// contested says whether an object is left as others made it. People should know: it is to be said in the status.
func (m *watchedModule) contested(r cluster.Resource, e cluster.WatchEvent) bool {
	return e.Type != cluster.WatchDeleted && m.baseline.Contested(r, e.Object)
}

func refOf(r cluster.Resource, meta *metav1.PartialObjectMetadata) bundle.Ref {
	return bundle.Ref{Group: r.Group, Kind: r.Kind, Namespace: meta.Namespace, Name: meta.Name}
}

// Unwatch forgets a module that was removed.
func (c *Controller) Unwatch(name types.NamespacedName, module string) {
	w := c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runtimes[name]
	if r == nil {
		return
	}
	for set, m := range r.modules {
		if m.name == module {
			delete(r.modules, set)
		}
	}
	w.follow(name, r)
}

// Forget ends all watches of a runtime.
func (c *Controller) Forget(name types.NamespacedName) {
	w := c.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runtimes[name]
	if r == nil {
		return
	}
	for _, stop := range r.kinds {
		if stop != nil {
			stop()
		}
	}
	delete(w.runtimes, name)
}

// follow starts the watches that are missing, and ends those that nobody needs. The lock is held.
func (w *watches) follow(name types.NamespacedName, r *watched) {
	if w.ctx == nil || w.ctx.Err() != nil {
		return
	}
	needed := map[cluster.Resource]bool{}
	for _, m := range r.modules {
		for _, kind := range m.baseline.Kinds() {
			needed[kind] = true
		}
	}
	for kind, stop := range r.kinds {
		if !needed[kind] {
			stop()
			delete(r.kinds, kind)
		}
	}
	for kind := range needed {
		if r.kinds[kind] != nil {
			continue
		}
		ctx, stop := context.WithCancel(w.ctx)
		r.kinds[kind] = stop
		w.running.Go(func() { w.watch(ctx, name, kind) })
	}
}

// maxSeen bounds what is remembered of one module while it is worked on; beyond it, everything is looked at afterwards.
const maxSeen = 10_000

// judge looks at one event. Drift makes the module a suspect; anything else is a reason to look at a module that is not ready yet.
func (w *watches) judge(ctx context.Context, name types.NamespacedName, kind cluster.Resource, e cluster.WatchEvent) {
	if e.Object == nil {
		return
	}
	w.mu.Lock()
	r := w.runtimes[name]
	if r == nil || r.modules[e.Object.Labels[v1beta2.ApplySetPartOfLabel]] == nil {
		w.mu.Unlock()
		return
	}
	m := r.modules[e.Object.Labels[v1beta2.ApplySetPartOfLabel]]
	if m.working > 0 && len(m.seen) < maxSeen {
		if m.seen == nil {
			m.seen = map[bundle.Ref]sighting{}
		}
		m.seen[refOf(kind, e.Object)] = sighting{kind, e}
		w.mu.Unlock()
		return
	}
	drifted, contested, module := m.drifts(kind, e), m.contested(kind, e), m.name
	w.mu.Unlock()
	switch {
	case drifted, contested && w.is(name, module, v1beta2.StateReady):
		logr.FromContextOrDiscard(ctx).V(1).Info("Drift", "runtime", name.String(), "component", module, "object", refOf(kind, e.Object).String())
		w.suspect(name, module)
	case w.is(name, module, v1beta2.StateProcessing, v1beta2.StateDeleting): // it is waited for, so what happens is worth a look
		w.o.Engine.Add(fleet.ModuleKey(name, module), engine.PriorityTrigger)
	}
}

// is says whether a module has one of some states.
func (w *watches) is(name types.NamespacedName, module string, states ...v1beta2.State) bool {
	var k v1beta2.Kyma
	if w.o.Cache.Get(context.Background(), name, &k, client.UnsafeDisableDeepCopy) != nil {
		return false
	}
	m, found := w.o.Status.Module(&k, module)
	return found && slices.Contains(states, m.State)
}
