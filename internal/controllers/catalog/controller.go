// Package catalog keeps the catalogue in memory, and has the modules looked at that a change of a ModuleTemplate or
// ModuleReleaseMeta concerns.
//
// It may import what is below the controllers.
package catalog

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/controllers/kyma/status"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
)

// Options of New. All are needed.
type Options struct {
	Store  *catalog.Store
	Cache  client.Reader
	Engine *fleet.Queue
	Status *status.Writer
	Log    logr.Logger
}

// Controller keeps the catalogue.
type Controller struct {
	o      Options
	synced []toolscache.InformerSynced
}

// New makes a Controller.
func New(o Options) *Controller { return &Controller{o: o} }

// SetupWithManager registers with the manager's informers.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	put := map[client.Object]toolscache.ResourceEventHandlerDetailedFuncs{
		&v1beta2.ModuleTemplate{}: {
			AddFunc:    func(obj any, first bool) { c.template(obj, nil, first) },
			UpdateFunc: func(old, obj any) { c.template(obj, old, false) },
			DeleteFunc: func(obj any) { c.templateGone(obj) },
		},
		&v1beta2.ModuleReleaseMeta{}: {
			AddFunc:    func(obj any, first bool) { c.release(obj, nil, first) },
			UpdateFunc: func(old, obj any) { c.release(obj, old, false) },
			DeleteFunc: func(obj any) { c.releaseGone(obj) },
		},
	}
	for obj, handler := range put {
		informer, err := mgr.GetCache().GetInformer(context.Background(), obj)
		if err != nil {
			return fmt.Errorf("watching the catalogue: %w", err)
		}
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return fmt.Errorf("watching the catalogue: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return nil
}

// WaitForSync waits until the whole catalogue is in memory: before that, every module would seem to be missing. It returns false
// when the context ends first.
func (c *Controller) WaitForSync(ctx context.Context) bool {
	return toolscache.WaitForCacheSync(ctx.Done(), c.synced...)
}

func (c *Controller) template(obj, old any, first bool) {
	t, ok := obj.(*v1beta2.ModuleTemplate)
	if !ok {
		return
	}
	if before, ok := old.(*v1beta2.ModuleTemplate); ok && before.Generation == t.Generation {
		return
	}
	c.o.Store.PutTemplate(t)
	if !first {
		c.concerned(t.Namespace, t.Spec.ModuleName)
	}
}

func (c *Controller) templateGone(obj any) {
	if t, ok := last(obj).(*v1beta2.ModuleTemplate); ok {
		c.o.Store.DropTemplate(t)
		c.concerned(t.Namespace, t.Spec.ModuleName)
	}
}

func (c *Controller) release(obj, old any, first bool) {
	r, ok := obj.(*v1beta2.ModuleReleaseMeta)
	if !ok {
		return
	}
	before, updated := old.(*v1beta2.ModuleReleaseMeta)
	if updated && before.Generation == r.Generation {
		return
	}
	c.o.Store.PutRelease(r)
	if first {
		return
	}
	c.concerned(r.Namespace, r.Spec.ModuleName)
	if updated && before.Spec.ModuleName != r.Spec.ModuleName {
		c.concerned(r.Namespace, before.Spec.ModuleName)
	}
}

func (c *Controller) releaseGone(obj any) {
	if r, ok := last(obj).(*v1beta2.ModuleReleaseMeta); ok {
		c.o.Store.DropRelease(r)
		c.concerned(r.Namespace, r.Spec.ModuleName)
	}
}

// last is the object of a deletion, also of one that was missed.
func last(obj any) any {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		return unknown.Obj
	}
	return obj
}

// concerned has a module looked at in every runtime that has it or shall have it, and with it the modules that are not ready:
// what ails them may be mended.
func (c *Controller) concerned(namespace, module string) {
	var kymas v1beta2.KymaList
	if err := c.o.Cache.List(context.Background(), &kymas, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		c.o.Log.Error(err, "Reading the Kymas that a change of the catalogue concerns", "module", module) // only before the cache is there
		return
	}
	offered := c.o.Store.In(namespace)
	for i := range kymas.Items {
		k := &kymas.Items[i]
		name := client.ObjectKeyFromObject(k)
		for _, m := range catalog.Names(k, offered) {
			if m == module || !ready(k, m) {
				c.o.Engine.Renew(fleet.ModuleKey(name, m), engine.PriorityTrigger) // of the whole fleet: who changes one runtime goes first
			}
		}
		c.o.Status.Review(k)
	}
}

func ready(k *v1beta2.Kyma, module string) bool {
	for i := range k.Status.Modules {
		if k.Status.Modules[i].Name == module {
			return k.Status.Modules[i].State == v1beta2.StateReady
		}
	}
	return false
}
