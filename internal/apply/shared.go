package apply

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/bundle"
)

// probeShared decides what is to be done with a Namespace. It may be anybody's: its labels and annotations are applied under
// a manager of the set's own. Only what another set says differently is refused, or the two would fight for ever.
func (s *Set) probeShared(ctx context.Context, p *Plan, step *Step, live metav1.PartialObjectMetadata) error {
	reason, err := s.contradiction(ctx, step, &live)
	if err != nil {
		return &ObjectError{Object: step.Ref, Err: err}
	}
	if reason != "" {
		step.Action, step.Reason = ActionRefuse, reason
		step.Hint = "modules can share a namespace, but must say the same of it: remove the field from one of them"
		return nil
	}
	if ownEntry(&live, step.Object.Manager) == nil && live.DeletionTimestamp == nil {
		step.Action = ActionUpdate
		return nil
	}
	return s.compare(p, step, live)
}

// contradiction names a label or annotation that another set, which still exists, gives another value; or it is empty.
func (s *Set) contradiction(ctx context.Context, step *Step, live *metav1.PartialObjectMetadata) (string, error) {
	obj, err := decode(step.Object.Bytes)
	if err != nil {
		return "", err
	}
	var wanted struct {
		Metadata struct {
			Labels, Annotations map[string]string
		}
	}
	if err := decodeInto(step.Object.Bytes, &wanted); err != nil {
		return "", err
	}
	others := otherManagers(step)
	for _, path := range leaves(obj) {
		if len(path) != 3 || path[0].token != "metadata" {
			continue
		}
		want, have := wanted.Metadata.Labels, live.Labels
		if path[1].token == "annotations" {
			want, have = wanted.Metadata.Annotations, live.Annotations
		}
		key := path[2].token
		value, exists := have[key]
		if !exists || value == want[key] {
			continue
		}
		setID, ok := bundle.SharedBy(whoOwns(others, path))
		if !ok {
			continue
		}
		if module, err := s.moduleOf(ctx, setID); err != nil || module != "" {
			return fmt.Sprintf("%s is %q there, as %s says", path, value, module), err
		}
	}
	return "", nil
}

// moduleOf names the module of a set, or is empty if the set is gone.
func (s *Set) moduleOf(ctx context.Context, setID string) (string, error) {
	name, err := s.findSet(ctx, setID)
	if errors.Is(err, errNoSet) {
		return "", nil
	}
	return name, err
}
