package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
)

// ApplyOptions of Apply and Prune. The zero value works.
type ApplyOptions struct {
	// Checkpoint is asked before the first write, between stages and before pruning, by the caller's goroutine. An error
	// stops the work there, as a *StoppedError: the inventory knows all that is there by then. Default: nobody stops it.
	Checkpoint func() error
	// Patience bounds each wait for something that takes its time: a definition to be served, an object to be gone. Beyond it
	// the error is a *NotYetError. Default: about 100 s.
	Patience time.Duration
}

// stop asks the checkpoint.
func (o ApplyOptions) stop() error {
	if o.Checkpoint == nil {
		return nil
	}
	if err := o.Checkpoint(); err != nil {
		return &StoppedError{Err: err}
	}
	return nil
}

// Apply carries out the plan's steps, stage by stage: the objects of a stage in parallel, the next stage only when all of
// them were accepted, custom resources only when their definitions are served. Nothing is written if any object is
// refused. Errors are *ObjectError, joined, or *StoppedError.
func (s *Set) Apply(ctx context.Context, p *Plan, o ApplyOptions) error {
	if refused := p.Refused(); len(refused) > 0 {
		return errors.Join(refused...)
	}
	if err := o.stop(); err != nil {
		return err
	}
	todo := p.Todo()
	if len(todo) == 0 {
		return nil
	}
	s.patience = o.Patience
	if err := s.widen(ctx, p); err != nil {
		return err
	}
	if p.createNamespace && !ships(p, s.id.Namespace) {
		if err := s.createNamespace(ctx, s.id.Namespace); err != nil {
			return err
		}
	}
	return s.stages(ctx, p, todo, o)
}

// stages applies the steps stage by stage. Built-in kinds need no definition, so they are applied while the definitions
// come into service; custom resources, and what is after them, are applied when they are served, and nothing is done before.
func (s *Set) stages(ctx context.Context, p *Plan, todo []*Step, o ApplyOptions) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var served errgroup.Group
	giveUp := func(err error) error {
		cancel()
		_ = served.Wait() // its error is that of the cancellation
		return err
	}
	for first := true; len(todo) > 0; first = false {
		n := 0
		for n < len(todo) && todo[n].Object.Stage == todo[0].Object.Stage {
			n++
		}
		steps := todo[:n]
		if steps[0].Object.Stage >= bundle.StageCustom {
			if err := served.Wait(); err != nil {
				return err
			}
		}
		if !first { // Apply has asked before the first
			if err := o.stop(); err != nil {
				return giveUp(err)
			}
		}
		if err := s.stage(ctx, p, steps); err != nil {
			return giveUp(err)
		}
		if steps[0].Object.Stage == bundle.StageDefinitions {
			served.Go(func() error { return s.waitServed(ctx, p, steps) })
		}
		todo = todo[n:]
	}
	return served.Wait()
}

// ships says whether the bundle has the namespace as an object.
func ships(p *Plan, namespace string) bool {
	return slices.ContainsFunc(p.bundle.Objects, func(o *bundle.Object) bool {
		return o.Ref == bundle.Ref{Kind: "Namespace", Name: namespace}
	})
}

// widen makes the parent a superset of what the runtime will have, before it has it. What digests it has stay: they are of the bundle
// that was last applied to the end, and each object says by its own digest which it is of.
func (s *Set) widen(ctx context.Context, p *Plan) error {
	kinds, spaces := used(p)
	next := s.parent
	next.kinds = union(s.parent.kinds, kinds)
	next.namespaces = union(s.parent.namespaces, spaces)
	if s.parent.found && len(next.kinds) == len(s.parent.kinds) && len(next.namespaces) == len(s.parent.namespaces) {
		return nil
	}
	return s.writeParent(ctx, next)
}

// used are the kinds and namespaces of the bundle's members, sorted.
func used(p *Plan) ([]schema.GroupKind, []string) {
	var kinds []schema.GroupKind
	var spaces []string
	for _, step := range p.Steps {
		if !step.Object.Member {
			continue
		}
		kinds = append(kinds, step.Ref.GroupKind())
		if step.Ref.Namespace != "" && step.Ref.Namespace != v1beta2.SystemNamespace {
			spaces = append(spaces, step.Ref.Namespace)
		}
	}
	return union(nil, kinds), union(nil, spaces)
}

// union of two lists, sorted, each entry once.
func union[T comparable](a, b []T) []T {
	seen := map[T]bool{}
	var out []T
	for _, list := range [][]T{a, b} {
		for _, v := range list {
			if !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return fmt.Sprint(out[i]) < fmt.Sprint(out[j]) })
	return out
}

// stage applies the objects of one stage in parallel. All are tried; then the errors of all are returned.
func (s *Set) stage(ctx context.Context, p *Plan, steps []*Step) error {
	return s.all(ctx, len(steps), func(i int) error { return s.applyOne(ctx, p, steps[i]) })
}

