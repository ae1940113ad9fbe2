package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Wanted is a module as it shall be on a runtime.
type Wanted struct {
	ID     ID
	Bundle *bundle.Bundle
	// Yield as in ObserveOptions.
	Yield []v1beta2.YieldRule
}

// Verdict is what Verify found of one module: one of the three is set.
type Verdict struct {
	// Drift names what is not as it should be.
	Drift string
	// Baseline of a module without drift.
	Baseline *Baseline
	// Err says why the module could not be judged.
	Err error
}

// Verify compares all modules of a runtime with what they shall be, by the rules of Observe, and changes nothing: a list of the
// parents, a list per kind in use, however many modules use it, and a list of Namespaces where a bundle has any. In rare
// states it asks for single objects too: one that is created once and is not among the members, a definition that is
// no longer wanted. A module whose parent says that it was not applied to the end has drifted, and none of its objects are
// looked at.
//
// The verdicts are in the order of wanted. The error is that of the list of parents: without it, nothing is known.
func (a *Applier) Verify(ctx context.Context, t Target, wanted []Wanted) ([]Verdict, error) {
	parents, err := listParents(ctx, t)
	if err != nil {
		return nil, err
	}
	v := &verification{t: t, parallel: a.o.Parallel, lists: map[schema.GroupKind]*kindList{}, verdicts: make([]Verdict, len(wanted))}
	for i, w := range wanted {
		v.verdicts[i] = v.begin(ctx, &candidate{index: i, set: a.set(t, w.ID)}, w, parents)
	}
	v.listAll(ctx)
	for _, c := range v.candidates {
		v.verdicts[c.index] = v.judge(ctx, c)
	}
	return v.verdicts, nil
}

// listParents are the ConfigMaps of the system namespace, by name: labels may have been taken from them.
func listParents(ctx context.Context, t Target) (map[string]*parentObject, error) {
	list, err := t.Client.List(ctx, configMaps, cluster.ListOptions{Namespace: v1beta2.SystemNamespace})
	if err != nil {
		return nil, fmt.Errorf("listing the inventories: %w", err)
	}
	out := map[string]*parentObject{}
	for i := range list {
		raw, err := encode(list[i].Object)
		if err != nil {
			return nil, err
		}
		var obj parentObject
		if err := decodeInto(raw, &obj); err != nil {
			return nil, err
		}
		out[obj.Metadata.Name] = &obj
	}
	return out, nil
}

// verification is one call of Verify.
type verification struct {
	t          Target
	parallel   int
	verdicts   []Verdict
	candidates []*candidate
	lists      map[schema.GroupKind]*kindList
	// namespaces of the runtime, where a bundle has any.
	namespaces *kindList
}

// candidate is a module whose parent says nothing against it.
type candidate struct {
	index int
	set   *Set
	plan  *Plan
	kinds []schema.GroupKind
}

// kindList is the members of all sets of one kind, by their set; of Namespaces, which have none, all of them under "".
type kindList struct {
	resource cluster.Resource
	// had says that a parent has the kind: the members of a version that is no longer served are looked for in another.
	had   bool
	items map[string][]metav1.PartialObjectMetadata
	err   error
}

// begin asks the parent, and notes which kinds must be listed for a module.
func (v *verification) begin(ctx context.Context, c *candidate, w Wanted, parents map[string]*parentObject) Verdict {
	s := c.set
	obj := parents[s.name()]
	if obj == nil {
		return Verdict{Drift: fmt.Sprintf("ConfigMap %s/%s, its inventory, is missing", v1beta2.SystemNamespace, s.name())}
	}
	if err := s.take(obj); err != nil {
		return Verdict{Drift: err.Error()}
	}
	switch {
	case s.parent.bundle == "":
		return Verdict{Drift: "it was not applied to the end"}
	case s.parent.bundle != w.Bundle.Digest:
		return Verdict{Drift: "another bundle was applied: " + s.parent.bundle + ", not " + w.Bundle.Digest}
	}
	var err error
	if c.plan, err = s.plan(ctx, w.Bundle, ObserveOptions{Yield: w.Yield}); err != nil {
		return planFailed(err)
	}
	kinds, err := s.kindsInUse(ctx, c.plan)
	if err != nil {
		return Verdict{Err: err}
	}
	v.need(c, kinds)
	return Verdict{}
}

// planFailed tells a bundle that does not fit the runtime from a runtime that does not answer.
func planFailed(err error) Verdict {
	var object *ObjectError
	if errors.As(err, &object) {
		return Verdict{Drift: err.Error()}
	}
	return Verdict{Err: err}
}

