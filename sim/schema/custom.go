package schema

import (
	"encoding/json"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Custom makes the kind of a definition, which has been completed. Versions that are not served are left out.
func Custom(definition map[string]any) (*Kind, error) {
	var d v1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(definition, &d); err != nil {
		return nil, fmt.Errorf("reading a definition: %w", err)
	}
	names := d.Spec.Names
	k := &Kind{
		Group: d.Spec.Group, Kind: names.Kind, Plural: names.Plural, Singular: names.Singular, ListKind: names.ListKind,
		ShortNames: names.ShortNames, Categories: names.Categories, Namespaced: d.Spec.Scope == v1.NamespaceScoped,
		Generation: true, Custom: true,
	}
	for i := range d.Spec.Versions {
		if sub := d.Spec.Versions[i].Subresources; sub != nil {
			k.Status = k.Status || sub.Status != nil
			k.Scale = k.Scale || sub.Scale != nil
		}
	}
	for i := range d.Spec.Versions {
		if !d.Spec.Versions[i].Served {
			continue
		}
		v, err := newCustom(k, &d.Spec.Versions[i])
		if err != nil {
			return nil, fmt.Errorf("version %s of %s: %w", d.Spec.Versions[i].Name, d.Name, err)
		}
		k.Versions = append(k.Versions, v)
	}
	slices.SortStableFunc(k.Versions, func(a, b *Version) int { return -version.CompareKubeAwareVersionStrings(a.Name, b.Name) })
	return k, nil
}

// custom is what a version's schema is made into.
type custom struct {
	v          *Version
	structural *structural.Structural
	validator  *validate.SchemaValidator
}

func newCustom(k *Kind, in *v1.CustomResourceDefinitionVersion) (*Version, error) {
	v := &Version{Kind: k, Name: in.Name}
	c := &custom{v: v}
	converter := managedfields.NewDeducedTypeConverter()
	if in.Schema != nil && in.Schema.OpenAPIV3Schema != nil {
		var props apiextensions.JSONSchemaProps
		if err := v1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(in.Schema.OpenAPIV3Schema, &props, nil); err != nil {
			return nil, err
		}
		s, err := structural.NewStructural(&props)
		if err != nil {
			return nil, err
		}
		c.structural = s
		if converter, err = mergeSchema(v, s); err != nil {
			return nil, err
		}
		c.validator = validate.NewSchemaValidator(s.ToKubeOpenAPI(), nil, "", strfmt.Default)
		v.openAPI = published(in.Schema.OpenAPIV3Schema)
	}
	v.fields = newFields(v, converter)
	v.complete, v.validate = c.complete, c.validate
	v.newObject = func() map[string]any {
		return map[string]any{"apiVersion": v.APIVersion(), "kind": k.Kind, "metadata": map[string]any{}}
	}
	return v, nil
}

func published(in *v1.JSONSchemaProps) map[string]any {
	out := map[string]any{}
	if encoded, err := json.Marshal(in); err == nil {
		_ = json.Unmarshal(encoded, &out) // what was encoded a line above
	}
	return out
}

// complete prunes and fills in defaults. Metadata are brought into their canonical form.
func (c *custom) complete(object map[string]any) error {
	if c.structural != nil {
		pruning.Prune(object, c.structural, true)
		setSchemaDefaults(object, c.structural)
	}
	return nil
}

// setSchemaDefaults fills in what a schema says, within the objects that there are.
func setSchemaDefaults(value any, s *structural.Structural) {
	switch v := value.(type) {
	case map[string]any:
		for name := range s.Properties {
			p := s.Properties[name]
			now, ok := v[name]
			if (!ok || now == nil && !p.Nullable) && p.Default.Object != nil {
				v[name] = runtime.DeepCopyJSONValue(p.Default.Object)
			}
			setSchemaDefaults(v[name], &p)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
			for name := range v {
				if _, ok := s.Properties[name]; !ok {
					setSchemaDefaults(v[name], s.AdditionalProperties.Structural)
				}
			}
		}
	case []any:
		for i := range v {
			if s.Items != nil {
				setSchemaDefaults(v[i], s.Items)
			}
		}
	}
}

func (c *custom) validate(object, _ map[string]any) fieldErrors {
	errs := validateMeta(c.v, object)
	if c.validator == nil {
		return errs
	}
	for _, err := range c.validator.Validate(object).Errors {
		errs = append(errs, schemaError(err))
	}
	return errs
}

// mergeSchema makes a version's schema one for merging: with the metadata that every object has.
func mergeSchema(v *Version, s *structural.Structural) (managedfields.TypeConverter, error) {
	root := s.ToKubeOpenAPI()
	if root.Properties == nil {
		root.Properties = map[string]spec.Schema{}
	}
	return withMeta(v.GVK(), root)
}