// all does something for each of n objects, for as many as may be at the same time, whatever becomes of the others; then the errors
// of all are returned, in the order of the objects. Where they are done in turn, a runtime that does not answer one of them is not
// asked for the others. There is not a goroutine for each, and the caller's is one of them: each new one
// grows a stack.
func (s *Set) all(ctx context.Context, n int, do func(i int) error) error {
	errs := make([]error, n)
	var taken atomic.Int64
	work := func() {
		for i := int(taken.Add(1)) - 1; i < n; i = int(taken.Add(1)) - 1 {
			errs[i] = do(i)
			if cluster.IsInTurn(ctx) && isUnanswered(errs[i]) {
				return
			}
		}
	}
	var workers sync.WaitGroup
	for range min(s.a.parallel(ctx), n) - 1 {
		workers.Go(work)
	}
	func() {
		defer workers.Wait() // also if the caller's share panics
		work()
	}()
	return errors.Join(errs...)
}

// isUnanswered says whether a runtime did not answer.
func isUnanswered(err error) bool {
	return errors.Is(err, cluster.ErrUnreachable) || errors.Is(err, cluster.ErrTimeout)
}

func (s *Set) applyOne(ctx context.Context, p *Plan, step *Step) error {
	if err := ctx.Err(); err != nil {
		return &ObjectError{Object: step.Ref, Err: context.Cause(ctx)}
	}
	body, err := s.prepare(ctx, p, step)
	if err != nil {
		return &ObjectError{Object: step.Ref, Err: err}
	}
	var answer metav1.PartialObjectMetadata
	if err := s.sendServed(ctx, p, step, body, &answer); err != nil {
		return &ObjectError{Object: step.Ref, Hint: hintFor(err, step), Err: err}
	}
	for _, key := range step.contests {
		s.a.contests.record(key)
	}
	if err := s.learn(step, &answer); err != nil {
		return &ObjectError{Object: step.Ref, Err: err}
	}
	s.a.o.Progress(Event{Object: step.Ref, Action: step.Action, Drift: step.Drift, Message: step.Reason})
	return nil
}

// prepare clears the way for an object and returns the bytes to send.
func (s *Set) prepare(ctx context.Context, p *Plan, step *Step) ([]byte, error) {
	if step.live != nil && step.live.DeletionTimestamp != nil {
		if err := s.waitGone(ctx, step.Resource, step.Ref); err != nil {
			return nil, err
		}
		step.yielded = nil
	}
	if step.Action == ActionAdopt {
		if err := s.adopt(ctx, step); err != nil {
			return nil, err
		}
	}
	if step.first() {
		step.yielded = s.yieldedBeforeUs(p, step)
	}
	if len(step.yielded) == 0 {
		return step.Object.Bytes, nil
	}
	return without(step.Object, step.yielded)
}

// sendServed is send, but waits for the object's kind where the bundle defines it and it is not served: an installation that was
// cut short may have left a definition that is not in service yet.
func (s *Set) sendServed(ctx context.Context, p *Plan, step *Step, body []byte, answer *metav1.PartialObjectMetadata) error {
	err := s.send(ctx, step, body, answer)
	if !errors.Is(err, cluster.ErrNoKind) {
		return err
	}
	for _, d := range p.definitions[step.Resource.Resource+"."+step.Resource.Group] {
		if resourceOf(d) != step.Resource {
			continue
		}
		if err := s.waitServedOne(ctx, d); err != nil {
			return err
		}
		return s.send(ctx, step, body, answer)
	}
	return err
}

// first says that an object exists, and is applied by us for the first time.
func (step *Step) first() bool {
	return step.Action == ActionAdopt || (step.Action == ActionUpdate && step.live != nil && ownEntry(step.live, step.Object.Manager) == nil)
}

// send applies an object, making the module's namespace where it has gone missing.
func (s *Set) send(ctx context.Context, step *Step, body []byte, answer *metav1.PartialObjectMetadata) error {
	write := func() error {
		return s.t.Writer.Apply(ctx, step.Resource, step.Ref.Namespace, step.Ref.Name, body,
			cluster.ApplyOptions{Manager: step.Object.Manager, Force: true}, answer)
	}
	err := write()
	if errors.Is(err, cluster.ErrNotFound) && step.Ref.Namespace == s.id.Namespace && isNamespaceMissing(err, s.id.Namespace) {
		if err := s.createNamespace(ctx, s.id.Namespace); err != nil {
			return err
		}
		return write()
	}
	return err
}

// Bounds on waiting for one object within a stage.
const (
	firstLook = 10 * time.Millisecond
	// quickLooks are made at quickLook at most: most definitions come into service within half a second, and a look costs a
	// millisecond of the server.
	quickLook  = 40 * time.Millisecond
	quickLooks = 50
	lastLook   = 500 * time.Millisecond
	maxLooks   = 240 // two minutes at lastLook
)

