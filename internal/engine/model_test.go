package engine

import (
	"slices"
	"testing"
	"time"
)

// model is the engine as simple as it can be said: no heaps, no lists, everything is looked for in everything. The fuzz
// target does to it what it does to the engine, tells it which runs began, and it says what must not have been.
//
// The test's goroutine tells it first and the engine afterwards, so the engine's lock orders what both of them do to it.
//
// Its clock is a stamp per event; things that are due at the same instant have the same stamp and may come in any order.
type model struct {
	t       *testing.T
	engine  *Engine
	options Options
	keys    map[Key]*modelKey
	lanes   map[string]*modelLane
	runs    []*modelRun // under way, in the order in which they began
	stamp   int
}

type modelKey struct {
	Key
	run                            *modelRun
	queued, waiting, failed, again bool
	priority                       Priority
	since                          int // stamp of queueing
	own, asked                     time.Duration
	ownPriority, askedPriority     Priority
	facts                          []string
	attempts                       int
	superseded, unreached          int
}

type modelLane struct {
	runtime               string
	ready                 bool
	since                 int // stamp of becoming ready, or of its last turn
	open, probeDue        bool
	failures, pauses, era int
	probeAt               time.Duration
}

type modelRun struct {
	real                          *Run
	key                           *modelKey
	priority                      Priority
	era                           int
	probing                       bool
	preempted, forgotten, stopped bool
}

func newModel(t *testing.T, e *Engine) *model {
	t.Helper()
	return &model{t: t, engine: e, options: e.options, keys: map[Key]*modelKey{}, lanes: map[string]*modelLane{}}
}

func (m *model) key(k Key) *modelKey {
	if m.keys[k] == nil {
		m.keys[k] = &modelKey{Key: k}
	}
	return m.keys[k]
}

func (m *model) lane(runtime string) *modelLane {
	if m.lanes[runtime] == nil {
		m.lanes[runtime] = &modelLane{runtime: runtime}
	}
	return m.lanes[runtime]
}

// event lets time pass up to now, and begins a new stamp.
func (m *model) event() {
	m.catchUp(m.engine.now())
	m.stamp++
}

// catchUp lets everything happen that is due until now.
func (m *model) catchUp(now time.Duration) {
	for {
		due := time.Duration(0)
		for _, k := range m.keys {
			due = earlier(due, earlier(k.own, k.asked))
		}
		for _, l := range m.lanes {
			due = earlier(due, l.probeAt)
		}
		if due == 0 || due > now {
			return
		}
		m.stamp++
		m.happen(due)
	}
}

func (m *model) happen(due time.Duration) {
	for _, l := range m.lanes {
		if l.probeAt == due {
			l.probeAt, l.probeDue = 0, true
			m.turn(l)
		}
	}
	for _, k := range m.keys {
		if k.own == due {
			k.own = 0
			m.trigger(k, k.ownPriority)
		}
		if k.asked == due {
			k.asked = 0
			m.trigger(k, k.askedPriority)
		}
	}
}

func (m *model) trigger(k *modelKey, p Priority) {
	switch {
	case k.run != nil:
		if k.again {
			p = max(p, k.priority)
		}
		k.again, k.priority = true, p
	case k.queued:
		k.priority = max(p, k.priority)
	default:
		k.queued, k.waiting, k.failed = true, false, false
		k.priority, k.since, k.own, k.facts = p, m.stamp, 0, nil
	}
	m.turn(m.lane(k.Runtime))
}

// turn notes when the lane becomes ready.
func (m *model) turn(l *modelLane) {
	ready := m.isReady(l)
	if ready && !l.ready {
		l.since = m.stamp
	}
	l.ready = ready
}

