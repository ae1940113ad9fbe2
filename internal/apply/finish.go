package apply

import (
	"context"
	"errors"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Prune deletes the members that the bundle no longer has. Call it only after Apply has succeeded with the same plan. An
// object is deleted by its UID, in reverse order of stages; a definition of which there are instances is kept. Errors are those
// of Apply; the checkpoint is asked once, before anything is deleted.
func (s *Set) Prune(ctx context.Context, p *Plan, o ApplyOptions) error {
	todo := p.Prune
	if len(todo) == 0 {
		return nil
	}
	if err := o.stop(); err != nil {
		return err
	}
	s.patience = o.Patience
	for len(todo) > 0 {
		n := 0
		for n < len(todo) && stageOf(todo[n]) == stageOf(todo[0]) {
			n++
		}
		if err := s.pruneStage(ctx, todo[:n]); err != nil {
			return err
		}
		if n < len(todo) && stageOf(todo[0]) == bundle.StageCustom {
			if err := s.waitCleaned(ctx, todo[:n]); err != nil {
				return err
			}
		}
		todo = todo[n:]
	}
	return nil
}

// waitCleaned waits until custom resources that were pruned are gone, as far as something holds them: what cleans up after them
// may be pruned next.
func (s *Set) waitCleaned(ctx context.Context, extras []*Extra) error {
	return s.all(ctx, len(extras), func(i int) error {
		e := extras[i]
		if e.Action != ActionPrune || len(e.live.Finalizers) == 0 {
			return nil
		}
		if err := s.waitGone(ctx, e.Resource, e.Ref); err != nil {
			return &ObjectError{Object: e.Ref, Err: err}
		}
		return nil
	})
}

func (s *Set) pruneStage(ctx context.Context, extras []*Extra) error {
	return s.all(ctx, len(extras), func(i int) error {
		e := extras[i]
		if err := s.pruneOne(ctx, e); err != nil {
			return &ObjectError{Object: e.Ref, Hint: hintOf(err), Err: err}
		}
		return nil
	})
}

func (s *Set) pruneOne(ctx context.Context, e *Extra) error {
	if err := s.protectInstances(ctx, e, nil); err != nil {
		return err
	}
	var err error
	switch {
	case e.release:
		err = s.releaseOne(ctx, e)
	case e.Action != ActionKeep && e.live.DeletionTimestamp == nil:
		err = s.delete(ctx, e)
	}
	if err != nil {
		return err
	}
	s.a.o.Progress(Event{Object: e.Ref, Action: e.Action, Message: e.Reason})
	return nil
}

// delete removes one object by its UID. One that is gone, or that is another object by now, is fine.
func (s *Set) delete(ctx context.Context, e *Extra) error {
	err := s.inServedVersion(ctx, e, func(r cluster.Resource) error {
		return s.t.Writer.Delete(ctx, r, e.Ref.Namespace, e.Ref.Name,
			cluster.DeleteOptions{UID: e.live.UID, Propagation: metav1.DeletePropagationBackground})
	})
	if errors.Is(err, cluster.ErrNotFound) || errors.Is(err, cluster.ErrConflict) {
		return nil
	}
	return err
}

// releaseOne takes an object that is kept out of the set: it loses the set's label, and stays as it is.
func (s *Set) releaseOne(ctx context.Context, e *Extra) error {
	patch, err := encode(map[string]any{"metadata": map[string]any{
		"uid":         e.live.UID,
		"labels":      map[string]any{v1beta2.ApplySetPartOfLabel: nil},
		"annotations": map[string]any{v1beta2.DigestAnnotation: nil},
	}})
	if err != nil {
		return err
	}
	err = s.inServedVersion(ctx, e, func(r cluster.Resource) error {
		return s.t.Writer.Patch(ctx, r, e.Ref.Namespace, e.Ref.Name, types.MergePatchType, patch,
			cluster.PatchOptions{Manager: v1beta2.FieldManager}, nil)
	})
	if errors.Is(err, cluster.ErrNotFound) || errors.Is(err, cluster.ErrConflict) {
		return nil
	}
	return err
}

// Finish writes the exact parent, with the digests of what has been applied to the end. It writes nothing where nothing
// changed. Call it only after Prune.
func (s *Set) Finish(ctx context.Context, p *Plan, inputDigest string) error {
	next := s.parent
	next.kinds, next.namespaces = used(p)
	for _, e := range p.Prune {
		if e.stays() {
			next.kinds = union(next.kinds, []schema.GroupKind{e.Ref.GroupKind()})
			if e.Ref.Namespace != "" && e.Ref.Namespace != v1beta2.SystemNamespace {
				next.namespaces = union(next.namespaces, []string{e.Ref.Namespace})
			}
		}
	}
	next.input, next.bundle = inputDigest, p.bundle.Digest
	if s.parent.same(next) && maps.EqualFunc(s.storedLearnt, next.learnt, slices.Equal[[]string]) {
		return nil
	}
	return s.writeParent(ctx, next)
}

func (p parent) same(q parent) bool {
	return p.found == q.found && p.input == q.input && p.bundle == q.bundle &&
		slices.Equal(union(nil, p.kinds), q.kinds) && slices.Equal(union(nil, p.namespaces), q.namespaces)
}
