package module

import (
	"context"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/values"
)

// readValues merges the user's values. They are read live and not kept. The wait for them is registered before they are read; a
// missing one makes the module wait.
func (c *Controller) readValues(ctx context.Context, r run, o *observation) error {
	r.Await(values.Facts(o.desired.Spec)...)
	found, err := values.Read(ctx, c.o.Live, o.name.Namespace, o.desired.Spec)
	if err != nil {
		return err
	}
	o.component.Values, o.missing = found.Values, append(o.missing, found.Missing...)
	if found.Problem != "" {
		o.problem = &catalog.Problem{State: v1beta2.StateError, Message: found.Problem}
	}
	return nil
}
