package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// hintOf is what an error says itself that a person can do about it, by a method Hint, or empty.
func hintOf(err error) string {
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		return hinted.Hint()
	}
	return ""
}

// hintFor says what a person can do about an error of the server, or is empty.
func hintFor(err error, step *Step) string {
	switch {
	case hintOf(err) != "":
		return hintOf(err)
	case errors.Is(err, cluster.ErrForbidden):
		return "give the identity in the kubeconfig the right to do this, or ask the admission policy's owner"
	case errors.Is(err, cluster.ErrInvalid) && step.live != nil && namesField(err):
		return "where the field cannot be changed in place, delete the object and install again: it is made anew"
	case errors.Is(err, cluster.ErrNotFound) && step.Ref.Namespace != "":
		return "ship the namespace with the module, or create it"
	}
	return ""
}

// namesField says whether the server's refusal is about a field, and not an admission policy's word.
func namesField(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	return slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "" })
}

// isNamespaceMissing says whether a 404 is about the namespace, not about the object.
func isNamespaceMissing(err error, namespace string) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	d := status.Status().Details
	return d != nil && d.Kind == "namespaces" && d.Name == namespace
}

// crdStatus is what is read of a CustomResourceDefinition that is not served.
type crdStatus struct {
	Spec struct {
		Group string `json:"group"`
		Names struct {
			Kind   string `json:"kind"`
			Plural string `json:"plural"`
		} `json:"names"`
		Scope    string `json:"scope"`
		Versions []struct {
			Name   string `json:"name"`
			Served bool   `json:"served"`
		} `json:"versions"`
	} `json:"spec"`
	Status struct {
		Conditions []struct {
			Type, Status, Reason, Message string
		} `json:"conditions"`
	} `json:"status"`
}

// whyNotServed is the error of a definition that did not come into service in time.
func (s *Set) whyNotServed(ctx context.Context, d bundle.Definition) error {
	var crd crdStatus
	if err := s.t.Client.Get(ctx, crds, "", d.CRD, &crd); err != nil {
		return fmt.Errorf("waiting until %s is served: %w", d.GroupVersionKind, err)
	}
	var reasons []string
	for _, c := range crd.Status.Conditions {
		if c.Status != "True" && c.Type != "Terminating" {
			reasons = append(reasons, fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Message))
		}
	}
	if len(reasons) == 0 {
		reasons = []string{"the server gives no reason"}
	}
	return notYet(ctx, fmt.Errorf("waiting until %s is served: %s: %w", d.GroupVersionKind, strings.Join(reasons, "; "), cluster.ErrTimeout))
}

// namesRefused is an error if another definition has the names of this one.
func (s *Set) namesRefused(ctx context.Context, d bundle.Definition) error {
	var crd crdStatus
	if err := s.t.Client.Get(ctx, crds, "", d.CRD, &crd); err != nil {
		return err
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == "NamesAccepted" && c.Status == "False" {
			return fmt.Errorf("its names are not accepted, so %s is never served: %s", d.GroupVersionKind, c.Message)
		}
	}
	return nil
}
