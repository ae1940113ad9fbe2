// Package engine is the fleet's scheduler: it decides which component of which runtime is worked on next, and when again.
//
// # Overview
//
// Work is named by a Key (runtime, component); the component "" is the runtime itself: its probe and verification. The
// engine calls a Runner for a key and reads the Result: done, waiting for facts, retry, pending, failed, superseded or
// unreachable. It coalesces triggers, keeps one lane per runtime, retries with backoff and jitter, wakes who waits for a
// fact, and opens a circuit breaker per runtime, so that a runtime that does not answer costs one probe and not a hundred
// retries. It knows nothing of Kubernetes and nothing of why a key is to run: a run looks at everything.
//
// # States
//
// One key:
//
//	           Add, Preempt, timer                 Add, Wake or timer during the run,
//	(idle) ──────────────────────────► queued ◄──── Superseded, Unreachable ──────┐
//	   ▲                                 │  ▲                                     │
//	   │            turn of its lane and │  │                                     │
//	   │                of its priority  │  ├── timer, Add ──── delayed ◄───┐     │
//	   │                                 │  ├── Wake, Add ───── waiting ◄─┐ │     │
//	   │                                 │  └── Add ─────────── failed ◄┐ │ │     │
//	   │                                 ▼                             │ │ │     │
//	   │                              running ───────── Failed ────────┘ │ │     │
//	   │                                 │ │ ├───────── Waiting ─────────┘ │     │
//	   └──────── Done without After ─────┘ │ └── Retry, Pending, Done+After ┘     │
//	                                       └──────────────────────────────────────┘
//
// One run:
//
//	         Ask, no answer for Patience         the runtime answers, or the run asks no longer
//	in hand ─────────────────────────────► set aside ─────────────────────────────────────────► in hand
//	   │ counts for the limit                  │ does not, and nothing else of its lane begins
//	   └────────────────► ended ◄──────────────┘
//
// One lane's breaker:
//
//	          BreakerFailures × Unreachable in a row
//	closed ───────────────────────────────────────────► open: nothing runs, everything queues
//	   ▲                                                  │  ▲
//	   │ any other outcome, Reset, Forget     at its time │  │ Unreachable: the pause doubles
//	   │                                                  ▼  │
//	   └──────────────────────────────────────── probe: one run of Key{runtime, ""}
//
// # Usage
//
// New takes the Runner; Run blocks until its context ends. Everything else may be called at any time from any goroutine,
// before Run and from within a run too. A run that needs facts calls Run.Await first and looks whether they are there
// afterwards; who publishes a fact stores it first and calls Engine.Wake afterwards: then no wake is lost, whatever the
// order in time. A run asks Run.Checkpoint where stopping does no harm, and ends with Superseded if that returns an error.
//
// # Invariants
//
//   - No two runs of one key at once, not even if the first was forgotten and does not want to end.
//   - At most Stats.Limit runs in hand, at most Options.Workers, when one begins; at most Options.Probes probes beside them; at
//     most Options.MaxRuns under way at all. A run that waits for an answer for longer than answers take (Run.Ask) is set aside and
//     is not in hand: runtimes that hang take no place from those that answer. One that waits for the journal may give its place away meanwhile (Run.GiveWay).
//   - At most Options.PerRuntime runs of one runtime. One, until it has answered something since something of it is to be
//     done, and again when one of its runs was set aside or found it Unreachable: a runtime that hangs holds one run, not eight.
//   - After Add or Preempt returns, a run of the key begins later. After AddAfter, one begins at that time or later,
//     unless an earlier AddAfter of the key is still ahead: that one counts for both. Only Forget drops work.
//   - A Wake after Await in the same run makes the key run again, whatever the run returns. A Wake touches nobody else.
//   - A lane has the highest priority that is queued in it. Lanes of one priority take turns; within a lane and a priority,
//     who queued first goes first.
//   - Higher priorities go first, of lanes and within a lane. While something of a lower priority waits, at most 8 (Trigger), 16
//     (Retry) or 32 (Verify) runs of higher ones begin before one of it, beside those of still lower ones, one of each at most. So
//     nobody waits for ever, and whatever the wave, eight of nine places are for changes.
//   - A run is superseded at most three times in a row; then checkpoints let it come to an end. Preemption has no bound.
//   - While a breaker is open nothing of its lane begins but the probe. A result counts for the breaker only if the run
//     began since the breaker last opened or closed: what hung before says nothing about now. The pauses between probes
//     begin anew only when a run reaches the runtime after the breaker has been closed for as long as the longest pause.
//   - A key that is idle (done, nothing scheduled) costs no memory, and neither does a runtime of idle keys.
//   - All work starts in Run's goroutines, and Run returns when all of them have ended.
//
// # Trade-offs
//
// There is one lock for everything. It is held for microseconds, and never while a run or Options.Observe is called; a replica
// that needs more than some hundred thousand operations per second would need several engines, each with its share.
//
// State is in memory only. After a restart the caller adds what is to be looked at; a run that finds nothing to do
// is cheap. So a drain may drop the queue.
//
// Add does not wait for the backoff of its key: who triggers in a loop gets a run per trigger. The backoff itself counts
// from the last success, also across changes of the desired state.
//
// The limit of runs in hand is found by climbing (limiter.go): it wanders about the knee of throughput by a fifth up and down, and
// needs some seconds in which there is more to do than may begin. It finds what is best for throughput, with a price on more; it
// does not know how long a run may take.
//
// A run that is set aside comes back without asking: more may be in hand then than the limit is, and nothing begins until they
// are fewer. What a run needs while it is set aside (memory, a goroutine) is bounded by Options.MaxRuns only.
//
// docs/operations.md says what each limit is for, and how to see it.
//
// # Imports
//
// The standard library, and nothing else.
package engine