func (m *model) isReady(l *modelLane) bool {
	running, queued := 0, 0
	for _, k := range m.keys {
		if k.Runtime == l.runtime && k.run != nil {
			running++
		}
		if k.Runtime == l.runtime && k.queued {
			queued++
		}
	}
	switch {
	case running >= m.options.PerRuntime:
		return false
	case l.open:
		return l.probeDue && m.key(Key{Runtime: l.runtime}).run == nil
	default:
		return queued > 0
	}
}

// began checks that the run may begin, and begins it.
func (m *model) began(r *Run) {
	m.event()
	k, l := m.key(r.Key()), m.lane(r.Key().Runtime)
	m.mayBegin(r, k, l)
	run := &modelRun{real: r, key: k, priority: PriorityVerify, era: l.era, probing: l.open}
	if k.queued {
		run.priority = k.priority
	}
	k.run, k.queued, k.waiting, k.failed, k.facts, k.own = run, false, false, false, nil, 0
	l.probeDue = false
	m.runs = append(m.runs, run)
	l.ready = false // to the end of the line
	m.turn(l)
}

func (m *model) mayBegin(r *Run, k *modelKey, l *modelLane) {
	switch {
	case k.run != nil:
		m.t.Errorf("%s began while it runs", k)
	case len(m.runs) >= m.options.Workers:
		m.t.Errorf("%s began as the run %d of %d", k, len(m.runs)+1, m.options.Workers)
	case !m.isReady(l):
		m.t.Errorf("%s began, but its lane is not ready: %+v", k, *l)
	case r.Probing() != l.open || l.open && k.Component != "":
		m.t.Errorf("%s began, probing: %t, breaker open: %t", k, r.Probing(), l.open)
	case !l.open && !k.queued:
		m.t.Errorf("%s began for no reason", k)
	case r.Attempt() != k.attempts+1:
		m.t.Errorf("%s began as attempt %d after %d failures", k, r.Attempt(), k.attempts)
	}
	for _, other := range m.keys {
		if !l.open && other.queued && other.Runtime == k.Runtime &&
			(other.priority > k.priority || other.priority == k.priority && other.since < k.since) {
			m.t.Errorf("%s began before %s, whose turn it was", k, other)
		}
	}
	for _, other := range m.lanes {
		if other.ready && other.since < l.since {
			m.t.Errorf("%s began before anything of %s, whose turn it was", k, other.runtime)
		}
	}
}

func (m *model) add(k Key, p Priority) {
	m.event()
	m.trigger(m.key(k), p)
}

func (m *model) preempt(k Key) {
	m.add(k, PriorityChange)
	if run := m.key(k).run; run != nil {
		run.preempted = true
	}
}

func (m *model) addAfter(name Key, d time.Duration, p Priority) {
	m.event()
	k := m.key(name)
	if at := m.engine.now() + d; k.asked == 0 || at < k.asked {
		k.asked, k.askedPriority = at, p
	}
}

func (m *model) wake(runtime string, fact string) {
	m.event()
	for _, k := range m.keys {
		if k.Runtime == runtime && slices.Contains(k.facts, fact) {
			m.trigger(k, PriorityTrigger)
		}
	}
}

func (m *model) await(run *modelRun, facts ...string) {
	m.event()
	if !run.forgotten {
		run.key.facts = facts
	}
}

func (m *model) checkpoint(run *modelRun) error {
	m.event()
	switch {
	case run.preempted || run.forgotten:
		run.stopped = true
		return ErrPreempted
	case run.key.again && run.key.priority == PriorityChange && run.key.superseded < 3:
		run.stopped = true
		return ErrSuperseded
	}
	return nil
}

func (m *model) forget(runtime string) {
	m.event()
	m.lanes[runtime] = &modelLane{runtime: runtime}
	for name, k := range m.keys {
		if k.Runtime != runtime {
			continue
		}
		m.keys[name] = &modelKey{Key: name, run: k.run}
		if k.run != nil {
			k.run.forgotten, k.run.key = true, m.keys[name]
		}
	}
}

