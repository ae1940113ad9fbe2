package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/kyma-project/mothership/api/crd"
	"github.com/kyma-project/mothership/api/v1beta2"
)

// identity of a control plane.
type identity struct {
	// owner is what sets in runtimes are marked with: the UID of the namespace kube-system of the control plane's own cluster.
	owner string
	// key of input digests: nobody else can guess values from them.
	key []byte
}

// identitySecret holds the key of input digests. Without it, every digest changes: everything is looked at once, and nothing is
// applied that has not changed.
const identitySecret = "mothership-identity"

// prepare installs the definitions and finds out who this control plane is.
func (cp *ControlPlane) prepare(ctx context.Context, cfg *rest.Config) (identity, error) {
	ctx, cancel := context.WithTimeout(ctx, setupTimeout)
	defer cancel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return identity{}, fmt.Errorf("making the scheme: %w", err)
		}
	}
	c, err := client.New(cfg, client.Options{Scheme: scheme})
	if err != nil {
		return identity{}, fmt.Errorf("making a client: %w", err)
	}
	if err := ensureNamespace(ctx, c, cp.cfg.Namespace); err != nil {
		return identity{}, err
	}
	if err := installDefinitions(ctx, c); err != nil {
		return identity{}, err
	}
	return readIdentity(ctx, c, cp.cfg.Namespace)
}

// installs bounds how often a definition is looked at that another process installs at the same time.
const installs = 5

// installDefinitions applies the definitions of the custom resources and waits until they are served.
func installDefinitions(ctx context.Context, c client.Client) error {
	var names []string
	for _, data := range crd.All() {
		var def apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(data, &def); err != nil {
			return fmt.Errorf("reading an embedded definition: %w", err)
		}
		if err := installDefinition(ctx, c, &def); err != nil {
			return fmt.Errorf("installing definition %s: %w", def.Name, err)
		}
		names = append(names, def.Name)
	}
	return awaitDefinitions(ctx, c, names)
}

// installDefinition makes or changes one. Others may do the same.
func installDefinition(ctx context.Context, c client.Client, def *apiextensionsv1.CustomResourceDefinition) (err error) {
	for range installs {
		var live apiextensionsv1.CustomResourceDefinition
		err = c.Get(ctx, types.NamespacedName{Name: def.Name}, &live)
		switch {
		case apierrors.IsNotFound(err):
			err = c.Create(ctx, def.DeepCopy())
		case err == nil && !sameSpec(&live, def):
			live.Spec, live.Annotations = def.Spec, def.Annotations
			err = c.Update(ctx, &live)
		}
		if !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return err
}

// sameSpec compares the schemas, which the server does not change.
func sameSpec(a, b *apiextensionsv1.CustomResourceDefinition) bool {
	left, errA := yaml.Marshal(a.Spec.Versions)
	right, errB := yaml.Marshal(b.Spec.Versions)
	return errA == nil && errB == nil && string(left) == string(right)
}

// definitionPoll is the time between two looks at definitions that are not served yet.
const definitionPoll = 50 * time.Millisecond

func awaitDefinitions(ctx context.Context, c client.Client, names []string) error {
	tick := time.NewTicker(definitionPoll)
	defer tick.Stop()
	for len(names) > 0 { // ctx is its bound
		var def apiextensionsv1.CustomResourceDefinition
		if err := c.Get(ctx, types.NamespacedName{Name: names[0]}, &def); err != nil {
			return fmt.Errorf("reading definition %s: %w", names[0], err)
		}
		if established(&def) {
			names = names[1:]
			continue
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until definition %s is established: %w", names[0], context.Cause(ctx))
		case <-tick.C:
		}
	}
	return nil
}

func established(def *apiextensionsv1.CustomResourceDefinition) bool {
	for _, condition := range def.Status.Conditions {
		if condition.Type == apiextensionsv1.Established {
			return condition.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// readIdentity reads who this control plane is, and makes what is missing of it.
func readIdentity(ctx context.Context, c client.Client, namespace string) (identity, error) {
	var system corev1.Namespace
	if err := c.Get(ctx, types.NamespacedName{Name: metav1.NamespaceSystem}, &system); err != nil {
		return identity{}, fmt.Errorf("reading the control plane's identity: %w", err)
	}
	name := types.NamespacedName{Namespace: namespace, Name: identitySecret}
	for range 2 { // another process may make it at the same time
		var secret corev1.Secret
		err := c.Get(ctx, name, &secret)
		if err == nil && len(secret.Data["key"]) < minKey {
			return identity{}, fmt.Errorf("Secret %s has no key: delete it, and it is made anew", name) //nolint:staticcheck // it begins with a kind
		}
		if err == nil {
			return identity{owner: string(system.UID), key: secret.Data["key"]}, nil
		}
		if !apierrors.IsNotFound(err) {
			return identity{}, fmt.Errorf("reading the control plane's key: %w", err)
		}
		if err := makeKey(ctx, c, name); err != nil {
			return identity{}, err
		}
	}
	return identity{}, errors.New("the control plane's key is deleted as soon as it is made")
}

// minKey is the shortest key, in bytes.
const minKey = 32

func makeKey(ctx context.Context, c client.Client, name types.NamespacedName) error {
	key := make([]byte, minKey)
	if _, err := rand.Read(key); err != nil {
		return fmt.Errorf("drawing randomness: %w", err)
	}
	err := c.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}, Data: map[string][]byte{"key": key},
	})
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("writing the control plane's key: %w", err)
	}
	return nil
}

// addressMap is the ConfigMap that says where the control plane's HTTP address is.
const addressMap = "mothership"

// publish writes the address for whoever asks for explanations.
func publish(ctx context.Context, c client.Client, namespace, address string) error {
	m := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: addressMap},
		Data:       map[string]string{"address": address},
	}
	err := c.Create(ctx, m)
	if apierrors.IsAlreadyExists(err) {
		err = c.Update(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("publishing the address in ConfigMap %s/%s (see %s): %w", namespace, addressMap, v1beta2.Group, err)
	}
	return nil
}
