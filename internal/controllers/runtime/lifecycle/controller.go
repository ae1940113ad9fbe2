// Package lifecycle makes clusters be what their Runtimes say: it asks the provider, stores the kubeconfig in a Secret, finds out who
// the cluster is, and lets go of a Runtime when its cluster is gone.
//
// # Invariants
//
// A cluster is asked who it is once for each kubeconfig, and again only when that changes. A Runtime on its way out takes its Kyma
// with it; a cluster that its provider keeps (byoc) is let go of only when the modules are removed from it, unless it is to be
// abandoned. A cluster that does not answer is not gone.
//
// The package may import what is below the controllers.
package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
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
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/infra"
)

// Options of New. All are needed.
type Options struct {
	Client client.Client
	// Providers by the name that Runtimes have them by.
	Providers map[string]infra.Provider
	Access    *access.Pool
	Engine    *fleet.Queue
	Catalog   *catalog.Store
	Suspects  *fleet.Suspects
	// Unwatch ends what goes on with a runtime's kubeconfig: there is another one, or the runtime leaves.
	Unwatch func(runtime types.NamespacedName)
	Events  events.EventRecorder
	// Guard gives work on a runtime a context that ends when the runtime is another replica's; an error if it is now. Call release
	// when the work is done.
	Guard func(ctx context.Context, runtime types.NamespacedName) (guarded context.Context, release func(), err error)
}

// Controller follows Runtimes.
type Controller struct {
	o        Options
	notified chan event.TypedGenericEvent[*v1beta2.Runtime]
}

// New makes a Controller.
func New(o Options) *Controller {
	return &Controller{o: o, notified: make(chan event.TypedGenericEvent[*v1beta2.Runtime], notifications)}
}

var _ reconcile.Reconciler = (*Controller)(nil)

const (
	// workers is how many Runtimes are worked on at the same time: identifying one takes calls to it, and those that do not answer take
	// as long as a deadline.
	workers = 32
	// notifications is how many words of providers may be under way.
	notifications = 1024
	// index finds Runtimes by the Secret of their kubeconfig.
	index = "kubeconfigSecret"
)

// SetupWithManager starts the controller with a manager.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1beta2.Runtime{}, index, func(obj client.Object) []string {
		r, ok := obj.(*v1beta2.Runtime)
		if !ok {
			return nil
		}
		return []string{access.SecretOf(r).Name}
	})
	if err != nil {
		return fmt.Errorf("indexing the Secrets of Runtimes: %w", err)
	}
	for _, p := range c.o.Providers {
		if n, ok := p.(infra.Notifier); ok {
			n.Notify(c.notify)
		}
	}
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err = ctrl.NewControllerManagedBy(mgr).Named("runtime").
		For(&v1beta2.Runtime{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, leaving()))).
		Watches(secret, handler.EnqueueRequestsFromMapFunc(c.ofSecret), builder.OnlyMetadata).
		Watches(&v1beta2.Kyma{}, handler.EnqueueRequestsFromMapFunc(sameName), builder.WithPredicates(deleted())).
		WatchesRawSource(source.Channel(c.notified, handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, r *v1beta2.Runtime) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(r)}}
		}))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute),
		}).Complete(c)
	if err != nil {
		return fmt.Errorf("setting up the controller of Runtimes: %w", err)
	}
	return nil
}

// notify passes a provider's word on. One that does not fit is not lost: a full queue means that everything is being looked at.
func (c *Controller) notify(namespace, name string) {
	r := &v1beta2.Runtime{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	go func() { // ends within its bound; a provider may not be held up
		timer := time.NewTimer(notifyTimeout)
		defer timer.Stop()
		select {
		case c.notified <- event.TypedGenericEvent[*v1beta2.Runtime]{Object: r}:
		case <-timer.C:
		}
	}()
}

const notifyTimeout = time.Minute

// Gained has a Runtime looked at that this replica works on from now on. It waits until the controller takes it, or the context ends.
func (c *Controller) Gained(ctx context.Context, r *v1beta2.Runtime) {
	select {
	case c.notified <- event.TypedGenericEvent[*v1beta2.Runtime]{Object: r}:
	case <-ctx.Done():
	}
}

// leaving lets all updates of a Runtime that is on its way out pass.
func leaving() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return obj.GetDeletionTimestamp() != nil })
}

