package module

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/journal"
	builtin "github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/internal/render"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// observation is all that a decision depends on.
type observation struct {
	key  engine.Key
	name types.NamespacedName // of the Kyma, and of its Runtime
	kyma *v1beta2.Kyma
	// runtime is nil if there is none.
	runtime *v1beta2.Runtime
	// desired is what is to become of the module; wanted is false if there is nothing to do with it at all.
	desired catalog.Module
	wanted  bool
	// current is what was last reported, nil if nothing was.
	current *v1beta2.ModuleStatus
	// suspect says that the runtime must be looked at.
	suspect bool
	// component is the input of the reconciler.
	component reconciler.Component
	// facts are known, missing are needed.
	facts   map[string]string
	missing []string
	// digest of the input; empty if it cannot be known without asking the runtime.
	digest string
	// unavailable says why the source cannot be had now.
	unavailable error
	// problem says why nothing can be done.
	problem *catalog.Problem
	// uid of the cluster, once it was asked; recorded is that of the cluster which the status is of.
	uid, recorded string
	// shaky says that the runtime answers now and then: nobody is told that it does.
	shaky bool
	// touched says that something may have been written to the runtime, complete that the run came to its end after that.
	touched, complete bool
	// end takes the module out of the journal, nil if it is not in there.
	end func()
	// began is when the run did.
	began time.Time
}

// entry names the module in the journal.
func (o *observation) entry() journal.Entry {
	return journal.Entry{Runtime: o.name, Module: o.key.Component}
}

// observe gathers what is known without asking the runtime.
func (c *Controller) observe(ctx context.Context, r run) (*observation, error) {
	o := &observation{key: r.Key(), name: fleet.RuntimeOf(r.Key()), kyma: &v1beta2.Kyma{}, began: time.Now()}
	if err := c.o.Cache.Get(ctx, o.name, o.kyma, client.UnsafeDisableDeepCopy); err != nil { // it is not changed here
		return nil, fmt.Errorf("reading Kyma %s: %w", o.name, err)
	}
	o.recorded = c.o.Status.RuntimeUID(o.kyma)
	latest := *o.kyma
	latest.Status.Modules = nil
	if m, found := c.o.Status.Module(o.kyma, o.key.Component); found {
		o.current = &m
		latest.Status.Modules = []v1beta2.ModuleStatus{m}
	}
	o.desired, o.wanted = catalog.ResolveOne(&latest, o.key.Component, c.o.Catalog.In(o.name.Namespace))
	if err := c.readRuntime(ctx, o); err != nil || !o.wanted {
		return o, err
	}
	o.problem, o.suspect = o.desired.Problem, c.o.Suspects.Has(o.key) || c.o.Journal.Has(o.entry())
	if o.problem == nil && !o.desired.Unmanaged {
		if err := c.describe(ctx, r, o); err != nil {
			return nil, err
		}
	}
	return o, nil
}

func (c *Controller) readRuntime(ctx context.Context, o *observation) error {
	var runtime v1beta2.Runtime
	err := c.o.Cache.Get(ctx, o.name, &runtime, client.UnsafeDisableDeepCopy) // it is not changed here
	switch {
	case err == nil:
		o.runtime = &runtime
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading Runtime %s: %w", o.name, err)
	}
	return nil
}

// describe makes the reconciler's input, and its digest.
func (c *Controller) describe(ctx context.Context, r run, o *observation) error {
	o.component = reconciler.Component{Name: o.desired.Name, Namespace: o.desired.Namespace, Deleting: o.desired.Deleting}
	if o.desired.Deleting {
		if t := c.o.Catalog.In(o.name.Namespace).Template(o.desired.Name, o.desired.Version); t != nil {
			o.component.Template.Reconciler, o.component.Template.ServiceAccountName = t.Spec.Reconciler, t.Spec.ServiceAccountName
		}
		return nil
	}
	o.component.Template = specOf(o.desired.Template, o.desired.Spec)
	if name := o.component.Template.Reconciler; name != "" && c.o.Custom[name] == nil {
		o.problem = &catalog.Problem{State: v1beta2.StateError, Message: fmt.Sprintf("ModuleTemplate %s names reconciler %q, which this control plane does not have", o.desired.Template.Name, name)}
		return nil
	}
	if err := c.readValues(ctx, r, o); err != nil || o.problem != nil || len(o.missing) > 0 {
		return err
	}
	c.readFacts(r, o)
	if o.runtime == nil {
		return nil
	}
	return c.readDigest(ctx, o, access.FactOf(o.runtime, v1beta2.FactRuntimeUID), access.FactOf(o.runtime, v1beta2.FactKubernetesVersion))
}

// specOf is what a template says, for a Kyma's entry: nil if it has none.
func specOf(t *v1beta2.ModuleTemplate, entry *v1beta2.Module) v1beta2.ModuleTemplateSpec {
	spec := t.Spec
	if entry != nil && entry.CustomResourcePolicy == v1beta2.IgnoreCustomResource {
		spec.Data = nil
	}
	return spec
}

// readDigest computes the digest of the input, where the runtime's identity and version are known.
func (c *Controller) readDigest(ctx context.Context, o *observation, uid, version string) error {
	if o.component.Template.Reconciler != "" || version == "" || uid == "" {
		return nil
	}
	options := builtin.RenderOptions{Capabilities: render.Capabilities{KubeVersion: version}}
	if o.component.Template.PerRuntime {
		options.PerRuntime = uid
	}
	digest, err := c.o.Builtin.InputDigest(ctx, o.component, options)
	if err == nil {
		o.digest = digest
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	if unavailable := (*source.Error)(nil); errors.As(err, &unavailable) && errors.Is(unavailable.Reason, source.ErrUnavailable) {
		o.unavailable = err
		return nil
	}
	o.problem = &catalog.Problem{State: v1beta2.StateError, Message: err.Error()}
	if o.installed() && source.IsError(err) {
		o.problem = &catalog.Problem{State: v1beta2.StateWarning, Message: stays(err)}
	}
	return nil
}

// installed says whether the wanted version was applied to the end, whatever has become of its source since.
func (o *observation) installed() bool {
	return o.current != nil && o.current.BundleDigest != "" && o.current.Version == o.desired.Version && o.sameCluster()
}

// unchanged says whether the runtime has, for all that is known, what is wanted.
func (o *observation) unchanged() bool {
	return o.current != nil && o.digest != "" && o.current.InputDigest == o.digest && o.sameCluster()
}

// sameCluster says whether the status is of the cluster that the Runtime leads to.
func (o *observation) sameCluster() bool {
	now, recorded := o.uid, cmp.Or(o.recorded, o.kyma.Status.RuntimeUID)
	if now == "" && o.runtime != nil {
		now = access.FactOf(o.runtime, v1beta2.FactRuntimeUID)
	}
	return now != "" && now == recorded
}

func joined(list []string) string { return strings.Join(list, ", ") }
