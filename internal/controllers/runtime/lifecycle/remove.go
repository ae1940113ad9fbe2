package lifecycle

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/infra"
)

// remove takes a step towards the Runtime being gone: its Kyma first, then the cluster.
func (c *Controller) remove(ctx context.Context, r *v1beta2.Runtime, provider infra.Provider) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(r, v1beta2.Finalizer) {
		return reconcile.Result{}, nil
	}
	kyma, err := c.removeKyma(ctx, r)
	if err != nil {
		return reconcile.Result{}, err
	}
	abandon := r.Spec.DeletionPolicy == v1beta2.DeletionAbandon
	if kyma && stays(r) && !abandon {
		return reconcile.Result{}, c.deleting(ctx, r, "the modules are removed from the cluster first")
	}
	c.o.Unwatch(client.ObjectKeyFromObject(r)) // a server does not end in peace while it is watched
	if !abandon {
		gone, err := provider.Delete(ctx, clusterOf(r))
		if err != nil {
			return reconcile.Result{}, fmt.Errorf("deleting the cluster: %w", err)
		}
		if !gone {
			return reconcile.Result{RequeueAfter: lookAgain}, c.deleting(ctx, r, "the cluster is being deleted")
		}
	}
	if kyma && abandon {
		c.o.Engine.Reset(client.ObjectKeyFromObject(r).String()) // its modules are forgotten, not removed
		return reconcile.Result{RequeueAfter: lookAgain}, c.deleting(ctx, r, "the Kyma lets go of the cluster first")
	}
	base := r.DeepCopy()
	controllerutil.RemoveFinalizer(r, v1beta2.Finalizer)
	if err := c.patchFinalizers(ctx, r, base); err != nil && !apierrors.IsNotFound(err) {
		return reconcile.Result{}, fmt.Errorf("removing the finalizer: %w", err)
	}
	return reconcile.Result{}, nil
}

// stays says whether the cluster outlives its Runtime, so that what is in it must be removed.
func stays(r *v1beta2.Runtime) bool { return r.Spec.Provider == v1beta2.ProviderBYOC }

// removeKyma deletes the Runtime's Kyma, and says whether it is still there.
func (c *Controller) removeKyma(ctx context.Context, r *v1beta2.Runtime) (there bool, err error) {
	var k v1beta2.Kyma
	err = c.o.Client.Get(ctx, client.ObjectKeyFromObject(r), &k)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil && k.DeletionTimestamp == nil {
		err = client.IgnoreNotFound(c.o.Client.Delete(ctx, &k, client.Preconditions{UID: &k.UID}))
	}
	if err != nil {
		return true, fmt.Errorf("deleting the Kyma: %w", err)
	}
	return true, nil
}

func (c *Controller) deleting(ctx context.Context, r *v1beta2.Runtime, message string) error {
	return c.patch(ctx, r, func(s *v1beta2.RuntimeStatus) {
		setReady(r, s, false, v1beta2.ReasonDeleting, message)
		s.State = v1beta2.StateDeleting
	})
}
