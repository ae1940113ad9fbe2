package fleet

import (
	"time"

	"github.com/kyma-project/mothership/internal/engine"
)

// Queue is the engine as the controllers feed it: work on runtimes that another replica has is left to that one. What is left out is
// not lost: whoever gets a runtime looks at all of it. It is safe for concurrent use.
type Queue struct {
	*engine.Engine
	// Owns says whether this replica works on a runtime; nil: on all.
	Owns func(runtime string) bool
}

// Add is the engine's.
func (q *Queue) Add(k engine.Key, p engine.Priority) {
	if q.owns(k) {
		q.Engine.Add(k, p)
	}
}

// Renew is the engine's.
func (q *Queue) Renew(k engine.Key, p engine.Priority) {
	if q.owns(k) {
		q.Engine.Renew(k, p)
	}
}

// AddAfter is the engine's.
func (q *Queue) AddAfter(k engine.Key, d time.Duration, p engine.Priority) {
	if q.owns(k) {
		q.Engine.AddAfter(k, d, p)
	}
}

// Preempt is the engine's.
func (q *Queue) Preempt(k engine.Key) {
	if q.owns(k) {
		q.Engine.Preempt(k)
	}
}

func (q *Queue) owns(k engine.Key) bool { return q.Owns == nil || q.Owns(k.Runtime) }
