package poll

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/source"
)

// used are the sources, by their key, that modules of Kymas come from and that may be worth a poll.
func (c *Controller) used(ctx context.Context) (map[string]source.Ref, error) {
	out := map[string]source.Ref{}
	worth, err := c.worth(ctx)
	if err != nil || len(worth) == 0 {
		return out, err
	}
	err = c.each(ctx, worth, func(_ engine.Key, key string, ref source.Ref) { out[key] = ref })
	return out, err
}

// users are the modules that come from a source.
func (c *Controller) users(ctx context.Context, key string) ([]engine.Key, error) {
	worth, err := c.worth(ctx)
	if err != nil {
		return nil, err
	}
	var out []engine.Key
	err = c.each(ctx, worth, func(module engine.Key, of string, _ source.Ref) {
		if of == key {
			out = append(out, module)
		}
	})
	return out, err
}

// template names a template, by its namespace too.
type template struct{ namespace, name string }

// keyed is a reference and its key, which is not for nothing.
type keyed struct {
	ref source.Ref
	key string
}

// worth are the references of the templates that move or have failed.
func (c *Controller) worth(ctx context.Context) (map[template]keyed, error) {
	var templates v1beta2.ModuleTemplateList
	if err := c.o.Cache.List(ctx, &templates, client.UnsafeDisableDeepCopy); err != nil { // they are not changed here
		return nil, fmt.Errorf("reading the catalogue: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := map[template]keyed{}
	for i := range templates.Items {
		t := &templates.Items[i]
		ref, err := source.RefOf(t.Spec.Source)
		if err != nil || ref.IsLocal() || t.Spec.Reconciler != "" {
			continue
		}
		key := ref.Key()
		if _, known := c.watched[key]; known || ref.Moves() {
			out[template{t.Namespace, t.Name}] = keyed{ref, key}
		}
	}
	return out, nil
}

// each calls a function for each module of a Kyma that comes from one of the templates.
func (c *Controller) each(ctx context.Context, of map[template]keyed, do func(module engine.Key, key string, ref source.Ref)) error {
	var kymas v1beta2.KymaList
	if err := c.o.Cache.List(ctx, &kymas, client.UnsafeDisableDeepCopy); err != nil { // they are not changed here
		return fmt.Errorf("reading the Kymas: %w", err)
	}
	for i := range kymas.Items {
		k := &kymas.Items[i]
		for _, m := range catalog.Resolve(k, c.o.Catalog.In(k.Namespace)) {
			if m.Template == nil || m.Deleting || m.Unmanaged {
				continue
			}
			if from, is := of[template{m.Template.Namespace, m.Template.Name}]; is {
				do(fleet.ModuleKey(client.ObjectKeyFromObject(k), m.Name), from.key, from.ref)
			}
		}
	}
	return nil
}
