package apply

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/cluster"
)

// deployers are field managers that install objects, as opposed to controllers that work on them: what they own is taken
// over, so that fields which the module does not set are removed instead of being left behind.
var deployers = map[string]bool{
	"helm": true, "Helm": true, "helm-controller": true, "kustomize-controller": true,
	"kubectl": true, "kubectl-client-side-apply": true, "kubectl-create": true, "kubectl-edit": true,
	"kubectl-patch": true, "kubectl-replace": true, "kubectl-label": true, "kubectl-annotate": true,
	"argocd-controller": true, "argocd-application-controller": true, "fleetagent": true, "before-first-apply": true,
	"terraform": true, "pulumi-kubernetes": true,
}

// maxAdoptTries bounds how often an object is read again because it changed while it was taken over.
const maxAdoptTries = 5

// adopt makes us the owner of what an object's former deployer owns, guarded by the resource version. The method is that
// of client-go's csaupgrade.
func (s *Set) adopt(ctx context.Context, step *Step) error {
	for range maxAdoptTries {
		patch, err := adoptionPatch(step.live)
		if err != nil || patch == nil {
			return err
		}
		err = s.t.Writer.Patch(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, types.JSONPatchType, patch,
			cluster.PatchOptions{Manager: v1beta2.FieldManager}, step.live)
		if !errors.Is(err, cluster.ErrConflict) && !errors.Is(err, cluster.ErrInvalid) {
			return err
		}
		fresh := &metav1.PartialObjectMetadata{}
		if err := s.t.Client.Get(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, fresh); err != nil {
			return err
		}
		if fresh.ResourceVersion == step.live.ResourceVersion {
			return err
		}
		step.live = fresh
	}
	return fmt.Errorf("taking the object over: it changed %d times meanwhile: %w", maxAdoptTries, cluster.ErrConflict)
}

// adoptionPatch moves the deployers' entries into one Apply entry of ours; nil where there are none.
func adoptionPatch(live *metav1.PartialObjectMetadata) ([]byte, error) {
	own := fields{}
	var rest []metav1.ManagedFieldsEntry
	var taken *metav1.ManagedFieldsEntry
	for i := range live.ManagedFields {
		e := live.ManagedFields[i]
		ours := e.Manager == v1beta2.FieldManager && e.Operation == metav1.ManagedFieldsOperationApply
		if e.Subresource != "" || (!deployers[e.Manager] && !ours) {
			rest = append(rest, e)
			continue
		}
		tree, err := parseFields(e.FieldsV1)
		if err != nil {
			return nil, err
		}
		own.merge(tree)
		if taken == nil || !ours {
			taken = &e
		}
	}
	if taken == nil {
		return nil, nil
	}
	raw, err := json.Marshal(own)
	if err != nil {
		return nil, fmt.Errorf("encoding managedFields: %w", err)
	}
	entry := metav1.ManagedFieldsEntry{
		Manager: v1beta2.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
		APIVersion: taken.APIVersion, Time: taken.Time, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw)),
	}
	return encode([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": append(rest, entry)},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.ResourceVersion},
	})
}

// merge adds all of another tree.
func (f fields) merge(other fields) {
	for name, child := range other {
		if mine, ok := f[name]; ok && mine != nil {
			mine.merge(child)
			continue
		}
		f[name] = fields{}
		f[name].merge(child)
	}
}

// yieldedBeforeUs are the fields of an object that others own already and that the module never fights for.
func (s *Set) yieldedBeforeUs(p *Plan, step *Step) []fieldPath {
	obj, err := decode(step.Object.Bytes)
	if err != nil {
		return nil
	}
	others := otherManagers(step)
	var out []fieldPath
	for _, path := range leaves(obj) {
		if (p.rules.yields(step.Ref, path) || scaled(step.live, path)) && whoOwns(others, path) != "" {
			out = append(out, path)
		}
	}
	return out
}
