// Package controllers puts the controllers together: one list of them, what they share, and the engine that calls those that work on
// runtimes.
//
// # Overview
//
//	kyma/lifecycle     a Kyma changed → its modules, to the engine; finalizer
//	kyma/module        called by the engine: one module on one runtime
//	kyma/status        the only writer of the status of Kymas
//	runtime/lifecycle  a Runtime changed → provider, kubeconfig, who the cluster is
//	runtime/drift      called by the engine: verification and probes; metadata watches
//	catalog            a template or release changed → the modules that it concerns
//	values             a Secret or ConfigMap of valuesFrom changed → the modules that use it
//	poll               a branch, tag or range of a source moved → the modules that use it
//
// The controllers know each other by the engine and the status writer only. Package controlplane is the only one that imports
// this one; this one may import everything below it.
package controllers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/catalog"
	catalogcontroller "github.com/kyma-project/mothership/internal/controllers/catalog"
	kymalifecycle "github.com/kyma-project/mothership/internal/controllers/kyma/lifecycle"
	kymamodule "github.com/kyma-project/mothership/internal/controllers/kyma/module"
	"github.com/kyma-project/mothership/internal/controllers/kyma/status"
	"github.com/kyma-project/mothership/internal/controllers/poll"
	"github.com/kyma-project/mothership/internal/controllers/runtime/drift"
	runtimelifecycle "github.com/kyma-project/mothership/internal/controllers/runtime/lifecycle"
	"github.com/kyma-project/mothership/internal/controllers/values"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/infra"
	"github.com/kyma-project/mothership/internal/journal"
	"github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/internal/remote"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/shard"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// Options of New.
type Options struct {
	// Manager has the caches and clients of the control plane's API. Needed.
	Manager ctrl.Manager
	// Providers of clusters by name. Needed.
	Providers map[string]infra.Provider
	// Namespace of what the control plane keeps for itself. Needed.
	Namespace string
	// Owner is the identity of the control plane, Key that of its input digests. Needed.
	Owner string
	Key   []byte
	// Sources and Renderer of modules. Needed.
	Sources  source.Fetcher
	Renderer render.Renderer
	// PostRender is done to the objects of every module.
	PostRender v1beta2.PostRender
	// Poll is the interval at which sources are asked whether they have moved. Default: 5 min.
	Poll time.Duration
	// Reconcilers that templates can name.
	Reconcilers map[string]reconciler.Reconciler
	// Engine's options; Observe is used.
	Engine engine.Options
	// Connection limits what is asked of each runtime.
	Connection remote.Options
	// Verify is the interval of verification. Default: 1 h.
	Verify time.Duration
	// Shard is the part of the fleet that this replica works on; nil: all of it. It is run by Run.
	Shard *shard.Shard
	// Log of the controllers.
	Log logr.Logger
}

// Fleet is the controllers at work.
type Fleet struct {
	o        Options
	engine   *engine.Engine
	status   *status.Writer
	access   *access.Pool
	catalog  *catalogcontroller.Controller
	modules  *kymamodule.Controller
	drift    *drift.Controller
	poll     *poll.Controller
	kymas    *kymalifecycle.Controller
	runtimes *runtimelifecycle.Controller
	share    *share
	journal  *journal.Journal
	suspects fleet.Suspects
	claims   fleet.Claims
	metrics  *metrics
}

// setup is what each controller of the manager has.
type setup interface {
	SetupWithManager(mgr ctrl.Manager) error
}

