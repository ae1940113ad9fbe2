package apply

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// Removal is how far the removal of a set has come.
type Removal struct {
	// Done: nothing of the set is left, nor its parent.
	Done bool
	// Waiting are members that are being deleted.
	Waiting []NotReady
	// Blocking are custom resources of people that the set's definitions would take with them. They must be deleted
	// before the removal goes on.
	Blocking []bundle.Ref
	// Kept are members that were left because they are protected, once the removal is done.
	Kept []bundle.Ref
}

// maxBlocking bounds how many blocking resources are named per definition.
const maxBlocking = 10

// Remove takes one step in removing the set and says what it waits for; call it again until it is done. Custom resources
// go first, so that their controllers can clean up; then, once no instance of the set's definitions is left, everything else
// in reverse order of stages; then the definitions; then the parent. Each step lists the set anew, so that it can be
// interrupted at any point.
func (s *Set) Remove(ctx context.Context) (*Removal, error) {
	if !s.parent.found {
		if err := s.recover(ctx); err != nil || !s.parent.found {
			return &Removal{Done: err == nil}, err
		}
	}
	all, kept, err := s.everything(ctx)
	if err != nil {
		return nil, err
	}
	out := &Removal{}
	var custom, definitions, rest []*Extra
	for _, e := range all {
		switch {
		case stageOf(e) == bundle.StageCustom:
			custom = append(custom, e)
		case e.Ref.GroupKind() == crds.GVK().GroupKind():
			definitions = append(definitions, e)
		default:
			rest = append(rest, e)
		}
	}
	if len(custom) > 0 {
		return out, s.deleteAll(ctx, custom, out)
	}
	if err := s.blocking(ctx, definitions, out); err != nil || len(out.Blocking)+len(out.Waiting) > 0 {
		return out, err
	}
	if len(rest) > 0 {
		return out, s.deleteAll(ctx, rest, out)
	}
	if len(definitions) > 0 {
		if err := s.deleteAll(ctx, definitions, out); err != nil {
			return out, err
		}
		return out, s.pokeAll(ctx, definitions)
	}
	for _, e := range kept {
		if err := s.releaseOne(ctx, e); err != nil {
			return out, &ObjectError{Object: e.Ref, Err: err}
		}
		out.Kept = append(out.Kept, e.Ref)
	}
	return s.removeParent(ctx, out)
}

// everything is all members in the order of removal, and those that are protected.
func (s *Set) everything(ctx context.Context) (all, kept []*Extra, err error) {
	plan := &Plan{bundle: &bundle.Bundle{}} // of a bundle that has nothing
	members, err := s.members(ctx, plan)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range s.extras(plan, members) {
		if e.Action == ActionKeep {
			kept = append(kept, e)
			continue
		}
		e.Action = ActionDelete
		all = append(all, e)
	}
	return all, kept, nil
}

// deleteAll deletes members, stage by stage in their order, and says what is left to wait for.
func (s *Set) deleteAll(ctx context.Context, extras []*Extra, out *Removal) error {
	var fresh []*Extra
	for _, e := range extras {
		out.Waiting = append(out.Waiting, NotReady{Object: e.Ref, Message: deleting(&e.live)})
		if e.live.DeletionTimestamp == nil {
			fresh = append(fresh, e)
		}
	}
	for len(fresh) > 0 {
		n := 0
		for n < len(fresh) && stageOf(fresh[n]) == stageOf(fresh[0]) {
			n++
		}
		if err := s.pruneStage(ctx, fresh[:n]); err != nil {
			return err
		}
		fresh = fresh[n:]
	}
	return nil
}

// blocking finds instances of the set's definitions: all of the set's own are gone by now. What their controllers made for
// them goes by itself, and is waited for.
func (s *Set) blocking(ctx context.Context, definitions []*Extra, out *Removal) error {
	for _, e := range definitions {
		if e.live.DeletionTimestamp != nil {
			continue // too late to ask
		}
		instances, err := s.instances(ctx, e.Ref.Name)
		if err != nil {
			return err
		}
		out.add(instances)
	}
	sort.Slice(out.Blocking, func(i, j int) bool { return out.Blocking[i].String() < out.Blocking[j].String() })
	return nil
}

// add names instances of one definition, at most maxBlocking of those that block and of those that leave.
func (r *Removal) add(instances []instance) {
	blocking, leaving := 0, 0
	for _, i := range instances {
		switch {
		case i.leaving == "" && blocking < maxBlocking:
			r.Blocking = append(r.Blocking, i.ref)
			blocking++
		case i.leaving != "" && leaving < maxBlocking:
			r.Waiting = append(r.Waiting, NotReady{Object: i.ref, Message: i.leaving})
			leaving++
		}
	}
}

// pokeInterval is how long a definition may be on its way out before it is written to. A kube-apiserver can leave one that
// was deleted within seconds of its creation until something does ("storage is (re)initializing").
const pokeInterval = 2 * time.Second

// pokedAnnotation is written to a definition that does not go.
const pokedAnnotation = v1beta2.Group + "/poked"

func (s *Set) pokeAll(ctx context.Context, definitions []*Extra) error {
	now := s.a.o.Now()
	if s.poked == nil {
		s.poked = map[string]time.Time{}
	}
	for _, e := range definitions {
		since, seen := s.poked[e.Ref.Name]
		if !seen {
			since = lastWritten(e, now)
			s.poked[e.Ref.Name] = since
		}
		if e.live.DeletionTimestamp == nil || now.Sub(since) < pokeInterval {
			continue
		}
		s.poked[e.Ref.Name] = now
		if err := s.poke(ctx, e.Ref.Name, e.live.UID, now); err != nil {
			return &ObjectError{Object: e.Ref, Err: err}
		}
	}
	return nil
}

// poke writes to a definition, so that the server looks at it again. One that is gone meanwhile, or is another, is fine.
func (s *Set) poke(ctx context.Context, name string, uid types.UID, now time.Time) error {
	patch, err := encode(map[string]any{"metadata": map[string]any{
		"uid": uid, "annotations": map[string]any{pokedAnnotation: now.UTC().Format(time.RFC3339)},
	}})
	if err != nil {
		return err
	}
	err = s.t.Writer.Patch(ctx, crds, "", name, types.MergePatchType, patch, cluster.PatchOptions{Manager: v1beta2.FieldManager}, nil)
	if errors.Is(err, cluster.ErrNotFound) || errors.Is(err, cluster.ErrConflict) || errors.Is(err, cluster.ErrInvalid) {
		return nil
	}
	return err
}

// lastWritten is when a definition was deleted or poked last, by the server's and our own clocks, but not in the future: a
// control loop opens the set anew at each step and remembers nothing.
func lastWritten(e *Extra, now time.Time) time.Time {
	last := now
	if e.live.DeletionTimestamp != nil && e.live.DeletionTimestamp.Time.Before(last) {
		last = e.live.DeletionTimestamp.Time
	}
	if poked, err := time.Parse(time.RFC3339, e.live.Annotations[pokedAnnotation]); err == nil && poked.After(last) {
		last = poked
	}
	return last
}

func (s *Set) removeParent(ctx context.Context, out *Removal) (*Removal, error) {
	err := s.t.Client.Delete(ctx, configMaps, v1beta2.SystemNamespace, s.name(),
		cluster.DeleteOptions{UID: types.UID(s.parent.uid), Propagation: metav1.DeletePropagationBackground})
	if err != nil && !errors.Is(err, cluster.ErrNotFound) {
		return out, fmt.Errorf("deleting the inventory of module %s: %w", s.id, err)
	}
	s.parent = parent{}
	out.Done = true
	return out, nil
}
