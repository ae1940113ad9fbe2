// Package drift notices what happens in runtimes behind our back: by verification of a whole runtime at an interval, and by metadata
// watches where a Runtime asks for them. It also probes runtimes that did not answer.
//
// It decides nothing about a module: it makes it a suspect and has the engine look at it. The package may import what is below the
// controllers.
package drift

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kyma-project/mothership/api/v1beta2"
	"github.com/kyma-project/mothership/internal/access"
	"github.com/kyma-project/mothership/internal/controllers/kyma/status"
	"github.com/kyma-project/mothership/internal/engine"
	"github.com/kyma-project/mothership/internal/fleet"
	"github.com/kyma-project/mothership/internal/module"
	"github.com/kyma-project/mothership/reconciler"
)

// Options of New. All are needed.
type Options struct {
	Cache  client.Reader
	Access *access.Pool
	// Modules verifies.
	Modules *module.Reconciler
	// Applied are the modules of a Kyma that its status says are as they should be.
	Applied  func(ctx context.Context, k *v1beta2.Kyma) ([]reconciler.Component, error)
	Engine   *fleet.Queue
	Status   *status.Writer
	Suspects *fleet.Suspects
	Claims   *fleet.Claims
	// Interval between two verifications of a runtime.
	Interval time.Duration
	// Log of the watches.
	Log logr.Logger
}

// Controller verifies, probes and watches runtimes. It is safe for concurrent use on different runtimes.
type Controller struct {
	o       Options
	watches *watches
}

// New makes a Controller.
func New(o Options) *Controller {
	c := &Controller{o: o}
	c.watches = newWatches(o, c.suspect)
	return c
}

var _ engine.Runner = (*Controller)(nil)

// Run verifies or probes a runtime: it is called for the engine's keys of runtimes themselves.
func (c *Controller) Run(ctx context.Context, r *engine.Run) engine.Result {
	name := fleet.RuntimeOf(r.Key())
	var k v1beta2.Kyma
	if err := c.o.Cache.Get(ctx, name, &k); err != nil {
		if apierrors.IsNotFound(err) {
			return engine.Result{Outcome: engine.Done, Offline: true, Message: "there is no such Kyma"}
		}
		return engine.Result{Outcome: engine.Retry, Offline: true, Message: err.Error()}
	}
	if r.Probing() {
		return c.probe(ctx, r, &k)
	}
	if known := c.o.Status.Reachability(&k); known != nil && known.Status == metav1.ConditionFalse {
		if result := c.probe(ctx, r, &k); result.Outcome != engine.Done {
			return result
		}
	}
	if k.Spec.Suspend || k.DeletionTimestamp != nil {
		return engine.Result{Outcome: engine.Done, Offline: true, After: c.later(name), Message: "not verified while it is suspended or deleted"}
	}
	return c.verify(ctx, &k)
}

// later is the time until the next verification.
func (c *Controller) later(runtime types.NamespacedName) time.Duration {
	return fleet.Turns{Interval: c.o.Interval}.AfterRun(runtime)
}

// steadyAfter is when a runtime that answers now and then is asked whether it does for good.
const steadyAfter = 2 * time.Minute

// probe asks a runtime that did not answer whether it does now, and reports the answer where it is news: a state is one write and
// one line of the log, however often it is found. That it answers is news only when it does not stop again at once.
func (c *Controller) probe(ctx context.Context, r *engine.Run, k *v1beta2.Kyma) engine.Result {
	log := logr.FromContextOrDiscard(ctx)
	if k.DeletionTimestamp != nil && c.gone(ctx, client.ObjectKeyFromObject(k)) {
		return engine.Result{Outcome: engine.Done, Message: "the cluster is gone: its modules are let go of"}
	}
	known := c.o.Status.Reachability(k)
	if err := c.answers(ctx, client.ObjectKeyFromObject(k)); err != nil {
		if reason := access.ReasonOf(err); known == nil || known.Reason != reason {
			log.Info("The runtime does not answer", "reason", reason, "message", err.Error())
			c.o.Status.Reachable(k, reason, err.Error())
		}
		return engine.Result{Outcome: engine.Unreachable, Message: err.Error()}
	}
	if r.Shaky() {
		return engine.Result{Outcome: engine.Done, After: steadyAfter, Message: "it answers now and then"}
	}
	if known == nil || known.Reason != v1beta2.ReasonReachable {
		log.Info("The runtime answers")
	}
	c.o.Status.Reachable(k, v1beta2.ReasonReachable, "the runtime answers") // no write where it says so already
	if name := client.ObjectKeyFromObject(k); c.wantsWatch(name) && !c.watches.has(name) {
		c.o.Engine.Add(fleet.RuntimeKey(name), engine.PriorityVerify) // it was away since the start: what to watch is not known yet
	}
	return engine.Result{Outcome: engine.Done, After: c.later(client.ObjectKeyFromObject(k)), Message: "it answers"}
}

func (c *Controller) gone(ctx context.Context, name types.NamespacedName) bool {
	var r v1beta2.Runtime
	err := c.o.Cache.Get(ctx, name, &r)
	if apierrors.IsNotFound(err) {
		return access.Gone(nil)
	}
	return err == nil && access.Gone(&r)
}

// answers asks a runtime who it is, and says whether it is this Kyma's. One that does not answer, or refuses us, is asked once: what
// all work begins with comes first.
func (c *Controller) answers(ctx context.Context, name types.NamespacedName) error {
	ctx = access.Once(ctx)
	rt, release, err := c.o.Access.Get(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	if err := rt.Usable(ctx); err != nil {
		return err
	}
	if err := rt.Probe(ctx); err != nil && !errors.Is(err, module.ErrOtherCluster) {
		return err
	}
	uid, _ := rt.Known()
	if owner := c.o.Claims.Claim(uid, name); owner != name {
		return access.Taken(owner)
	}
	return nil
}

// verify compares all modules of a runtime that are said to be as they should be with what is there.
func (c *Controller) verify(ctx context.Context, k *v1beta2.Kyma) engine.Result {
	name := client.ObjectKeyFromObject(k)
	log := logr.FromContextOrDiscard(ctx)
	components, err := c.o.Applied(ctx, k)
	if err != nil {
		return engine.Result{Outcome: engine.Retry, Offline: true, Message: err.Error()}
	}
	if len(components) == 0 {
		return engine.Result{Outcome: engine.Done, Offline: true, After: c.later(name), Message: "nothing is installed"}
	}
	rt, release, err := c.o.Access.Get(ctx, name)
	if err != nil {
		return engine.Result{Outcome: engine.Unreachable, Message: err.Error()}
	}
	drifted, err := c.o.Modules.Verify(ctx, rt, components)
	release()
	if len(drifted) == 0 {
		c.o.Access.Forget(name) // nobody is going to need the connection soon
	}
	for _, d := range drifted {
		log.Info("The module has drifted", "component", d.Component, "reason", d.Reason)
		c.suspect(name, d.Component)
	}
	switch {
	case errors.As(err, new(*module.RuntimeError)):
		return engine.Result{Outcome: engine.Unreachable, Message: err.Error()}
	case err != nil:
		return engine.Result{Outcome: engine.Retry, Message: err.Error()}
	}
	return engine.Result{Outcome: engine.Done, After: c.later(name), Message: fmt.Sprintf("%d modules verified, %d drifted", len(components), len(drifted))}
}

// suspect has a module looked at in its runtime.
func (c *Controller) suspect(runtime types.NamespacedName, module string) {
	key := fleet.ModuleKey(runtime, module)
	c.o.Suspects.Add(key)
	c.o.Engine.Add(key, engine.PriorityTrigger)
}
