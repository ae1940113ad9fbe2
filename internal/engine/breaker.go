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
	// pauses is how many pauses there were since a run other than a probe reached the runtime. A probe that succeeds does
	// not set it back: if the runs that follow find nobody, the next pause is longer.
	pauses uint32
	// era grows whenever the breaker opens or closes. Only results of runs that began in the current one count.
	era uint32
	// probeAt is when the next probe is due, 0 if none is ahead; dueAt is when the last one was.
	probeAt, dueAt time.Duration
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
		if !r.probing {
			b.pauses = 0
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

// openBreaker stops the lane and arms the first probe. The lock is held, and the caller relists the lane.
func (e *Engine) openBreaker(l *lane) {
	l.breaker.open = true
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
	b.open, b.probeDue, b.probeAt = false, false, 0
	b.era++
	e.stats.OpenBreakers--
	en := l.itself()
	e.retime(en)
	e.settle(en)
	e.relist(l)
}
