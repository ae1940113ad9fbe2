package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// State says in one word how a component is.
//
// +kubebuilder:validation:Enum=Ready;Processing;Warning;Error;Deleting;Waiting;Unmanaged
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

// ModuleTemplate is one version of a module in the catalogue, named <moduleName>-<version>.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=moduletemplates,singular=moduletemplate,shortName=mt,categories=mothership
// +kubebuilder:printcolumn:name="Module",type=string,JSONPath=`.spec.moduleName`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.spec.version`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.namespace`,priority=1
// +kubebuilder:printcolumn:name="Needs",type=string,JSONPath=`.spec.needs`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.moduleName + '-' + self.spec.version",fieldPath=".metadata",message="name must be <moduleName>-<version>",messageExpression="'name must be <moduleName>-<version>: ' + self.spec.moduleName + '-' + self.spec.version"
type ModuleTemplate struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec describes the version.
	//
	// +required
	Spec ModuleTemplateSpec `json:"spec"`
}

// ModuleTemplateList is a list of ModuleTemplate.
//
// +kubebuilder:object:root=true
type ModuleTemplateList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ModuleTemplate `json:"items"`
}

// DefaultModuleNamespace is the namespace in the runtime of modules whose template names none.
const DefaultModuleNamespace = "kyma-system"

// ModuleTemplateSpec describes one version of a module: where it comes from and how it is treated in a runtime.
type ModuleTemplateSpec struct {
	// moduleName is the module's name in the catalogue. It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a module's name has lower-case letters, digits and dashes, and begins and ends with a letter or digit"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="moduleName cannot change: make another ModuleTemplate"
	ModuleName string `json:"moduleName,omitempty"`
	// version is the module's semantic version. It is part of the template's name, so it is in lower case and without build
	// metadata (+...). It cannot change.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-[0-9a-z]([-.0-9a-z]*[0-9a-z])?)?$')",message="a template's version has three numbers and lower-case letters only, such as 1.2.3 or 1.2.3-rc.1"
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="version cannot change: make another ModuleTemplate"
	Version string `json:"version,omitempty"`
	// namespace in the runtime that the module is installed into. It is part of the module's identity in the runtime, so all
	// versions must agree on it. Default: kyma-system.
	//
	// +optional
	// +kubebuilder:default=kyma-system
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace's name has lower-case letters, digits and dashes, and begins and ends with a letter or digit"
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// reconciler names the component reconciler that drives the module. Default: the built-in one.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a reconciler's name has lower-case letters, digits and dashes, and begins and ends with a letter or digit"
	// +kubebuilder:validation:MaxLength=63
	Reconciler string `json:"reconciler,omitempty"`
	// source is where the module comes from: exactly one of its fields is set.
	//
	// +required
	Source Source `json:"source"`
	// values are passed to the Helm chart; a user's values are merged over them.
	//
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	Values *runtime.RawExtension `json:"values,omitempty"`
	// data is the module's default custom resource: created once, after the module, and removed before it.
	//
	// +optional
	// +kubebuilder:validation:EmbeddedResource
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:XValidation:rule="has(self.metadata) && has(self.metadata.name) && self.metadata.name != ''",message="data needs metadata.name: the default custom resource is found by it"
	Data *runtime.RawExtension `json:"data,omitempty"`
	// manager names the custom resource whose state says whether the module is ready.
	//
	// +optional
	Manager *Manager `json:"manager,omitempty"`
	// health are readiness rules for kinds without a standard status: CEL expressions that see the object as "self".
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Health []HealthRule `json:"health,omitempty"`
	// needs are the keys of facts without which the module cannot be installed, such as module.istio: that module is ready.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$')",message="the key of a fact has letters, digits, dots, dashes and underscores, such as module.istio"
	// +kubebuilder:validation:items:MaxLength=128
	Needs []string `json:"needs,omitempty"`
	// yield are fields that the module sets at creation but never fights for.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Yield []YieldRule `json:"yield,omitempty"`
	// adopt lets the module take over objects that exist already and belong to no other control plane.
	//
	// +optional
	Adopt bool `json:"adopt,omitempty"`
	// perRuntime allows template functions that draw randomness; their results are keyed by the cluster, and Secrets and
	// ConfigMaps that use them are created once and kept.
	//
	// +optional
	PerRuntime bool `json:"perRuntime,omitempty"`
	// serviceAccountName is a service account in the module's namespace of the runtime, as which the module's objects are written and
	// deleted: the module can do no more than that account may. It must exist; its rights are given in the runtime, by Roles. Default:
	// the identity of the runtime's kubeconfig, which must be allowed to impersonate the account otherwise.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="a service account's name has lower-case letters, digits, dots and dashes"
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// postRender is done to the objects after they were rendered, in addition to what the control plane does to all modules.
	// Where both say something different about the same, this counts.
	//
	// +optional
	PostRender *PostRender `json:"postRender,omitempty"`
}

