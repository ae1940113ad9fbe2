package module

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	builtin "github.com/kyma-project/mothership/internal/module"
)

// ValuesFact names a Secret or ConfigMap with values, as modules wait for it.
func ValuesFact(kind, name string) string { return "values/" + strings.ToLower(kind) + "/" + name }

// readValues merges the user's values: those of valuesFrom in order, then the inline ones. They are read live and not kept.
// A missing one makes the module wait.
func (c *Controller) readValues(ctx context.Context, r run, o *observation) error {
	spec := o.desired.Spec
	if spec == nil {
		return nil
	}
	var facts []string
	for _, ref := range spec.ValuesFrom {
		facts = append(facts, ValuesFact(ref.Kind, ref.Name))
	}
	r.Await(facts...)
	values := map[string]any{}
	for i, ref := range spec.ValuesFrom {
		text, found, err := c.readReference(ctx, o.name.Namespace, ref)
		if err != nil {
			return err
		}
		if !found && !ref.Optional {
			o.missing = append(o.missing, ValuesFact(ref.Kind, ref.Name))
			continue
		}
		var layer map[string]any
		if yaml.Unmarshal([]byte(text), &layer) != nil { // its error could show a value
			o.problem = &catalog.Problem{State: v1beta2.StateError, Message: fmt.Sprintf(
				"modules[%s].valuesFrom[%d]: key %s of %s %s is not YAML with a map at its top", spec.Name, i, keyOf(ref), ref.Kind, ref.Name)}
			return nil
		}
		values = builtin.Merge(values, layer)
	}
	if spec.Values != nil && len(spec.Values.Raw) > 0 {
		var inline map[string]any
		if err := yaml.Unmarshal(spec.Values.Raw, &inline); err != nil {
			o.problem = &catalog.Problem{State: v1beta2.StateError, Message: fmt.Sprintf("modules[%s].values is not a map", spec.Name)}
			return nil
		}
		values = builtin.Merge(values, inline)
	}
	o.component.Values = values
	return nil
}

func keyOf(ref v1beta2.ValuesReference) string { return cmp.Or(ref.Key, "values.yaml") }

// readReference reads one Secret or ConfigMap.
func (c *Controller) readReference(ctx context.Context, namespace string, ref v1beta2.ValuesReference) (text string, found bool, err error) {
	name := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	var secret corev1.Secret
	var config corev1.ConfigMap
	var obj client.Object = &config
	if ref.Kind == "Secret" {
		obj = &secret
	}
	err = c.o.Live.Get(ctx, name, obj)
	if apierrors.IsNotFound(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("reading %s %s of valuesFrom: %w", ref.Kind, name, err)
	}
	if ref.Kind == "Secret" {
		data, found := secret.Data[keyOf(ref)]
		return string(data), found, nil
	}
	text, found = config.Data[keyOf(ref)]
	return text, found, nil
}
