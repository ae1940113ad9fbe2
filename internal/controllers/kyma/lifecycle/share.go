package lifecycle

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
)

// Gained has a Kyma looked at that this replica works on from now on. It waits until the controller takes it, or the context ends.
func (c *Controller) Gained(ctx context.Context, k *v1beta2.Kyma) {
	select {
	case c.gained <- event.TypedGenericEvent[*v1beta2.Kyma]{Object: k}:
	case <-ctx.Done():
	}
}

// Lost drops what is kept of a Kyma that another replica works on from now on. Its cluster stays its own: others of ours must not
// take it.
func (c *Controller) Lost(ctx context.Context, k *v1beta2.Kyma) {
	name := client.ObjectKeyFromObject(k)
	c.o.Engine.Forget(name.String())
	c.o.Status.Forget(name)
	c.o.Suspects.Forget(name)
	if k.Status.RuntimeUID == "" {
		c.o.Claims.Release(name)
	} else {
		c.follow(ctx, k)
	}
	c.o.Forget(name)
}

// moved lets updates pass by which another replica's Kyma has got a cluster.
func (c *Controller) moved(e event.UpdateEvent) bool {
	before, wasKyma := e.ObjectOld.(*v1beta2.Kyma)
	after, isKyma := e.ObjectNew.(*v1beta2.Kyma)
	return c.o.Owns != nil && wasKyma && isKyma && before.Status.RuntimeUID != after.Status.RuntimeUID &&
		!c.o.Owns(client.ObjectKeyFromObject(after))
}

// follow books which cluster another replica's Kyma has. Where one of ours took the same cluster at the same time, the older one keeps
// it: the other replica, which sees the same, decides in the same way.
func (c *Controller) follow(ctx context.Context, k *v1beta2.Kyma) {
	name, uid := client.ObjectKeyFromObject(k), k.Status.RuntimeUID
	if uid == "" {
		return
	}
	ours := c.o.Claims.Claim(uid, name)
	if ours == name || !c.o.Owns(ours) {
		return
	}
	var other v1beta2.Kyma
	if c.o.Client.Get(ctx, ours, &other) != nil || !older(k, &other) {
		return
	}
	c.o.Claims.Release(ours)
	c.o.Claims.Claim(uid, name)
	for _, m := range catalog.Resolve(&other, c.o.Catalog.In(other.Namespace)) {
		key := fleet.ModuleKey(ours, m.Name)
		c.o.Suspects.Add(key) // else one that is ready would not look whose the cluster is
		c.o.Engine.Add(key, engine.PriorityTrigger)
	}
}

// older says which of two Kymas was made first.
func older(a, b *v1beta2.Kyma) bool {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order < 0
	}
	return nameOf(a).String() < nameOf(b).String()
}

func nameOf(k *v1beta2.Kyma) types.NamespacedName { return client.ObjectKeyFromObject(k) }
