package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Runtime is one cluster of the fleet.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=runtimes,singular=runtime,shortName=skr,categories=mothership
// +kubebuilder:printcolumn:name="Provider",type=string,JSONPath=`.spec.provider`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.facts[?(@.key=="kubernetes.version")].value`
// +kubebuilder:printcolumn:name="Drift",type=string,JSONPath=`.spec.driftDetection`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Runtime struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the cluster shall be.
	//
	// +required
	Spec RuntimeSpec `json:"spec"`
	// status is what the cluster is.
	//
	// +optional
	Status RuntimeStatus `json:"status,omitempty,omitzero"`
}

// RuntimeList is a list of Runtime.
//
// +kubebuilder:object:root=true
type RuntimeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Runtime `json:"items"`
}

// RuntimeSpec is what a cluster shall be.
//
// +kubebuilder:validation:XValidation:rule="self.provider != 'byoc' || has(self.kubeconfig)",message="a byoc runtime needs kubeconfig.secretRef: a Secret with the cluster's kubeconfig"
type RuntimeSpec struct {
	// provider that the cluster comes from: byoc is a cluster that exists already; local is a real kube-apiserver on the
	// control plane's own machine, with simulated nodes, for trying things out.
	//
	// +kubebuilder:validation:Enum=local;byoc
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the provider of a runtime cannot change: make another Runtime"
	Provider string `json:"provider"`
	// kubeconfig says where a byoc cluster's kubeconfig is. Other providers write one themselves.
	//
	// +optional
	Kubeconfig *KubeconfigSpec `json:"kubeconfig,omitempty"`
	// driftDetection says how changes behind our back are noticed: Poll compares on a schedule; Watch holds metadata watches,
	// for few clusters or one's own, and reacts at once. Default: Poll.
	//
	// +kubebuilder:validation:Enum=Poll;Watch
	// +kubebuilder:default=Poll
	// +optional
	DriftDetection DriftDetection `json:"driftDetection,omitempty"`
	// deletionPolicy says what becomes of the cluster, and of the modules in it, when the Runtime is deleted: Delete gives the
	// cluster back to its provider (a byoc cluster stays, its modules are removed); Abandon leaves everything as it is.
	// Default: Delete.
	//
	// +kubebuilder:validation:Enum=Delete;Abandon
	// +kubebuilder:default=Delete
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// KubeconfigSpec says where a kubeconfig is.
type KubeconfigSpec struct {
	// secretRef names a Secret in the Runtime's namespace and a key in it.
	SecretRef SecretKeyReference `json:"secretRef"`
}

// SecretKeyReference names a key of a Secret in the same namespace.
type SecretKeyReference struct {
	// name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// key in its data. Default: kubeconfig.
	//
	// +kubebuilder:default=kubeconfig
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$')",message="a key has letters, digits, dots, dashes and underscores only"
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// DriftDetection says how changes behind our back are noticed.
type DriftDetection string

// The ways to notice drift.
const (
	// DriftPoll: by comparing on a schedule, at least hourly.
	DriftPoll DriftDetection = "Poll"
	// DriftWatch: by metadata watches, at once.
	DriftWatch DriftDetection = "Watch"
)

// DeletionPolicy says what becomes of a cluster whose Runtime is deleted.
type DeletionPolicy string

// The deletion policies of a Runtime.
const (
	// DeletionDelete: it goes back to its provider.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionAbandon: everything stays as it is.
	DeletionAbandon DeletionPolicy = "Abandon"
)

// Providers of runtimes.
const (
	// ProviderLocal: a real API server on the control plane's own machine, with simulated nodes.
	ProviderLocal = "local"
	// ProviderBYOC: a cluster that exists already ("bring your own").
	ProviderBYOC = "byoc"
)

// RuntimeStatus is what a cluster is.
type RuntimeStatus struct {
	// state of the cluster in one word: Ready, Processing, Warning, Error or Deleting.
	//
	// +optional
	State State `json:"state,omitempty"`
	// observedGeneration is the generation of the spec that this status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are Ready, which says whether the cluster can be worked on.
	//
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// facts that are known about the cluster. Nothing confidential: whoever reads the Runtime reads them.
	//
	// +listType=map
	// +listMapKey=key
	// +kubebuilder:validation:MaxItems=128
	// +optional
	Facts []Fact `json:"facts,omitempty"`
}

// Fact is a named value about a runtime.
type Fact struct {
	// key of the fact, such as kubernetes.version.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?$')",message="the key of a fact has letters, digits, dots, dashes and underscores, such as module.istio"
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	Key string `json:"key"`
	// value of the fact.
	//
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
	// writer says who stated it.
	//
	// +kubebuilder:validation:MaxLength=128
	Writer string `json:"writer"`
	// observedAt is when the value last changed.
	ObservedAt metav1.Time `json:"observedAt"`
}

// Keys of facts that Mothership itself states.
const (
	// FactKubernetesVersion: the version of the runtime's API server, such as v1.36.3.
	FactKubernetesVersion = "kubernetes.version"
	// FactRuntimeUID: the UID of the runtime's kube-system namespace.
	FactRuntimeUID = "kubernetes.uid"
	// FactKubeconfigSecret: the Secret with the kubeconfig, as <name>/<key>, in the Runtime's namespace.
	FactKubeconfigSecret = "kubeconfig.secret"
	// FactKubeconfigVersion: the version of that Secret with which the cluster was last identified.
	FactKubeconfigVersion = "kubeconfig.version"
	// FactEndpoint: the address of the runtime's API server.
	FactEndpoint = "kubernetes.endpoint"
	// FactModulePrefix begins the key of the fact that a module is ready; its value is the module's version. It is derived from
	// the Kyma's status and not stored with the Runtime.
	FactModulePrefix = "module."
)