// poll looks until done, at growing intervals, at most maxLooks times, or until the patience is over. It returns false when
// that was not enough.
func (s *Set) poll(ctx context.Context, look func() (bool, error)) (bool, error) {
	delay, waited := firstLook, time.Duration(0)
	for looks := range maxLooks {
		done, err := look()
		if done || err != nil {
			return done, err
		}
		if waited += delay; s.patience > 0 && waited > s.patience {
			return false, nil
		}
		select {
		case <-ctx.Done():
			return false, nil
		case <-s.a.o.After(delay):
		}
		most := lastLook
		if looks < quickLooks {
			most = quickLook
		}
		delay = min(delay+delay/2, most)
	}
	return false, nil
}

// waitServed waits until the definitions among the steps are served: custom resources are refused before.
func (s *Set) waitServed(ctx context.Context, p *Plan, steps []*Step) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(s.a.o.Parallel)
	for _, step := range steps {
		for _, d := range p.definitions[step.Ref.Name] {
			if !step.Object.IsDefinition() {
				continue
			}
			g.Go(func() error {
				if err := s.waitServedOne(ctx, d); err != nil {
					return &ObjectError{Object: step.Ref, Err: err}
				}
				return nil
			})
		}
	}
	return g.Wait()
}

// looksBeforeAsking is how often a definition is looked for before its conditions are read: one whose names are taken by
// another will never be served.
const looksBeforeAsking = quickLooks + 5

func (s *Set) waitServedOne(ctx context.Context, d bundle.Definition) error {
	looks := 0
	served, err := s.poll(ctx, func() (bool, error) {
		if looks++; looks == looksBeforeAsking {
			if err := s.namesRefused(ctx, d); err != nil {
				return false, err
			}
		}
		return s.t.Client.Serves(ctx, resourceOf(d))
	})
	if err == nil && !served {
		return s.whyNotServed(ctx, d)
	}
	return err
}

// looksBetweenPokes is some seconds' worth of looks.
const looksBetweenPokes = 6

// waitGone waits until an object that is being deleted is gone.
func (s *Set) waitGone(ctx context.Context, r cluster.Resource, ref bundle.Ref) error {
	var live metav1.PartialObjectMetadata
	looks := 0
	gone, err := s.poll(ctx, func() (bool, error) {
		err := s.t.Client.Get(ctx, r, ref.Namespace, ref.Name, &live)
		if errors.Is(err, cluster.ErrNotFound) {
			return true, nil
		}
		if looks++; err == nil && looks >= looksBeforeAsking && (looks-looksBeforeAsking)%looksBetweenPokes == 0 && ref.GroupKind() == crds.GVK().GroupKind() {
			err = s.poke(ctx, ref.Name, live.UID, s.a.o.Now())
		}
		return live.DeletionTimestamp == nil && err == nil, err
	})
	if err != nil || gone {
		return err
	}
	return notYet(ctx, fmt.Errorf("waiting for its deletion, which finalizers %v hold up: %w", live.Finalizers, cluster.ErrTimeout))
}

// learn remembers fields of an object just applied that the server dropped or gave to nobody: they would look like drift
// for ever.
func (s *Set) learn(step *Step, answer *metav1.PartialObjectMetadata) error {
	entry := ownEntry(answer, step.Object.Manager)
	if entry == nil {
		return nil
	}
	missing, err := s.a.memo.uncovered(step.Object, entry)
	if err != nil {
		return err
	}
	sent := map[string]bool{}
	for _, path := range step.yielded {
		sent[path.pointer()] = true
	}
	for _, path := range missing {
		if !sent[path.pointer()] {
			s.addLearnt(step, path)
		}
	}
	return s.unlearn(step, missing)
}

// unlearn forgets fields that the server does keep now, such as those that a new version of a definition knows.
func (s *Set) unlearn(step *Step, missing []fieldPath) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := learntKind(step)
	if len(s.parent.learnt[k]) == 0 {
		return nil
	}
	obj, err := decode(step.Object.Bytes)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, path := range leaves(obj) {
		kept[path.pointer()] = true
	}
	for _, path := range missing {
		kept[path.pointer()] = false
	}
	s.parent.learnt = maps.Clone(s.parent.learnt)
	s.parent.learnt[k] = slices.DeleteFunc(slices.Clone(s.parent.learnt[k]), func(pointer string) bool { return kept[pointer] })
	if len(s.parent.learnt[k]) == 0 {
		delete(s.parent.learnt, k)
	}
	return nil
}

// maxLearnt bounds the fields that are learnt of one kind: beyond it, they show as drift, which somebody will look at.
const maxLearnt = 200

func (s *Set) addLearnt(step *Step, path fieldPath) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := map[string][]string{}
	for k, v := range s.parent.learnt {
		next[k] = v
	}
	k := learntKind(step)
	if !slices.Contains(next[k], path.pointer()) && len(next[k]) < maxLearnt {
		next[k] = append(slices.Clone(next[k]), path.pointer())
		slices.Sort(next[k])
	}
	s.parent.learnt = next
}

// learntFields are the fields learnt so far. The map is replaced when more are learnt, and never changed.
func (s *Set) learntFields() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.parent.learnt
}

func learntKind(step *Step) string {
	return step.Object.Version + "/" + step.Ref.GroupKind().String()
}
