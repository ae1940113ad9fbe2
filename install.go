package mothership

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kyma-project/mothership/internal/apply"
	"github.com/kyma-project/mothership/internal/module"
)

// InstallOptions of Install. The zero value works.
type InstallOptions struct {
	// Wait until every object is ready.
	Wait bool
	// Timeout of the whole call. Default: 5 m. Within it, passing errors are tried again.
	Timeout time.Duration
	// Progress is told of each object as soon as something happened to it. It must be safe for concurrent use.
	Progress func(Event)
	// Waiting is told what is not ready yet, at each look.
	Waiting func([]NotReady)
}

const defaultTimeout = 5 * time.Minute

// Between two passes after a passing error, and between two looks at what is not ready, these times go by, doubling from the
// first to the last.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 3 * time.Second
	// maxPasses bounds the passes of one call, should its time not.
	maxPasses = 10_000
)

// Install makes the cluster what the module says: it creates, updates, repairs and prunes, and does nothing where nothing
// differs. It fails without having changed anything where the module cannot be rendered completely or an object belongs to
// somebody else. After an error in the middle, what was applied stays; the next Install goes on from there, and nothing is pruned
// before it got through.
//
// Errors: *ObjectError (several joined) from the cluster; *FailedError for objects that cannot become ready; *TimeoutError
// when the time is over. The Result says how far it came, also with an error; it is nil only if nothing was tried.
func (i *Installer) Install(ctx context.Context, cfg *rest.Config, m Module, o InstallOptions) (*Result, error) {
	ctx, rt, end, err := i.begin(ctx, cfg, o.Timeout)
	if err != nil {
		return nil, err
	}
	defer end()
	run := &installation{rt: rt, m: m, o: o, started: time.Now(), events: map[Ref]Event{}}
	run.r = i.shared.WithProgress(run.event)
	err = run.untilDone(ctx)
	return run.result(), err
}

// installation is one call of Install.
type installation struct {
	r       *module.Reconciler
	rt      *module.Runtime
	m       Module
	o       InstallOptions
	started time.Time

	mu       sync.Mutex
	events   map[Ref]Event
	session  *module.Session
	notReady []NotReady
}

func (run *installation) event(e Event) {
	run.mu.Lock()
	run.events[e.Object] = e
	run.mu.Unlock()
	if run.o.Progress != nil {
		run.o.Progress(e)
	}
}

// untilDone repeats passes after passing errors. A cluster or a source that cannot be reached at all is reported at once: the
// calls have been repeated already.
func (run *installation) untilDone(ctx context.Context) error {
	if err := run.open(ctx); err != nil {
		return err
	}
	err := retry(ctx, "installing "+run.m.Name, run.pass)
	if err != nil || !run.o.Wait {
		return err
	}
	return run.untilReady(ctx)
}

// open renders the module and reads the cluster's inventory of it.
func (run *installation) open(ctx context.Context) error {
	s, err := run.r.Open(ctx, run.rt, run.m.component())
	if err != nil {
		return orTimeout(ctx, "installing "+run.m.Name, err)
	}
	run.session = s
	return nil
}

// pass is one pass: observe, apply, prune. A second pass starts from what the first has left.
func (run *installation) pass(ctx context.Context) error {
	if err := run.session.Observe(ctx, run.o.Wait); err != nil {
		return err
	}
	return run.session.Apply(ctx, apply.ApplyOptions{})
}

// untilReady looks until every object is ready, one has failed, or the time is over.
func (run *installation) untilReady(ctx context.Context) error {
	pause := firstPause
	for range maxPasses {
		notReady, err := run.session.Ready(ctx)
		if err != nil && ctx.Err() == nil && !module.Retryable(err) {
			return err
		}
		if err == nil {
			run.notReady = notReady
			if len(notReady) == 0 {
				return nil
			}
			if err := module.Failure(notReady); err != nil {
				return err
			}
			if run.o.Waiting != nil {
				run.o.Waiting(notReady)
			}
		}
		if !sleep(ctx, &pause) {
			break
		}
	}
	return interrupted(ctx, &TimeoutError{Doing: "waiting until " + run.m.Name + " is ready", NotReady: run.notReady})
}

func (run *installation) result() *Result {
	out := &Result{
		Module: run.m.Name, Namespace: run.m.Namespace, NotReady: run.notReady,
		Requests: run.rt.Stats(), Duration: time.Since(run.started), Objects: []Event{},
	}
	if run.session == nil || run.session.Rendered() == nil {
		return out
	}
	rendered := run.session.Rendered()
	out.SourceDigest, out.BundleDigest = rendered.SourceDigest, rendered.Bundle.Digest
	out.Hooks, out.Images, out.Warnings = rendered.Bundle.Hooks, rendered.Bundle.Images, rendered.Bundle.Warnings
	if plan := run.session.Plan(); plan != nil {
		out.Objects, out.Warnings = run.objects(plan), append(out.Warnings, contested(plan)...)
	}
	return out
}

// objects are what happened to the plan's objects; those to which nothing happened are unchanged.
func (run *installation) objects(plan *apply.Plan) []Event {
	run.mu.Lock()
	defer run.mu.Unlock()
	var out []Event
	for _, step := range plan.Steps {
		e, ok := run.events[step.Ref]
		if !ok && step.Action == ActionNone {
			e, ok = Event{Object: step.Ref, Action: ActionNone}, true
		}
		if ok {
			out = append(out, e)
		}
	}
	for _, extra := range plan.Prune {
		if e, ok := run.events[extra.Ref]; ok {
			out = append(out, e)
		}
	}
	return out
}

// contested warns of fields that were given up for a while.
func contested(plan *apply.Plan) []string {
	var out []string
	for _, message := range plan.Contested() {
		out = append(out, apply.ReasonFieldContested+": "+message)
	}
	return out
}

// retry repeats a pass after passing errors, until the time is over.
func retry(ctx context.Context, doing string, pass func(context.Context) error) error {
	pause := firstPause
	var last error
	for range maxPasses {
		err := pass(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil && !module.Retryable(err) {
			return err
		}
		if ctx.Err() == nil {
			last = err
		} else if last == nil {
			last = err
		}
		if !sleep(ctx, &pause) {
			break
		}
	}
	return interrupted(ctx, &TimeoutError{Doing: doing, Err: last})
}

// sleep waits for a pause, which it doubles. It returns false when the context has ended.
func sleep(ctx context.Context, pause *time.Duration) bool {
	t := time.NewTimer(*pause)
	defer t.Stop()
	*pause = min(2**pause, lastPause)
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return ctx.Err() == nil
	}
}

// orTimeout is an error, or what ended the context if that is why it came; it still says what was under way.
func orTimeout(ctx context.Context, doing string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return interrupted(ctx, &TimeoutError{Doing: doing, Err: err})
}

// interrupted is the timeout's error, or the caller's own reason for ending the call.
func interrupted(ctx context.Context, e *TimeoutError) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, errTimedOut) || errors.Is(cause, context.DeadlineExceeded) {
		return e
	}
	return fmt.Errorf("%s: %w", e.Doing, cause)
}
