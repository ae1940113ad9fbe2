package engine

import "time"

// breaker is the circuit breaker of a lane. Engine.mu guards it.
type breaker struct {
	// open: nothing of the lane begins but probes.
	open bool
	// probeDue: the probe begins as soon as it can.
	probeDue bool
	// failures is how many results in a row were Unreachable, probes included.
	failures uint32
	// pauses is how many pauses there were since the runtime last answered for good: runs other than probes reach it when
	// the breaker has been closed for as long as the longest pause. A runtime that answers now and then gets the longest
	// pauses, and does not flap.
	pauses uint32
	// flaps is how often the breaker opened again soon after it had closed, since the runtime last answered for good.
	flaps uint32
	// era grows whenever the breaker opens or closes. Only results of runs that began in the current one count.
	era uint32
	// probeAt is when the next probe is due, 0 if none is ahead; dueAt is when the last one was. closedAt is when the breaker
	// last closed, 0 if it never was open; openedAt is when it opened.
	probeAt, dueAt, closedAt, openedAt time.Duration
}

// judge lets a run's outcome count for the breaker. The lock is held.
func (e *Engine) judge(r *Run, o Outcome) {
	l := r.entry.lane
	b := &l.breaker
	if r.era != b.era {
		return
	}
	if o != Unreachable {
		e.closeBreaker(l)
		if !r.probing && !e.justClosed(l) {
			b.pauses, b.flaps = 0, 0
		}
		return
	}
	b.failures++
	switch {
	case b.open:
		e.armProbe(l)
	case int(b.failures) >= e.options.BreakerFailures:
		e.openBreaker(l)
	}
}

// justClosed says whether a lane's breaker closed so lately that the runtime may be one that answers now and then. The lock is held.
func (e *Engine) justClosed(l *lane) bool {
	at := l.breaker.closedAt
	return at != 0 && e.now() < at+e.options.Probe.Max
}

// openBreaker stops the lane and arms the first probe. The lock is held, and the caller relists the lane.
func (e *Engine) openBreaker(l *lane) {
	if e.justClosed(l) {
		l.breaker.flaps++
	}
	l.breaker.open, l.breaker.openedAt = true, e.now()
	l.breaker.era++
	e.stats.OpenBreakers++
	e.stats.Opened++
	e.armProbe(l)
}

// armProbe sets the time of the next probe. The lock is held.
func (e *Engine) armProbe(l *lane) {
	l.breaker.pauses++
	l.breaker.probeAt = e.now() + e.options.Probe.after(l.breaker.pauses, e.random())
	e.retime(e.entryOf(l, "")) // its timer is the probe's
}

// closeBreaker releases what is queued, if the breaker is open. The lock is held.
func (e *Engine) closeBreaker(l *lane) {
	b := &l.breaker
	b.failures = 0
	if !b.open {
		return
	}
	b.open, b.probeDue, b.probeAt, b.closedAt = false, false, 0, e.now()
	b.era++
	e.stats.OpenBreakers--
	en := l.itself()
	e.retime(en)
	e.settle(en)
	e.relist(l)
}
