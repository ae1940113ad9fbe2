package engine

import (
	"context"
	"time"
)

// keepIdle is how many workers wait for work that may come; those beyond end.
const keepIdle = 32

// inHand is how many runs count for the limit: all but those that were set aside or have given way, and probes. The lock is held.
func (e *Engine) inHand() int {
	return e.phases[PhaseRunning] - e.stats.Aside - e.stats.Probing - e.gaveWay
}

// wave is how many runtimes wait at least while there is a wave of work.
const wave = 32

// shortAnswer is how long the quickest answers take at most where runs that ask one thing after the other are in a wave as good as those
// that ask many at once: 128 runs of two dozen such questions are then more than the processors can do.
const shortAnswer = 10 * time.Millisecond

// nearest finds out how long the quickest of many answers takes: that is how far away the runtimes are, however much is going on.
type nearest struct {
	known, least time.Duration // of the last answers, and of those now; 0 while there are none
	n            int
}

// nearestOf is of how many answers it is.
const nearestOf = 512

func (q *nearest) add(took time.Duration) {
	if q.n == 0 || took < q.least {
		q.least = took
	}
	if q.n++; q.n == nearestOf {
		q.known, q.n = q.least, 0
	}
}

// InWave says whether there is so much to do, at so many runtimes, that what takes little of the processors is better than what is over soon.
func (e *Engine) InWave() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waiting >= wave
}

// InWave is Engine.InWave for the run: false also for a change that somebody made to this runtime, where there is something else to do
// at the runtime, and where the runtimes are so far away that the processors would wait.
func (r *Run) InWave() bool {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	l := r.entry.lane
	return e.waiting >= wave && r.priority < PriorityChange && l.running == 1 && l.queue.Len() == 0 && e.nearest.known <= shortAnswer
}

// limit is how many runs may be in hand. The lock is held.
func (e *Engine) limit() int {
	if e.throttled {
		return e.limiter.least
	}
	return e.limiter.limit
}

// mayBegin says whether something can begin now; if it cannot because too much is in hand, the timekeeper looks again when
// the next run is to be set aside. The lock is held.
func (e *Engine) mayBegin() bool {
	e.setAsideOverdue()
	if e.stopping || !e.started || e.phases[PhaseRunning] >= e.options.MaxRuns {
		return false
	}
	if e.probes.first != nil && e.stats.Probing < e.options.Probes {
		return true
	}
	if e.waiting == 0 {
		e.limiter.idle()
		return false
	}
	if e.inHand() < e.limit() {
		return true
	}
	if e.outside.first != nil {
		e.alarmAt(e.outside.first.since + e.patience())
	}
	return false
}

// alarmAt has the timekeeper look at a time, if it would not before. The lock is held.
func (e *Engine) alarmAt(at time.Duration) {
	if e.alarm == 0 || at < e.alarm {
		e.alarm = at
		e.ring()
	}
}

// ring has the timekeeper look now.
func (e *Engine) ring() {
	select {
	case e.kick <- struct{}{}:
	default: // one is enough
	}
}

// wake has a worker look, if something can begin and none looks already: each that begins something wakes the next. The lock
// is held.
func (e *Engine) wake() {
	if e.waking || !e.mayBegin() {
		return
	}
	e.waking = true
	if e.sleeping > 0 {
		e.idle.Signal()
		return
	}
	e.spawn()
}

// work is one worker: it runs what is next until the engine stops, or there are workers enough that have nothing to do.
func (e *Engine) work(ctx context.Context) {
	for woken := true; ; woken = false {
		runCtx, r := e.next(ctx, woken)
		if r == nil {
			return
		}
		e.do(runCtx, r)
	}
}

// next waits for a run and begins it. It returns nil when the worker is to end.
func (e *Engine) next(ctx context.Context, woken bool) (context.Context, *Run) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for !e.stopping {
		if woken {
			e.waking = false
		}
		if e.mayBegin() {
			r := e.begin(e.choose())
			runCtx, cancel := context.WithCancelCause(context.WithValue(ctx, runKey{}, r))
			r.cancel = cancel
			e.wake()
			return runCtx, r
		}
		if e.sleeping >= keepIdle {
			return ctx, nil
		}
		e.sleeping++
		e.idle.Wait()
		e.sleeping--
		woken = true
	}
	return ctx, nil
}

// choose is the lane whose turn it is, where something can begin: probes first, which are few and have places of their own;
// then by priority. The lock is held.
func (e *Engine) choose() *lane {
	if e.probes.first != nil && e.stats.Probing < e.options.Probes {
		return e.probes.first
	}
	p := e.shares.next(func(p Priority) bool { return e.ready[p].first != nil })
	return e.ready[p].first
}

// Throttle holds back all but a few runs at once, or no longer does: whoever takes what they report does not keep up.
func (e *Engine) Throttle(on bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.throttled = on; !on {
		e.wake()
	}
}