func (m *model) reset(runtime string) {
	m.event()
	l := m.lane(runtime)
	m.closeBreaker(l)
	l.pauses = 0
	l.era++
	for _, k := range m.keys {
		if k.Runtime != runtime {
			continue
		}
		failing := k.attempts > 0 || k.unreached > 0
		k.attempts, k.unreached = 0, 0
		if failing && k.own != 0 && k.run == nil && !k.queued && !k.waiting && !k.failed {
			m.trigger(k, PriorityRetry)
		}
	}
}

func (m *model) closeBreaker(l *modelLane) {
	l.failures = 0
	if !l.open {
		return
	}
	l.open, l.probeDue, l.probeAt = false, false, 0
	l.era++
	m.turn(l)
}

// finish ends a run.
func (m *model) finish(run *modelRun, result Result) {
	m.event()
	k, l := run.key, m.lane(run.key.Runtime)
	m.runs = slices.DeleteFunc(m.runs, func(r *modelRun) bool { return r == run })
	if result.Outcome == Superseded && !run.stopped {
		result.Outcome = Retry
	}
	if !run.forgotten {
		if run.era == l.era {
			m.judge(l, run, result.Outcome)
		}
		m.conclude(k, run, result)
	}
	k.run = nil
	if !k.waiting {
		k.facts = nil
	}
	if k.again {
		k.again = false
		m.trigger(k, k.priority)
	}
	m.turn(l)
}

func (m *model) judge(l *modelLane, run *modelRun, o Outcome) {
	if o != Unreachable {
		m.closeBreaker(l)
		if !run.probing {
			l.pauses = 0
		}
		return
	}
	l.failures++
	if !l.open && l.failures < m.options.BreakerFailures {
		return
	}
	if !l.open {
		l.open = true
		l.era++
	}
	l.pauses++
	l.probeAt = m.engine.now() + m.options.Probe.after(uint32(l.pauses), 0.5)
	m.key(Key{Runtime: l.runtime})
}

func (m *model) conclude(k *modelKey, run *modelRun, result Result) {
	now := m.engine.now()
	if result.Outcome != Superseded {
		k.superseded = 0
	} else if !run.preempted {
		k.superseded++
	}
	if result.Outcome != Unreachable {
		k.unreached = 0
	} else {
		k.unreached++
	}
	after, p := result.After, PriorityVerify
	switch result.Outcome {
	case Done:
		k.attempts = 0
	case Waiting:
		k.waiting = true
	case Failed:
		k.failed = true
		k.attempts++
	case Pending:
		p = PriorityRetry
		if after == 0 {
			after = 2 * time.Second
		}
	case Superseded:
		after = 0
	case Unreachable:
		if m.lane(k.Runtime).open || k.unreached < m.options.BreakerFailures {
			m.trigger(k, run.priority) // it runs still: again
			after = 0
			break
		}
		fallthrough
	case Retry:
		p = PriorityRetry
		k.attempts++
		after = max(after, m.options.Backoff.after(uint32(k.attempts), 0.5))
	}
	if after > 0 {
		k.own, k.ownPriority = now+after, p
	}
}

// state is what Engine.Inspect should say, as far as the model knows it.
func (m *model) state(runtime string) RuntimeState {
	l := m.lane(runtime)
	s := RuntimeState{Breaker: BreakerState{Open: l.open, Failures: l.failures, NextProbe: m.engine.wall(l.probeAt)}}
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
			c.Phase, c.Priority = PhaseRunning, k.run.priority
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

// settled checks that nothing is left undone: with a free worker, no lane may be ready.
func (m *model) settled() {
	m.t.Helper()
	m.event()
	for _, l := range m.lanes {
		if m.isReady(l) && len(m.runs) < m.options.Workers {
			m.t.Errorf("%s is ready and %d of %d workers are busy, but nothing began", l.runtime, len(m.runs), m.options.Workers)
		}
	}
}
