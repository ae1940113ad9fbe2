package module

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/bundle"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/source"
	"github.com/kyma-project/mothership/reconciler"
)

// lookAgain is when a module that is not ready yet is looked at again.
const lookAgain = 2 * time.Second

// defaultPatience bounds each wait within a pass: the loop comes back, and others want their turn.
const defaultPatience = 15 * time.Second

// Reconcile is one pass: render → apply → prune → ready → report. It never waits for readiness, it says so.
func (r *Reconciler) Reconcile(ctx context.Context, req reconciler.Request) reconciler.Result {
	rt, ok := req.Runtime.(*Runtime)
	if !ok {
		return reconciler.Terminal(fmt.Errorf("the built-in reconciler cannot work on a runtime of type %T", req.Runtime))
	}
	if req.Component.Deleting {
		return r.remove(ctx, rt, req)
	}
	if missing := missingFacts(req); len(missing) > 0 {
		return reconciler.Waiting(missing...)
	}
	s, err := r.openRequest(ctx, rt, req)
	if err != nil {
		return resultOf(ctx, err)
	}
	return s.described(s.pass(ctx, req))
}

// pass observes, applies and looks once.
func (s *Session) pass(ctx context.Context, req reconciler.Request) reconciler.Result {
	if err := s.change(ctx, req); err != nil {
		return resultOf(ctx, err)
	}
	notReady, err := s.Ready(ctx)
	if err != nil {
		return resultOf(ctx, err)
	}
	return report(s.c, notReady)
}

// openRequest is Open, and renders nothing that was rendered a moment ago.
func (r *Reconciler) openRequest(ctx context.Context, rt *Runtime, req reconciler.Request) (*Session, error) {
	rendered := r.recent.of(req.InputDigest)
	if rendered == nil {
		return r.Open(ctx, rt, req.Component)
	}
	set, err := r.openSet(ctx, rt, req.Component)
	if err != nil {
		return nil, err
	}
	return &Session{r: r, rt: rt, c: req.Component, set: set, rendered: rendered}, nil
}

// change makes the runtime what the module says.
func (s *Session) change(ctx context.Context, req reconciler.Request) error {
	o := apply.ApplyOptions{Checkpoint: req.Checkpoint, Patience: s.r.patience}
	if from := s.r.before(ctx, s.rt, req); from != nil {
		if advanced, err := s.Advance(ctx, from, o); advanced || err != nil {
			return err
		}
	}
	ctx = cluster.AtOnce(ctx)
	if err := s.Observe(ctx, true); err != nil {
		return err
	}
	return s.Apply(ctx, o)
}

// before is the bundle that the runtime has, for all that is known; nil if that is nothing.
func (r *Reconciler) before(ctx context.Context, rt *Runtime, req reconciler.Request) *bundle.Bundle {
	if req.Installed == nil || req.Installed.BundleDigest == "" || len(req.Installed.Component.Template.Yield) > 0 {
		return nil
	}
	if b := r.recent.get(req.Installed.BundleDigest); b != nil {
		return b
	}
	c := req.Installed.Component
	if c.Name == "" || c.Template.PerRuntime {
		return nil
	}
	o, err := optionsFor(ctx, rt, c, nil)
	if err != nil {
		return nil
	}
	if _, err := r.Render(ctx, c, o); err != nil { // which remembers it
		return nil
	}
	return r.recent.get(req.Installed.BundleDigest)
}

// described adds to a result what was applied to the end, and what people should know.
func (s *Session) described(r reconciler.Result) reconciler.Result {
	if s.applied {
		r.InputDigest, r.BundleDigest, r.Revision = s.rendered.InputDigest, s.rendered.Bundle.Digest, s.rendered.Revision
	}
	var warnings []reconciler.Warning
	for _, message := range s.rendered.Bundle.Warnings {
		warnings = append(warnings, reconciler.Warning{Reason: reconciler.WarningRender, Message: message})
	}
	if s.plan != nil {
		for _, message := range s.plan.Contested() {
			warnings = append(warnings, reconciler.Warning{Reason: apply.ReasonFieldContested, Message: message})
		}
	}
	r.Warnings = reconciler.BoundWarnings(warnings)
	return r
}

func missingFacts(req reconciler.Request) []string {
	var missing []string
	for _, need := range req.Component.Template.Needs {
		if _, ok := req.Facts[need]; !ok {
			missing = append(missing, need)
		}
	}
	sort.Strings(missing)
	return missing
}

// lookAgainAtFailure is when a module is looked at again that has failed, but whose objects can recover: a Deployment does,
// once its image can be had.
const lookAgainAtFailure = time.Minute

