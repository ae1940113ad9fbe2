package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/kind"
)

// ObserveOptions of Observe.
type ObserveOptions struct {
	// Yield are fields that the module never fights for.
	Yield []v1beta2.YieldRule
	// Adopt takes over objects that exist and belong to something else.
	Adopt bool
	// Status asks for whole objects of the kinds that have a status, so that Ready needs no request of its own
	// where nothing changes.
	Status bool
}

// Observe lists the set's members, compares them with a bundle, and decides what is to be done. One list per kind in
// use; objects that are not among the members are looked up one by one, unless they cannot exist.
func (s *Set) Observe(ctx context.Context, b *bundle.Bundle, o ObserveOptions) (*Plan, error) {
	p, err := s.plan(ctx, b, o)
	if err != nil {
		return nil, err
	}
	members, err := s.members(ctx, p)
	if err != nil {
		return nil, err
	}
	if err := s.match(p, members); err != nil {
		return nil, err
	}
	if err := s.probe(ctx, p); err != nil {
		return nil, err
	}
	return p, s.observeLost(ctx, p)
}

// plan has a step per object of a bundle, in its place, and knows nothing of the runtime yet.
func (s *Set) plan(ctx context.Context, b *bundle.Bundle, o ObserveOptions) (*Plan, error) {
	p := &Plan{bundle: b, opts: o, rules: yieldRules{rules: o.Yield}, full: map[bundle.Ref]*unstructured.Unstructured{}}
	if err := s.declare(p); err != nil {
		return nil, err
	}
	return p, s.resolve(ctx, p)
}

// match compares the bundle's objects with the members of the set. Objects that are not among them are unknown; members that are
// not among the objects are extra. members is used up.
func (s *Set) match(p *Plan, members map[bundle.Ref]metav1.PartialObjectMetadata) error {
	for _, step := range p.Steps {
		live, ok := members[step.Ref]
		if !ok {
			step.unknown = true
			continue
		}
		delete(members, step.Ref)
		if err := s.compare(p, step, live); err != nil {
			return err
		}
	}
	p.Prune = s.extras(p, members)
	return nil
}

// observeLost finds what is to be pruned where somebody deleted the parent: objects of the set were met though it has none.
// It looks among the bundle's kinds and the usual ones.
func (s *Set) observeLost(ctx context.Context, p *Plan) error {
	if s.parent.found || !slices.ContainsFunc(p.Steps, func(step *Step) bool {
		return step.live != nil && step.live.Labels[v1beta2.ApplySetPartOfLabel] == s.setID
	}) {
		return nil
	}
	found, err := s.haveMembers(ctx, usualKinds)
	if err != nil {
		return err
	}
	s.parent.kinds = found
	members, err := s.listMembers(ctx, p)
	if err != nil {
		return err
	}
	for _, step := range p.Steps {
		delete(members, step.Ref)
	}
	p.Prune = s.extras(p, members)
	return nil
}

// declare makes the kinds known that the bundle defines itself.
func (s *Set) declare(p *Plan) error {
	definitions, err := p.bundle.Definitions()
	if err != nil {
		return err
	}
	p.definitions = map[string][]bundle.Definition{}
	for _, d := range definitions {
		p.definitions[d.CRD] = append(p.definitions[d.CRD], d)
		s.t.Client.Declare(resourceOf(d))
	}
	return nil
}

func resourceOf(d bundle.Definition) cluster.Resource {
	return cluster.Resource{
		GroupVersionResource: schema.GroupVersionResource{Group: d.Group, Version: d.Version, Resource: d.Resource},
		Kind:                 d.Kind, Namespaced: d.Namespaced,
	}
}

// resolve finds the place of each object. A kind that the server does not know is an error at each of its objects.
func (s *Set) resolve(ctx context.Context, p *Plan) error {
	known := map[schema.GroupVersionKind]cluster.Resource{}
	seen := make(map[bundle.Ref]bool, len(p.bundle.Objects))
	steps := make([]Step, len(p.bundle.Objects))
	p.Steps = slices.Grow(p.Steps, len(steps))
	var errs []error
	for i, o := range p.bundle.Objects {
		r, ok := known[o.GVK()]
		if !ok {
			var err error
			if r, err = s.t.Client.Resource(ctx, o.GVK()); err != nil {
				if noKind := (*cluster.NoKindError)(nil); !errors.As(err, &noKind) {
					return fmt.Errorf("mapping %s: %w", o.GVK().Kind, err)
				}
				errs = append(errs, &ObjectError{Object: o.Ref, Err: err})
				continue
			}
			known[o.GVK()] = r
		}
		step := &steps[i]
		step.Object, step.Resource, step.Ref = o, r, refIn(o, r)
		if seen[step.Ref] {
			errs = append(errs, &ObjectError{Object: step.Ref, Err: fmt.Errorf("%w: it is defined twice", cluster.ErrInvalid)})
			continue
		}
		seen[step.Ref] = true
		p.Steps = append(p.Steps, step)
	}
	return errors.Join(errs...)
}