// New sets the controllers up with the manager. Nothing works before Run and the manager's start.
func New(o Options) (*Fleet, error) {
	if o.Verify <= 0 {
		o.Verify = time.Hour
	}
	f := &Fleet{o: o}
	f.metrics = newMetrics(f)
	o.Engine.Observe = f.metrics.observe
	f.engine = engine.New(engine.RunnerFunc(f.run), o.Engine)
	f.share = newShare(f)
	for _, c := range f.controllers(catalog.NewStore()) {
		if err := c.SetupWithManager(o.Manager); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// controllers makes what is shared, and the list of controllers.
func (f *Fleet) controllers(store *catalog.Store) []setup {
	mgr, o := f.o.Manager, f.o
	cached, live, events := mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("mothership")
	queue := &fleet.Queue{Engine: f.engine, Owns: f.share.owns}
	f.access = access.New(access.Options{Cache: mgr.GetCache(), Live: live, Connection: o.Connection, Admit: f.share.admit, Ask: ask, Remember: o.Engine.Probe.Max * 4 / 3})
	f.journal = journal.New(journal.Options{
		Reader: live, Writer: cached, Namespace: o.Namespace, Owns: f.share.has,
		SlotOf: func(runtime types.NamespacedName) journal.Slot { return journal.Slot(shard.SlotOf(runtime.String())) },
	})
	f.status = status.New(status.Options{
		Cache: cached, Live: live, Client: cached, Catalog: store, Owns: f.share.has, Behind: f.engine.Throttle, Busy: f.engine.InWave,
		Log: o.Log.WithName("status"),
	})
	f.poll = poll.New(poll.Options{
		Sources: o.Sources, Catalog: store, Cache: cached, Engine: queue, Interval: o.Poll, Log: o.Log.WithName("sources"),
	})
	builtin := module.New(module.Options{
		Sources: patientSources{f.poll}, Renderer: render.Told(o.Renderer, longRendering, away), Applier: apply.New(apply.Options{Owner: o.Owner}), Key: o.Key,
		PostRender: o.PostRender, Applied: f.applied,
	})
	f.modules = kymamodule.New(kymamodule.Options{
		Cache: cached, Live: live, Writer: cached, Catalog: store, Access: f.access, Status: f.status, Suspects: &f.suspects, Claims: &f.claims,
		Journal: f.journal, Builtin: builtin, Custom: o.Reconcilers, Wake: f.engine.Wake, Events: events, Ready: f.metrics.ready,
		Working: func(runtime types.NamespacedName, module string) func() { return f.drift.Working(runtime, module) },
		Removed: func(runtime types.NamespacedName, module string) { f.drift.Unwatch(runtime, module) },
	})
	f.drift = drift.New(drift.Options{
		Cache: cached, Access: f.access, Modules: builtin, Applied: f.modules.Applied, Engine: queue, Status: f.status,
		Suspects: &f.suspects, Claims: &f.claims, Interval: o.Verify, Log: o.Log.WithName("drift"),
	})
	f.catalog = catalogcontroller.New(catalogcontroller.Options{
		Store: store, Cache: cached, Engine: queue, Status: f.status, Log: o.Log.WithName("catalog"),
	})
	f.kymas = kymalifecycle.New(kymalifecycle.Options{
		Client: cached, Catalog: store, Engine: queue, Status: f.status, Suspects: &f.suspects, Claims: &f.claims,
		Forget: f.forgetAll, Verify: o.Verify, Owns: f.share.hasIfShared(),
	})
	f.runtimes = runtimelifecycle.New(runtimelifecycle.Options{
		Client: cached, Providers: o.Providers, Access: f.access, Engine: queue, Catalog: store, Suspects: &f.suspects, Events: events,
		Unwatch: f.drift.Forget, Guard: f.share.guard,
	})
	return []setup{
		f.catalog, values.New(values.Options{Cache: cached, Engine: queue, Log: o.Log.WithName("values")}), f.kymas, f.runtimes,
	}
}

// applied has a runtime watched, unless it has gone to another replica meanwhile.
func (f *Fleet) applied(runtime string, b *apply.Baseline) {
	if f.share.owns(runtime) {
		f.drift.Watch(runtime, b)
	}
}

// forget drops the connection to a runtime and all that watches it.
func (f *Fleet) forget(runtime types.NamespacedName) {
	f.drift.Forget(runtime)
	f.access.Forget(runtime)
}

// forgetAll is forget of a runtime whose Kyma is gone.
func (f *Fleet) forgetAll(runtime types.NamespacedName) {
	f.journal.Forget(runtime)
	f.forget(runtime)
}

// run passes the engine's work on: that of a runtime itself, and that of a module.
func (f *Fleet) run(ctx context.Context, r *engine.Run) engine.Result {
	key := r.Key()
	log := f.o.Log.WithValues("runtime", key.Runtime, "component", key.Component, "correlationID", correlationID())
	ctx, release, err := f.share.guard(logr.NewContext(ctx, log), fleet.RuntimeOf(key))
	if err != nil {
		return engine.Result{Outcome: engine.Done, Message: err.Error()}
	}
	defer release()
	if key.Component == "" {
		return f.drift.Run(ctx, r)
	}
	return f.modules.Run(ctx, r)
}

// correlationID is short and unlikely to be the same as another of the same day.
func correlationID() string {
	id := rand.Uint64()
	return hex.EncodeToString([]byte{byte(id >> 40), byte(id >> 32), byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id)})
}

// Run works on the fleet, once the manager's caches are filled, until the context ends. What is under way then is finished within
// the engine's bound, and all that was reported is written. Start the manager beside it, and stop that afterwards.
func (f *Fleet) Run(ctx context.Context) error {
	if !f.o.Manager.GetCache().WaitForCacheSync(ctx) || !f.catalog.WaitForSync(ctx) {
		return fmt.Errorf("filling the caches: %w", context.Cause(ctx))
	}
	if err := f.claim(ctx); err != nil {
		return err
	}
	if f.o.Shard == nil {
		left, err := f.remember(ctx, func(journal.Slot) bool { return true })
		if err != nil {
			return err
		}
		f.forgetGone(ctx, left)
	}
	stopJournal := beside(ctx, f.journal.Run)
	stopWriting := beside(ctx, f.status.Run)
	rest := make(chan error, 3)
	go func() { rest <- f.access.Run(ctx) }() // end with the context, waited for below
	go func() { rest <- f.poll.Run(ctx) }()
	go func() { rest <- f.drift.Watches(ctx) }()
	stopSharing := f.share.start(ctx)
	err := errors.Join(f.engine.Run(ctx), <-rest, <-rest, <-rest)
	return errors.Join(err, stopWriting(), stopJournal(), stopSharing())
}

// beside runs something that goes on when the context ends, until stop is called, which waits for its end.
func beside(ctx context.Context, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }() // ended by stop
	return func() error {
		cancel()
		return <-ended
	}
}

