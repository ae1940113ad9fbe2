package engine

import (
	"context"
	"sync"
	"time"
)

// leastPatience bounds how soon a run is set aside, firstPatience is how soon before anybody has answered.
const (
	leastPatience = 25 * time.Millisecond
	firstPatience = 100 * time.Millisecond
)

// runKey is the key of the run in its context.
type runKey struct{}

// RunOf is the run that a context is of, nil if it is of none: the context that a Runner gets, and all that are made from it.
func RunOf(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

// Ask says that the run waits for its runtime from now on, until answered is called, with whether an answer came. A run may
// ask several things at the same time. One that gets no answer for longer than usual is set aside: it goes on, but others take
// its place, and nothing else of its runtime begins before that answers something. answered may be called more than once: the
// first call counts.
func (r *Run) Ask() (answered func(ok bool)) { return r.ask(false) }

// AskAhead is Ask for what was asked before, and may be answered already: the answer says that the runtime works, and not how far away it
// is, nor how long answers take.
func (r *Run) AskAhead() (answered func(ok bool)) { return r.ask(true) }

func (r *Run) ask(ahead bool) (answered func(ok bool)) {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.ended { // what it has left behind is nobody's
		return func(bool) {}
	}
	begin, open := e.now(), true
	if r.asking++; r.asking == 1 {
		r.since = begin
		e.outside.push(r)
		if e.waiting > 0 {
			e.wake() // it may take until this run is set aside
		}
	}
	return func(ok bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if open {
			open = false
			e.answered(r, e.now()-begin, ok, ahead)
		}
	}
}

// Away is Ask for a run that waits for somebody other than its runtime, which says nothing about the runtime: others of it may begin
// meanwhile. Call back when that is over.
func (r *Run) Away() (back func()) {
	answered := r.Ask()
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	r.away++
	return sync.OnceFunc(func() {
		e.mu.Lock()
		r.away--
		e.mu.Unlock()
		answered(false)
	})
}

// GiveWay lets another run take this one's place in hand while it waits for the control plane itself, until back is called: a wait that
// is short, and no runtime's. As many may do so as may be in hand, and none while all but a few are held back (Engine.Throttle): then it
// keeps its place.
func (r *Run) GiveWay() (back func()) {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.ended || r.gaveWay || r.aside || r.probing || e.throttled || e.gaveWay >= e.limit() {
		return func() {}
	}
	r.gaveWay = true
	e.gaveWay++
	e.wake()
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.comeBack(r)
	}
}

// comeBack has a run that gave way count as in hand again, or as set aside. The lock is held.
func (e *Engine) comeBack(r *Run) {
	if r.gaveWay {
		r.gaveWay = false
		e.gaveWay--
	}
}

// Progress says that the runtime answers, or that the run does without it: others of the runtime may begin beside it. An
// answer to Ask says the same.
func (r *Run) Progress() {
	e := r.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setAsideOverdue()
	e.prove(r)
	e.wake()
}

// prove notes that a run's runtime answers. The lock is held.
func (e *Engine) prove(r *Run) {
	if l := r.entry.lane; !r.ended && !r.forgotten && !l.proven {
		l.proven = true
		e.relist(l)
	}
}

// answered ends a question of a run. The lock is held.
func (e *Engine) answered(r *Run, took time.Duration, ok, ahead bool) {
	e.setAsideOverdue()
	r.asking--
	if ok {
		if !ahead {
			e.answerTime += (took - e.answerTime) / 16
			e.nearest.add(took)
		}
		e.prove(r)
	}
	if !r.ended && (ok || r.asking == 0) {
		e.takeBack(r)
		if r.asking > 0 {
			r.since = e.now()
			e.outside.push(r)
		}
	}
	if ok {
		e.limiter.step(e.now())
		e.wake() // the limit may have risen, or patience become shorter
	}
}

// takeBack has a run count as in hand again. More may be in hand than the limit is: then nothing begins until they are fewer.
// The lock is held.
func (e *Engine) takeBack(r *Run) {
	if r.listed {
		e.outside.remove(r)
	}
	if r.aside {
		r.aside = false
		e.stats.Aside--
	}
}

// patience is how long a run may wait for an answer until it is set aside: many times as long as answers take.
func (e *Engine) patience() time.Duration {
	return min(max(8*e.answerTime, leastPatience), e.options.Patience)
}

// setAsideOverdue sets the runs aside that have waited for too long. It takes no longer the more runs there are. The lock is held.
func (e *Engine) setAsideOverdue() {
	if e.outside.first == nil {
		return
	}
	for now := e.now(); e.outside.first != nil && e.outside.first.since+e.patience() <= now; {
		r := e.outside.first
		e.outside.remove(r)
		if r.probing {
			continue // it has a place of its own
		}
		e.comeBack(r)
		r.aside = true
		e.stats.Aside++
		e.stats.SetAside++
		if l := r.entry.lane; !r.forgotten && l.proven && r.asking > r.away {
			l.proven = false
			e.relist(l)
		}
	}
}

// outsiders are the runs that wait for an answer and are not set aside, those first that wait for longest. Engine.mu guards them.
type outsiders struct{ first, last *Run }

func (q *outsiders) push(r *Run) {
	r.listed, r.before, r.after = true, q.last, nil
	if q.last == nil {
		q.first = r
	} else {
		q.last.after = r
	}
	q.last = r
}

func (q *outsiders) remove(r *Run) {
	if r.before == nil {
		q.first = r.after
	} else {
		r.before.after = r.after
	}
	if r.after == nil {
		q.last = r.before
	} else {
		r.after.before = r.before
	}
	r.listed, r.before, r.after = false, nil, nil
}
