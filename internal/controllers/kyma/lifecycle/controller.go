// Package lifecycle follows Kymas: it keeps their finalizer, tells the engine which modules to look at when one changes, and lets
// go of a Kyma whose modules are gone.
//
// It decides nothing about a module: that is package module's, called by the engine. It may import what is below the controllers.
package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/controllers/kyma/status"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
)

// Options of New. All but Owns are needed.
type Options struct {
	Client   client.Client
	Catalog  *catalog.Store
	Engine   *fleet.Queue
	Status   *status.Writer
	Suspects *fleet.Suspects
	Claims   *fleet.Claims
	// Forget drops the connection to a runtime and all that watches it.
	Forget func(runtime types.NamespacedName)
	// Verify is the interval of verification.
	Verify time.Duration
	// Owns says whether this replica works on a Kyma; nil: on all.
	Owns func(kyma types.NamespacedName) bool
}

// Controller follows Kymas.
type Controller struct {
	o      Options
	gained chan event.TypedGenericEvent[*v1beta2.Kyma]
}

// New makes a Controller.
func New(o Options) *Controller {
	return &Controller{o: o, gained: make(chan event.TypedGenericEvent[*v1beta2.Kyma])}
}

var _ reconcile.Reconciler = (*Controller)(nil)

// workers is how many Kymas are looked at at the same time: each costs some lookups in memory, and a write where the finalizer is
// missing.
const workers = 4

// SetupWithManager starts the controller with a manager.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).Named("kyma").For(&v1beta2.Kyma{}, builder.WithPredicates(c.changed())).
		WatchesRawSource(source.Channel(c.gained, &handler.TypedEnqueueRequestForObject[*v1beta2.Kyma]{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(c)
	if err != nil {
		return fmt.Errorf("setting up the controller of Kymas: %w", err)
	}
	return nil
}

// changed lets updates pass that the status's own writer did not make, and all of a Kyma that is on its way out.
func (c *Controller) changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return c.moved(e) || e.ObjectNew.GetGeneration() != e.ObjectOld.GetGeneration() || e.ObjectNew.GetDeletionTimestamp() != nil ||
			e.ObjectNew.GetAnnotations()[v1beta2.ReconcileAnnotation] != e.ObjectOld.GetAnnotations()[v1beta2.ReconcileAnnotation] ||
			!controllerutil.ContainsFinalizer(e.ObjectNew, v1beta2.Finalizer) || !sameLabels(e.ObjectNew, e.ObjectOld)
	}}
}

// sameLabels: selectors of releases look at a Kyma's labels.
func sameLabels(a, b client.Object) bool {
	of, others := a.GetLabels(), b.GetLabels()
	if len(of) != len(others) {
		return false
	}
	for key, value := range of {
		if other, ok := others[key]; !ok || other != value {
			return false
		}
	}
	return true
}

