package lifecycle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/infra"
)

// writer is who states the facts of this package.
const writer = "mothership"

// maxMessage bounds a condition's message, in bytes.
const maxMessage = 1024

func setReady(r *v1beta2.Runtime, s *v1beta2.RuntimeStatus, ready bool, reason, message string) {
	status := metav1.ConditionFalse
	if ready {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: v1beta2.ConditionReady, Status: status, Reason: reason, Message: strings.ToValidUTF8(message[:min(len(message), maxMessage)], ""), ObservedGeneration: r.Generation,
	})
}

// setFact states a fact. The time is that of its last change.
func setFact(s *v1beta2.RuntimeStatus, key, value string) {
	for i := range s.Facts {
		if f := &s.Facts[i]; f.Key == key {
			if f.Value != value || f.Writer != writer {
				f.Value, f.Writer, f.ObservedAt = value, writer, metav1.Now()
			}
			return
		}
	}
	s.Facts = append(s.Facts, v1beta2.Fact{Key: key, Value: value, Writer: writer, ObservedAt: metav1.Now()})
	slices.SortFunc(s.Facts, func(a, b v1beta2.Fact) int { return cmp.Compare(a.Key, b.Key) })
}

// versionAnnotation on a kubeconfig's Secret is the provider's version of it.
const versionAnnotation = v1beta2.Group + "/kubeconfig-version"

// storeKubeconfig writes the provider's kubeconfig into its Secret, where that does not have it. A Secret of the name that is not
// the Runtime's is left alone.
func (c *Controller) storeKubeconfig(ctx context.Context, r *v1beta2.Runtime, state infra.State) error {
	ref := access.SecretOf(r)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: ref.Name}}
	seen := &metav1.PartialObjectMetadata{}
	seen.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := c.o.Client.Get(ctx, client.ObjectKeyFromObject(secret), seen)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the metadata of Secret %s: %w", ref.Name, err)
	}
	exists := err == nil
	if exists && !metav1.IsControlledBy(seen, r) {
		return fmt.Errorf("storing the kubeconfig: Secret %s exists and is not this Runtime's: delete or rename it", ref.Name)
	}
	if exists && seen.Annotations[versionAnnotation] == state.KubeconfigVersion {
		return nil
	}
	secret.Annotations = map[string]string{versionAnnotation: state.KubeconfigVersion}
	secret.Type = corev1.SecretTypeOpaque
	secret.Data = map[string][]byte{ref.Key: state.Kubeconfig}
	if err := controllerutil.SetControllerReference(r, secret, c.o.Client.Scheme()); err != nil {
		return fmt.Errorf("storing the kubeconfig: %w", err)
	}
	if exists {
		secret.ResourceVersion = seen.ResourceVersion
		err = c.o.Client.Update(ctx, secret)
	} else {
		err = c.o.Client.Create(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("storing the kubeconfig in Secret %s: %w", ref.Name, err)
	}
	return nil
}
