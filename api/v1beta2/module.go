package v1beta2

import "k8s.io/apimachinery/pkg/runtime"

// State says in one word how a component is.
type State string

// The states of a component.
const (
	// StateReady: applied to the end and every object is ready.
	StateReady State = "Ready"
	// StateProcessing: work is under way or objects are not ready yet.
	StateProcessing State = "Processing"
	// StateWarning: it works, but a person should look.
	StateWarning State = "Warning"
	// StateError: it cannot go on without a change by a person.
	StateError State = "Error"
	// StateDeleting: it is being removed.
	StateDeleting State = "Deleting"
	// StateWaiting: a fact that it needs is missing.
	StateWaiting State = "Waiting"
	// StateUnmanaged: it is left alone on its user's request.
	StateUnmanaged State = "Unmanaged"
)

// ModuleTemplateSpec describes one version of a module: where it comes from and how it is treated in a runtime.
type ModuleTemplateSpec struct {
	// ModuleName is the module's name in the catalogue.
	ModuleName string `json:"moduleName,omitempty"`
	// Version is the module's semantic version.
	Version string `json:"version,omitempty"`
	// Source is where the module comes from: exactly one of its fields is set.
	Source Source `json:"source"`
	// Values are passed to the Helm chart; a user's values are merged over them.
	Values *runtime.RawExtension `json:"values,omitempty"`
	// Data is the module's default custom resource: created once, after the module, removed first.
	Data *runtime.RawExtension `json:"data,omitempty"`
	// Manager names the custom resource whose state says whether the module is ready.
	Manager *Manager `json:"manager,omitempty"`
	// Health are readiness rules for kinds without a standard status.
	Health []HealthRule `json:"health,omitempty"`
	// Needs are the keys of facts without which the module cannot be installed.
	Needs []string `json:"needs,omitempty"`
	// Yield are fields that the module sets but never fights for.
	Yield []YieldRule `json:"yield,omitempty"`
	// Adopt lets the module take over objects that exist already and belong to no other control plane.
	Adopt bool `json:"adopt,omitempty"`
	// PerRuntime allows template functions that draw randomness; their results are keyed by the cluster, and Secrets
	// and ConfigMaps that use them are created once and kept.
	PerRuntime bool `json:"perRuntime,omitempty"`
}

// Source says where a module comes from: exactly one field is set.
type Source struct {
	// Chart is a Helm chart.
	Chart *SourceRef `json:"chart,omitempty"`
	// Kustomize is a kustomization.
	Kustomize *SourceRef `json:"kustomize,omitempty"`
	// Manifests are plain YAML files.
	Manifests *SourceRef `json:"manifests,omitempty"`
}

// SourceRef is the place of a source.
type SourceRef struct {
	// Path is a file or directory on the local disk or, where URL is set, a folder inside the archive.
	Path string `json:"path,omitempty"`
	// URL of a tar.gz archive or of a YAML file, http or https.
	URL string `json:"url,omitempty"`
	// Digest ("sha256:<hex>") that the source's content must have. Of an archive: of its bytes; of a directory: of
	// its tree (as `mothership render -o json` prints it).
	Digest string `json:"digest,omitempty"`
}

// Manager names a custom resource by kind and, where the module has several of the kind, by name.
type Manager struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// HealthRule decides readiness of the objects of one kind by CEL. Each expression sees the object as `self`.
type HealthRule struct {
	// Group and Kind of the objects.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Ready is a CEL expression that is true when the object is ready.
	Ready string `json:"ready"`
	// Failed is a CEL expression that is true when the object can no longer become ready by itself.
	Failed string `json:"failed,omitempty"`
}

// YieldRule names fields that are set at creation and left to others afterwards.
type YieldRule struct {
	// Group and Kind of the objects; an empty kind means every kind.
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind,omitempty"`
	// Name of the object; empty means every object of the kind.
	Name string `json:"name,omitempty"`
	// Paths are JSON pointers (RFC 6901); "*" stands for any key or list item.
	Paths []string `json:"paths"`
}
