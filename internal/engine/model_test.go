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
	answers time.Duration // smoothed time of answers
	passed  [priorities]int
}

type modelKey struct {
	Key
	run                            *modelRun
	queued, waiting, failed, again bool
	newer                          bool
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
	class                 int // what it is ready for: a priority, or one of those below
	since                 int // stamp of becoming ready for that, or of its last turn
	proven                bool
	passed                [priorities]int
	open, probeDue        bool
	failures, pauses, era int
	probeAt, closedAt     time.Duration
}

// The classes of lanes that are not ready for a priority.
const (
	classNone  = -1
	classProbe = -2
)

type modelRun struct {
	real                          *Run
	key                           *modelKey
	priority                      Priority
	era                           int
	probing                       bool
	preempted, forgotten, stopped bool
	questions                     []modelQuestion
	since                         time.Duration // it asks, or was last answered
	aside                         bool
}

// modelQuestion is one that a run has asked.
type modelQuestion struct {
	at       time.Duration
	answered func(bool)
}

func newModel(t *testing.T, e *Engine) *model {
	t.Helper()
	return &model{t: t, engine: e, options: e.options, keys: map[Key]*modelKey{}, lanes: map[string]*modelLane{}, answers: 12500 * time.Microsecond}
}

func (m *model) key(k Key) *modelKey {
	if m.keys[k] == nil {
		m.keys[k] = &modelKey{Key: k}
	}
	return m.keys[k]
}

func (m *model) lane(runtime string) *modelLane {
	if m.lanes[runtime] == nil {
		m.lanes[runtime] = &modelLane{runtime: runtime, class: classNone}
	}
	return m.lanes[runtime]
}

// event lets time pass up to now, and begins a new stamp.
func (m *model) event() {
	m.catchUp(m.engine.now())
	m.stamp++
	m.setAside()
}

func (m *model) patience() time.Duration {
	return min(max(8*m.answers, 25*time.Millisecond), m.options.Patience)
}

// setAside sets the runs aside that wait for too long.
func (m *model) setAside() {
	for _, r := range m.runs {
		if len(r.questions) > 0 && !r.probing && !r.aside && r.since+m.patience() <= m.engine.now() {
			r.aside = true
			if l := m.lane(r.key.Runtime); !r.forgotten {
				l.proven = false
				m.turn(l)
			}
		}
	}
}

// inHand is how many runs count.
func (m *model) inHand() (n int) {
	for _, r := range m.runs {
		if !r.probing && !r.aside {
			n++
		}
	}
	return n
}

func (m *model) ask(r *modelRun, answered func(bool)) {
	if len(r.questions) == 0 {
		r.since = m.engine.now()
	}
	r.questions = append(r.questions, modelQuestion{m.engine.now(), answered})
}

// answer ends the first question of a run, and returns how to tell the engine.
func (m *model) answer(r *modelRun, ok bool) func(bool) {
	m.event()
	q, now := r.questions[0], m.engine.now()
	r.questions = r.questions[1:]
	if ok {
		m.answers += (now - q.at - m.answers) / 16
		m.prove(r)
		r.since = now
	}
	if ok || len(r.questions) == 0 {
		r.aside = false
	}
	return q.answered
}

func (m *model) prove(r *modelRun) {
	if l := m.lane(r.key.Runtime); !r.forgotten {
		l.proven = true
		m.turn(l)
	}
}

func (m *model) progress(r *modelRun) {
	m.event()
	m.prove(r)
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
		k.newer = k.newer || p == PriorityChange
	case k.queued:
		k.priority = max(p, k.priority)
	default:
		k.queued, k.waiting, k.failed = true, false, false
		k.priority, k.since, k.own, k.facts = p, m.stamp, 0, nil
	}
	m.turn(m.lane(k.Runtime))
}

// turn notes when the lane becomes ready, and for what.
func (m *model) turn(l *modelLane) {
	class := m.classOf(l)
	if class != l.class {
		l.since = m.stamp
	}
	l.class = class
}

func (m *model) classOf(l *modelLane) int {
	running, highest, width := 0, classNone, 1
	for _, k := range m.keys {
		if k.Runtime == l.runtime && k.run != nil {
			running++
		}
		if k.Runtime == l.runtime && k.queued {
			highest = max(highest, int(k.priority))
		}
	}
	if l.proven {
		width = m.options.PerRuntime
	}
	switch {
	case l.open && l.probeDue && m.key(Key{Runtime: l.runtime}).run == nil:
		return classProbe
	case l.open || running >= width:
		return classNone
	}
	return highest
}

// mayBegin says whether there is a place for something of a lane.
func (m *model) mayBegin(l *modelLane) bool {
	probes := len(m.runs) - m.inHand()
	for _, r := range m.runs {
		probes -= count(r.aside)
	}
	switch {
	case len(m.runs) >= m.options.MaxRuns || l.class == classNone:
		return false
	case l.class == classProbe:
		return probes < m.options.Probes
	}
	return m.inHand() < m.engine.limit()
}

// began checks that the run may begin, and begins it.
func (m *model) began(r *Run) {
	m.event()
	k, l := m.key(r.Key()), m.lane(r.Key().Runtime)
	m.checkBegin(r, k, l)
	if !l.open {
		m.share(k, l)
	}
	run := &modelRun{real: r, key: k, priority: PriorityVerify, era: l.era, probing: l.open}
	if k.queued {
		run.priority = k.priority
	}
	k.run, k.queued, k.waiting, k.failed, k.facts, k.own = run, false, false, false, nil, 0
	l.probeDue = false
	m.runs = append(m.runs, run)
	l.class = classNone // to the end of the line
	m.turn(l)
}

func (m *model) add(k Key, p Priority) {
	m.event()
	m.trigger(m.key(k), p)
}

func (m *model) renew(k Key, p Priority) {
	m.add(k, p)
	m.key(k).newer = m.key(k).run != nil
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
	case run.key.newer && run.key.superseded < 3:
		run.stopped = true
		return ErrSuperseded
	}
	return nil
}

func (m *model) forget(runtime string) {
	m.event()
	m.lanes[runtime] = &modelLane{runtime: runtime, class: classNone}
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
	l.pauses, l.closedAt = 0, 0
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
	l.open, l.probeDue, l.probeAt, l.closedAt = false, false, 0, m.engine.now()
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
		if !result.Offline || run.probing {
			l.proven = result.Outcome != Unreachable
			if run.era == l.era {
				m.judge(l, run, result.Outcome)
			}
		}
		m.conclude(k, run, result)
	}
	k.run = nil
	if !k.waiting {
		k.facts = nil
	}
	k.newer = false
	if k.again {
		k.again = false
		m.trigger(k, k.priority)
	}
	if m.isIdle(l) {
		l.proven = false
	}
	m.turn(l)
}

// isIdle says whether nothing of a lane runs or is queued.
func (m *model) isIdle(l *modelLane) bool {
	for _, k := range m.keys {
		if k.Runtime == l.runtime && (k.queued || k.run != nil) {
			return false
		}
	}
	return true
}

func (m *model) judge(l *modelLane, run *modelRun, o Outcome) {
	if o != Unreachable {
		m.closeBreaker(l)
		if !run.probing && m.engine.now() >= l.closedAt+m.options.Probe.Max {
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
