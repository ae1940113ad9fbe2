package engine

import (
	"slices"
	"time"
)

// Add has the key run soon. Triggers coalesce: what is queued already stays where it is, or moves up if the priority is
// higher; while the key runs, it is run once more afterwards, and PriorityChange makes the run's checkpoints return
// ErrSuperseded. A backoff is not waited for. If the runtime's breaker is open, the key is queued until it closes.
func (e *Engine) Add(k Key, p Priority) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.add(k, p)
}

// Renew is Add where the desired state is another one, whatever the priority: checkpoints of a run under way return
// ErrSuperseded, as with PriorityChange.
func (e *Engine) Renew(k Key, p Priority) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if en := e.add(k, p); en.run != nil {
		en.newer = true
	}
}

// Preempt is Add with PriorityChange for a component that is to be removed: checkpoints of a run under way return
// ErrPreempted, however often that happens.
func (e *Engine) Preempt(k Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if en := e.add(k, PriorityChange); en.run != nil {
		en.run.preempted = true
	}
}

// add is Add. The lock is held.
func (e *Engine) add(k Key, p Priority) *entry {
	en := e.entryOf(e.laneOf(k.Runtime), k.Component)
	e.stats.Added++
	if en.phase == PhaseQueued || en.again {
		e.stats.Coalesced++
	}
	e.trigger(en, p.known())
	return en
}

// AddAfter has the key run after d, as if Add were called then; at once if d is not positive. If an earlier AddAfter of the
// key is due before, that one stays and this call has no effect. Runs in between, and what they schedule, change nothing.
func (e *Engine) AddAfter(k Key, d time.Duration, p Priority) {
	if d <= 0 {
		e.Add(k, p)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	en := e.entryOf(e.laneOf(k.Runtime), k.Component)
	if at := e.now() + d; en.asked == 0 || at < en.asked {
		en.asked, en.askedPriority = at, p.known()
		e.retime(en)
	}
}

// Wake says that facts about a runtime have arrived or changed: the components of the runtime that wait for one of them run
// again, and so do those whose run under way awaits one. Nobody else does. Store the facts first.
func (e *Engine) Wake(runtime string, facts ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[runtime]
	if l == nil {
		return
	}
	for _, en := range l.entries {
		if slices.ContainsFunc(facts, func(f string) bool { return slices.Contains(en.facts, f) }) {
			e.stats.Woken++
			e.trigger(en, PriorityTrigger)
		}
	}
}

// trigger has the entry run soon. The lock is held.
func (e *Engine) trigger(en *entry, p Priority) {
	switch en.phase {
	case PhaseRunning:
		en.runAgain(p)
	case PhaseQueued:
		if p > en.priority {
			e.dequeue(en)
			e.queue(en, p)
			e.relist(en.lane)
		}
	default:
		e.enqueue(en, p)
	}
}

// runAgain has a running entry run once more afterwards.
func (en *entry) runAgain(p Priority) {
	if en.again {
		p = max(p, en.priority)
	}
	en.again, en.priority = true, p
	en.newer = en.newer || p == PriorityChange
}

// enqueue queues an entry that is neither queued nor running. The run stands for what the last result scheduled, and for
// the facts waited for. The lock is held.
func (e *Engine) enqueue(en *entry, p Priority) {
	en.again, en.newer, en.facts, en.own = false, false, nil, 0
	en.queuedAt = e.now()
	e.turns++
	en.turn = e.turns
	e.setPhase(en, PhaseQueued)
	e.retime(en)
	e.queue(en, p)
	e.relist(en.lane)
}

// queue puts an entry of PhaseQueued into its lane's queue. The lock is held.
func (e *Engine) queue(en *entry, p Priority) {
	en.priority = p
	e.stats.Queued[p]++
	en.lane.waits[p]++
	en.lane.queue.put(en)
}

// dequeue takes it out. The lock is held.
func (e *Engine) dequeue(en *entry) {
	e.stats.Queued[en.priority]--
	en.lane.waits[en.priority]--
	en.lane.queue.remove(en)
}