// Source says where a module comes from: exactly one field is set.
//
// +kubebuilder:validation:XValidation:rule="[has(self.chart), has(self.kustomize), has(self.manifests)].filter(set, set).size() == 1",message="set exactly one of chart, kustomize and manifests"
// +kubebuilder:validation:XValidation:rule="!(has(self.kustomize) && has(self.kustomize.helm)) && !(has(self.manifests) && has(self.manifests.helm))",message="a Helm repository holds charts only: set chart"
type Source struct {
	// chart is a Helm chart.
	//
	// +optional
	Chart *SourceRef `json:"chart,omitempty"`
	// kustomize is a kustomization.
	//
	// +optional
	Kustomize *SourceRef `json:"kustomize,omitempty"`
	// manifests are plain YAML files.
	//
	// +optional
	Manifests *SourceRef `json:"manifests,omitempty"`
}

// SourceRef is the place of a source: exactly one of path (alone), url, git, helm and oci.
//
// +kubebuilder:validation:XValidation:rule="[has(self.path) || has(self.url), has(self.git), has(self.helm), has(self.oci)].filter(set, set).size() == 1",message="set exactly one of path, url, git, helm and oci (url may have a path)"
// +kubebuilder:validation:XValidation:rule="!(has(self.credentialsRef) || has(self.caBundle)) || has(self.url) || has(self.git) || has(self.helm) || has(self.oci)",message="credentialsRef and caBundle are for servers: a path on the local disk needs none"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || !has(self.verify.keyring) || has(self.helm) || has(self.oci) || has(self.url)",message="verify.keyring is for charts of helm, oci and url"
// +kubebuilder:validation:XValidation:rule="!has(self.verify) || !has(self.verify.cosignKey) || has(self.oci)",message="verify.cosignKey is for oci"
type SourceRef struct {
	// path is a file or directory on the local disk (in a control plane: on the controller's) or, where url is set, a folder
	// inside the archive.
	//
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self != '-'",message="a template cannot be read from standard input"
	Path string `json:"path,omitempty"`
	// url of a tar.gz or zip archive or of a YAML file, http or https. Nothing confidential: whoever reads the template reads it.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://.')",message="url begins with http:// or https://"
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// git is a folder of a Git repository.
	//
	// +optional
	Git *GitSource `json:"git,omitempty"`
	// helm is a chart of a Helm repository.
	//
	// +optional
	Helm *HelmSource `json:"helm,omitempty"`
	// oci is a Helm chart or an archive in an OCI registry.
	//
	// +optional
	OCI *OCISource `json:"oci,omitempty"`
	// digest ("sha256:" and 64 hex digits) that the source's content must have. Of an archive, a chart or an OCI layer: of its
	// bytes; of a directory or a Git folder: of its tree, as "mothership render -o json" prints it.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="a digest is sha256: and 64 hex digits in lower case"
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`
	// credentialsRef names a Secret in the control plane's namespace with what the server asks for: username and password, or
	// token, or ssh-privatekey and known_hosts, or .dockerconfigjson; beside them or alone, tls.crt and tls.key. The Secret has
	// the label operator.kyma-project.io/source-credentials: "true", by which its owner agrees.
	//
	// +optional
	CredentialsRef *SecretReference `json:"credentialsRef,omitempty"`
	// caBundle holds the certificates (PEM) of the authorities that may have signed the server's. Default: the system's.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN CERTIFICATE-----')",message="caBundle holds PEM certificates: -----BEGIN CERTIFICATE-----"
	// +kubebuilder:validation:MaxLength=65536
	CABundle string `json:"caBundle,omitempty"`
	// verify says by whose keys the source must be signed. Default: no signature is looked at.
	//
	// +optional
	Verify *SourceVerification `json:"verify,omitempty"`
}

// SourceVerification says by whose keys a source must be signed. Where both are set, both must hold.
//
// +kubebuilder:validation:XValidation:rule="has(self.keyring) || has(self.cosignKey)",message="set keyring, cosignKey or both"
type SourceVerification struct {
	// keyring holds OpenPGP public keys in ASCII armor (gpg --export --armor), one of which must have signed the chart's
	// provenance file (helm package --sign).
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN PGP PUBLIC KEY BLOCK-----')",message="keyring holds armored public keys: -----BEGIN PGP PUBLIC KEY BLOCK-----"
	// +kubebuilder:validation:MaxLength=65536
	Keyring string `json:"keyring,omitempty"`
	// cosignKey is the public key (PEM) that must have signed the OCI artifact (cosign sign --key). Transparency logs are not
	// asked: the key alone vouches.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.contains('-----BEGIN PUBLIC KEY-----')",message="cosignKey is a PEM public key: -----BEGIN PUBLIC KEY-----"
	// +kubebuilder:validation:MaxLength=8192
	CosignKey string `json:"cosignKey,omitempty"`
}

// GitSource is a folder of a Git repository at a commit. Submodules are refused.
type GitSource struct {
	// url of the repository, https or ssh, such as https://example.com/org/repo.git or ssh://git@example.com/org/repo.git.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^(https|ssh)://.')",message="the url of a Git repository begins with https:// or ssh:// (git@host:org/repo is ssh://git@host/org/repo)"
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// ref is a branch, a tag or a commit (40 hex digits). A name that is both a branch and a tag is given in full:
	// refs/heads/… or refs/tags/…. Default: the repository's default branch.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[^- ~^:?*[][^ ~^:?*[]*$') && !self.contains('..')",message="ref is the name of a branch or tag, or a commit of 40 hex digits"
	// +kubebuilder:validation:MaxLength=256
	Ref string `json:"ref,omitempty"`
	// path of the folder in the repository. Default: the top.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
}

// HelmSource is a chart of a Helm repository.
type HelmSource struct {
	// repository is the address whose index.yaml lists the chart, http or https.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://.')",message="a Helm repository begins with http:// or https:// (a chart in a registry is set as oci)"
	// +kubebuilder:validation:MaxLength=2048
	Repository string `json:"repository,omitempty"`
	// chart is the chart's name in the repository.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$')",message="a chart's name has letters, digits, dots, dashes and underscores"
	// +kubebuilder:validation:MaxLength=250
	Chart string `json:"chart,omitempty"`
	// version of the chart, or a range such as ~1.2 or >=1.2.0 <2, of which the highest is taken. Default: the highest that is
	// no pre-release.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`
}