// remember reads what whoever had these slots before has left in the journal: those modules are looked at in their runtimes.
func (f *Fleet) remember(ctx context.Context, has func(journal.Slot) bool) ([]journal.Entry, error) {
	left, err := f.journal.Load(ctx, has)
	if len(left) > 0 {
		f.o.Log.Info("Looking at modules whose change was cut short", "modules", len(left))
	}
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("reading the journal: %w", context.Cause(ctx)) // it was told to end, which is no failure
	}
	return left, err
}

// forgetGone takes out of the journal what is of runtimes that went while nobody looked: nobody else will say so.
func (f *Fleet) forgetGone(ctx context.Context, left []journal.Entry) {
	cached, live := f.o.Manager.GetClient(), f.o.Manager.GetAPIReader()
	for _, e := range left {
		if apierrors.IsNotFound(cached.Get(ctx, e.Runtime, &v1beta2.Kyma{}, client.UnsafeDisableDeepCopy)) &&
			apierrors.IsNotFound(live.Get(ctx, e.Runtime, &v1beta2.Kyma{})) {
			f.journal.Forget(e.Runtime)
		}
	}
}

// claim gives each Kyma the cluster that it has had before, before anybody else can take it. Of two that say so, the older one.
func (f *Fleet) claim(ctx context.Context) error {
	var kymas v1beta2.KymaList
	if err := f.o.Manager.GetClient().List(ctx, &kymas); err != nil {
		return fmt.Errorf("reading who has which cluster: %w", err)
	}
	slices.SortFunc(kymas.Items, func(a, b v1beta2.Kyma) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range kymas.Items {
		if k := &kymas.Items[i]; k.Status.RuntimeUID != "" {
			f.claims.Claim(k.Status.RuntimeUID, client.ObjectKeyFromObject(k))
		}
	}
	return nil
}

// Explain is what the engine knows of a runtime, and by that what happens next.
func (f *Fleet) Explain(runtime types.NamespacedName) engine.RuntimeState {
	return f.engine.Inspect(strings.TrimPrefix(runtime.String(), "/"))
}

// Overview is what the engine has in hand, with lists of at most top entries.
func (f *Fleet) Overview(top int) engine.Overview { return f.engine.Overview(top) }