func (v *verification) need(c *candidate, kinds []cluster.Resource) {
	for _, r := range kinds {
		gk := r.GVK().GroupKind()
		c.kinds = append(c.kinds, gk)
		if v.lists[gk] == nil {
			v.lists[gk] = &kindList{resource: r}
		}
		if slices.Contains(c.set.parent.kinds, gk) {
			v.lists[gk].had = true
		}
	}
	if v.namespaces == nil && slices.ContainsFunc(c.plan.Steps, func(step *Step) bool { return !step.Object.Member }) {
		v.namespaces = &kindList{resource: namespaces}
	}
	v.candidates = append(v.candidates, c)
}

// listAll makes all lists. What went wrong is kept with each.
func (v *verification) listAll(ctx context.Context) {
	var g errgroup.Group
	g.SetLimit(v.parallel)
	for _, l := range v.lists {
		g.Go(func() error {
			l.read(ctx, v.t.Client, v1beta2.ApplySetPartOfLabel)
			return nil
		})
	}
	if v.namespaces != nil {
		g.Go(func() error {
			v.namespaces.read(ctx, v.t.Client, "")
			return nil
		})
	}
	_ = g.Wait()
}

func (l *kindList) read(ctx context.Context, c cluster.Client, selector string) {
	items, _, err := lister{client: c, selector: selector, had: l.had}.list(ctx, l.resource, false)
	if err != nil {
		l.err = fmt.Errorf("listing %s: %w", l.resource.Resource, err)
		return
	}
	l.items = map[string][]metav1.PartialObjectMetadata{}
	for _, item := range items {
		set := item.Labels[v1beta2.ApplySetPartOfLabel]
		if selector == "" {
			set = ""
		}
		l.items[set] = append(l.items[set], item)
	}
}

// judge compares a module's objects with what was listed.
func (v *verification) judge(ctx context.Context, c *candidate) Verdict {
	members := map[bundle.Ref]metav1.PartialObjectMetadata{}
	for _, gk := range c.kinds {
		l := v.lists[gk]
		if l.err != nil {
			return Verdict{Err: l.err}
		}
		for i := range l.items[c.set.setID] {
			item := &l.items[c.set.setID][i]
			members[refOf(l.resource, item)] = *item
		}
	}
	if err := c.set.match(c.plan, members); err != nil {
		return Verdict{Err: err}
	}
	if err := v.matchNamespaces(c); err != nil {
		return Verdict{Err: err}
	}
	if err := c.set.lookClosely(ctx, c.plan); err != nil {
		return Verdict{Err: err}
	}
	if drift := c.plan.drift(); len(drift) > 0 {
		return Verdict{Drift: enumerate(drift)}
	}
	return Verdict{Baseline: c.set.Baseline(c.plan)}
}

// matchNamespaces compares the bundle's Namespaces, which are no members.
func (v *verification) matchNamespaces(c *candidate) error {
	for _, step := range c.plan.Steps {
		if step.Object.Member {
			continue
		}
		if v.namespaces.err != nil {
			return v.namespaces.err
		}
		for _, live := range v.namespaces.items[""] {
			if live.Name != step.Ref.Name {
				continue
			}
			step.unknown = false
			if err := c.set.compare(c.plan, step, live); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookClosely asks for the few objects about which a list says too little: those that are created once may be anybody's, and a
// definition that is no longer wanted stays as long as it has instances.
func (s *Set) lookClosely(ctx context.Context, p *Plan) error {
	for _, step := range p.Steps {
		if !step.unknown || !step.Object.Once {
			continue
		}
		if err := s.probeOne(ctx, p, step); err != nil {
			return err
		}
	}
	return s.protect(ctx, p)
}

// drift says what is not as it should be. What is being pruned already is as it should be.
func (p *Plan) drift() []string {
	var out []string
	for _, step := range p.Steps {
		if why := step.drifted(); why != "" {
			out = append(out, why)
		}
	}
	for _, e := range p.Prune {
		if e.live.DeletionTimestamp == nil && (e.Action == ActionPrune || e.release) {
			out = append(out, e.Ref.String()+": is no longer part of the module")
		}
	}
	return out
}

// maxDrift bounds how many objects a verdict names.
const maxDrift = 3

func enumerate(list []string) string {
	if more := len(list) - maxDrift; more > 0 {
		list = append(slices.Clone(list[:maxDrift]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, "; ")
}
