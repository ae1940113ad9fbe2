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
	idle    *sync.Cond     // of mu: where workers wait for work
	workers sync.WaitGroup // those that there are

	mu       sync.Mutex // guards what follows, and all lanes, entries and runs
	lanes    map[string]*lane
	peak     int               // most lanes since the map was made
	ready    [priorities]lanes // those with something to begin, by the highest priority that is queued in each
	waiting  int               // how many lanes that is
	probes   lanes             // those whose probe is due
	shares   shares            // of the priorities
	timers   queue[byTime]
	alarm    time.Duration // when the timekeeper looks for runs to be set aside; 0: not
	turns    uint64
	started  bool
	stopping bool
	spawn    func() // starts a worker, while started

	sleeping   int  // workers that wait
	waking     bool // a worker was woken and has not looked yet
	limiter    limiter
	throttled  bool
	outside    outsiders
	answerTime time.Duration // that runtimes take, smoothed
	nearest    nearest
	gaveWay    int         // how many runs have given way
	phases     [phases]int // how many entries are in each
	stats      Stats       // counters and gauges, but for those of phases
}

// New returns an engine that calls the runner. It does nothing before Run, but takes everything.
func New(r Runner, o Options) *Engine {
	e := &Engine{
		runner: r, options: o.withDefaults(), epoch: time.Now(), random: rand.Float64,
		kick: make(chan struct{}, 1), lanes: map[string]*lane{},
	}
	e.limiter = newLimiter(e.options.Workers)
	e.answerTime = min(firstPatience, e.options.Patience) / 8
	e.idle = sync.NewCond(&e.mu)
	return e
}

// Run works until the context ends. Then no further run begins; those under way may go on for Options.Drain, after which
// their contexts are cancelled with ErrStopped, and Run waits for them however long they take. It returns nil. What is
// queued and scheduled stays, and goes on if Run is called again. ErrRunning if it runs already.
func (e *Engine) Run(ctx context.Context) error {
	runs, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	if !e.start(runs) {
		return ErrRunning
	}
	e.keepTime(ctx)
	e.stop()
	e.drain(cancel)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.started = false
	return nil
}

func (e *Engine) start(runs context.Context) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.started {
		return false
	}
	e.started, e.stopping = true, false
	e.spawn = func() { e.workers.Go(func() { e.work(runs) }) }
	e.wake()
	return true
}

func (e *Engine) stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.stopping = true
	e.idle.Broadcast()
}

// drain waits for the workers, and cancels their runs if that takes too long.
func (e *Engine) drain(cancel context.CancelCauseFunc) {
	done := make(chan struct{})
	go func() { // ends with the workers, which drain waits for
		defer close(done)
		e.workers.Wait()
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

// fire triggers everything that is due, and returns how long it is until there is something to do again.
func (e *Engine) fire() time.Duration {
	const never = 24 * time.Hour // somebody kicks before
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if e.alarm != 0 && e.alarm <= now {
		e.alarm = 0
		e.wake() // which sets the next
	}
	next := e.alarm
	for en := e.timers.first(); en != nil; en = e.timers.first() {
		if en.at > now {
			next = earlier(next, en.at)
			break
		}
		e.trip(en, now)
	}
	if next == 0 {
		return never
	}
	return next - now
}

// trip triggers an entry whose timer went off, or the probe of its lane. The lock is held.
func (e *Engine) trip(en *entry, now time.Duration) {
	if b := &en.lane.breaker; en.component == "" && b.probeAt != 0 && b.probeAt <= now {
		b.probeAt, b.probeDue, b.dueAt = 0, true, now
		e.relist(en.lane)
	}
	trips, p := false, PriorityVerify
	if en.own != 0 && en.own <= now {
		en.own, trips, p = 0, true, max(p, en.ownPriority)
	}
	if en.asked != 0 && en.asked <= now {
		en.asked, trips, p = 0, true, max(p, en.askedPriority)
	}
	e.retime(en)
	if trips {
		e.trigger(en, p)
	}
}
