// Package values has modules looked at when a Secret or ConfigMap that they take values from comes, changes or goes.
//
// Only metadata is watched: the values themselves are read live when they are used, and kept nowhere. The package may import what
// is below the controllers.
package values

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	valuesof "github.com/kyma-project/mothership/internal/values"
)

// Options of New. All are needed.
type Options struct {
	Cache  client.Reader
	Engine *fleet.Queue
	Log    logr.Logger
}

// Controller follows the objects that values are taken from.
type Controller struct{ o Options }

// New makes a Controller.
func New(o Options) *Controller { return &Controller{o: o} }

// index finds Kymas by what they take values from.
const index = "spec.modules.valuesFrom"

// SetupWithManager registers with the manager's informers.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	ctx := context.Background()
	if err := mgr.GetFieldIndexer().IndexField(ctx, &v1beta2.Kyma{}, index, references); err != nil {
		return fmt.Errorf("indexing valuesFrom: %w", err)
	}
	for _, kind := range []string{"Secret", "ConfigMap"} {
		meta := &metav1.PartialObjectMetadata{}
		meta.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
		informer, err := mgr.GetCache().GetInformer(ctx, meta)
		if err != nil {
			return fmt.Errorf("watching %ss: %w", kind, err)
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, first bool) {
				if !first { // at a start everything is looked at anyway
					c.changed(kind, obj)
				}
			},
			UpdateFunc: func(old, obj any) {
				if versionOf(old) != versionOf(obj) {
					c.changed(kind, obj)
				}
			},
			DeleteFunc: func(obj any) {
				if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
					obj = unknown.Obj
				}
				c.changed(kind, obj)
			},
		})
		if err != nil {
			return fmt.Errorf("watching %ss: %w", kind, err)
		}
	}
	return nil
}

func versionOf(obj any) string {
	if meta, ok := obj.(*metav1.PartialObjectMetadata); ok {
		return meta.ResourceVersion
	}
	return ""
}

// references are the names of what a Kyma takes values from.
func references(obj client.Object) []string {
	k, ok := obj.(*v1beta2.Kyma)
	if !ok {
		return nil
	}
	var out []string
	for i := range k.Spec.Modules {
		out = append(out, valuesof.Facts(&k.Spec.Modules[i])...)
	}
	return out
}

// changed has the modules looked at that take values from an object.
func (c *Controller) changed(kind string, obj any) {
	meta, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	fact := valuesof.Fact(kind, meta.Name)
	var kymas v1beta2.KymaList
	err := c.o.Cache.List(context.Background(), &kymas, client.InNamespace(meta.Namespace), client.MatchingFields{index: fact}, client.UnsafeDisableDeepCopy)
	if err != nil {
		c.o.Log.Error(err, "Reading the Kymas that take values from an object", "kind", kind, "name", meta.Name)
		return
	}
	for i := range kymas.Items {
		c.wake(&kymas.Items[i], fact)
	}
}

func (c *Controller) wake(k *v1beta2.Kyma, fact string) {
	name := client.ObjectKeyFromObject(k)
	for i := range k.Spec.Modules {
		m := &k.Spec.Modules[i]
		if slices.Contains(valuesof.Facts(m), fact) {
			c.o.Engine.Add(fleet.ModuleKey(name, m.Name), engine.PriorityChange)
		}
	}
	c.o.Engine.Wake(name.String(), fact)
}