// Reconcile looks at one Kyma.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var k v1beta2.Kyma
	if err := c.o.Client.Get(ctx, req.NamespacedName, &k); err != nil {
		if apierrors.IsNotFound(err) {
			c.forget(req.NamespacedName)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading the Kyma: %w", err)
	}
	if c.o.Owns != nil && !c.o.Owns(req.NamespacedName) {
		c.follow(ctx, &k)
		return reconcile.Result{}, nil
	}
	if k.DeletionTimestamp != nil {
		return c.remove(ctx, &k)
	}
	if !controllerutil.ContainsFinalizer(&k, v1beta2.Finalizer) {
		base := k.DeepCopy()
		controllerutil.AddFinalizer(&k, v1beta2.Finalizer)
		if err := c.patchFinalizers(ctx, &k, base); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	c.trigger(ctx, &k)
	return reconcile.Result{}, nil
}

// patchFinalizers writes what base does not have yet, and fails if somebody wrote meanwhile.
func (c *Controller) patchFinalizers(ctx context.Context, k, base *v1beta2.Kyma) error {
	return c.o.Client.Patch(ctx, k.DeepCopy(), client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// trigger has every module of a Kyma looked at. Those that are as they should be cost some lookups in memory.
func (c *Controller) trigger(ctx context.Context, k *v1beta2.Kyma) {
	name := client.ObjectKeyFromObject(k)
	priority := engine.PriorityTrigger
	if k.Status.ObservedGeneration != k.Generation {
		priority = engine.PriorityChange
	}
	asked, modules := c.asked(k), catalog.Resolve(k, c.o.Catalog.In(k.Namespace))
	for _, m := range modules {
		key := fleet.ModuleKey(name, m.Name)
		if asked {
			c.o.Suspects.Add(key)
		}
		c.o.Engine.Add(key, priority)
	}
	c.o.Status.Touch(name)
	c.o.Engine.AddAfter(fleet.RuntimeKey(name), fleet.Turns{Interval: c.o.Verify}.Next(name), engine.PriorityVerify)
	if len(modules) == 0 {
		c.lonely(ctx, k)
	}
}

// lonely reports a Kyma that has neither modules, whose runs would notice it, nor a Runtime.
func (c *Controller) lonely(ctx context.Context, k *v1beta2.Kyma) {
	var r v1beta2.Runtime
	name := client.ObjectKeyFromObject(k)
	if !apierrors.IsNotFound(c.o.Client.Get(ctx, name, &r)) {
		return
	}
	c.o.Status.Reachable(k, v1beta2.ReasonRuntimeMissing, access.Missing(name).Error())
	c.o.Engine.AddAfter(fleet.RuntimeKey(name), soon, engine.PriorityVerify) // it may have been made a moment ago
}

// soon is when a Runtime that was missing is looked for again.
const soon = 2 * time.Second

// asked says whether a person has asked for everything to be looked at since it was last.
func (c *Controller) asked(k *v1beta2.Kyma) bool {
	return c.o.Suspects.Asked(client.ObjectKeyFromObject(k), k.Annotations[v1beta2.ReconcileAnnotation])
}

// lookAgain is when a Kyma on its way out is looked at again while a run that began before is still under way: such a run may
// still install something, and report it.
const lookAgain = time.Second

// remove has the modules removed, and lets go of the Kyma when they are gone.
func (c *Controller) remove(ctx context.Context, k *v1beta2.Kyma) (reconcile.Result, error) {
	name := client.ObjectKeyFromObject(k)
	if !controllerutil.ContainsFinalizer(k, v1beta2.Finalizer) {
		return reconcile.Result{}, nil
	}
	left := c.o.Status.Latest(k)
	for _, m := range left {
		c.o.Engine.Preempt(fleet.ModuleKey(name, m.Name))
	}
	if len(left) > 0 {
		if apierrors.IsNotFound(c.o.Client.Get(ctx, name, &v1beta2.Runtime{})) {
			c.o.Engine.Reset(name.String()) // its modules are forgotten, which need not wait for anybody to answer
		}
		c.o.Status.Touch(name)
		return reconcile.Result{}, nil
	}
	if running(c.o.Engine.Inspect(name.String())) {
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	base := k.DeepCopy()
	controllerutil.RemoveFinalizer(k, v1beta2.Finalizer)
	if err := c.patchFinalizers(ctx, k, base); err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("removing the finalizer: %w", err)
	}
	return reconcile.Result{}, nil
}

// running says whether the engine works on any module of a runtime.
func running(s engine.RuntimeState) bool {
	return slices.ContainsFunc(s.Components, func(c engine.ComponentState) bool {
		return c.Component != "" && c.Phase == engine.PhaseRunning
	})
}

// forget drops all that is kept in memory of a Kyma that is gone.
func (c *Controller) forget(kyma types.NamespacedName) {
	c.o.Engine.Forget(kyma.String())
	c.o.Status.Forget(kyma)
	c.o.Claims.Release(kyma)
	c.o.Suspects.Forget(kyma)
	c.o.Forget(kyma)
}
