package module

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/engine"
	builtin "github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/reconciler"
)

// settle reports what a run came to, and tells the engine when to call again.
func (c *Controller) settle(ctx context.Context, r *engine.Run, o *observation, result reconciler.Result) engine.Result {
	out := c.judge(ctx, r, o, result)
	// Of the reconcilers of others it is not known whether they asked the runtime.
	out.Offline = o.component.Template.Reconciler != "" && out.Outcome != engine.Unreachable
	return out
}

// judge is what a run came to.
func (c *Controller) judge(ctx context.Context, r *engine.Run, o *observation, result reconciler.Result) engine.Result {
	if runtimeErr := (*builtin.RuntimeError)(nil); errors.As(result.Err, &runtimeErr) {
		return engine.Result{Outcome: engine.Unreachable, Message: result.Err.Error()}
	}
	switch result.Outcome {
	case reconciler.OutcomeSuperseded:
		return engine.Result{Outcome: engine.Superseded, Message: "newer state is wanted"}
	case reconciler.OutcomeWaiting:
		r.Await(result.Needs...)
		o.missing = result.Needs
		if c.arrived(ctx, o, result.Needs) {
			return engine.Result{Outcome: engine.Pending, After: time.Millisecond, Message: "what it waits for has just come"}
		}
		return c.wait(o)
	case reconciler.OutcomeDone:
		return c.done(ctx, r, o, result)
	case reconciler.OutcomeTerminal:
		return c.failed(ctx, o, result)
	default:
		return c.retry(ctx, r, o, result)
	}
}

// contestedAgain is when a field that is left to another is fought for again.
const contestedAgain = 5 * time.Minute

func (c *Controller) done(ctx context.Context, r *engine.Run, o *observation, result reconciler.Result) engine.Result {
	c.reachable(o)
	log := logr.FromContextOrDiscard(ctx)
	if o.component.Template.Reconciler != "" {
		if err := c.publish(ctx, o, result.Facts); client.IgnoreNotFound(err) != nil {
			return c.retry(ctx, r, o, reconciler.Result{Outcome: reconciler.OutcomeRetry, Err: err, InputDigest: result.InputDigest, BundleDigest: result.BundleDigest, Revision: result.Revision})
		}
	}
	if o.component.Deleting {
		log.Info("Removed the module")
		c.event(o, corev1.EventTypeNormal, "ModuleRemoved", "Remove", "Module "+o.desired.Name+" was removed")
		c.o.Removed(o.name, o.key.Component)
		c.o.Status.Gone(o.name, o.key.Component, o.end)
		return engine.Result{Outcome: engine.Done, Message: "removed"}
	}
	out := engine.Result{Outcome: engine.Done, Message: "ready"}
	first := o.current == nil || o.current.State != v1beta2.StateReady
	upgraded := !first && o.current.Version != o.desired.Version
	o.complete = true
	c.o.Journal.Settle(o.entry())
	report := o.report(func(m *v1beta2.ModuleStatus) {
		m.State, m.InputDigest, m.BundleDigest = v1beta2.StateReady, result.InputDigest, result.BundleDigest
		m.Version, m.Revision = o.desired.Version, result.Revision
		if o.desired.Notice != nil {
			m.State, m.Message = o.desired.Notice.State, o.desired.Notice.Message
		}
		if warning, found := contested(result.Warnings); found {
			m.State, m.Message = v1beta2.StateWarning, warning
			out.After = contestedAgain
		}
	})
	// One of a wave, and not what somebody has just asked for in this Kyma.
	report.Patiently = upgraded && report.Module.State == v1beta2.StateReady && o.kyma.Status.ObservedGeneration == o.kyma.Generation
	c.o.Status.Report(o.name, report)
	if first || upgraded {
		log.Info("The module is ready", "version", o.desired.Version)
		c.eventOfMany(o, "ModuleReady", "Install", fmt.Sprintf("Module %s %s is ready", o.desired.Name, o.desired.Version))
		c.o.Ready(sinceChange(o))
	}
	c.o.Wake(o.key.Runtime, v1beta2.FactModulePrefix+o.desired.Name)
	return out
}

// sinceChange is how long ago the module stopped being ready; where nobody was told that it did, how long the run took.
func sinceChange(o *observation) time.Duration {
	if o.current == nil || o.current.LastTransitionTime.IsZero() || o.current.State == v1beta2.StateReady {
		return time.Since(o.began)
	}
	return time.Since(o.current.LastTransitionTime.Time)
}

// contested is the message of a warning that a field was given up.
func contested(warnings []reconciler.Warning) (string, bool) {
	for _, w := range warnings {
		if w.Reason == apply.ReasonFieldContested {
			return w.Message, true
		}
	}
	return "", false
}

// failed reports what only a change can mend.
func (c *Controller) failed(ctx context.Context, o *observation, result reconciler.Result) engine.Result {
	c.reachable(o)
	message := result.Err.Error()
	if o.current == nil || o.current.State != v1beta2.StateError || o.current.Message != message {
		logr.FromContextOrDiscard(ctx).Info("The module failed", "reason", message)
		c.event(o, corev1.EventTypeWarning, "ModuleFailed", "Install", message)
	}
	c.report(o, func(m *v1beta2.ModuleStatus) {
		m.State, m.Message = v1beta2.StateError, message
		o.digests(m, result)
	})
	return engine.Result{Outcome: engine.Failed, Message: message}
}

// tolerated is how many attempts may fail before a module is in error.
const tolerated = 2

