// Package module works on one module of one runtime at a time: it finds out what the module shall be, compares that with what the
// Kyma's status says, and has a component reconciler do the rest where the two differ.
//
// # Overview
//
// Run is called by the engine. It goes observe → next → act: observe gathers from caches what is wanted, what was applied, and
// whether the one is the other; next decides, as a pure function of the observation; act does it and reports to the status writer.
// A module whose input digest is that of the status, in the same cluster, and which nothing is suspected of, costs no call at all.
//
// # Invariants
//
// Before the first write of other input to a runtime, the module is in the journal: whatever happens then, the next run does not take
// the status, which still says that the old input is what is there, for true. It stays there until a status that is true again is
// written. Waits are registered before facts are read.
//
// The package may import what is below the controllers; other controllers know it by the engine only.
package module

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/catalog"
	"github.com/kyma-project/mothership/internal/cluster"
	"github.com/kyma-project/mothership/internal/controllers/kyma/status"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/journal"
	builtin "github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/reconciler"
)

// Options of New. All but Custom, Working, Removed and Ready are needed.
type Options struct {
	// Cache reads Kymas and Runtimes, Live reads the Secrets and ConfigMaps of valuesFrom.
	Cache, Live client.Reader
	// Writer writes the facts that reconcilers state to the status of Runtimes.
	Writer client.StatusClient
	// Catalog says what modules are.
	Catalog *catalog.Store
	// Access has the connections to runtimes.
	Access *access.Pool
	// Status takes the reports.
	Status *status.Writer
	// Suspects are modules that must be looked at in the runtime whatever their digests say.
	Suspects *fleet.Suspects
	// Claims say which Kyma has which cluster.
	Claims *fleet.Claims
	// Journal remembers which modules are being changed.
	Journal *journal.Journal
	// Builtin is the component reconciler of templates that name none, Custom are the others, by name.
	Builtin *builtin.Reconciler
	Custom  map[string]reconciler.Reconciler
	// Wake tells the engine that facts about a runtime have arrived.
	Wake func(runtime string, facts ...string)
	// Working is told that a module is being worked on, until done is called.
	Working func(runtime types.NamespacedName, module string) (done func())
	// Removed is told that a module was removed from a runtime.
	Removed func(runtime types.NamespacedName, module string)
	// Events are recorded at Kymas.
	Events events.EventRecorder
	// Ready is told how long it took from a change until a module was ready.
	Ready func(took time.Duration)
}

// Controller works on modules. It is safe for concurrent use on different keys.
type Controller struct {
	o      Options
	events *rate.Limiter
}

// New makes a Controller.
func New(o Options) *Controller {
	if o.Working == nil {
		o.Working = func(types.NamespacedName, string) func() { return func() {} }
	}
	if o.Removed == nil {
		o.Removed = func(types.NamespacedName, string) {}
	}
	if o.Ready == nil {
		o.Ready = func(time.Duration) {}
	}
	return &Controller{o: o, events: rate.NewLimiter(eventsPerSecond, eventsBurst)}
}

var _ engine.Runner = (*Controller)(nil)

// Run works on one module of one runtime.
func (c *Controller) Run(ctx context.Context, r *engine.Run) engine.Result {
	o, err := c.observe(ctx, r)
	if apierrors.IsNotFound(err) {
		return engine.Result{Outcome: engine.Done, Offline: true, Message: "there is no such Kyma"}
	}
	if err != nil {
		return engine.Result{Outcome: engine.Retry, Offline: true, Message: err.Error()}
	}
	a := next(o)
	if a == actRemove || a == actWork {
		return c.work(ctx, r, o)
	}
	result := c.say(a, r, o)
	result.Offline = true
	return result
}

// say does what can be done without asking the runtime.
func (c *Controller) say(a action, r *engine.Run, o *observation) engine.Result {
	switch a {
	case actLeave:
		if o.wanted {
			c.o.Status.Evaluated(o.kyma, o.desired.Name)
		}
		return engine.Result{Outcome: engine.Done, Message: "nothing to do"}
	case actSkip:
		c.o.Status.Evaluated(o.kyma, o.desired.Name)
		return engine.Result{Outcome: engine.Done, Message: "as it should be"}
	case actProblem:
		return c.problem(o)
	case actUnmanage:
		return c.unmanage(o)
	case actForget:
		c.o.Status.Gone(o.name, o.key.Component, c.o.Journal.Ending(o.entry()))
		return engine.Result{Outcome: engine.Done, Message: "forgotten"}
	case actWait:
		return c.wait(o)
	case actUnavailable:
		return c.unavailable(r, o)
	default:
		return engine.Result{Outcome: engine.Failed, Message: fmt.Sprintf("no such action: %d", a)}
	}
}

