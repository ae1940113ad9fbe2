package engine

import (
	"slices"
	"time"
)

// Phase is where a key stands that is not idle.
type Phase uint8

// The phases.
const (
	// PhaseDelayed: it runs at ComponentState.Next.
	PhaseDelayed Phase = iota
	// PhaseQueued: it runs when it is its turn, or when the runtime's breaker has closed.
	PhaseQueued
	// PhaseRunning: it runs.
	PhaseRunning
	// PhaseWaiting: it waits for facts.
	PhaseWaiting
	// PhaseFailed: only a change helps.
	PhaseFailed

	phases = int(PhaseFailed) + 1
)

var phaseNames = [phases]string{"delayed", "queued", "running", "waiting", "failed"}

// String is the phase in lower case.
func (p Phase) String() string { return phaseNames[min(p, PhaseFailed)] }

// RuntimeState is what the engine knows of a runtime.
type RuntimeState struct {
	// Breaker of the runtime.
	Breaker BreakerState
	// Answers says that it has answered since something of it is to be done; until then its runs begin one by one.
	Answers bool
	// Running is how many of its runs are under way, RunningMost how many may be.
	Running, RunningMost int
	// Position is its place among those with something to begin of its Priority, 1 for the next one; 0 if nothing of it can begin.
	Position int
	// Priority is the highest that is queued in it, if Position is set.
	Priority Priority
	// Components that are not idle, sorted by name; "" is the runtime itself.
	Components []ComponentState
}

// BreakerState is the state of a circuit breaker.
type BreakerState struct {
	// Open: the runtime does not answer, and nothing of it runs but a probe now and then.
	Open bool
	// Failures is how many results in a row were Unreachable.
	Failures int
	// Since is when it opened, if it is open.
	Since time.Time
	// NextProbe is when the runtime is probed next; zero if the breaker is closed, or the probe is due or running.
	NextProbe time.Time
}

// ComponentState is the state of one key that is not idle.
type ComponentState struct {
	// Component of the key.
	Component string
	// Phase it is in.
	Phase Phase
	// Priority of a queued key, and of a running one.
	Priority Priority
	// Attempts is how many runs have failed since the last success.
	Attempts int
	// Last is how the last run ended, if LastAt is set.
	Last Outcome
	// Message of the last run's result, at most 1024 bytes of it.
	Message string
	// LastAt is when the last run ended; zero if nobody remembers one.
	LastAt time.Time
	// Next is when the key is queued by itself; zero if nothing is scheduled.
	Next time.Time
	// WaitingFor are the facts that it waits for, or that its run awaits; sorted.
	WaitingFor []string
	// Since is when a queued key was queued, and when the run of a running one began.
	Since time.Time
	// Asking is how many answers the run waits for, AskingSince since when without any.
	Asking      int
	AskingSince time.Time
	// Aside says that the run is set aside, because none came for too long.
	Aside bool
	// Again says that the key is run once more after the run.
	Again bool
}

// Inspect says what the engine knows of a runtime at the moment. Of a runtime where nothing is to be done it knows nothing: the
// zero value.
func (e *Engine) Inspect(runtime string) RuntimeState {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.lanes[runtime]
	if l == nil {
		return RuntimeState{}
	}
	e.setAsideOverdue()
	s := RuntimeState{
		Breaker: BreakerState{Open: l.breaker.open, Failures: int(l.breaker.failures), NextProbe: e.wall(l.breaker.probeAt)},
		Answers: l.proven, Running: int(l.running), RunningMost: l.width(e.options.PerRuntime),
	}
	if l.breaker.open {
		s.Breaker.Since = e.wall(l.breaker.openedAt)
	}
	if l.in != nil && !l.breaker.open {
		s.Priority = l.queue.first().priority
	}
	for at := l; at != nil && l.in != nil; at = at.prev {
		s.Position++
	}
	for _, en := range l.entries {
		s.Components = append(s.Components, e.state(en))
	}
	return s
}

// state is what Inspect says of an entry. The lock is held.
func (e *Engine) state(en *entry) ComponentState {
	s := ComponentState{
		Component: en.component, Phase: en.phase, Attempts: int(en.attempts), Last: en.last, Message: en.message,
		LastAt: e.wall(en.lastAt), Next: e.wall(en.at), WaitingFor: slices.Clone(en.facts),
	}
	switch en.phase {
	case PhaseQueued:
		s.Priority, s.Since = en.priority, e.wall(en.queuedAt)
	case PhaseRunning:
		r := en.run
		s.Priority, s.Since, s.Again = r.priority, e.wall(r.began), en.again
		if s.Asking = r.asking; r.asking > 0 {
			s.AskingSince, s.Aside = e.wall(r.since), r.aside
		}
	}
	return s
}

// Stats are totals over all runtimes.
type Stats struct {
	// Queued keys, by Priority.
	Queued [priorities]int
	// Running, Delayed, Waiting and Failed are how many keys are in that phase.
	Running, Delayed, Waiting, Failed int
	// Runtimes is how many have a key that is not idle, Ready how many of them wait for a worker: those that do not answer, or have as
	// many runs under way as they may, do not.
	Runtimes, Ready int
	// OpenBreakers is how many runtimes do not answer.
	OpenBreakers int
	// Limit is how many runs may be in hand, InHand how many are.
	Limit, InHand int
	// Aside is how many runs are set aside because their runtime does not answer them; they are among the running.
	Aside int
	// Probing is how many probes are under way; they are among the running.
	Probing int
	// Patience is how long a run waits for an answer now before it is set aside.
	Patience time.Duration
	// Throttled: all but a few runs are held back.
	Throttled bool

	// Added counts calls of Add and Preempt, Coalesced those that found the key to be run anyway.
	Added, Coalesced uint64
	// Woken counts the keys that Wake found waiting.
	Woken uint64
	// Outcomes counts the runs that ended, by Outcome.
	Outcomes [outcomes]uint64
	// Panics counts those that ended with one; their outcome is Retry.
	Panics uint64
	// Opened counts how often a breaker opened.
	Opened uint64
	// SetAside counts how often a run was set aside.
	SetAside uint64
}

// Stats returns the totals at the moment. It takes no longer with more runtimes.
func (e *Engine) Stats() Stats {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.setAsideOverdue()
	return e.statsNow()
}

// statsNow is Stats. The lock is held.
func (e *Engine) statsNow() Stats {
	s := e.stats
	s.Running, s.Delayed = e.phases[PhaseRunning], e.phases[PhaseDelayed]
	s.Waiting, s.Failed = e.phases[PhaseWaiting], e.phases[PhaseFailed]
	s.Runtimes, s.Ready = len(e.lanes), e.waiting
	s.Limit, s.InHand, s.Patience, s.Throttled = e.limit(), e.inHand(), e.patience(), e.throttled
	return s
}