// retry reports what is not there yet, or failed for a passing reason.
func (c *Controller) retry(ctx context.Context, r *engine.Run, o *observation, result reconciler.Result) engine.Result {
	if ctx.Err() != nil {
		return engine.Result{Outcome: engine.Retry, Message: context.Cause(ctx).Error()}
	}
	c.reachable(o)
	if result.Err == nil {
		c.report(o, func(m *v1beta2.ModuleStatus) {
			m.State, m.Message = v1beta2.StateProcessing, result.Message
			o.digests(m, result)
			if o.component.Deleting {
				m.State = v1beta2.StateDeleting
			}
		})
		return engine.Result{Outcome: engine.Pending, After: patience(o, result.After), Message: result.Message}
	}
	state := v1beta2.StateProcessing
	if r.Attempt() > tolerated {
		state = v1beta2.StateError
	}
	outcome := engine.Retry
	if failed := (*builtin.FailedError)(nil); errors.As(result.Err, &failed) {
		state, outcome = v1beta2.StateError, engine.Pending
	}
	if blocked := (*builtin.BlockedError)(nil); errors.As(result.Err, &blocked) {
		state, outcome = v1beta2.StateWarning, engine.Pending
	}
	message := result.Err.Error()
	if state == v1beta2.StateError && (o.current == nil || o.current.State != state) {
		c.event(o, corev1.EventTypeWarning, "ModuleFailing", "Install", message)
	}
	c.report(o, func(m *v1beta2.ModuleStatus) {
		m.State, m.Message = state, message
		o.digests(m, result)
		if o.component.Deleting && state == v1beta2.StateProcessing {
			m.State = v1beta2.StateDeleting
		}
	})
	return engine.Result{Outcome: outcome, After: result.After, Message: message}
}

// firstLook and lastLook are the shortest and longest time between two looks at what is not ready yet.
const (
	firstLook = 150 * time.Millisecond
	lastLook  = 5 * time.Second
)

// patience is when to look again at what is not there yet: after a quarter of the time that it has taken so far, so that what is
// quick is seen at once and what is slow costs little. A reconciler that asks for more than lastLook gets it.
func patience(o *observation, asked time.Duration) time.Duration {
	switch {
	case asked > lastLook:
		return asked
	case o.current == nil || o.current.LastTransitionTime.IsZero():
		return firstLook
	}
	return min(max(time.Since(o.current.LastTransitionTime.Time)/4, firstLook), lastLook)
}

// digests are those of what was applied to the end, by this run or, if it did not get as far as to write anything, by one before.
func (o *observation) digests(m *v1beta2.ModuleStatus, result reconciler.Result) {
	if o.touched || result.InputDigest != "" {
		m.InputDigest, m.BundleDigest, m.Revision = result.InputDigest, result.BundleDigest, result.Revision
	}
}

// reachable reports that the runtime answers, where the status does not say so.
func (c *Controller) reachable(o *observation) {
	if o.shaky {
		return
	}
	if known := c.o.Status.Reachability(o.kyma); known != nil && known.Reason == v1beta2.ReasonReachable {
		return
	}
	c.o.Status.Reachable(o.kyma, v1beta2.ReasonReachable, "the runtime answers")
}

// progress records what people should know of: what was put back, and who had changed it.
func (c *Controller) progress(o *observation, e apply.Event) {
	what := "was put back"
	switch {
	case e.Action == apply.ActionCreate && o.unchanged():
		what = "was missing and was made again"
	case e.Action != apply.ActionRepair:
		return
	}
	note := fmt.Sprintf("Module %s: %s %s", o.desired.Name, e.Object, what)
	for i, d := range e.Drift {
		if i == maxDrift {
			note += fmt.Sprintf(" and %d more", len(e.Drift)-i)
			break
		}
		note += fmt.Sprintf("; %s", d)
	}
	if e.Message != "" {
		note += ": " + e.Message
	}
	c.eventOn(o, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: schema.GroupVersion{Group: e.Object.Group, Version: "v1"}.String(), Kind: e.Object.Kind}, // of the version nothing depends
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Object.Namespace, Name: e.Object.Name},
	}, corev1.EventTypeNormal, "DriftReverted", "Repair", note)
}

// maxDrift bounds the fields that an event names, and maxNote an event's note, which the API limits to 1 kB.
const (
	maxDrift = 5
	maxNote  = 1000
)

// event records what happened to a module.
func (c *Controller) event(o *observation, kind, reason, action, note string) {
	c.eventOn(o, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta2.GroupVersion.String(), Kind: "ModuleTemplate"},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.name.Namespace, Name: o.desired.Name + "-" + o.desired.Version},
	}, kind, reason, action, note)
}

// Events of what many modules do at the same time, such as being upgraded, are for people: a wave of thousands of them is not.
const (
	eventsPerSecond = 5
	eventsBurst     = 50
)

// eventOfMany records that something went well, as long as not too much does.
func (c *Controller) eventOfMany(o *observation, reason, action, note string) {
	if c.events.Allow() {
		c.event(o, corev1.EventTypeNormal, reason, action, note)
	}
}

// eventOn records an event at the Kyma. What it is related to tells it from others: of events that differ in their note only, the
// recorder keeps the first note and counts the others.
func (c *Controller) eventOn(o *observation, related runtime.Object, kind, reason, action, note string) {
	if len(note) > maxNote {
		note = strings.ToValidUTF8(note[:maxNote], "")
	}
	c.o.Events.Eventf(o.kyma, related, kind, reason, action, "%s", note)
}
