// Package values reads the values that a user gives a module of a Kyma: those of valuesFrom in their order, then the inline ones.
//
// What SOPS has encrypted is decrypted when it is read, with the age keys of the Secret KeySecret in the same namespace: whoever
// may refer to values there may have them decrypted with the keys there, and with no others.
//
// What is read is confidential: neither errors nor problems quote any of it, and nothing is kept. The package may import the api
// module, internal/module for the rule by which values are merged, internal/sops, and controller-runtime's client.
package values

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/module"
)

// FactPrefix begins the facts that Fact makes.
const FactPrefix = "values/"

// Fact names a Secret or ConfigMap with values, as modules wait for it.
func Fact(kind, name string) string { return FactPrefix + strings.ToLower(kind) + "/" + name }

// KeySecret is the name of the Secret with age keys, in each key of its data that ends in KeySuffix.
const (
	KeySecret = "sops-age"
	KeySuffix = ".agekey"
)

// Facts are those of all that a module takes values from, and of the keys with which they may be encrypted. A nil module takes
// none.
func Facts(m *v1beta2.Module) []string {
	if m == nil || len(m.ValuesFrom) == 0 {
		return nil
	}
	var out []string
	for _, ref := range m.ValuesFrom {
		out = append(out, Fact(ref.Kind, ref.Name))
	}
	return append(out, Fact("Secret", KeySecret))
}

// Result is what Read found.
type Result struct {
	// Values of all layers; nil where there is nothing to have values.
	Values map[string]any
	// Missing are the facts of what does not exist (yet) and is not optional.
	Missing []string
	// Problem says what a person has to mend; empty if there is nothing.
	Problem string
}

// Read merges a module's values. Secrets and ConfigMaps are read in the given namespace. A nil module has none. An error is one of
// the reader's.
func Read(ctx context.Context, from client.Reader, namespace string, m *v1beta2.Module) (Result, error) {
	if m == nil {
		return Result{}, nil
	}
	out := Result{Values: map[string]any{}}
	keys := keyring{from: from, namespace: namespace}
	for i, ref := range m.ValuesFrom {
		text, found, err := readReference(ctx, from, namespace, ref)
		if err != nil {
			return Result{}, err
		}
		if !found && !ref.Optional {
			out.Missing = append(out.Missing, Fact(ref.Kind, ref.Name))
			continue
		}
		place := fmt.Sprintf("modules[%s].valuesFrom[%d]: key %s of %s %s", m.Name, i, keyOf(ref), ref.Kind, ref.Name)
		plain, problem, err := keys.decrypted(ctx, text)
		switch {
		case err != nil:
			return Result{}, err
		case problem == noKeys:
			if key := Fact("Secret", KeySecret); !slices.Contains(out.Missing, key) {
				out.Missing = append(out.Missing, key)
			}
			continue
		case problem != "":
			return Result{Problem: place + ": " + problem}, nil
		}
		var layer map[string]any
		if yaml.Unmarshal(plain, &layer) != nil { // its error could show a value
			return Result{Problem: place + " is not YAML with a map at its top"}, nil //nolint:nilerr // it is the user's to mend
		}
		out.Values = module.Merge(out.Values, layer)
	}
	if m.Values != nil && len(m.Values.Raw) > 0 {
		var inline map[string]any
		if json.Unmarshal(m.Values.Raw, &inline) != nil { // the API has only JSON
			return Result{Problem: fmt.Sprintf("modules[%s].values is not a map", m.Name)}, nil //nolint:nilerr // it is the user's to mend
		}
		out.Values = module.Merge(out.Values, inline)
	}
	return out, nil
}

func keyOf(ref v1beta2.ValuesReference) string { return cmp.Or(ref.Key, "values.yaml") }

// readReference reads one Secret or ConfigMap.
func readReference(ctx context.Context, from client.Reader, namespace string, ref v1beta2.ValuesReference) (text string, found bool, err error) {
	name := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	var secret corev1.Secret
	var config corev1.ConfigMap
	var obj client.Object = &config
	if ref.Kind == "Secret" {
		obj = &secret
	}
	err = from.Get(ctx, name, obj)
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
