package bundle

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/internal/kind"
)

// Stage orders the objects of a bundle: stages are applied one after the other, the objects of a stage in parallel.
type Stage int

// The stages.
const (
	// StageDefinitions: Namespaces and CustomResourceDefinitions. It ends when each definition is served.
	StageDefinitions Stage = 1 + iota
	// StageCluster: cluster-wide configuration, identities, RBAC and classes.
	StageCluster
	// StageBuiltIn: all other built-in kinds.
	StageBuiltIn
	// StageCustom: custom resources.
	StageCustom
	// StageAdmission: webhooks, admission policies and APIServices, which could refuse all that came before.
	StageAdmission
)

// String is the stage's name for people.
func (s Stage) String() string {
	switch s {
	case StageDefinitions:
		return "definitions"
	case StageCluster:
		return "cluster"
	case StageBuiltIn:
		return "built-in"
	case StageCustom:
		return "custom"
	case StageAdmission:
		return "admission"
	}
	return "unknown"
}

// StageOf is the stage of a kind.
func StageOf(gk schema.GroupKind) Stage {
	if s, ok := stages[gk]; ok {
		return s
	}
	switch {
	case gk.Group == "admissionregistration.k8s.io":
		return StageAdmission
	case kind.BuiltIn(gk.Group):
		return StageBuiltIn
	}
	return StageCustom
}

var stages = map[schema.GroupKind]Stage{
	{Kind: "Namespace"}: StageDefinitions,
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: StageDefinitions,

	{Kind: "ServiceAccount"}:                                         StageCluster,
	{Kind: "ResourceQuota"}:                                          StageCluster,
	{Kind: "LimitRange"}:                                             StageCluster,
	{Kind: "PersistentVolume"}:                                       StageCluster,
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:               StageCluster,
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:        StageCluster,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:        StageCluster,
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}: StageCluster,
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:              StageCluster,
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                  StageCluster,
	{Group: "storage.k8s.io", Kind: "CSIDriver"}:                     StageCluster,
	{Group: "networking.k8s.io", Kind: "IngressClass"}:               StageCluster,
	{Group: "node.k8s.io", Kind: "RuntimeClass"}:                     StageCluster,

	{Group: "apiregistration.k8s.io", Kind: "APIService"}: StageAdmission,
}
