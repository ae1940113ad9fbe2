package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// instance is an object of the kind that a definition defines.
type instance struct {
	ref bundle.Ref
	// leaving says why it goes by itself: it is being deleted, or the garbage collector deletes it after its owner. Empty
	// for what somebody must delete.
	leaving string
}

func newInstance(r cluster.Resource, live *metav1.PartialObjectMetadata) instance {
	i := instance{ref: refOf(r, live)}
	switch {
	case live.DeletionTimestamp != nil:
		i.leaving = deleting(live)
	case len(live.OwnerReferences) > 0:
		i.leaving = "goes after its owner, " + live.OwnerReferences[0].Kind + " " + live.OwnerReferences[0].Name
	}
	return i
}

// deleting says that an object is being deleted, and what for it waits.
func deleting(live *metav1.PartialObjectMetadata) string {
	if len(live.Finalizers) > 0 {
		return fmt.Sprintf("is being deleted: waiting for finalizers %v", live.Finalizers)
	}
	return "is being deleted"
}

// instances are the objects of the kind that a definition defines. Those being deleted count.
func (s *Set) instances(ctx context.Context, crdName string) ([]instance, error) {
	var raw json.RawMessage
	err := s.t.Client.Get(ctx, crds, "", crdName, &raw)
	if errors.Is(err, cluster.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var crd crdStatus
	if err := decodeInto(raw, &crd); err != nil {
		return nil, err
	}
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		r := resourceOf(bundle.Definition{Resource: crd.Spec.Names.Plural, Namespaced: crd.Spec.Scope == "Namespaced"})
		r.Group, r.Version, r.Kind = crd.Spec.Group, v.Name, crd.Spec.Names.Kind
		items, err := s.t.Client.ListMeta(ctx, r, cluster.ListOptions{})
		if errors.Is(err, cluster.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("listing instances of %s: %w", crdName, err)
		}
		var out []instance
		for i := range items {
			out = append(out, newInstance(r, &items[i]))
		}
		return out, nil
	}
	return nil, nil
}

// protect keeps definitions of which there are instances other than those that are pruned, too.
func (s *Set) protect(ctx context.Context, p *Plan) error {
	going := map[bundle.Ref]bool{}
	for _, e := range p.Prune {
		going[e.Ref] = e.Action == ActionPrune
	}
	for _, e := range p.Prune {
		if err := s.protectInstances(ctx, e, going); err != nil {
			return &ObjectError{Object: e.Ref, Err: err}
		}
	}
	return nil
}

// protectInstances keeps a definition of which there are instances, not counting those that go: deleting it would delete
// them.
func (s *Set) protectInstances(ctx context.Context, e *Extra, going map[bundle.Ref]bool) error {
	if e.Action != ActionPrune || e.Ref.GroupKind() != crds.GVK().GroupKind() {
		return nil
	}
	instances, err := s.instances(ctx, e.Ref.Name)
	if err != nil {
		return err
	}
	for _, i := range instances {
		if !going[i.ref] {
			e.Action = ActionKeep
			e.Reason = "there are instances, such as " + i.ref.String() + ": delete them first"
			return nil
		}
	}
	return nil
}