// OCISource is an artifact in an OCI registry: a Helm chart, or one layer that is a tar.gz archive. Of an index, it is the only
// manifest, or the only one that is of no platform.
//
// +kubebuilder:validation:XValidation:rule="has(self.tag) != has(self.digest)",message="set exactly one of tag and digest"
type OCISource struct {
	// url of the repository without a tag, such as oci://registry.example.com/charts/web.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^oci://[^/@]+/[^@:]+$')",message="url is oci://HOST/REPOSITORY, without tag or digest"
	// +kubebuilder:validation:MaxLength=2048
	URL string `json:"url,omitempty"`
	// tag of the artifact.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_][-.A-Za-z0-9_]*$')",message="a tag has letters, digits, dots, dashes and underscores"
	// +kubebuilder:validation:MaxLength=128
	Tag string `json:"tag,omitempty"`
	// digest ("sha256:" and 64 hex digits) of the artifact's manifest.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^sha256:[0-9a-f]{64}$')",message="a digest is sha256: and 64 hex digits in lower case"
	// +kubebuilder:validation:MaxLength=71
	Digest string `json:"digest,omitempty"`
	// path of the folder inside the archive. Default: its only folder, or its top.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path,omitempty"`
}

// SecretReference names a Secret in the control plane's namespace.
type SecretReference struct {
	// name of the Secret.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$')",message="a Secret's name has lower-case letters, digits, dots and dashes"
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// Manager names a custom resource by kind and, where the module has several of the kind, by name.
type Manager struct {
	// group of the custom resource.
	//
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group"`
	// version of its API that is read.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Version string `json:"version"`
	// kind of the custom resource.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// namespace of the custom resource. Default: the module's.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// name of the custom resource. Default: the first that is found.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// HealthRule decides readiness of the objects of one kind by CEL. Each expression sees the object as "self".
type HealthRule struct {
	// group of the objects. Default: the core group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// kind of the objects.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// ready is a CEL expression that is true when the object is ready.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Ready string `json:"ready"`
	// failed is a CEL expression that is true when the object can no longer become ready by itself.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Failed string `json:"failed,omitempty"`
}

// YieldRule names fields that are set at creation and left to others afterwards.
type YieldRule struct {
	// group of the objects. Default: the core group.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// kind of the objects. Default: every kind.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`
	// name of the object. Default: every object of the kind.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// paths are JSON pointers (RFC 6901) to the fields; "*" stands for any key or list item.
	//
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:XValidation:rule="self.startsWith('/')",message="a JSON pointer begins with /"
	// +kubebuilder:validation:items:MaxLength=1024
	Paths []string `json:"paths"`
}
