package engine

import "time"

// Key names what is run: a component of a runtime.
type Key struct {
	// Runtime is the name of the lane. The engine does not interpret it.
	Runtime string
	// Component of the runtime; "" is the runtime itself: its probe and verification.
	Component string
}

// String is "runtime/component", or "runtime" for the runtime itself.
func (k Key) String() string {
	if k.Component == "" {
		return k.Runtime
	}
	return k.Runtime + "/" + k.Component
}

// Priority orders the queued keys of a lane: higher first.
type Priority uint8

// The priorities, lowest first.
const (
	// PriorityVerify: nothing is known to be wrong.
	PriorityVerify Priority = iota
	// PriorityRetry: it did not work, or was not ready, a moment ago.
	PriorityRetry
	// PriorityTrigger: something happened: drift, a fact that arrived.
	PriorityTrigger
	// PriorityChange: somebody changed the desired state and looks at the screen.
	PriorityChange

	priorities = int(PriorityChange) + 1
)

var priorityNames = [priorities]string{"verify", "retry", "trigger", "change"}

// String is the priority in lower case.
func (p Priority) String() string { return priorityNames[p.known()] }

// known is the nearest priority that exists.
func (p Priority) known() Priority { return min(p, PriorityChange) }

// Outcome says how a run ended, and with that what comes next.
type Outcome uint8

// The outcomes.
const (
	// Done: nothing is left to do. With Result.After the key is run again then, as PriorityVerify.
	Done Outcome = iota
	// Waiting: the facts of Run.Await are missing. It is no failure and costs no retry; their arrival (Engine.Wake) or Add
	// runs the key again, and with Result.After so does the time, as PriorityVerify.
	Waiting
	// Retry: it did not work and may work later. The key is run again after the backoff, and not before Result.After.
	Retry
	// Pending: nothing failed, something is not there yet, as readiness. The key is run again after Result.After (default
	// 2 s); it is not counted as a failure.
	Pending
	// Failed: only a change helps. The key is not run again before Add; with Result.After then too, as PriorityVerify.
	Failed
	// Superseded: the run stopped because Run.Checkpoint told it to. It is run again at once. Without such a checkpoint
	// it is taken for Retry.
	Superseded
	// Unreachable: the runtime as a whole does not answer. It counts for the runtime's breaker; the key stays queued.
	Unreachable

	outcomes = int(Unreachable) + 1
)

var outcomeNames = [outcomes]string{"done", "waiting", "retry", "pending", "failed", "superseded", "unreachable"}

// String is the outcome in lower case.
func (o Outcome) String() string {
	if int(o) >= outcomes {
		return "unknown"
	}
	return outcomeNames[o]
}

// Result is what a run came to. The zero value is Done.
type Result struct {
	// Outcome says what comes next.
	Outcome Outcome
	// After is when to run again at the earliest, counted from the end of the run; its meaning is the outcome's. Negative
	// values count as zero.
	After time.Duration
	// Offline says that the run did not ask the runtime, so that its outcome says nothing about whether that answers: it does not
	// count for the breaker. Probes always count.
	Offline bool
	// Message says for people how it went. It must hold nothing confidential. Engine.Inspect shows its first 1024 bytes.
	Message string
}

// Event is a run that ended, as Options.Observe sees it.
type Event struct {
	// Key that ran.
	Key Key
	// Priority that it was queued with.
	Priority Priority
	// Attempt of the run, see Run.Attempt.
	Attempt int
	// Probing says that it was the probe of an open breaker.
	Probing bool
	// QueueWait is how long the key was queued before, the time in which its breaker was open included.
	QueueWait time.Duration
	// RunTime is how long the run took.
	RunTime time.Duration
	// Outcome as the engine understands it: a panic is Retry, and so is Superseded without a reason.
	Outcome Outcome
	// Message of the result, or the panic's text.
	Message string
	// Stack of the panic that ended the run, or nil.
	Stack []byte
}
