package engine

import (
	"cmp"
	"math"
	"strings"
	"time"
)

// pendingAfter is when to look again at what is Pending, unless the result says it.
const pendingAfter = 2 * time.Second

// maxMessage is how many bytes of a result's message are kept.
const maxMessage = 1024

// finish acts on the result of a run.
func (e *Engine) finish(r *Run, result Result, panicked bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	en, l := r.entry, r.entry.lane
	e.stats.Outcomes[result.Outcome]++
	if panicked {
		e.stats.Panics++
	}
	e.leave(r, result)
	phase := PhaseDelayed
	if !r.forgotten {
		if !result.Offline || r.probing {
			e.judge(r, result.Outcome) // while the entry still counts as running
		}
		phase = e.conclude(r, result)
	}
	e.setPhase(en, phase)
	en.run = nil
	if phase != PhaseWaiting {
		en.facts = nil
	}
	if en.again {
		e.enqueue(en, en.priority)
	}
	if l.running == 0 && l.queue.Len() == 0 {
		l.proven = false // when there is something to do again, it may not answer any more
	}
	e.retime(en)
	e.settle(en)
	e.relist(l)
	e.limiter.step(e.now())
	e.wake()
}

// leave gives up what the run holds, and notes what its end says of the runtime. The lock is held.
func (e *Engine) leave(r *Run, result Result) {
	e.setAsideOverdue()
	e.takeBack(r)
	e.comeBack(r)
	r.ended = true
	if r.probing {
		e.stats.Probing--
	}
	l := r.entry.lane
	l.running--
	if !r.forgotten && (!result.Offline || r.probing) {
		l.proven = result.Outcome != Unreachable
	}
}

// conclude notes what the result means for the entry, and returns the phase that follows unless it runs again. The lock
// is held.
func (e *Engine) conclude(r *Run, result Result) Phase {
	en := r.entry
	en.last, en.message, en.lastAt = result.Outcome, clipped(result.Message), e.now()
	en.countInARow(r, result.Outcome)
	switch result.Outcome {
	case Done:
		en.attempts = 0
		e.schedule(en, result.After, PriorityVerify)
	case Waiting:
		e.schedule(en, result.After, PriorityVerify)
		return PhaseWaiting
	case Failed:
		en.attempts++
		e.schedule(en, result.After, PriorityVerify)
		return PhaseFailed
	case Pending:
		e.schedule(en, cmp.Or(result.After, pendingAfter), PriorityRetry)
	case Superseded: // what superseded it set again
	case Unreachable:
		e.unreachable(r, result.After)
	case Retry:
		e.retry(en, result.After)
	}
	return PhaseDelayed
}

// countInARow counts the outcomes that are bounded by how often they come in a row.
func (en *entry) countInARow(r *Run, o Outcome) {
	switch {
	case o != Superseded:
		en.superseded = 0
	case !r.preempted:
		en.superseded++
	}
	if o != Unreachable {
		en.unreached = 0
	} else if en.unreached < math.MaxUint8 {
		en.unreached++
	}
}

// schedule sets when the result wants the next run; not at all if that is 0. The lock is held.
func (e *Engine) schedule(en *entry, after time.Duration, p Priority) {
	if after > 0 {
		en.own, en.ownPriority = e.now()+after, p
	}
}

// retry schedules the entry after its backoff, and not before after. The lock is held.
func (e *Engine) retry(en *entry, after time.Duration) {
	en.attempts++
	e.schedule(en, max(after, e.options.Backoff.after(en.attempts, e.random())), PriorityRetry)
}

// unreachable keeps the entry queued. If its own results would have opened the breaker, and the breaker is closed because
// other keys of the lane do reach the runtime, then it is retried as after any failure, so that it does not spin. The
// lock is held.
func (e *Engine) unreachable(r *Run, after time.Duration) {
	en := r.entry
	if !en.lane.breaker.open && int(en.unreached) >= min(e.options.BreakerFailures, math.MaxUint8) {
		e.retry(en, after)
		return
	}
	en.runAgain(r.priority)
}

// clipped is the part of a message that is kept.
func clipped(message string) string {
	if len(message) <= maxMessage {
		return message
	}
	return strings.ToValidUTF8(strings.Clone(message[:maxMessage]), "")
}