// unavailable reports that the source cannot be had. A module that is there in the wanted version does not need it now: it stays, and
// after some attempts people are told that nobody can say whether it is what it should be.
func (c *Controller) unavailable(r *engine.Run, o *observation) engine.Result {
	message := o.unavailable.Error()
	switch {
	case !o.installed():
		c.report(o, func(m *v1beta2.ModuleStatus) {
			m.State, m.Message = v1beta2.StateProcessing, message
			if r.Attempt() > tolerated {
				m.State = v1beta2.StateError
			}
		})
	case r.Attempt() > tolerated:
		c.report(o, func(m *v1beta2.ModuleStatus) {
			m.State, m.Message = v1beta2.StateWarning, stays(o.unavailable)
		})
	}
	return engine.Result{Outcome: engine.Retry, Message: message}
}

// stays is the message about a source that failed of a module that is there.
func stays(err error) string {
	return "what is installed stays; its source cannot be read: " + err.Error()
}

// problem reports what a person has to mend. What is in the runtime stays as it is.
func (c *Controller) problem(o *observation) engine.Result {
	c.report(o, func(m *v1beta2.ModuleStatus) {
		m.State, m.Message = o.problem.State, o.problem.Message
	})
	return engine.Result{Outcome: engine.Failed, Message: o.problem.Message}
}

func (c *Controller) unmanage(o *observation) engine.Result {
	c.report(o, func(m *v1beta2.ModuleStatus) {
		m.State, m.Message = v1beta2.StateUnmanaged, "left alone (managed: false)"
		m.InputDigest = "" // it may be changed meanwhile
	})
	return engine.Result{Outcome: engine.Done, Message: "unmanaged"}
}

// wait reports the missing facts. The engine wakes the module when one of them arrives.
func (c *Controller) wait(o *observation) engine.Result {
	message := "waiting for " + joined(o.missing)
	c.report(o, func(m *v1beta2.ModuleStatus) {
		m.State, m.Message, m.WaitingFor = v1beta2.StateWaiting, message, o.missing
	})
	return engine.Result{Outcome: engine.Waiting, Message: message}
}

// report merges a module's status, based on what is known of it. The version is the installed one for as long as nothing of another
// was written: one that could not be installed must not look like one that there is a way back from.
func (c *Controller) report(o *observation, change func(*v1beta2.ModuleStatus)) {
	c.o.Status.Report(o.name, o.report(change))
}

// report is a report on the module.
func (o *observation) report(change func(*v1beta2.ModuleStatus)) status.Report {
	m := v1beta2.ModuleStatus{Name: o.key.Component}
	if o.current != nil {
		m = *o.current
	}
	m.Namespace, m.WaitingFor, m.Message = o.desired.Namespace, nil, ""
	m.Channel = o.desired.Channel
	if o.desired.Version != "" && o.problem == nil && (o.touched || m.BundleDigest == "") {
		m.Version = o.desired.Version
	}
	change(&m)
	r := status.Report{Module: m, Generation: o.kyma.Generation, RuntimeUID: o.uid}
	if m.InputDigest == "" || o.complete {
		r.Written = o.end // from then on, the status is true
	}
	return r
}

// work lets the component reconciler install, change or remove the module.
func (c *Controller) work(ctx context.Context, r *engine.Run, o *observation) engine.Result {
	log := logr.FromContextOrDiscard(ctx)
	suspect := c.o.Suspects.Take(o.key)
	o.shaky = r.Shaky()
	if o.component.Template.Reconciler != "" {
		r.Progress() // it may not ask the runtime at all: others need not wait for its answer
	}
	rt, release, err := c.o.Access.Get(ctx, o.name)
	if err != nil {
		return c.unreachable(ctx, o, suspect, err)
	}
	defer release()
	o.uid, _ = rt.Known()
	if owner := c.o.Claims.Claim(o.uid, o.name); owner != o.name {
		return c.taken(o, owner)
	}
	if done, result := c.known(ctx, r, o, rt); done {
		return result
	}
	if o.current == nil {
		c.begin(o, false)
	}
	o.end = c.o.Journal.Ending(o.entry())
	req := reconciler.Request{
		Component: o.component, Runtime: rt, Facts: o.facts, Installed: c.installed(o, suspect), InputDigest: o.digest, Checkpoint: c.checkpoint(ctx, r, o),
	}
	defer c.o.Working(o.name, o.key.Component)()
	log.V(1).Info("Reconciling", "deleting", o.component.Deleting, "version", o.desired.Version)
	working := ctx
	if req.Installed != nil && o.component.Template.Reconciler == "" && r.InWave() { // others may ask as many things as they like at once
		working = cluster.InTurn(ctx)
	}
	result := c.reconcilerOf(o).Reconcile(working, req)
	if result.Outcome != reconciler.OutcomeDone && suspect {
		c.o.Suspects.Add(o.key)
	}
	return c.settle(ctx, r, o, result)
}

