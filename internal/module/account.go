package module

import (
	"context"
	"errors"
	"fmt"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/cluster"
)

var serviceAccounts = cluster.Resource{
	GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}, Kind: "ServiceAccount", Namespaced: true,
}

// delegate writes a module's objects as a service account of the runtime, over the runtime's own connection. It is safe for
// concurrent use.
//
// The inventory stays with the runtime's own identity: it says what the module has, so whoever may change it may have anything
// deleted that carries our label. So do reads, of which the module learns nothing: a verification is one list for all modules.
type delegate struct {
	as              cluster.Client
	own             cluster.Client
	namespace, name string
	// missing asks once whether the account is missing.
	missing func(context.Context) bool
}

var _ apply.Writer = (*delegate)(nil)

// account is a service account of the runtime as which objects are written.
func (r *Runtime) account(namespace, name string) *delegate {
	a := &delegate{
		as: r.remote.As("system:serviceaccount:" + namespace + ":" + name), own: r.remote, namespace: namespace, name: name,
	}
	var once sync.Once
	var missing bool
	a.missing = func(ctx context.Context) bool {
		once.Do(func() {
			err := a.own.Get(ctx, serviceAccounts, namespace, name, &metav1.PartialObjectMetadata{})
			missing = errors.Is(err, cluster.ErrNotFound)
		})
		return missing
	}
	return a
}

// Apply implements apply.Writer.
func (a *delegate) Apply(ctx context.Context, r cluster.Resource, namespace, name string, body []byte, o cluster.ApplyOptions, into any) error {
	return a.explain(ctx, attempt{"patch", r, namespace}, a.as.Apply(ctx, r, namespace, name, body, o, into))
}

// ApplyEach implements apply.Writer.
func (a *delegate) ApplyEach(ctx context.Context, objects []cluster.Application, answered cluster.Answered) {
	a.as.ApplyEach(ctx, objects, func(i int, answer *metav1.PartialObjectMetadata, err error) bool {
		return answered(i, answer, a.explain(ctx, attempt{"patch", objects[i].Resource, objects[i].Namespace}, err))
	})
}

// Patch implements apply.Writer.
func (a *delegate) Patch(ctx context.Context, r cluster.Resource, namespace, name string, pt types.PatchType, body []byte, o cluster.PatchOptions, into any) error {
	return a.explain(ctx, attempt{"patch", r, namespace}, a.as.Patch(ctx, r, namespace, name, pt, body, o, into))
}

// Delete implements apply.Writer.
func (a *delegate) Delete(ctx context.Context, r cluster.Resource, namespace, name string, o cluster.DeleteOptions) error {
	return a.explain(ctx, attempt{"delete", r, namespace}, a.as.Delete(ctx, r, namespace, name, o))
}

// attempt is what the account tried, in the words of roles; namespace is empty for what is cluster-wide.
type attempt struct {
	verb      string
	resource  cluster.Resource
	namespace string
}

// String says it for people.
func (t attempt) String() string {
	out := t.verb + " " + t.resource.GroupResource().String()
	if t.namespace == "" {
		return out
	}
	return out + " in namespace " + t.namespace
}

// explain says whose rights were not enough. The server's own words are not all there where the object is a Secret.
func (a *delegate) explain(ctx context.Context, t attempt, err error) error {
	if !errors.Is(err, cluster.ErrForbidden) {
		return err
	}
	return &AccountError{
		Namespace: a.namespace, Name: a.name, Missing: a.missing(ctx), Err: err,
		Impersonation: refusedImpersonation(t.resource, err), attempt: t,
	}
}

// refusedImpersonation says whether it was not the request that was refused, but to make it as the account: the server then names
// the account, of the core group or, since constrained impersonation, of its own.
func refusedImpersonation(r cluster.Resource, err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	d := status.Status().Details
	return d.Kind == serviceAccounts.Resource && (d.Group == authenticationv1.GroupName || r != serviceAccounts)
}

// AccountError says that the service account that a module is applied as may not do something. It matches cluster.ErrForbidden.
type AccountError struct {
	// Namespace and Name of the account.
	Namespace, Name string
	// Missing says that there is no such account.
	Missing bool
	// Impersonation says that the identity of the kubeconfig may not act as the account.
	Impersonation bool
	// Err is the server's refusal.
	Err error

	attempt attempt
}

// Error names the account, what it may not do, and gives the server's refusal.
func (e *AccountError) Error() string {
	missing := ""
	if e.Missing {
		missing = ", which does not exist,"
	}
	return fmt.Sprintf("ServiceAccount %s/%s%s may not %s: %v", e.Namespace, e.Name, missing, e.attempt, e.Err)
}

// Unwrap gives the server's refusal.
func (e *AccountError) Unwrap() error { return e.Err }

// Hint says what to do.
func (e *AccountError) Hint() string {
	switch {
	case e.Impersonation:
		return fmt.Sprintf("let the identity in the kubeconfig impersonate the serviceaccounts of namespace %s", e.Namespace)
	case e.Missing:
		return fmt.Sprintf("create ServiceAccount %s in namespace %s of the runtime, and bind a Role to it that allows this", e.Name, e.Namespace)
	case e.attempt.namespace == "":
		return fmt.Sprintf("bind a ClusterRole to ServiceAccount %s/%s that allows this, or leave the object out of the module", e.Namespace, e.Name)
	}
	return fmt.Sprintf("bind a Role in namespace %s to ServiceAccount %s/%s that allows this, or leave the object out of the module", e.attempt.namespace, e.Namespace, e.Name)
}
