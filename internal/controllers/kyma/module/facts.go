package module

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/reconciler"
)

// readFacts registers the needs before it looks whether they are there.
func (c *Controller) readFacts(r run, o *observation) {
	r.Await(o.component.Template.Needs...)
	o.facts = c.facts(o)
	for _, need := range o.component.Template.Needs {
		if _, ok := o.facts[need]; !ok {
			o.missing = append(o.missing, need)
		}
	}
}

// facts are what is known about the runtime now.
func (c *Controller) facts(o *observation) map[string]string {
	facts := map[string]string{}
	if o.runtime != nil {
		for _, f := range o.runtime.Status.Facts {
			facts[f.Key] = f.Value
		}
	}
	if len(o.component.Template.Needs) > 0 || o.component.Template.Reconciler != "" { // the others have no use for them
		for _, m := range c.o.Status.Latest(o.kyma) {
			if works(&m) {
				facts[v1beta2.FactModulePrefix+m.Name] = m.Version
			}
		}
	}
	return facts
}

// works says whether others can rely on a module: it is ready, or it is there with something that a person should look at.
func works(m *v1beta2.ModuleStatus) bool {
	return m.State == v1beta2.StateReady || (m.State == v1beta2.StateWarning && m.BundleDigest != "")
}

// arrived says whether a fact has come since a reconciler looked for it: it says what it waits for only afterwards.
func (c *Controller) arrived(ctx context.Context, o *observation, needs []string) bool {
	if c.readRuntime(ctx, o) != nil {
		return true // look again
	}
	now := c.facts(o)
	return slices.ContainsFunc(needs, func(need string) bool {
		_, before := o.facts[need]
		_, is := now[need]
		return is && !before
	})
}

// publishAttempts bounds how often facts are written anew because the Runtime was changed meanwhile.
const publishAttempts = 5

// publish writes what a reconciler states about the runtime, in place of what it stated before, and wakes who waits for it. That a
// module is ready is not among it: the Kyma's status says so. A fact of another writer is not touched, and an error.
func (c *Controller) publish(ctx context.Context, o *observation, stated []reconciler.Fact) error {
	stated = slices.DeleteFunc(slices.Clone(stated), func(f reconciler.Fact) bool { return strings.HasPrefix(f.Key, v1beta2.FactModulePrefix) })
	for range publishAttempts {
		var r v1beta2.Runtime
		if err := c.o.Cache.Get(ctx, o.name, &r); err != nil {
			return fmt.Errorf("publishing facts: %w", err)
		}
		next, err := restated(r.Status.Facts, o.key.Component, stated)
		if err != nil || slices.Equal(next, r.Status.Facts) {
			return err
		}
		base := r.DeepCopy()
		r.Status.Facts = next
		err = c.o.Writer.Status().Patch(ctx, &r, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			var keys []string
			for _, f := range stated {
				keys = append(keys, f.Key)
			}
			c.o.Wake(o.key.Runtime, keys...)
			return nil
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("publishing facts: %w", err)
		}
	}
	return fmt.Errorf("publishing facts: the Runtime %s is written to all the time", o.name)
}

// restated are the facts after a writer has stated its own anew.
func restated(facts []v1beta2.Fact, writer string, stated []reconciler.Fact) ([]v1beta2.Fact, error) {
	var out []v1beta2.Fact
	before := map[string]v1beta2.Fact{}
	for _, f := range facts {
		before[f.Key] = f
		if f.Writer != writer {
			out = append(out, f)
		}
	}
	for _, s := range stated {
		next := v1beta2.Fact{Key: s.Key, Value: s.Value, Writer: writer, ObservedAt: metav1.Now()}
		was, had := before[s.Key]
		switch {
		case had && was.Writer != writer:
			return nil, fmt.Errorf("fact %q is %s's: a component cannot state it, too", s.Key, was.Writer)
		case had && was.Value == s.Value:
			next.ObservedAt = was.ObservedAt
		}
		out = append(out, next)
	}
	slices.SortFunc(out, func(a, b v1beta2.Fact) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}