// installed is what the runtime has by the status, where nothing casts doubt on that. Of another version the template says what was
// rendered; that other values were given is not known any more.
func (c *Controller) installed(o *observation, suspect bool) *reconciler.Installed {
	if suspect || o.end != nil || o.current == nil || o.current.BundleDigest == "" || o.current.State != v1beta2.StateReady || !o.sameCluster() {
		return nil
	}
	out := &reconciler.Installed{BundleDigest: o.current.BundleDigest}
	if o.current.Version == o.desired.Version {
		return out
	}
	if t := c.o.Catalog.In(o.name.Namespace).Template(o.desired.Name, o.current.Version); t != nil {
		out.Component = o.component
		out.Component.Template = specOf(t, o.desired.Spec)
	}
	return out
}

// known looks once more whether there is anything to do, now that the runtime has said who it is: its Runtime may not have said so yet.
func (c *Controller) known(ctx context.Context, r *engine.Run, o *observation, rt *builtin.Runtime) (done bool, _ engine.Result) {
	if o.digest != "" || o.component.Deleting {
		return false, engine.Result{}
	}
	uid, version := rt.Known()
	if err := c.readDigest(ctx, o, uid, version); err != nil {
		return true, engine.Result{Outcome: engine.Retry, Message: err.Error()}
	}
	if a := next(o); a == actProblem || a == actSkip || a == actUnavailable {
		return true, c.say(a, r, o)
	}
	return false, engine.Result{}
}

// taken: another Kyma has the same cluster. It is looked at again now and then: the other may go.
func (c *Controller) taken(o *observation, owner types.NamespacedName) engine.Result {
	o.uid = ""
	err := access.Taken(owner)
	c.o.Status.Reachable(o.kyma, err.Reason, err.Message)
	return engine.Result{Outcome: engine.Unreachable, Message: err.Message}
}

// begin reports that work starts, lazily where it may soon be over: from the first write on, the digests of the status no longer hold.
func (c *Controller) begin(o *observation, lazily bool) {
	state, message := v1beta2.StateProcessing, "installing "+o.desired.Version
	if o.component.Deleting {
		state, message = v1beta2.StateDeleting, "removing"
	}
	r := o.report(func(m *v1beta2.ModuleStatus) {
		m.State, m.Message, m.InputDigest, m.BundleDigest, m.Revision = state, message, "", "", ""
	})
	r.Lazily = lazily
	c.o.Status.Report(o.name, r)
}

// checkpoint is where a run may stop. Before the first write of other input, the journal must have it where the status vouches for the
// old; a repair of what is there needs no such word. That the work has begun is told to people if it takes a while.
func (c *Controller) checkpoint(ctx context.Context, r *engine.Run, o *observation) func() error {
	return func() error {
		if err := r.Checkpoint(); err != nil {
			return err
		}
		if o.touched {
			return nil
		}
		o.touched = true
		if o.current == nil || o.current.InputDigest == "" || (o.unchanged() && !o.component.Deleting) {
			return nil
		}
		back := r.GiveWay()
		end, err := c.o.Journal.Begin(ctx, o.entry())
		back()
		if err != nil {
			return err
		}
		o.end = end
		c.begin(o, true)
		return nil
	}
}

func (c *Controller) reconcilerOf(o *observation) reconciler.Reconciler {
	if custom := c.o.Custom[o.component.Template.Reconciler]; custom != nil {
		return custom
	}
	return c.o.Builtin.WithProgress(func(e apply.Event) { c.progress(o, e) })
}

// unreachable reports that the runtime as a whole does not answer. What is known of its modules stays. Where there is nothing to ask yet,
// nobody need be probed: whoever makes the Runtime or its kubeconfig has everything looked at, and the other modules may have
// something to say that does not depend on it.
func (c *Controller) unreachable(ctx context.Context, o *observation, suspect bool, err error) engine.Result {
	if suspect {
		c.o.Suspects.Add(o.key)
	}
	if missing := (*access.Error)(nil); errors.As(err, &missing) {
		known := c.o.Status.Reachability(o.kyma)
		if known == nil || known.Reason != missing.Reason {
			logr.FromContextOrDiscard(ctx).Info("The runtime cannot be asked", "reason", missing.Reason, "message", missing.Message)
			c.o.Status.Reachable(o.kyma, missing.Reason, missing.Message)
		}
		return engine.Result{Outcome: engine.Retry, Offline: true, Message: err.Error()}
	}
	if errors.Is(err, context.Canceled) {
		return engine.Result{Outcome: engine.Retry, Message: err.Error()}
	}
	return engine.Result{Outcome: engine.Unreachable, Message: err.Error()}
}
