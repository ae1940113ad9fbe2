package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Kyma is what one runtime shall have: a channel and a list of modules. It has the name and namespace of its Runtime.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=kymas,singular=kyma,shortName=ky,categories=mothership
// +kubebuilder:printcolumn:name="Channel",type=string,JSONPath=`.spec.channel`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.modulesReady`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Kyma struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the runtime shall have.
	//
	// +required
	Spec KymaSpec `json:"spec"`
	// status is what the runtime has.
	//
	// +optional
	Status KymaStatus `json:"status,omitempty,omitzero"`
}

// KymaList is a list of Kyma.
//
// +kubebuilder:object:root=true
type KymaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Kyma `json:"items"`
}

// KymaSpec is the desired state of a runtime's modules.
type KymaSpec struct {
	// channel is the release channel that versions of modules are taken from, unless a module says otherwise.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+$')",message="a channel's name has lower-case letters only"
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=32
	Channel string `json:"channel"`
	// modules that the runtime shall have, besides the mandatory ones.
	//
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=1024
	// +optional
	Modules []Module `json:"modules,omitempty"`
	// suspend leaves everything in the runtime as it is: nothing is installed, repaired or removed until it is false again.
	//
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// skipMaintenanceWindows is accepted and ignored: there are no maintenance windows yet.
	//
	// +optional
	SkipMaintenanceWindows bool `json:"skipMaintenanceWindows,omitempty"`
}

// Module is one module that a runtime shall have.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.channel) && has(self.version))",message="set channel or version, not both"
type Module struct {
	// name of the module in the catalogue (the moduleName of its ModuleTemplates).
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a module's name has lower-case letters, digits and dashes, and begins and ends with a letter or digit"
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// channel that the module's version is taken from. Default: the Kyma's channel.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+$')",message="a channel's name has lower-case letters only"
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Channel string `json:"channel,omitempty"`
	// version to install, instead of a channel's. A version below the installed one is refused.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="a version has three numbers, such as 1.2.3 or 1.2.3-rc.1"
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Version string `json:"version,omitempty"`
	// managed says whether the module is looked after. If false, it is left as it is: neither changed, repaired nor removed.
	// Default: true.
	//
	// +kubebuilder:default=true
	// +optional
	Managed *bool `json:"managed,omitempty"`
	// customResourcePolicy says whether the module's default custom resource is created with the module and deleted with it.
	// Default: CreateAndDelete.
	//
	// +kubebuilder:default=CreateAndDelete
	// +kubebuilder:validation:Enum=CreateAndDelete;Ignore
	// +optional
	CustomResourcePolicy CustomResourcePolicy `json:"customResourcePolicy,omitempty"`
	// values for the module's Helm chart, over those of the template. Nothing confidential: use valuesFrom.
	//
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Values *runtime.RawExtension `json:"values,omitempty"`
	// valuesFrom are Secrets and ConfigMaps in the Kyma's namespace with values as YAML, each over the one before it; values
	// go over all of them.
	//
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ValuesFrom []ValuesReference `json:"valuesFrom,omitempty"`
	// controller is accepted and ignored.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	ControllerName string `json:"controller,omitempty"`
	// remoteModuleTemplateRef is accepted and ignored.
	//
	// +kubebuilder:validation:MaxLength=512
	// +optional
	RemoteModuleTemplateRef string `json:"remoteModuleTemplateRef,omitempty"`
}

// CustomResourcePolicy says what becomes of a module's default custom resource.
type CustomResourcePolicy string

// The policies of a module's default custom resource.
const (
	// CreateAndDelete: created once with the module, deleted before it.
	CreateAndDelete CustomResourcePolicy = "CreateAndDelete"
	// IgnoreCustomResource: left to the user.
	IgnoreCustomResource CustomResourcePolicy = "Ignore"
)

// ValuesReference names a Secret or ConfigMap with values, as YAML.
type ValuesReference struct {
	// kind of the object.
	//
	// +kubebuilder:validation:Enum=Secret;ConfigMap
	Kind string `json:"kind"`
	// name of the object, in the Kyma's namespace.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in its data. Default: values.yaml.
	//
	// +kubebuilder:default=values.yaml
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="a key has letters, digits, dots, dashes and underscores only"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
	// optional says what happens while the object or key is missing: true goes on without its values, false waits for it.
	//
	// +optional
	Optional bool `json:"optional,omitempty"`
}

// KymaStatus is what a runtime has.
type KymaStatus struct {
	// state of all modules in one word: Error, Warning, Deleting, Processing or Ready, the first that holds of any.
	//
	// +optional
	State State `json:"state,omitempty"`
	// observedGeneration is the generation of the spec that this status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// activeChannel is the channel that is in force.
	//
	// +optional
	ActiveChannel string `json:"activeChannel,omitempty"`
	// runtimeUID is the identity of the cluster that the modules were installed into: the UID of its kube-system namespace.
	//
	// +optional
	RuntimeUID string `json:"runtimeUID,omitempty"`
	// modulesReady is how many modules are ready, of how many, such as 5/6: for people.
	//
	// +optional
	ModulesReady string `json:"modulesReady,omitempty"`
	// conditions are Ready, which says whether all modules are, and RuntimeReachable, which says whether the runtime answers.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// modules that the runtime has or shall have, by name. They have one writer, so that who owns which field of which is not recorded.
	//
	// +listType=atomic
	// +optional
	Modules []ModuleStatus `json:"modules,omitempty"`
}

// ModuleStatus is what a runtime has of one module.
type ModuleStatus struct {
	// name of the module.
	Name string `json:"name"`
	// namespace in the runtime that the module is installed into.
	//
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// channel that the version comes from; empty where a version was asked for.
	//
	// +optional
	Channel string `json:"channel,omitempty"`
	// version that is installed, or being installed.
	//
	// +optional
	Version string `json:"version,omitempty"`
	// state of the module in one word: Ready, Processing, Warning, Error, Deleting, Waiting or Unmanaged.
	State State `json:"state"`
	// message says why the module is not Ready.
	//
	// +optional
	Message string `json:"message,omitempty"`
	// waitingFor are the facts that the module waits for.
	//
	// +listType=set
	// +optional
	WaitingFor []string `json:"waitingFor,omitempty"`
	// inputDigest names all that went into what was applied to the end: the same input needs nothing to be done.
	//
	// +optional
	InputDigest string `json:"inputDigest,omitempty"`
	// bundleDigest names the objects that were applied to the end.
	//
	// +optional
	BundleDigest string `json:"bundleDigest,omitempty"`
	// revision is what the source of what was applied to the end was resolved to, such as main@sha1:… of a branch, or its digest.
	//
	// +optional
	Revision string `json:"revision,omitempty"`
	// lastTransitionTime is when the state last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitempty,omitzero"`
}
