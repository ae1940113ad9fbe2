package informer

import (
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// share has an object keep what others say in the same words once. Names and identities of its own stay as they are. The object must not
// be known to anybody else yet.
func share(obj metav1.Object) {
	shareAll(obj.GetFinalizers())
	switch o := obj.(type) {
	case *v1beta2.Kyma:
		text(&o.TypeMeta.Kind, &o.TypeMeta.APIVersion, &o.Namespace)
		shareKyma(o)
	case *v1beta2.Runtime:
		text(&o.TypeMeta.Kind, &o.TypeMeta.APIVersion, &o.Namespace)
		shareRuntime(o)
	}
}

func shareKyma(k *v1beta2.Kyma) {
	k.Spec.Modules, k.Status.Modules, k.Status.Conditions = exact(k.Spec.Modules), exact(k.Status.Modules), exact(k.Status.Conditions)
	text(&k.Spec.Channel, &k.Status.ActiveChannel, &k.Status.ModulesReady)
	text(&k.Status.State)
	for i := range k.Spec.Modules {
		m := &k.Spec.Modules[i]
		text(&m.Name, &m.Channel, &m.Version)
		text(&m.CustomResourcePolicy)
		if m.Managed != nil {
			m.Managed = &booleans[index(*m.Managed)]
		}
	}
	for i := range k.Status.Modules {
		m := &k.Status.Modules[i]
		text(&m.Name, &m.Namespace, &m.Version, &m.Channel, &m.Message, &m.InputDigest, &m.BundleDigest)
		text(&m.State)
		shareAll(m.WaitingFor)
	}
	conditions(k.Status.Conditions)
}

func shareRuntime(r *v1beta2.Runtime) {
	r.Status.Facts, r.Status.Conditions = exact(r.Status.Facts), exact(r.Status.Conditions)
	text(&r.Spec.Provider)
	text(&r.Spec.DriftDetection)
	text(&r.Spec.DeletionPolicy)
	text(&r.Status.State)
	for i := range r.Status.Facts {
		f := &r.Status.Facts[i]
		text(&f.Key, &f.Writer)
		if f.Key == v1beta2.FactKubernetesVersion {
			text(&f.Value)
		}
	}
	conditions(r.Status.Conditions)
}

func conditions(list []metav1.Condition) {
	for i := range list {
		c := &list[i]
		text(&c.Type, &c.Reason, &c.Message)
		text(&c.Status)
	}
}

// exact is a slice without room for more: decoding leaves up to as much again.
func exact[T any](s []T) []T {
	if cap(s) == len(s) {
		return s
	}
	return append(make([]T, 0, len(s)), s...)
}

// text replaces strings by those that others have already: since the last garbage collection, that is, which drops the words that nobody
// holds by a handle, so that there are as many copies as there were collections while the fleet was listed.
func text[S ~string](list ...*S) {
	for _, s := range list {
		if *s != "" {
			*s = S(unique.Make(string(*s)).Value())
		}
	}
}

func shareAll(list []string) {
	for i := range list {
		text(&list[i])
	}
}

// booleans are what pointers to booleans lead to.
var booleans = [2]bool{false, true}

func index(b bool) int {
	if b {
		return 1
	}
	return 0
}
