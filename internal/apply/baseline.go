package apply

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Baseline is what a set's objects look like while nothing drifts: for judging one object at a time, as a watch reports it,
// without asking the runtime. It holds for what was last applied, so a new one is needed after each Apply, and what a
// watch reports while the set is being worked on is to be judged afterwards. It keeps the bundle's objects in memory. It is
// safe for concurrent use.
type Baseline struct {
	id      ID
	setID   string
	compare comparer
	kinds   []cluster.Resource
	objects map[bundle.Ref]*bundle.Object
	// gone are members that the bundle no longer has: they leave, or stay because they are protected.
	gone map[bundle.Ref]bool
}

// Baseline is that of a plan. Call it after the plan was carried out, or where it found nothing to be done.
func (s *Set) Baseline(p *Plan) *Baseline {
	b := &Baseline{
		id: s.id, setID: s.setID, compare: s.comparer(p),
		objects: make(map[bundle.Ref]*bundle.Object, len(p.Steps)), gone: map[bundle.Ref]bool{},
	}
	b.compare.applied = true
	seen := map[cluster.Resource]bool{}
	for _, step := range p.Steps {
		if !step.Object.Member {
			continue
		}
		b.objects[step.Ref] = step.Object
		if !seen[step.Resource] {
			seen[step.Resource] = true
			b.kinds = append(b.kinds, step.Resource)
		}
	}
	for _, e := range p.Prune {
		b.gone[e.Ref] = true
	}
	return b
}

// ID names the module.
func (b *Baseline) ID() ID { return b.id }

// SetID is the value of the label v1beta2.ApplySetPartOfLabel of the set's members: what to choose a watch's events by.
func (b *Baseline) SetID() string { return b.setID }

// Kinds are those of the set's members, in the bundle's order: what to watch. It must not be changed.
func (b *Baseline) Kinds() []cluster.Resource { return b.kinds }

// Wants says whether the set has an object of this identity: its deletion, or its leaving the set's label, is drift.
func (b *Baseline) Wants(ref bundle.Ref) bool { return b.objects[ref] != nil }

// Missing are the objects of a kind that the set has and a list of its members does not.
func (b *Baseline) Missing(r cluster.Resource, listed []metav1.PartialObjectMetadata) []bundle.Ref {
	there := make(map[bundle.Ref]bool, len(listed))
	for i := range listed {
		there[refOf(r, &listed[i])] = true
	}
	var out []bundle.Ref
	for ref := range b.objects {
		if ref.Group == r.Group && ref.Kind == r.Kind && !there[ref] {
			out = append(out, ref)
		}
	}
	return out
}

// Holds says whether an object that carries the set's label is as it should be, by the same rule as Observe: one of the bundle's
// that nobody changed, or one that the set has nothing to do with. Fields that are yielded or contested are left alone.
func (b *Baseline) Holds(r cluster.Resource, meta *metav1.PartialObjectMetadata) bool {
	ref := refOf(r, meta)
	object := b.objects[ref]
	if object == nil {
		return b.gone[ref] || newExtra(ref, r, *meta) == nil
	}
	if object.Member && meta.Labels[v1beta2.ApplySetPartOfLabel] != b.setID {
		return false
	}
	step := &Step{Object: object, Resource: r, Ref: ref}
	err := b.compare.compare(step, *meta)
	return err == nil && step.Action == ActionNone
}

// Contested says whether an object that Holds has fields that are left to others because they were lost too often.
func (b *Baseline) Contested(r cluster.Resource, meta *metav1.PartialObjectMetadata) bool {
	ref := refOf(r, meta)
	object := b.objects[ref]
	if object == nil {
		return false
	}
	step := &Step{Object: object, Resource: r, Ref: ref}
	return b.compare.compare(step, *meta) == nil && len(step.Contested) > 0
}
