package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// Errors of Run, of checkpoints, and the causes that a run's context may end with (context.Cause).
var (
	// ErrRunning: Engine.Run was called while it runs already.
	ErrRunning = errors.New("engine runs already")
	// ErrSuperseded is returned by Run.Checkpoint: new desired state arrived since the run began.
	ErrSuperseded = errors.New("superseded by newer desired state")
	// ErrPreempted is returned by Run.Checkpoint: the component, or its runtime, is to be removed.
	ErrPreempted = errors.New("preempted by deletion")
	// ErrForgotten is the cause when Engine.Forget cancels a run.
	ErrForgotten = errors.New("runtime was forgotten")
	// ErrTimeout is the cause when a run took longer than Options.RunTimeout.
	ErrTimeout = errors.New("run took too long")
	// ErrStopped is the cause when the engine stops and a run did not end within Options.Drain.
	ErrStopped = errors.New("engine stops")
)

// Engine schedules the runs of a fleet's components. Make one with New. All methods may be called at any time from any
// goroutine, runs included; none but Run blocks.
type Engine struct {
	runner  Runner
	options Options
	epoch   time.Time      // of now
	random  func() float64 // for jitter; another one in tests
	began   func(*Run)     // for tests: called with the lock when a run begins, in the order in which they begin
	kick    chan struct{}  // tells the timekeeper that the first timer changed
	idle    *sync.Cond     // of mu: where workers wait for a lane that is ready

	mu       sync.Mutex // guards what follows, and all lanes, entries and runs
	lanes    map[string]*lane
	peak     int // most lanes since the map was made
	ready    lanes
	timers   queue[byTime]
	turns    uint64
	started  bool
	stopping bool
	phases   [phases]int // how many entries are in each
	stats    Stats       // counters and gauges, but for those of phases
}

// New returns an engine that calls the runner. It does nothing before Run, but takes everything.
func New(r Runner, o Options) *Engine {
	e := &Engine{
		runner: r, options: o.withDefaults(), epoch: time.Now(), random: rand.Float64,
		kick: make(chan struct{}, 1), lanes: map[string]*lane{},
	}
	e.idle = sync.NewCond(&e.mu)
	return e
}

// Run works until the context ends. Then no further run begins; those under way may go on for Options.Drain, after which
// their contexts are cancelled with ErrStopped, and Run waits for them however long they take. It returns nil. What is
// queued and scheduled stays, and goes on if Run is called again. ErrRunning if it runs already.
func (e *Engine) Run(ctx context.Context) error {
	if !e.start() {
		return ErrRunning
	}
	runs, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	var workers sync.WaitGroup
	for range e.options.Workers {
		workers.Go(func() { e.work(runs) })
	}
	e.keepTime(ctx)
	e.stop()
	e.drain(&workers, cancel)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = false
	return nil
}

func (e *Engine) start() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return false
	}
	e.started, e.stopping = true, false
	return true
}

func (e *Engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopping = true
	e.idle.Broadcast()
}

// drain waits for the workers, and cancels their runs if that takes too long.
func (e *Engine) drain(workers *sync.WaitGroup, cancel context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() { // ends with the workers, which drain waits for
		defer close(done)
		workers.Wait()
	}()
	timer := time.NewTimer(e.options.Drain)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		cancel(ErrStopped)
		<-done
	}
}

// work is one worker: it runs what is next until the engine stops.
func (e *Engine) work(ctx context.Context) {
	for {
		ctx, r := e.next(ctx)
		if r == nil {
			return
		}
		e.do(ctx, r)
	}
}

// next waits for a run and begins it. It returns nil when the engine stops.
func (e *Engine) next(ctx context.Context) (context.Context, *Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.stopping {
		if l := e.ready.first; l != nil {
			r := e.begin(l)
			runCtx, cancel := context.WithCancelCause(ctx)
			r.cancel = cancel
			if e.ready.first != nil {
				e.idle.Signal() // each wakes the next one, as long as there is work
			}
			return runCtx, r
		}
		e.idle.Wait()
	}
	return ctx, nil
}

// now is the time since the engine was made; never 0, which stands for never.
func (e *Engine) now() time.Duration { return time.Since(e.epoch) + 1 }

// wall is the time of day of now's values; 0 is the zero time.
func (e *Engine) wall(at time.Duration) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return e.epoch.Add(at - 1)
}

// keepTime triggers what is due, until the context ends.
func (e *Engine) keepTime(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-e.kick:
		case <-timer.C:
		}
		timer.Reset(e.fire())
	}
}

// fire triggers everything that is due, and returns how long it is until the next timer.
func (e *Engine) fire() time.Duration {
	const never = 24 * time.Hour // somebody kicks before
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for en := e.timers.first(); en != nil; en = e.timers.first() {
		if en.at > now {
			return en.at - now
		}
		e.ring(en, now)
	}
	return never
}

// ring triggers an entry whose timer went off, or the probe of its lane. The lock is held.
func (e *Engine) ring(en *entry, now time.Duration) {
	if b := &en.lane.breaker; en.component == "" && b.probeAt != 0 && b.probeAt <= now {
		b.probeAt, b.probeDue, b.dueAt = 0, true, now
		e.relist(en.lane)
	}
	rings, p := false, PriorityVerify
	if en.own != 0 && en.own <= now {
		en.own, rings, p = 0, true, max(p, en.ownPriority)
	}
	if en.asked != 0 && en.asked <= now {
		en.asked, rings, p = 0, true, max(p, en.askedPriority)
	}
	e.retime(en)
	if rings {
		e.trigger(en, p)
	}
}
