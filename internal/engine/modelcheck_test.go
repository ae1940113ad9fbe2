package engine

import (
	"slices"
)

func (m *model) checkBegin(r *Run, k *modelKey, l *modelLane) {
	switch {
	case k.run != nil:
		m.t.Errorf("%s began while it runs", k)
	case m.classOf(l) != l.class || !m.mayBegin(l):
		m.t.Errorf("%s began, but there is no place for it: %+v, %d under way", k, *l, len(m.runs))
	case r.Probing() != l.open || l.open && k.Component != "":
		m.t.Errorf("%s began, probing: %t, breaker open: %t", k, r.Probing(), l.open)
	case !l.open && !k.queued:
		m.t.Errorf("%s began for no reason", k)
	case r.Attempt() != k.attempts+1:
		m.t.Errorf("%s began as attempt %d after %d failures", k, r.Attempt(), k.attempts)
	}
	for _, other := range m.keys {
		if !l.open && other.queued && other.Runtime == k.Runtime && other.priority == k.priority && other.since < k.since {
			m.t.Errorf("%s began before %s, which was queued first", k, other)
		}
	}
	for _, other := range m.lanes {
		if other.class == l.class && other.since < l.since {
			m.t.Errorf("%s began before anything of %s, whose turn it was", k, other.runtime)
		}
	}
}

// share checks the shares of the priorities, of lanes and in a lane.
func (m *model) share(k *modelKey, l *modelLane) {
	var lanes, keys [priorities]bool
	for _, other := range m.lanes {
		if other.class >= 0 {
			lanes[other.class] = true
		}
	}
	for _, other := range m.keys {
		if other.queued && other.Runtime == l.runtime {
			keys[other.priority] = true
		}
	}
	m.pass(&m.passed, lanes, l.class, "lanes")
	m.pass(&l.passed, keys, int(k.priority), "keys of "+l.runtime)
}

// pass counts who was passed over when something of a priority began: nobody for too often, and by a lower one only when that
// was for long enough.
func (m *model) pass(passed *[priorities]int, waiting [priorities]bool, began int, whose string) {
	for p := range priorities {
		switch {
		case !waiting[p] || p == began:
		case p < began:
			if passed[p]++; passed[p] > int(every[p]) {
				m.t.Errorf("%s: %s was passed over for %d times", whose, Priority(p), passed[p])
			}
		case passed[began] < int(every[began]):
			m.t.Errorf("%s: %s began before %s, although it was passed over for %d times only", whose, Priority(began), Priority(p), passed[began])
		}
		if !waiting[p] || p == began {
			defer func() { passed[p] = 0 }()
		}
	}
}

// state is what Engine.Inspect should say, as far as the model knows it.
func (m *model) state(runtime string) RuntimeState {
	l := m.lane(runtime)
	s := RuntimeState{Breaker: BreakerState{Open: l.open, Failures: l.failures, NextProbe: m.engine.wall(l.probeAt)}, Answers: l.proven}
	for _, r := range m.runs {
		s.Running += count(r.key.Runtime == runtime)
	}
	for _, k := range m.keys {
		next := earlier(k.own, k.asked)
		probed := k.Component == "" && l.open
		if probed {
			next = earlier(next, l.probeAt)
		}
		c := ComponentState{
			Component: k.Component, Attempts: k.attempts, Next: m.engine.wall(next), WaitingFor: slices.Clone(k.facts),
		}
		switch {
		case k.Runtime != runtime:
			continue
		case k.run != nil:
			c.Phase, c.Priority, c.Again = PhaseRunning, k.run.priority, k.again
			c.Asking, c.Aside = len(k.run.questions), k.run.aside
		case k.queued:
			c.Phase, c.Priority = PhaseQueued, k.priority
		case k.waiting:
			c.Phase = PhaseWaiting
		case k.failed:
			c.Phase = PhaseFailed
		case next == 0 && !probed:
			m.forgetIdle(k)
			continue
		}
		s.Components = append(s.Components, c)
	}
	slices.SortFunc(s.Components, func(a, b ComponentState) int {
		if a.Component < b.Component {
			return -1
		}
		return 1
	})
	return s
}

// forgetIdle drops what the engine does not remember of an idle key: everything.
func (m *model) forgetIdle(k *modelKey) { m.keys[k.Key] = &modelKey{Key: k.Key} }

// settled checks that nothing is left undone: what can begin has begun.
func (m *model) settled() {
	m.t.Helper()
	m.event()
	for _, l := range m.lanes {
		if l.class = m.classOf(l); m.mayBegin(l) {
			m.t.Errorf("%s is ready and %d runs are in hand of %d under way, but nothing began", l.runtime, m.inHand(), len(m.runs))
		}
	}
}
