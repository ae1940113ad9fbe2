package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ModuleReleaseMeta says which version of a module each channel has, or that the module is mandatory.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=modulereleasemetas,singular=modulereleasemeta,shortName=mrm,categories=mothership
// +kubebuilder:printcolumn:name="Regular",type=string,JSONPath=`.spec.channels[?(@.channel=="regular")].version`
// +kubebuilder:printcolumn:name="Fast",type=string,JSONPath=`.spec.channels[?(@.channel=="fast")].version`
// +kubebuilder:printcolumn:name="Mandatory",type=string,JSONPath=`.spec.mandatory.version`
// +kubebuilder:printcolumn:name="Channels",type=string,JSONPath=`.spec.channels`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name == self.spec.moduleName",fieldPath=".metadata",message="name must be the same as spec.moduleName"
type ModuleReleaseMeta struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says which versions are released.
	//
	// +required
	Spec ModuleReleaseMetaSpec `json:"spec"`
}

// ModuleReleaseMetaList is a list of ModuleReleaseMeta.
//
// +kubebuilder:object:root=true
type ModuleReleaseMetaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ModuleReleaseMeta `json:"items"`
}

// ModuleReleaseMetaSpec says which version of a module each channel has.
//
// +kubebuilder:validation:XValidation:rule="has(self.mandatory) != has(self.channels)",message="set either channels or mandatory"
type ModuleReleaseMetaSpec struct {
	// moduleName is the module's name in the catalogue; the object has the same name.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a module's name has lower-case letters, digits and dashes, and begins and ends with a letter or digit"
	// +kubebuilder:validation:MaxLength=63
	ModuleName string `json:"moduleName"`
	// channels and the version that each has.
	//
	// +listType=map
	// +listMapKey=channel
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Channels []ChannelVersion `json:"channels,omitempty"`
	// mandatory makes the module part of every runtime that the selector matches, whether its Kyma names it or not.
	//
	// +optional
	Mandatory *MandatoryVersion `json:"mandatory,omitempty"`
	// kymaSelector narrows the Kymas that may have the module (or, if it is mandatory, that get it) by their labels. Default:
	// all.
	//
	// +optional
	KymaSelector *metav1.LabelSelector `json:"kymaSelector,omitempty"`
	// ocmComponentName is accepted and ignored.
	//
	// +kubebuilder:validation:MaxLength=255
	// +optional
	OcmComponentName string `json:"ocmComponentName,omitempty"`
	// beta is accepted and ignored.
	//
	// +optional
	Beta bool `json:"beta,omitempty"`
	// internal is accepted and ignored.
	//
	// +optional
	Internal bool `json:"internal,omitempty"`
}

// ChannelVersion is a channel's version of a module.
type ChannelVersion struct {
	// channel is the channel's name.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]+$')",message="a channel's name has lower-case letters only"
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=32
	Channel string `json:"channel"`
	// version that the channel has.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="a version has three numbers, such as 1.2.3 or 1.2.3-rc.1"
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version"`
}

// MandatoryVersion is the version of a mandatory module.
type MandatoryVersion struct {
	// version that every runtime gets.
	//
	// +kubebuilder:validation:XValidation:rule="self.matches('^v?(0|[1-9][0-9]*)[.](0|[1-9][0-9]*)[.](0|[1-9][0-9]*)(-[0-9A-Za-z.-]+)?([+][0-9A-Za-z.-]+)?$')",message="a version has three numbers, such as 1.2.3 or 1.2.3-rc.1"
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version"`
}
