package engine

import (
	"cmp"
	"slices"
	"time"
)

// Overview is what the engine has in hand, over all runtimes.
type Overview struct {
	Stats
	// Oldest is the key of each Priority that is queued for longest and whose runtime's breaker is closed, if there is one.
	Oldest []QueuedKey
	// Longest are the runs that are under way for longest, those first.
	Longest []RunningKey
	// Unreachable are the runtimes whose breaker is open for longest, those first.
	Unreachable []UnreachableRuntime
}

// QueuedKey is a key that is queued.
type QueuedKey struct {
	Key      Key
	Priority Priority
	// Since is when it was queued.
	Since time.Time
}

// RunningKey is a key that runs.
type RunningKey struct {
	Key      Key
	Priority Priority
	// Since is when the run began.
	Since time.Time
	// Asking, AskingSince and Aside are those of ComponentState.
	Asking      int
	AskingSince time.Time
	Aside       bool
	// Probing says that it is a probe.
	Probing bool
}

// UnreachableRuntime is a runtime whose breaker is open.
type UnreachableRuntime struct {
	Runtime string
	// Since is when its breaker opened, NextProbe when it is asked again, if that is ahead.
	Since, NextProbe time.Time
	// Failures is how often in a row it did not answer.
	Failures int
}

// Overview looks at everything. The lists have at most top entries each. It holds up the engine for as long as it takes to look at
// each key that is not idle: some milliseconds for 10,000 runtimes. It is for people, not for metrics.
func (e *Engine) Overview(top int) Overview {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setAsideOverdue()
	o := Overview{Stats: e.statsNow()}
	var oldest [priorities]*entry
	var running []*Run
	var open []*lane
	for _, l := range e.lanes {
		if l.breaker.open {
			open = append(open, l)
		}
		for _, en := range l.entries {
			if en.run != nil {
				running = append(running, en.run)
			}
			if before := oldest[en.priority]; en.phase == PhaseQueued && !l.breaker.open && (before == nil || en.queuedAt < before.queuedAt) {
				oldest[en.priority] = en
			}
		}
	}
	for _, en := range slices.Backward(oldest[:]) {
		if en != nil {
			o.Oldest = append(o.Oldest, QueuedKey{Key: en.key(), Priority: en.priority, Since: e.wall(en.queuedAt)})
		}
	}
	o.Longest, o.Unreachable = e.longest(running, top), e.unreachables(open, top)
	return o
}

func (e *Engine) longest(running []*Run, top int) (out []RunningKey) {
	slices.SortFunc(running, func(a, b *Run) int { return cmp.Compare(a.began, b.began) })
	for _, r := range running[:min(top, len(running))] {
		s := e.state(r.entry)
		out = append(out, RunningKey{
			Key: r.Key(), Priority: s.Priority, Since: s.Since, Asking: s.Asking, AskingSince: s.AskingSince, Aside: s.Aside, Probing: r.probing,
		})
	}
	return out
}

func (e *Engine) unreachables(open []*lane, top int) (out []UnreachableRuntime) {
	slices.SortFunc(open, func(a, b *lane) int { return cmp.Compare(a.breaker.openedAt, b.breaker.openedAt) })
	for _, l := range open[:min(top, len(open))] {
		b := &l.breaker
		out = append(out, UnreachableRuntime{Runtime: l.runtime, Since: e.wall(b.openedAt), NextProbe: e.wall(b.probeAt), Failures: int(b.failures)})
	}
	return out
}
