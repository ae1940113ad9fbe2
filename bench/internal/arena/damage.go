package arena

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/kyma-project/mothership/bench/internal/workload"
)

// damageManager is the field manager of a person who edits by hand.
const damageManager = "kubectl-edit"

var errNoDeployment = errors.New("the module has no Deployment to damage")

// scaled is what is read of a Deployment.
type scaled struct {
	Spec struct {
		Replicas int `json:"replicas"`
	} `json:"spec"`
}

// Damage changes the number of replicas of the module's first Deployment, as a person would.
func (a *Arena) Damage(ctx context.Context, r *workload.Rendered) error {
	o, want, err := target(r)
	if err != nil {
		return err
	}
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, want+2)
	if _, err := a.call(ctx, http.MethodPatch, o.Path+"?fieldManager="+damageManager, patch, nil); err != nil {
		return fmt.Errorf("damaging %s: %w", o.Path, err)
	}
	return nil
}

// Repaired says whether what Damage changed is as the module says.
func (a *Arena) Repaired(ctx context.Context, r *workload.Rendered) (bool, error) {
	o, want, err := target(r)
	if err != nil {
		return false, err
	}
	var live scaled
	_, err = a.call(ctx, http.MethodGet, o.Path, "", &live)
	return live.Spec.Replicas == want, err
}

// target is the Deployment to damage, and the replicas that the module gives it.
func target(r *workload.Rendered) (workload.Object, int, error) {
	for _, o := range r.Objects {
		if o.Kind != "Deployment.apps" {
			continue
		}
		var s scaled
		err := json.Unmarshal(o.Body, &s)
		return o, s.Spec.Replicas, err
	}
	return workload.Object{}, 0, errNoDeployment
}
