package engine

import (
	"maps"
	"slices"
)

// laneOf finds or makes the lane of a runtime. The lock is held.
func (e *Engine) laneOf(runtime string) *lane {
	l := e.lanes[runtime]
	if l == nil {
		l = &lane{runtime: runtime}
		e.lanes[runtime] = l
		e.peak = max(e.peak, len(e.lanes))
	}
	return l
}

// entryOf finds or makes the entry of a component. The lock is held.
func (e *Engine) entryOf(l *lane, component string) *entry {
	i, found := l.find(component)
	if !found {
		l.entries = slices.Insert(l.entries, i, &entry{lane: l, component: component, phase: PhaseDelayed})
		e.phases[PhaseDelayed]++
	}
	return l.entries[i]
}

// setPhase moves an entry from one phase to the other. The lock is held.
func (e *Engine) setPhase(en *entry, p Phase) {
	e.phases[en.phase]--
	e.phases[p]++
	en.phase = p
}

// retime sets the entry's timer to when it is due. The lock is held.
func (e *Engine) retime(en *entry) {
	due := en.due()
	if due == en.at {
		return
	}
	en.at = due
	if due == 0 {
		e.timers.remove(en)
		return
	}
	e.timers.put(en)
	if e.timers.first() == en {
		e.ring()
	}
}

// relist puts the lane among those of which something can begin, or takes it out. Where it stays, it keeps its turn. The lock
// is held.
func (e *Engine) relist(l *lane) {
	var in *lanes
	switch {
	case !l.ready(e.options.PerRuntime):
	case l.breaker.open:
		in = &e.probes
	default:
		in = &e.ready[l.queue.first().priority]
	}
	if l.in == in {
		return
	}
	e.unlist(l)
	if in == nil {
		return
	}
	in.push(l)
	if in != &e.probes {
		e.waiting++
	}
	e.wake()
}

// unlist takes the lane out of where it is listed. The lock is held.
func (e *Engine) unlist(l *lane) {
	if l.in == nil {
		return
	}
	if l.in != &e.probes {
		e.waiting--
	}
	l.in.remove(l)
}

// settle drops an entry that is idle, and its lane with the last one. The entry of an open breaker's probe stays. The lock
// is held.
func (e *Engine) settle(en *entry) {
	if en.phase == PhaseDelayed && en.at == 0 && !(en.component == "" && en.lane.breaker.open) {
		e.drop(en)
	}
}

// drop removes an entry that does not run. The lock is held.
func (e *Engine) drop(en *entry) {
	l := en.lane
	if en.phase == PhaseQueued {
		e.dequeue(en)
	}
	e.timers.remove(en)
	e.phases[en.phase]--
	if i, found := l.find(en.component); found {
		l.entries = shrunk(slices.Delete(l.entries, i, i+1))
	}
	if len(l.entries) == 0 {
		e.relist(l)
		delete(e.lanes, l.runtime)
		e.shrink()
	}
}

// shrink gives memory back after a peak: maps never do that by themselves. The lock is held.
func (e *Engine) shrink() {
	const small = 1024
	if e.peak <= small || 4*len(e.lanes) > e.peak {
		return
	}
	smaller := make(map[string]*lane, len(e.lanes))
	maps.Copy(smaller, e.lanes)
	e.lanes, e.peak = smaller, len(smaller)
}

// Forget drops everything about a runtime: what is queued and scheduled, waits, counts and the breaker. Contexts of its runs
// are cancelled with ErrForgotten, and their results are ignored; what is added meanwhile runs after they have ended.
func (e *Engine) Forget(runtime string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[runtime]
	if l == nil {
		return
	}
	e.closeBreaker(l)
	l.breaker, l.proven = breaker{}, false
	for _, en := range slices.Clone(l.entries) {
		if en.run == nil {
			e.drop(en)
			continue
		}
		en.run.forgotten = true
		en.run.cancel(ErrForgotten)
		en.forget()
		e.retime(en)
	}
	e.relist(l)
}

// forget leaves of a running entry only that it runs.
func (en *entry) forget() {
	en.own, en.asked, en.lastAt = 0, 0, 0
	en.attempts, en.superseded, en.unreached = 0, 0, 0
	en.again, en.newer, en.facts, en.message = false, false, nil, ""
}

// Reset closes a runtime's breaker and drops its failure counts, because the reason for the failures is gone: a new kubeconfig
// came. What waits for its backoff runs at once. Results of runs that are under way do not count for the breaker.
func (e *Engine) Reset(runtime string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[runtime]
	if l == nil {
		return
	}
	e.closeBreaker(l)
	l.breaker.pauses, l.breaker.flaps, l.breaker.closedAt = 0, 0, 0
	l.breaker.era++
	for _, en := range l.entries {
		failing := en.attempts > 0 || en.unreached > 0
		en.attempts, en.unreached = 0, 0
		if failing && en.phase == PhaseDelayed && en.own != 0 {
			e.enqueue(en, PriorityRetry)
		}
	}
}
