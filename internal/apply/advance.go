package apply

import (
	"bytes"
	"context"
	"errors"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Advance takes the set from one bundle to another without looking at the runtime first: objects whose bytes differ are applied, the
// others are left alone, and no field is taken from anybody. It is for upgrades of many runtimes that are as they should be for all that
// is known, and finds no more drift than doing nothing would.
//
// It returns no plan where that is not enough, as the case may be after some objects were applied: the inventory says that something
// else than from is there; the bundles have not the same objects; a definition, a namespace or an object that is created once
// differs; somebody else owns a field, or deletes an object. Then Observe and Apply do the rest. Errors are those of Apply.
func (s *Set) Advance(ctx context.Context, from, to *bundle.Bundle, o ApplyOptions) (*Plan, error) {
	if from == nil || !s.parent.found || s.parent.bundle != from.Digest || from.Digest == to.Digest {
		return nil, nil
	}
	changed := changes(from, to)
	if changed == nil {
		return nil, nil
	}
	p, err := s.plan(ctx, to, ObserveOptions{})
	if err != nil {
		return nil, nil //nolint:nilerr // Observe says it, after it has asked the runtime
	}
	if err := o.stop(); err != nil {
		return nil, err
	}
	s.patience = o.Patience
	var todo []*Step
	for _, step := range p.Steps {
		step.Action = ActionNone
		if changed[step.Object] {
			step.Action = ActionUpdate
			todo = append(todo, step)
		}
	}
	ok, err := s.advance(ctx, todo, o)
	if err != nil || !ok {
		return nil, err
	}
	return p, nil
}

// changes are the objects of a bundle that another one has in another form; nil where more than that is different.
func changes(from, to *bundle.Bundle) map[*bundle.Object]bool {
	if len(from.Objects) != len(to.Objects) {
		return nil
	}
	before := make(map[bundle.Ref]*bundle.Object, len(from.Objects))
	for _, object := range from.Objects {
		before[object.Ref] = object
	}
	out := map[*bundle.Object]bool{}
	for _, object := range to.Objects {
		was := before[object.Ref]
		if was == nil || was.Stage != object.Stage || was.Member != object.Member || was.Once != object.Once || was.Version != object.Version {
			return nil
		}
		if was.Digest == object.Digest && bytes.Equal(was.Bytes, object.Bytes) {
			continue
		}
		if !object.Member || object.Once || object.Stage == bundle.StageDefinitions {
			return nil
		}
		out[object] = true
	}
	return out
}

// advance applies steps stage by stage, without force.
func (s *Set) advance(ctx context.Context, todo []*Step, o ApplyOptions) (ok bool, err error) {
	for first := true; len(todo) > 0; first = false {
		n := slices.IndexFunc(todo, func(step *Step) bool { return step.Object.Stage != todo[0].Object.Stage })
		if n < 0 {
			n = len(todo)
		}
		if !first { // Advance has asked before the first
			if err := o.stop(); err != nil {
				return false, err
			}
		}
		if ok, err := s.advanceStage(ctx, todo[:n]); err != nil || !ok {
			return false, err
		}
		todo = todo[n:]
	}
	return true, nil
}

// advanceStage applies the objects of one stage. All are tried, except where they are done in turn and the runtime does not answer one.
func (s *Set) advanceStage(ctx context.Context, steps []*Step) (ok bool, err error) {
	if cluster.IsInTurn(ctx) {
		return s.advanceInTurn(ctx, steps)
	}
	oks := make([]bool, len(steps))
	err = s.all(ctx, len(steps), func(i int) (err error) {
		step := steps[i]
		var answer metav1.PartialObjectMetadata
		err = s.t.Writer.Apply(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, step.Object.Bytes,
			cluster.ApplyOptions{Manager: step.Object.Manager}, &answer)
		oks[i], err = s.advanced(step, &answer, err)
		return err
	})
	return !slices.Contains(oks, false), err
}

func (s *Set) advanceInTurn(ctx context.Context, steps []*Step) (ok bool, _ error) {
	objects := make([]cluster.Application, len(steps))
	for i, step := range steps {
		objects[i] = cluster.Application{
			Resource: step.Resource, Namespace: step.Ref.Namespace, Name: step.Ref.Name, Body: step.Object.Bytes,
			Options: cluster.ApplyOptions{Manager: step.Object.Manager},
		}
	}
	oks, errs := make([]bool, len(steps)), make([]error, len(steps))
	s.t.Writer.ApplyEach(ctx, objects, func(i int, answer *metav1.PartialObjectMetadata, err error) bool {
		oks[i], errs[i] = s.advanced(steps[i], answer, err)
		return !isUnanswered(err)
	})
	return !slices.Contains(oks, false), errors.Join(errs...)
}

// advanced is told what became of an object.
func (s *Set) advanced(step *Step, answer *metav1.PartialObjectMetadata, err error) (ok bool, _ error) {
	switch {
	case errors.Is(err, cluster.ErrConflict), errors.Is(err, cluster.ErrNotFound), errors.Is(err, cluster.ErrNoKind):
		return false, nil
	case err != nil:
		return false, &ObjectError{Object: step.Ref, Hint: hintFor(err, step), Err: err}
	case answer.DeletionTimestamp != nil:
		return false, nil
	}
	if err := s.learn(step, answer); err != nil {
		return false, &ObjectError{Object: step.Ref, Err: err}
	}
	s.a.o.Progress(Event{Object: step.Ref, Action: step.Action})
	return true, nil
}
