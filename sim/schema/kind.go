package schema

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kind is a resource type: what all its versions share. It is immutable.
type Kind struct {
	Group, Kind, Plural, Singular string
	ListKind                      string
	ShortNames, Categories        []string
	Namespaced                    bool
	// Status and Scale are sub-resources.
	Status, Scale bool
	// Generation says that changes of the specification are counted.
	Generation bool
	// Custom says that it comes from a CustomResourceDefinition.
	Custom bool
	// Versions that are served, the preferred one first.
	Versions []*Version
}

// GroupResource is its name in tables: "deployments.apps".
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Plural}
}

// GroupKind is its name in messages.
func (k *Kind) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// Version finds a served version, or nil.
func (k *Kind) Version(name string) *Version {
	for _, v := range k.Versions {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// Version is one version of a kind. It is safe for concurrent use.
type Version struct {
	*Kind
	// Name of the version, "v1".
	Name string

	fields    *fields
	complete  func(map[string]any) error
	validate  func(object, old map[string]any) field.ErrorList
	newObject func() map[string]any
	openAPI   map[string]any
}

// GVK is the group, version and kind.
func (v *Version) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: v.Group, Version: v.Name, Kind: v.Kind.Kind}
}

// APIVersion is "apps/v1".
func (v *Version) APIVersion() string { return v.GVK().GroupVersion().String() }

// New is an object without anything in it, to be changed by the caller.
func (v *Version) New() map[string]any { return v.newObject() }

// Complete drops what the version does not know, brings values into their canonical form and fills in defaults. It changes the
// object. The error says which field does not fit.
func (v *Version) Complete(object map[string]any) error {
	if err := v.complete(object); err != nil {
		return fmt.Errorf("%s in version %q cannot be handled as a %s: %w", v.Kind.Kind, v.Name, v.Kind.Kind, err)
	}
	return nil
}

// Validate says what is wrong with an object, and with the change from the old one, which is nil at creation.
func (v *Version) Validate(object, old map[string]any) field.ErrorList {
	return v.validate(object, old)
}

// OpenAPI is the schema that is published for the version, or nil.
func (v *Version) OpenAPI() map[string]any { return v.openAPI }

// singular is the name for one, where a definition gives none.
func singular(kind string) string { return strings.ToLower(kind) }
