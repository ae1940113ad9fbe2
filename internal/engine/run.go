package engine

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"time"
)

// Runner does the work of one key: it looks at everything, changes what is not as it should be, and says how far it came.
// It gets no reason. It must return when the context ends, and is called for different keys at the same time.
type Runner interface {
	Run(ctx context.Context, r *Run) Result
}

// RunnerFunc is a function as a Runner.
type RunnerFunc func(ctx context.Context, r *Run) Result

// Run calls the function.
func (f RunnerFunc) Run(ctx context.Context, r *Run) Result { return f(ctx, r) }

// maxSuperseded is how many runs of a key in a row may be superseded.
const maxSuperseded = 3

// Run is one run of a key. Its methods may be called from any goroutine, but mean nothing once the run has ended.
type Run struct {
	engine   *Engine
	entry    *entry
	cancel   context.CancelCauseFunc
	priority Priority
	attempt  int
	wait     time.Duration // in the queue
	era      uint32        // of the breaker, when the run began
	probing  bool

	began time.Duration // when it did

	// Engine.mu guards these.
	preempted     bool          // checkpoints shall stop it
	forgotten     bool          // its result is of no interest
	stopped       bool          // a checkpoint said so
	ended         bool          // its result is known
	asking        int           // how many answers it waits for
	away          int           // how many of these are of others than its runtime
	since         time.Duration // when it began to wait, or was last answered
	aside         bool          // set aside: it does not count as in hand
	gaveWay       bool          // nor does it now: see GiveWay
	listed        bool          // in Engine.outside
	before, after *Run          // there
}

// Key that runs.
func (r *Run) Key() Key { return r.entry.key() }

// Attempt is 1 for the first run since the last success (or since Engine.Reset or Forget), and grows with each failure:
// results of Retry and Failed.
func (r *Run) Attempt() int { return r.attempt }

// Probing says that the runtime's breaker is open and this run of Key{runtime, ""} is its probe. Any result but
// Unreachable closes the breaker.
func (r *Run) Probing() bool { return r.probing }

// Shaky says that the runtime answers now and then: it stopped answering soon after it had begun to, and has not answered for
// long since. Whoever reports that it answers should wait until it does for good.
func (r *Run) Shaky() bool {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	l := r.entry.lane
	return l.breaker.flaps > 0 && (l.breaker.open || r.engine.justClosed(l))
}

// Await says which facts the run looks for. Call it before looking: if one of them arrives from then on, during the run
// or, when it ends with Waiting, after it, the key runs again. It replaces what this run awaited before.
func (r *Run) Await(facts ...string) {
	facts = slices.Clone(facts)
	slices.Sort(facts)
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	if r.entry.run == r && !r.forgotten {
		r.entry.facts = slices.Compact(facts)
	}
}

// Checkpoint asks at a point where stopping does no harm whether to stop. On ErrSuperseded (new desired state; for at most
// three runs in a row) and ErrPreempted (deletion) the run should return Superseded soon. Once it returned an error
// it goes on doing so.
func (r *Run) Checkpoint() error {
	r.engine.mu.Lock()
	defer r.engine.mu.Unlock()
	en := r.entry
	switch {
	case en.run != r || r.forgotten || r.preempted:
		r.stopped = true
		return ErrPreempted
	case en.newer && en.superseded < maxSuperseded:
		r.stopped = true
		return ErrSuperseded
	}
	return nil
}

// begin begins the next run of a lane that is ready. The lock is held.
func (e *Engine) begin(l *lane) *Run {
	now, probing := e.now(), l.breaker.open
	e.unlist(l) // and to the end below, so that lanes take turns
	var en *entry
	if probing {
		en = l.itself()
		l.breaker.probeDue = false
		e.stats.Probing++
	} else {
		en = l.first()
	}
	r := &Run{
		engine: e, entry: en, priority: PriorityVerify, attempt: int(en.attempts) + 1, era: l.breaker.era,
		probing: probing, wait: now - l.breaker.dueAt, began: now,
	}
	if en.phase == PhaseQueued {
		r.priority, r.wait = en.priority, now-en.queuedAt
		e.dequeue(en)
	}
	e.setPhase(en, PhaseRunning)
	en.run, en.facts, en.own = r, nil, 0
	e.retime(en)
	l.running++
	if e.began != nil {
		e.began(r)
	}
	e.relist(l)
	return r
}

// do calls the runner and reports the result.
func (e *Engine) do(ctx context.Context, r *Run) {
	start := time.Now()
	ctx, stop := context.WithTimeoutCause(ctx, e.options.RunTimeout, ErrTimeout)
	result, stack := e.call(ctx, r)
	stop()
	r.cancel(nil)
	result = e.understand(r, result)
	if e.options.Observe != nil {
		e.options.Observe(Event{
			Key: r.Key(), Priority: r.priority, Attempt: r.attempt, Probing: r.probing, QueueWait: r.wait,
			RunTime: time.Since(start), Outcome: result.Outcome, Message: result.Message, Stack: stack,
		})
	}
	e.finish(r, result, stack != nil)
}

// call makes a panic of the runner a result.
func (e *Engine) call(ctx context.Context, r *Run) (result Result, stack []byte) {
	defer func() {
		if p := recover(); p != nil {
			result, stack = Result{Outcome: Retry, Message: fmt.Sprintf("panic: %v", p)}, debug.Stack()
		}
	}()
	return e.runner.Run(ctx, r), nil
}

// understand makes a result one of those that the engine acts on.
func (e *Engine) understand(r *Run, result Result) Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	result.After = max(result.After, 0)
	if int(result.Outcome) >= outcomes || result.Outcome == Superseded && !r.stopped {
		result.Outcome = Retry // it would be run again at once, and for ever
	}
	return result
}
