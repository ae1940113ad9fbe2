package apply

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Plan is what an observation of a runtime leads to: an action per object, and what is to be pruned.
type Plan struct {
	// Steps in the bundle's order.
	Steps []*Step
	// Prune are members that the bundle no longer has, in the order of removal.
	Prune []*Extra

	bundle *bundle.Bundle
	// createNamespace says that the module's namespace does not exist.
	createNamespace bool
	opts            ObserveOptions
	rules           yieldRules
	// extraKinds are kinds of the parent that the bundle does not have.
	extraKinds []cluster.Resource
	// definitions of the bundle by name of their CustomResourceDefinition.
	definitions map[string][]bundle.Definition
	// full holds whole objects of kinds with a status, where they were asked for.
	full map[bundle.Ref]*unstructured.Unstructured
}

// Step is one object and what is to be done with it.
type Step struct {
	Object *bundle.Object
	// Resource is where the object lives; unset (Kind "") while its definition is only being installed.
	Resource cluster.Resource
	// Ref is the object's identity in this runtime, the namespace resolved.
	Ref    bundle.Ref
	Action Action
	// Drift are the fields to be taken back.
	Drift []Drift
	// Contested are fields that are left to others because they were lost too often.
	Contested []Drift
	// Reason says why the object is refused, or what else is wrong with it.
	Reason string
	// Hint says what to do.
	Hint string

	live     *metav1.PartialObjectMetadata
	yielded  []fieldPath
	contests []string
	unknown  bool // it is not known whether the object exists
}

// Extra is a member of the set that the bundle does not have.
type Extra struct {
	Ref      bundle.Ref
	Resource cluster.Resource
	Action   Action // ActionPrune or ActionKeep
	Reason   string // why it is kept
	live     metav1.PartialObjectMetadata
	release  bool // it is kept for good, and leaves the set
}

// Changes says whether the plan would change the runtime.
func (p *Plan) Changes() bool {
	for _, s := range p.Steps {
		if s.Action != ActionNone {
			return true
		}
	}
	for _, e := range p.Prune {
		if e.Action == ActionPrune || e.release {
			return true
		}
	}
	return false
}

// Todo are the steps that change something, or that are refused.
func (p *Plan) Todo() []*Step {
	var out []*Step
	for _, s := range p.Steps {
		if s.Action != ActionNone {
			out = append(out, s)
		}
	}
	return out
}

// Refused are the steps that cannot be carried out, as errors.
func (p *Plan) Refused() []error {
	var errs []error
	for _, s := range p.Steps {
		if s.Action == ActionRefuse {
			errs = append(errs, &ObjectError{Object: s.Ref, Hint: s.Hint, Err: &RefusedError{Reason: s.Reason}})
		}
	}
	return errs
}

// ReasonFieldContested names the state of a field that was lost to another manager again and again.
const ReasonFieldContested = "FieldContested"

// Contested says of each field that is left alone for a while to whom it was lost, in the order of the steps.
func (p *Plan) Contested() []string {
	var out []string
	for _, s := range p.Steps {
		for _, d := range s.Contested {
			out = append(out, fmt.Sprintf("%s: %s, again and again: it is left alone for a while (yield it in the template, or stop the other)", s.Ref, d))
		}
	}
	return out
}

// RefusedError says why an existing object is not touched.
type RefusedError struct{ Reason string }

// Error is the reason.
func (e *RefusedError) Error() string { return e.Reason }

// stays says whether the object still is, or may be for a while, a member after the pruning: its kind stays in the inventory.
func (e *Extra) stays() bool {
	switch {
	case e.release:
		return false
	case e.Action == ActionKeep:
		return true
	}
	return len(e.live.Finalizers) > 0 || e.live.DeletionTimestamp != nil
}

// stageOf is the stage that an extra's kind is applied in.
func stageOf(e *Extra) bundle.Stage { return bundle.StageOf(e.Ref.GroupKind()) }