// report says how the module is. A module that is ready is itself a fact. A failed Job does not recover.
func report(c reconciler.Component, notReady []apply.NotReady) reconciler.Result {
	if err := Failure(notReady); err != nil {
		if slices.ContainsFunc(notReady, func(n apply.NotReady) bool { return n.Failed && n.Object.Kind == "Job" && n.Object.Group == "batch" }) {
			return reconciler.Terminal(err)
		}
		return retryAfter(lookAgainAtFailure, err)
	}
	if len(notReady) > 0 {
		return reconciler.RetryAfter(lookAgain, "not ready: "+summary(notReady))
	}
	return reconciler.Done(reconciler.Fact{Key: "module." + c.Name, Value: c.Template.Version})
}

// Failure is a *FailedError if any of the objects has failed.
func Failure(notReady []apply.NotReady) error {
	var failed []apply.NotReady
	for _, n := range notReady {
		if n.Failed {
			failed = append(failed, n)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return &FailedError{Objects: failed}
}

// maxNamed bounds how many objects a message names.
const maxNamed = 5

func summary(list []apply.NotReady) string {
	var parts []string
	for _, n := range list[:min(maxNamed, len(list))] {
		parts = append(parts, n.String())
	}
	if more := len(list) - maxNamed; more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// retryAfter says that something failed which people may mend meanwhile.
func retryAfter(d time.Duration, err error) reconciler.Result {
	r := reconciler.RetryAfter(d, err.Error())
	r.Err = err
	return r
}

// lookAgainAtBlocked is when a removal is looked at again that people hold up.
const lookAgainAtBlocked = time.Minute

// remove takes one step in removing the module.
func (r *Reconciler) remove(ctx context.Context, rt *Runtime, req reconciler.Request) reconciler.Result {
	set, err := r.OpenRemoval(ctx, rt, req.Component)
	if err != nil {
		return resultOf(ctx, err)
	}
	if err := req.Stop(); err != nil {
		return reconciler.Superseded(err)
	}
	removal, err := set.Remove(ctx)
	switch {
	case err != nil:
		return resultOf(ctx, err)
	case removal.Done:
		return reconciler.Done()
	case len(removal.Blocking) > 0:
		return retryAfter(lookAgainAtBlocked, &BlockedError{Removal: removal})
	}
	return reconciler.RetryAfter(lookAgain, "removing: "+summary(removal.Waiting))
}

// BlockedMessage names the custom resources that hold up a removal.
func BlockedMessage(removal *apply.Removal) string {
	var names []string
	for _, ref := range removal.Blocking[:min(maxNamed, len(removal.Blocking))] {
		names = append(names, ref.String())
	}
	if more := len(removal.Blocking) - maxNamed; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return "custom resources that the module does not own would be deleted with their definitions: " + strings.Join(names, "; ")
}

// resultOf tells what may work later from what only a change of the module can mend. A control loop goes on where others can
// mend it: another module may bring a missing kind, a person may grant a right or replace a kubeconfig. What merely is not there
// yet is no failure.
func resultOf(ctx context.Context, err error) reconciler.Result {
	stopped, runtimeErr := (*apply.StoppedError)(nil), (*RuntimeError)(nil)
	switch {
	case errors.As(err, &stopped):
		return reconciler.Superseded(stopped.Err)
	case ctx.Err() != nil || errors.As(err, &runtimeErr):
		return reconciler.Retry(err)
	case every(err, notYet):
		return reconciler.RetryAfter(lookAgain, err.Error())
	case every(err, othersCanMend):
		return reconciler.Retry(err)
	}
	return reconciler.Terminal(err)
}

// notYet says that nothing failed, but that something that goes by itself takes its time.
func notYet(err error) bool {
	return errors.As(err, new(*apply.NotYetError)) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func othersCanMend(err error) bool {
	return passing(err) || errors.Is(err, cluster.ErrNoKind) || errors.Is(err, cluster.ErrForbidden) ||
		errors.Is(err, cluster.ErrUnauthorized)
}

// Retryable says whether the same pass may succeed later without anybody changing the module. Of several errors, all
// must be retryable.
func Retryable(err error) bool { return every(err, passing) }

// every says whether something holds for each of the errors that were joined, at any depth.
func every(err error, holds func(error) bool) bool {
	if err == nil || errors.As(err, new(*source.Error)) {
		return err == nil || holds(err) // it has a reason and a cause, which are not two errors
	}
	many := (interface{ Unwrap() []error })(nil)
	if !errors.As(err, &many) {
		return holds(err)
	}
	for _, one := range many.Unwrap() {
		if !every(one, holds) {
			return false
		}
	}
	return true
}

// passing says whether one error may go by itself.
func passing(err error) bool {
	if fetch := (*source.Error)(nil); errors.As(err, &fetch) {
		return errors.Is(fetch.Reason, source.ErrUnavailable)
	}
	return cluster.IsTransient(err) || errors.Is(err, cluster.ErrConflict) ||
		errors.Is(err, cluster.ErrTimeout) || errors.Is(err, cluster.ErrExpired) || errors.Is(err, context.DeadlineExceeded) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
