// Package reconciler is the contract for whatever drives one component of one runtime: a module, or a piece of
// infrastructure.
//
// # Overview
//
// A Reconciler gets the object, as it shall be, and a client for its runtime; never the reason why it is called. It
// checks everything, does what is missing, and says how far it came: Done, Waiting for named facts, Retry, Terminal, or
// Superseded by a newer desired state where Request.Checkpoint says so. It is called again after every change of the object, of a
// fact it waits for, or of the runtime, and now and then without any.
//
// # Usage
//
// A team that owns one module usually wraps the built-in module reconciler (mothership.NewReconciler) with Hooks and writes
// only what is special about it; see the example of With.
//
// # Invariants
//
// Reconcile is idempotent and keeps no state that it cannot lose. It returns when its context ends. It never sleeps: it
// returns RetryAfter and is called again.
//
// The package may import the api module, apimachinery and controller-runtime's client. Nothing internal.
package reconciler

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
)

// Reconciler drives one component of one runtime to what the request says. Implementations are safe for concurrent use on
// different components; no two calls are made for the same component at the same time.
type Reconciler interface {
	Reconcile(ctx context.Context, req Request) Result
}

// Func is a function as a Reconciler.
type Func func(ctx context.Context, req Request) Result

// Reconcile calls the function.
func (f Func) Reconcile(ctx context.Context, req Request) Result { return f(ctx, req) }

// Request is one call's input.
type Request struct {
	// Component is the object: what shall be.
	Component Component
	// Runtime is where.
	Runtime Runtime
	// Facts that are known about the runtime, by key.
	Facts map[string]string
	// Installed is what the runtime has, nil if that is not known. It was found out at some time in the past: it may save work where
	// that is done anew, and never makes up for a look at something that is said to be as it should be.
	Installed *Installed
	// InputDigest is that of Component, where the caller knows it; empty otherwise.
	InputDigest string
	// Checkpoint is asked at points where the call may stop without losing anything: before the first write, between
	// stages, before pruning. An error stops it there: return Superseded with it, and the component is called again at once
	// with what is desired by then. It is asked by the goroutine that runs the call. Nil never stops.
	Checkpoint func() error
}

// Installed is what an earlier call applied to the end.
type Installed struct {
	// BundleDigest is that of its Result.
	BundleDigest string
	// Component is the object as it was then. It is empty where that is not known.
	Component Component
}

// Stop asks the checkpoint, if there is one. An error says that the call shall end with Superseded.
func (r Request) Stop() error {
	if r.Checkpoint == nil {
		return nil
	}
	return r.Checkpoint()
}

// Component is the desired state of one component of one runtime. A Reconciler may change its copy.
type Component struct {
	// Name of the component: of a module, the module's name.
	Name string
	// Namespace in the runtime that the component is installed into.
	Namespace string
	// Template says where the module comes from and how it is treated.
	Template v1beta2.ModuleTemplateSpec
	// Values are the user's; they go over the template's.
	Values map[string]any
	// Deleting says that the component is to be removed.
	Deleting bool
}

// Runtime is one managed cluster, as a Reconciler sees it.
type Runtime interface {
	// Name of the runtime, unique in the fleet.
	Name() string
	// Client talks to the runtime: limited, with deadlines, counted. It reads live and does not watch.
	Client() (client.Client, error)
}

// Outcome says how a call ended.
type Outcome int

// The outcomes.
const (
	// OutcomeDone: everything is as the object says, and ready; or, of a deleting component, gone.
	OutcomeDone Outcome = iota
	// OutcomeWaiting: facts are missing. It is not a failure and costs no retry.
	OutcomeWaiting
	// OutcomeRetry: the same call may get further later.
	OutcomeRetry
	// OutcomeTerminal: only a change of the object helps.
	OutcomeTerminal
	// OutcomeSuperseded: the call stopped at a checkpoint. It is neither done nor failed, and nothing is lost.
	OutcomeSuperseded
)

// String is the outcome in lower case.
func (o Outcome) String() string {
	return [...]string{"done", "waiting", "retry", "terminal", "superseded"}[o]
}

// Fact is a named value that a component publishes about its runtime. It must not be confidential.
type Fact struct{ Key, Value string }

// Result is what a call came to. Make one with Done, Waiting, Retry, RetryAfter, Terminal or Superseded.
type Result struct {
	// Outcome says how the call ended.
	Outcome Outcome
	// Needs are the keys of the missing facts of OutcomeWaiting.
	Needs []string
	// Facts that hold from now on, of OutcomeDone.
	Facts []Fact
	// After is the earliest time for the next call of OutcomeRetry; zero leaves it to the caller.
	After time.Duration
	// Message says for people what is being waited for, or that all is well. Errors say it themselves.
	Message string
	// Err is the error of OutcomeRetry, if there is one, of OutcomeTerminal, and the checkpoint's of OutcomeSuperseded.
	Err error

	// InputDigest and BundleDigest name what this call applied to the end: all that went in, and the objects. They do not wait
	// for readiness. Where they are empty it did not get that far, and what is in the runtime may be a mixture: what earlier calls
	// said of it no longer holds once Checkpoint was asked.
	InputDigest, BundleDigest string
	// Revision is what the source of that was resolved to, for people: "main@sha1:…", or its digest.
	Revision string
	// Warnings for people, as BoundWarnings makes them.
	Warnings []Warning
}

// Done says that all is as the object says, and which facts hold from now on.
func Done(facts ...Fact) Result { return Result{Outcome: OutcomeDone, Facts: facts} }

// Waiting says which facts are missing.
func Waiting(needs ...string) Result { return Result{Outcome: OutcomeWaiting, Needs: needs} }

// Retry says that something failed that may work later.
func Retry(err error) Result { return Result{Outcome: OutcomeRetry, Err: err} }

// RetryAfter says that nothing failed, but something is not there yet.
func RetryAfter(d time.Duration, message string) Result {
	return Result{Outcome: OutcomeRetry, After: d, Message: message}
}

// Terminal says that something failed that only a change of the object can mend.
func Terminal(err error) Result { return Result{Outcome: OutcomeTerminal, Err: err} }

// Superseded says that the call stopped because its checkpoint said so, by this error.
func Superseded(err error) Result { return Result{Outcome: OutcomeSuperseded, Err: err} }
