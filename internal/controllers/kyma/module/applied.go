package module

import (
	"context"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/reconciler"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Applied are the modules of a Kyma that its status says are in the runtime as they should be, as input for a verification. Modules
// of reconcilers other than the built-in one are left out.
func (c *Controller) Applied(ctx context.Context, k *v1beta2.Kyma) ([]reconciler.Component, error) {
	var out []reconciler.Component
	for _, m := range catalog.Resolve(k, c.o.Catalog.In(k.Namespace)) {
		if m.Deleting || m.Unmanaged || m.Template == nil || m.Template.Spec.Reconciler != "" {
			continue
		}
		o, err := c.observe(ctx, nobody{fleet.ModuleKey(client.ObjectKeyFromObject(k), m.Name)})
		if err != nil {
			return nil, err
		}
		if next(o) == actSkip {
			out = append(out, o.component)
		}
	}
	return out, nil
}

// run is what an observation needs of the engine's run.
type run interface {
	Key() engine.Key
	Await(facts ...string)
}

// nobody looks without waiting for anything.
type nobody struct{ key engine.Key }

func (n nobody) Key() engine.Key { return n.key }
func (nobody) Await(...string)   {}