// refIn is the identity of an object in a runtime, where the scope of its kind is known for sure.
func refIn(o *bundle.Object, r cluster.Resource) bundle.Ref {
	ref := o.Ref
	switch {
	case !r.Namespaced:
		ref.Namespace = ""
	case o.Scope == kind.ScopeUnknown && ref.Namespace == "":
		ref.Namespace = o.DefaultNamespace
	}
	return ref
}

// members are the set's objects in the runtime, by identity. A set without a parent has none that are known.
func (s *Set) members(ctx context.Context, p *Plan) (map[bundle.Ref]metav1.PartialObjectMetadata, error) {
	out := map[bundle.Ref]metav1.PartialObjectMetadata{}
	if !s.parent.found {
		return out, nil
	}
	return s.listMembers(ctx, p)
}

// listMembers are the set's objects of the bundle's and the parent's kinds.
func (s *Set) listMembers(ctx context.Context, p *Plan) (map[bundle.Ref]metav1.PartialObjectMetadata, error) {
	out := map[bundle.Ref]metav1.PartialObjectMetadata{}
	resources, err := s.kindsInUse(ctx, p)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.a.o.Parallel)
	for _, r := range resources {
		g.Go(func() error {
			items, full, err := s.list(ctx, r, p.opts.Status && hasStatus(r))
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for i := range items {
				ref := refOf(r, &items[i])
				out[ref] = items[i]
				if full != nil {
					p.full[ref] = &full[i]
				}
			}
			return nil
		})
	}
	return out, g.Wait()
}

// kindsInUse are the kinds of the bundle's members and of the parent.
func (s *Set) kindsInUse(ctx context.Context, p *Plan) ([]cluster.Resource, error) {
	seen := map[schema.GroupKind]bool{}
	var out []cluster.Resource
	for _, step := range p.Steps {
		if gk := step.Resource.GVK().GroupKind(); step.Object.Member && !seen[gk] {
			seen[gk] = true
			out = append(out, step.Resource)
		}
	}
	for _, gk := range s.parent.kinds {
		if seen[gk] {
			continue
		}
		seen[gk] = true
		r, err := s.t.Client.ResourceFor(ctx, gk)
		if errors.Is(err, cluster.ErrNoKind) {
			continue // the kind is gone, and its objects with it; one whose server does not answer is another matter
		}
		if err != nil {
			return nil, fmt.Errorf("mapping %s: %w", gk, err)
		}
		out = append(out, r)
		p.extraKinds = append(p.extraKinds, r)
	}
	return out, nil
}

func refOf(r cluster.Resource, meta *metav1.PartialObjectMetadata) bundle.Ref {
	return bundle.Ref{Group: r.Group, Kind: r.Kind, Namespace: meta.Namespace, Name: meta.Name}
}

// extras are the members that the bundle does not have, sorted into what is pruned and what is kept.
func (s *Set) extras(p *Plan, members map[bundle.Ref]metav1.PartialObjectMetadata) []*Extra {
	resources := map[schema.GroupKind]cluster.Resource{}
	for _, step := range p.Steps {
		resources[step.Ref.GroupKind()] = step.Resource
	}
	for _, r := range p.extraKinds {
		resources[r.GVK().GroupKind()] = r
	}
	var out []*Extra
	for ref, live := range members {
		if e := newExtra(ref, resources[ref.GroupKind()], live); e != nil {
			out = append(out, e)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := bundle.StageOf(out[i].Ref.GroupKind()), bundle.StageOf(out[j].Ref.GroupKind())
		if a != b {
			return a > b
		}
		return out[i].Ref.String() < out[j].Ref.String()
	})
	return out
}

// newExtra is nil for an object that only looks like a member: one that a controller made of a member, labels copied,
// or that somebody else labelled.
func newExtra(ref bundle.Ref, r cluster.Resource, live metav1.PartialObjectMetadata) *Extra {
	if ownEntry(&live, v1beta2.FieldManager) == nil || metav1.GetControllerOf(&live) != nil {
		return nil
	}
	e := &Extra{Ref: ref, Resource: r, Action: ActionPrune, live: live}
	if isKept(live.Annotations) {
		e.Action, e.Reason, e.release = ActionKeep, "its annotation says keep", true
	}
	return e
}

func isKept(annotations map[string]string) bool {
	return annotations["helm.sh/resource-policy"] == "keep" || annotations[v1beta2.KeepAnnotation] == "keep"
}
