package apply

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// usualKinds are those of which nearly every module has some: a set whose parent somebody deleted is looked for among them.
var usualKinds = []schema.GroupKind{
	{Kind: "ConfigMap"}, {Kind: "Secret"}, {Kind: "Service"}, {Kind: "ServiceAccount"},
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
	{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"},
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// rareKinds are looked through once something was found: other built-in kinds that modules have.
var rareKinds = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Kind: "Pod"}, {Kind: "Endpoints"}, {Kind: "LimitRange"},
	{Kind: "ResourceQuota"}, {Kind: "PodTemplate"}, {Kind: "ReplicationController"}, {Group: "apps", Kind: "ReplicaSet"},
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}, {Group: "networking.k8s.io", Kind: "Ingress"},
	{Group: "networking.k8s.io", Kind: "IngressClass"}, {Group: "policy", Kind: "PodDisruptionBudget"},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "scheduling.k8s.io", Kind: "PriorityClass"},
	{Group: "storage.k8s.io", Kind: "StorageClass"}, {Group: "storage.k8s.io", Kind: "CSIDriver"},
	{Group: "node.k8s.io", Kind: "RuntimeClass"}, {Group: "discovery.k8s.io", Kind: "EndpointSlice"},
	{Group: "coordination.k8s.io", Kind: "Lease"}, {Group: "apiregistration.k8s.io", Kind: "APIService"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"},
}

// recover makes the parent anew where somebody deleted it: from the members that carry the set's label. It finds built-in
// kinds and those that the set itself defines; custom resources of kinds that others define are not found.
func (s *Set) recover(ctx context.Context) error {
	found, err := s.haveMembers(ctx, usualKinds)
	if err != nil || len(found) == 0 {
		return err
	}
	more, err := s.haveMembers(ctx, rareKinds)
	if err != nil {
		return err
	}
	custom, err := s.definedKinds(ctx)
	if err != nil {
		return err
	}
	next := s.parent
	next.kinds = union(union(found, more), custom)
	return s.writeParent(ctx, next)
}

// haveMembers are the kinds among some of which the set has members.
func (s *Set) haveMembers(ctx context.Context, kinds []schema.GroupKind) ([]schema.GroupKind, error) {
	var mu sync.Mutex
	var found []schema.GroupKind
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.a.o.Parallel)
	for _, gk := range kinds {
		g.Go(func() error {
			r, err := s.t.Client.ResourceFor(ctx, gk)
			if errors.Is(err, cluster.ErrNoKind) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("mapping %s: %w", gk, err)
			}
			items, _, err := s.list(ctx, r, false)
			if err != nil || len(items) == 0 {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, gk)
			return nil
		})
	}
	return found, g.Wait()
}

// definedKinds are the kinds that the set's own definitions define.
func (s *Set) definedKinds(ctx context.Context) ([]schema.GroupKind, error) {
	items, err := s.t.Client.ListMeta(ctx, crds, cluster.ListOptions{LabelSelector: v1beta2.ApplySetPartOfLabel + "=" + s.setID})
	if err != nil {
		return nil, fmt.Errorf("listing definitions of module %s: %w", s.id, err)
	}
	var out []schema.GroupKind
	for i := range items {
		var crd crdStatus
		if err := s.t.Client.Get(ctx, crds, "", items[i].Name, &crd); err != nil {
			return nil, fmt.Errorf("reading %s: %w", bundle.Ref{Group: crds.Group, Kind: crds.Kind, Name: items[i].Name}, err)
		}
		out = append(out, schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind})
	}
	return out, nil
}
