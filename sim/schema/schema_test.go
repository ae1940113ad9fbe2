package schema_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/sim/schema"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList}
  versions:
  - {name: v1alpha1, served: true, storage: false, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 5}
              colour: {type: string, default: red, enum: [red, blue]}
`

func TestCustomKind(t *testing.T) {
	t.Parallel()
	k, err := schema.Custom(parse(t, widgets))
	if err != nil {
		t.Fatal(err)
	}
	if !k.Status || !k.Namespaced || len(k.Versions) != 2 || k.Versions[0].Name != "v1" {
		t.Fatalf("%+v", k)
	}
	v := k.Version("v1")
	object := parse(t, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: a, namespace: b}, spec: {size: 3, unknown: 1}}")
	if err := v.Complete(object); err != nil {
		t.Fatal(err)
	}
	spec := object["spec"].(map[string]any)
	if spec["colour"] != "red" || spec["unknown"] != nil {
		t.Errorf("completed: %v", spec)
	}
	if errs := v.Validate(object, nil); len(errs) > 0 {
		t.Error(errs)
	}
	spec["size"], spec["colour"] = int64(9), "green"
	if errs := v.Validate(object, nil); len(errs) != 2 {
		t.Errorf("errors of two fields: %v", errs)
	}
}

func TestEveryBuiltInKindMakesObjects(t *testing.T) {
	t.Parallel()
	if n := len(schema.BuiltIn()); n < 50 {
		t.Fatalf("%d kinds", n)
	}
	for _, k := range schema.BuiltIn() {
		for _, v := range k.Versions {
			object := v.New()
			if err := v.Complete(object); err != nil {
				t.Errorf("%s: %v", k.Kind, err)
			}
			if _, err := v.Update(nil, object, "test", schema.Main); err != nil {
				t.Errorf("%s: %v", k.Kind, err)
			}
		}
	}
}