// deleted lets only deletions pass.
func deleted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// sameName: a Kyma has the name of its Runtime.
func sameName(_ context.Context, obj client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(obj)}}
}

// ofSecret are the Runtimes whose kubeconfig a Secret holds.
func (c *Controller) ofSecret(ctx context.Context, obj client.Object) []reconcile.Request {
	var list v1beta2.RuntimeList
	err := c.o.Client.List(ctx, &list, client.InNamespace(obj.GetNamespace()), client.MatchingFields{index: obj.GetName()}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil // only before the cache is there, and then everything is looked at
	}
	var out []reconcile.Request
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// Reconcile looks at one Runtime.
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var r v1beta2.Runtime
	if err := c.o.Client.Get(ctx, req.NamespacedName, &r); err != nil {
		if apierrors.IsNotFound(err) {
			c.o.Access.Forget(req.NamespacedName)
			c.o.Engine.Reset(req.String()) // so that the Kyma learns of it at once
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading the Runtime: %w", err)
	}
	ctx, release, err := c.o.Guard(ctx, req.NamespacedName)
	if err != nil {
		return reconcile.Result{}, nil //nolint:nilerr // the replica that has it looks at it
	}
	defer release()
	return c.reconcile(ctx, &r)
}

// reconcile looks at a Runtime that this replica works on.
func (c *Controller) reconcile(ctx context.Context, r *v1beta2.Runtime) (reconcile.Result, error) {
	provider := c.o.Providers[r.Spec.Provider]
	if provider == nil {
		return reconcile.Result{}, c.patch(ctx, r, func(s *v1beta2.RuntimeStatus) {
			setReady(r, s, false, v1beta2.ReasonProvisionFailed, fmt.Sprintf("this control plane has no provider %q", r.Spec.Provider))
			s.State = v1beta2.StateError
		})
	}
	if r.DeletionTimestamp != nil {
		return c.remove(ctx, r, provider)
	}
	if !controllerutil.ContainsFinalizer(r, v1beta2.Finalizer) {
		base := r.DeepCopy()
		controllerutil.AddFinalizer(r, v1beta2.Finalizer)
		if err := c.patchFinalizers(ctx, r, base); err != nil {
			return reconcile.Result{}, fmt.Errorf("adding the finalizer: %w", err)
		}
	}
	return c.ensure(ctx, r, provider)
}

// lookAgain is when a cluster that is being made or removed is looked at again, should its provider say nothing.
const lookAgain = 5 * time.Second

// ensure takes a step towards the cluster being there, and known.
func (c *Controller) ensure(ctx context.Context, r *v1beta2.Runtime, provider infra.Provider) (reconcile.Result, error) {
	state, err := provider.Ensure(ctx, clusterOf(r))
	if err != nil {
		return reconcile.Result{}, errors.Join(err, c.patch(ctx, r, func(s *v1beta2.RuntimeStatus) {
			setReady(r, s, false, v1beta2.ReasonProvisionFailed, err.Error())
			s.State = v1beta2.StateError
		}))
	}
	if !state.Ready {
		return reconcile.Result{RequeueAfter: lookAgain}, c.patch(ctx, r, func(s *v1beta2.RuntimeStatus) {
			setReady(r, s, false, v1beta2.ReasonProvisioning, state.Message)
			s.State = v1beta2.StateProcessing
		})
	}
	if len(state.Kubeconfig) > 0 {
		if err := c.storeKubeconfig(ctx, r, state); err != nil {
			return reconcile.Result{}, err
		}
	}
	return c.identify(ctx, r, state)
}

func clusterOf(r *v1beta2.Runtime) infra.Cluster {
	return infra.Cluster{Namespace: r.Namespace, Name: r.Name, UID: string(r.UID), Spec: r.Spec}
}

// identify finds out who the cluster is, where that is not known of this kubeconfig, and reports it. When it was not known
// before, the engine may work on it now.
func (c *Controller) identify(ctx context.Context, r *v1beta2.Runtime, state infra.State) (reconcile.Result, error) {
	before, generation := access.FactOf(r, v1beta2.FactKubeconfigVersion), r.Status.ObservedGeneration
	known, err := c.o.Access.Identify(ctx, r)
	if err != nil {
		return reconcile.Result{}, errors.Join(err, c.patch(ctx, r, func(s *v1beta2.RuntimeStatus) {
			setReady(r, s, false, access.ReasonOf(err), err.Error())
			s.State = v1beta2.StateWarning
		}))
	}
	wasReady := r.Status.State == v1beta2.StateReady
	uidBefore := access.FactOf(r, v1beta2.FactRuntimeUID)
	err = c.patch(ctx, r, func(s *v1beta2.RuntimeStatus) {
		setReady(r, s, true, v1beta2.ReasonProvisioned, "the cluster can be worked on")
		s.State = v1beta2.StateReady
		ref := access.SecretOf(r)
		setFact(s, v1beta2.FactKubeconfigSecret, ref.Name+"/"+ref.Key)
		setFact(s, v1beta2.FactKubeconfigVersion, known.Kubeconfig)
		setFact(s, v1beta2.FactKubernetesVersion, known.Version)
		setFact(s, v1beta2.FactRuntimeUID, known.UID)
		for key, value := range state.Facts {
			setFact(s, key, value)
		}
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	if uidBefore != "" && uidBefore != known.UID {
		c.o.Events.Eventf(r, nil, corev1.EventTypeWarning, "ClusterReplaced", "Identify", "the kubeconfig leads to another cluster now: everything is installed there")
	}
	if before != known.Kubeconfig {
		c.o.Unwatch(client.ObjectKeyFromObject(r))
	}
	if before != known.Kubeconfig || !wasReady {
		c.release(r)
	}
	if generation != r.Generation { // how drift is noticed may have changed
		c.o.Engine.Add(fleet.RuntimeKey(client.ObjectKeyFromObject(r)), engine.PriorityTrigger)
	}
	return reconcile.Result{}, nil
}

// release has everything looked at that a runtime's kubeconfig, version and identity matter to.
func (c *Controller) release(r *v1beta2.Runtime) {
	name := client.ObjectKeyFromObject(r)
	c.o.Engine.Reset(name.String())
	var facts []string
	for _, f := range r.Status.Facts {
		facts = append(facts, f.Key)
	}
	c.o.Engine.Wake(name.String(), facts...)
	var k v1beta2.Kyma
	if c.o.Client.Get(context.Background(), name, &k) != nil {
		return // there is none (yet)
	}
	c.o.Engine.Add(fleet.RuntimeKey(name), engine.PriorityTrigger)
	for _, m := range catalog.Resolve(&k, c.o.Catalog.In(k.Namespace)) {
		c.o.Engine.Add(fleet.ModuleKey(name, m.Name), engine.PriorityTrigger)
	}
}

// patchFinalizers writes what base does not have yet, and fails if somebody wrote meanwhile.
func (c *Controller) patchFinalizers(ctx context.Context, r, base *v1beta2.Runtime) error {
	return c.o.Client.Patch(ctx, r, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// patch writes the status where a change makes a difference.
func (c *Controller) patch(ctx context.Context, r *v1beta2.Runtime, change func(*v1beta2.RuntimeStatus)) error {
	base := r.DeepCopy()
	change(&r.Status)
	r.Status.ObservedGeneration = r.Generation
	if equality.Semantic.DeepEqual(base.Status, r.Status) {
		return nil
	}
	ctx, release, err := c.o.Guard(ctx, client.ObjectKeyFromObject(r)) // what was found out may be no more than that it is another's
	if err != nil {
		return err
	}
	defer release()
	err = c.o.Client.Status().Patch(ctx, r, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing the status of Runtime %s: %w", types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, err)
	}
	return nil
}
