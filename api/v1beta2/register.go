package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the custom resources.
var GroupVersion = schema.GroupVersion{Group: Group, Version: "v1beta2"}

// AddToScheme adds the custom resources' types to a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Kyma{}, &KymaList{}, &ModuleTemplate{}, &ModuleTemplateList{},
		&ModuleReleaseMeta{}, &ModuleReleaseMetaList{}, &Runtime{}, &RuntimeList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
